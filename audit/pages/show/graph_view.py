"""A graph of calls as pages show it: boxes and curves with their texts and queries."""

from typing import NamedTuple

from audit.queries.call_graph import CallGraph, Edge, Node
from audit.show.call_graph import Box, Curve, Drawing, Line, draw, short_name
from audit.show.figures import count


class ShownNode(NamedTuple):
    """A node: its place, its name, and the query for its calls."""

    box: Box[Node]
    label: str
    title: str
    query: str


class ShownEdge(NamedTuple):
    """An edge: its place, and the query for its calls."""

    curve: Curve
    edge: Edge
    label: str
    failed_label: str
    title: str
    query: str


class ShownGraph(NamedTuple):
    """A graph to draw, and what it is about."""

    graph: CallGraph
    drawing: Drawing[Node]
    nodes: list[ShownNode]
    edges: list[ShownEdge]


def shown_graph(graph: CallGraph) -> ShownGraph:
    """The graph with everything that its template needs."""
    labels = [_labels(edge) for edge in graph.edges]
    lines = [
        Line(edge.source, edge.target, edge.calls, " ".join(texts))
        for edge, texts in zip(graph.edges, labels, strict=True)
    ]
    drawing = draw(lines)
    nodes = [
        ShownNode(
            box,
            short_name(_name(box.node, graph.folded)),
            _name(box.node, graph.folded),
            _query(graph.scope, box.node.query),
        )
        for box in drawing.boxes
    ]
    edges = [
        ShownEdge(
            curve,
            edge,
            *texts,
            f"{_name(edge.source, graph.folded)} → {_name(edge.target, graph.folded)}",
            _query(graph.scope, edge.query),
        )
        for curve, edge, texts in zip(drawing.curves, graph.edges, labels, strict=True)
    ]
    return ShownGraph(graph, drawing, nodes, edges)


def _labels(edge: Edge) -> tuple[str, str]:
    if not edge.failed:
        return count(edge.calls), ""
    return f"{count(edge.calls)},", f"{count(edge.failed)} failed"


def _name(node: Node, folded: int) -> str:
    if node.kind == "others":
        return f"{folded} others"
    return node.name or "no agent"


def _query(scope: str, terms: str) -> str:
    return f"{scope} {terms}" if terms else ""
