"""Who made which calls: edges from agents and tools to the tools and agents below them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from audit.queries.agents import CALLS_MAX, bounds
from audit.queries.call_query import quoted
from audit.queries.time_range import TimeRange
from audit.sql.run import rows
from config.instants import iso_exact

NODES_MAX: Final = 200
"""Nodes of a graph; those with the fewest calls are one node for all others."""
_ROWS_MAX = 5_000


class Node(NamedTuple):
    """An agent or a tool. The name of the agent of calls that name none is ''."""

    kind: Literal["agent", "tool", "others"]
    name: str

    @property
    def query(self) -> str:
        """The term that finds its calls; '' if it stands for several nodes."""
        return "" if self.kind == "others" else _term(self.kind, self.name)


OTHERS: Final = Node("others", "")


@dataclass(slots=True)
class Edge:
    """Calls of a tool that an agent or a tool made, or calls that an agent made inside a tool."""

    source: Node
    target: Node
    calls: int
    failed: int

    @property
    def query(self) -> str:
        """The terms that find its calls; '' if it stands for several edges."""
        if OTHERS in (self.source, self.target):
            return ""
        terms = [_term("agent" if self.source.kind == "agent" else "caller", self.source.name)]
        terms.append(_term(self.target.kind, self.target.name))
        return " ".join(terms)


@dataclass(frozen=True, slots=True)
class CallGraph:
    """The edges of some calls, most calls first."""

    edges: Sequence[Edge]
    calls: int
    folded: int
    """Nodes that became one."""
    scope: str
    """The terms of the query that finds all of its calls."""

    @property
    def is_cut(self) -> bool:
        """Whether there may be older calls that were not counted."""
        return self.calls >= CALLS_MAX


def graph_of_trace(trace_id: str) -> CallGraph:
    """The graph of a trace. One statement."""
    return _graph({"trace_id": trace_id}, _term("trace", trace_id))


def graph_of_conversation(run_id: str) -> CallGraph:
    """The graph of a conversation. One statement."""
    return _graph({"run_id": run_id}, _term("conversation", run_id))


def graph_of_range(of: TimeRange, agent: str | None = None) -> CallGraph:
    """The graph of a range: of all its calls, or those of an agent. One statement."""
    scope = f"since:{iso_exact(of.start)} until:{iso_exact(of.end)}"
    return _graph(bounds(of) | {"agent": agent}, scope)


_ANY = dict.fromkeys(("first_day", "last_day", "start", "end", "trace_id", "run_id", "agent"), None)


def _graph(chosen: dict[str, Any], scope: str) -> CallGraph:
    limits = {"call_limit": CALLS_MAX, "row_limit": _ROWS_MAX}
    counted = rows("call_edges", _ANY | chosen | limits)
    edges: dict[tuple[Node, Node], Edge] = {}
    for above_agent, above_tool, agent, tool, calls, failed in counted:
        for source, target in _steps(above_agent, above_tool, agent, tool):
            edge = edges.setdefault((source, target), Edge(source, target, 0, 0))
            edge.calls += calls
            edge.failed += failed
    shown, folded = _folded(list(edges.values()))
    return CallGraph(shown, sum(row[4] for row in counted), folded, scope)


def _steps(
    above_agent: str | None, above_tool: str | None, agent: str, tool: str
) -> Iterator[tuple[Node, Node]]:
    """The edges of calls of a tool: from the call around them, or from their agent."""
    if above_tool is None:
        yield Node("agent", agent), Node("tool", tool)
    elif not agent or agent == above_agent:
        yield Node("tool", above_tool), Node("tool", tool)
    else:  # the tool around them runs another agent
        yield Node("tool", above_tool), Node("agent", agent)
        yield Node("agent", agent), Node("tool", tool)


def _folded(edges: list[Edge]) -> tuple[list[Edge], int]:
    """The edges between the nodes with the most calls, and how many nodes became one."""
    weights: Counter[Node] = Counter()
    for edge in edges:
        weights[edge.source] += edge.calls
        weights[edge.target] += edge.calls
    if len(weights) <= NODES_MAX:
        return edges, 0
    kept = {node for node, _ in weights.most_common(NODES_MAX - 1)}
    merged: dict[tuple[Node, Node], Edge] = {}
    for edge in edges:
        ends = tuple(node if node in kept else OTHERS for node in (edge.source, edge.target))
        if ends == (OTHERS, OTHERS):
            continue
        one = merged.setdefault((ends[0], ends[1]), Edge(ends[0], ends[1], 0, 0))
        one.calls += edge.calls
        one.failed += edge.failed
    return sorted(merged.values(), key=lambda edge: -edge.calls), len(weights) - len(kept)


def _term(name: str, value: str) -> str:
    return f"{name}:{quoted(value)}" if value else f"NOT {name}:*"
