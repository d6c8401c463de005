"""What calls cost, by the tenant's price lists.

Money is computed when it is read: exact numbers of calls and units, times the prices of their time.
So a changed amount holds at once, for all calls since its list's day. Calls without a price are
counted as such; they are in no amount.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from audit.queries.agents import bounds
from audit.queries.over_time import slot_parameters
from audit.queries.price_lists import Held, prices_held
from audit.queries.time_range import TimeRange
from audit.sql.run import rows

CALLS_MAX: Final = 100_000
"""How many calls of a range are read one by one, the newest ones."""
LISTED: Final = 20
"""How many agents, models, conversations and traces are returned."""
_BY_AGENT, _BY_MODEL, _BY_RUN, _BY_TRACE = 0b0111, 0b1011, 0b1101, 0b1110
_WHOLE = 0b1111  # PostgreSQL's grouping(agent, model, run, trace)


@dataclass(slots=True)
class Cost:
    """Completed calls, those of them with a price, and what these cost."""

    calls: int = 0
    priced: int = 0
    amount: Decimal = Decimal(0)

    @property
    def unpriced(self) -> int:
        """Completed calls without a price."""
        return self.calls - self.priced

    def add(self, other: "Cost") -> None:
        """Add another cost."""
        self.calls += other.calls
        self.priced += other.priced
        self.amount += other.amount


@dataclass(frozen=True, slots=True)
class VersionCost:
    """What the calls of a version of a tool cost; '': no version was reported."""

    tool: str
    version: str
    cost: Cost


@dataclass(slots=True)
class ToolCost:
    """What a tool cost, and its versions, the dearest first."""

    tool: str
    cost: Cost = field(default_factory=Cost)
    versions: list[VersionCost] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RangeCosts:
    """What the calls of a range cost in all, by part of it and by tool, the dearest first."""

    of: TimeRange
    currency: str
    total: Cost
    previous: Cost
    """Of the range before."""
    parts: Sequence[Cost]
    tools: Sequence[ToolCost]


@dataclass(frozen=True, slots=True)
class NamedCost:
    """What the calls of an agent, model, conversation or trace cost; '': none was reported."""

    name: str
    version: str
    """Of an agent; '' of others."""
    cost: Cost


@dataclass(slots=True)
class CallCosts:
    """What calls cost that were read one by one, the dearest of each kind first."""

    currency: str
    total: Cost = field(default_factory=Cost)
    agents: list[NamedCost] = field(default_factory=list)
    models: list[NamedCost] = field(default_factory=list)
    conversations: list[NamedCost] = field(default_factory=list)
    traces: list[NamedCost] = field(default_factory=list)

    @property
    def is_cut(self) -> bool:
        """Whether there may be older calls that were not read."""
        return self.total.calls >= CALLS_MAX


def costs_over_time(of: TimeRange) -> RangeCosts | None:
    """What the calls of a range cost; None if the tenant uses no price list.

    One statement, two with a list.
    """
    held = prices_held(of.previous.start, of.end)
    if held is None:
        return None
    series = RangeCosts(of, held.currency, Cost(), Cost(), [Cost() for _ in of.parts], [])
    by_tool: dict[str, ToolCost] = {}
    parameters = slot_parameters((of.previous.start, *of.bounds)) | held.parameters()
    for slot, tool, version, *sums in rows("costs_over_time", parameters):
        cost = Cost(*sums)
        if tool is not None:
            one = by_tool.setdefault(tool, ToolCost(tool))
            one.cost.add(cost)
            one.versions.append(VersionCost(tool, version, cost))
        elif slot == 0:
            series.previous.add(cost)
        else:
            series.parts[slot - 1].add(cost)
            series.total.add(cost)
    tools = sorted(by_tool.values(), key=lambda one: _dearest(one.cost, one.tool))
    for one in tools:
        one.versions.sort(key=lambda each: _dearest(each.cost, each.version))
    ran = [one for one in tools if one.cost.calls]
    return RangeCosts(of, held.currency, series.total, series.previous, series.parts, ran)


def costs_by_dimension(
    of: TimeRange, agent: str | None = None, *, newest: int = CALLS_MAX, listed: int = LISTED
) -> CallCosts | None:
    """What the `newest` calls of a range cost, of all agents or of one.

    None if the tenant uses no price list. One statement, two with a list.
    """
    held = prices_held(of.start, of.end)
    if held is None:
        return None
    limits = {"agent": agent, "call_limit": newest, "row_limit": listed}
    return _by_dimension(held, bounds(of) | limits)


def cost_of_trace(trace_id: str) -> CallCosts | None:
    """What the calls of a trace cost. As `costs_by_dimension`."""
    held = prices_held()
    return None if held is None else _by_dimension(held, {"trace_id": trace_id})


def cost_of_conversation(run_id: str) -> CallCosts | None:
    """What the calls of a conversation cost. As `costs_by_dimension`."""
    held = prices_held()
    return None if held is None else _by_dimension(held, {"run_id": run_id})


_ANY: dict[str, datetime | str | None] = dict.fromkeys(
    ("start", "end", "first_day", "last_day", "trace_id", "run_id", "agent")
)


def _by_dimension(held: Held, chosen: dict[str, Any]) -> CallCosts:
    costs = CallCosts(held.currency)
    lists = {
        _BY_AGENT: costs.agents,
        _BY_MODEL: costs.models,
        _BY_RUN: costs.conversations,
        _BY_TRACE: costs.traces,
    }
    limits = {"call_limit": CALLS_MAX, "row_limit": LISTED}
    for kind, agent, version, model, run_id, trace_id, *sums in rows(
        "costs_by_dimension", _ANY | held.parameters() | limits | chosen
    ):
        cost = Cost(*sums)
        if kind == _WHOLE:
            costs.total = cost
            continue
        name = {_BY_AGENT: agent, _BY_MODEL: model, _BY_RUN: run_id, _BY_TRACE: trace_id}[kind]
        lists[kind].append(NamedCost(name or "", version or "", cost))
    return costs


def _dearest(cost: Cost, name: str) -> tuple[Decimal, int, str]:
    """A key that sorts the dearest first."""
    return -cost.amount, -cost.calls, name
