"""What calls cost, by the tenant's price lists.

Money is computed when it is read: exact numbers of calls and units, times the prices of their time.
So a changed amount holds at once, for all calls since its list's day. Calls without a price are
counted as such; they are in no amount.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from audit.queries.agents import CALLS_MAX as AGENT_CALLS_MAX
from audit.queries.agents import bounds
from audit.queries.listed_call import ListedCall
from audit.queries.over_time import slot_parameters
from audit.queries.price_lists import Held, prices_held
from audit.queries.time_range import TimeRange
from audit.sql.run import rows

CALLS_MAX: Final = 100_000
"""How many calls of a range are read one by one, the newest ones."""
LISTED: Final = 20
"""How many agents, models, conversations and traces are returned."""


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
    """What a tool cost, and its versions, most expensive first."""

    tool: str
    cost: Cost = field(default_factory=Cost)
    versions: list[VersionCost] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RangeCosts:
    """What the calls of a range cost in all, by part of it and by tool, most expensive first."""

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
    is_cut: bool = False
    """Whether there may be older calls that were not read."""


@dataclass(slots=True)
class AgentCallCosts:
    """What calls cost that were read one by one, in all and by agent; '': no agent."""

    currency: str
    total: Cost = field(default_factory=Cost)
    agents: dict[str, Cost] = field(default_factory=dict)


def costs_over_time(of: TimeRange, tool: str | None = None) -> RangeCosts | None:
    """What the calls of a range cost, of all tools or of one.

    None if the tenant uses no price list. One statement, two with a list.
    """
    held = prices_held(of.previous.start, of.end)
    if held is None:
        return None
    series = RangeCosts(of, held.currency, Cost(), Cost(), [Cost() for _ in of.parts], [])
    by_tool: dict[str, ToolCost] = {}
    slots = slot_parameters((of.previous.start, *of.bounds))
    parameters = slots | held.parameters() | {"tool": tool}
    for slot, name, version, *sums in rows("costs_over_time", parameters):
        cost = Cost(*sums)
        if name is not None:
            one = by_tool.setdefault(name, ToolCost(name))
            one.cost.add(cost)
            one.versions.append(VersionCost(name, version, cost))
        elif slot == 0:
            series.previous.add(cost)
        else:
            series.parts[slot - 1].add(cost)
            series.total.add(cost)
    ran = [one for one in by_dearest(by_tool) if one.cost.calls]
    return RangeCosts(of, held.currency, series.total, series.previous, series.parts, ran)


def costs_by_dimension(of: TimeRange, *, most: int = CALLS_MAX) -> CallCosts | None:
    """What the newest calls of a range cost, and the dearest agents, models and so on.

    `most` calls are read. None if the tenant uses no price list. One statement, two with a list.
    """
    held = prices_held(of.start, of.end)
    if held is None:
        return None
    costs = CallCosts(held.currency)
    lists = {
        "agent": costs.agents,
        "model": costs.models,
        "run": costs.conversations,
        "trace": costs.traces,
    }
    limits = {"call_limit": most, "row_limit": LISTED}
    for kind, name, version, *sums in rows(
        "costs_by_dimension", _ANY | held.parameters() | bounds(of) | limits
    ):
        if kind == "all":
            costs.total = Cost(*sums)
        else:
            lists[kind].append(NamedCost(name or "", version or "", Cost(*sums)))
    costs.is_cut = costs.total.calls >= most
    return costs


def costs_of_agents(of: TimeRange, agent: str | None = None) -> AgentCallCosts | None:
    """What the newest calls of a range cost, of all agents or of one, as `agents_in` counts them.

    None if the tenant uses no price list. One statement, two with a list.
    """
    return _by_agent(prices_held(of.start, of.end), bounds(of) | {"agent": agent}, AGENT_CALLS_MAX)


def cost_of_trace(held: Held | None, trace_id: str) -> AgentCallCosts | None:
    """What the calls of a trace cost by these lists; None without any. At most one statement."""
    return _by_agent(held, {"trace_id": trace_id}, CALLS_MAX)


def cost_of_conversation(held: Held | None, run_id: str) -> AgentCallCosts | None:
    """What the calls of a conversation cost, likewise."""
    return _by_agent(held, {"run_id": run_id}, CALLS_MAX)


def costs_of_calls(calls: Sequence[ListedCall]) -> tuple[str, dict[tuple[date, UUID], Decimal]]:
    """The currency, and what each of these calls with a price cost, by day and id.

    '' if the tenant uses no price list. One statement, two with a list.
    """
    ended = [call for call in calls if call.state in ("ok", "failed")]
    held = prices_held() if ended else None
    if held is None:
        return "", {}
    parameters = held.parameters() | {
        "days": [call.started_on for call in ended],
        "invocation_ids": [call.invocation_id for call in ended],
        "tools": [call.tool_name for call in ended],
        "starts": [call.started_at for call in ended],
    }
    priced = rows("costs_of_calls", parameters)
    return held.currency, {(day, call_id): cost for day, call_id, cost in priced}


_ANY: dict[str, datetime | str | None] = dict.fromkeys(
    ("start", "end", "first_day", "last_day", "trace_id", "run_id", "agent")
)


def _by_agent(held: Held | None, chosen: dict[str, Any], most: int) -> AgentCallCosts | None:
    if held is None:
        return None
    costs = AgentCallCosts(held.currency)
    for is_total, agent, *sums in rows(
        "costs_by_agent", _ANY | held.parameters() | {"call_limit": most} | chosen
    ):
        if is_total:
            costs.total = Cost(*sums)
        else:
            costs.agents[agent or ""] = Cost(*sums)
    return costs


def by_dearest(tools: Mapping[str, ToolCost]) -> list[ToolCost]:
    """Tools and their versions, most expensive first."""
    for one in tools.values():
        one.versions.sort(key=lambda each: dearest(each.cost, each.version))
    return sorted(tools.values(), key=lambda one: dearest(one.cost, one.tool))


def dearest(cost: Cost, name: str) -> tuple[Decimal, int, str]:
    """A key that sorts most expensive first."""
    return -cost.amount, -cost.calls, name
