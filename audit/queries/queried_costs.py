"""What the calls that a query selects cost. They are read one by one, within a budget."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from audit.queries.call_filter import CallFilter
from audit.queries.call_walk import QUERY_BUDGET, Budget, Walk
from audit.queries.costs import (
    LISTED,
    CallCosts,
    Cost,
    NamedCost,
    ToolCost,
    VersionCost,
    by_dearest,
    dearest,
)
from audit.queries.price_lists import prices_held
from audit.queries.time_range import TimeRange


@dataclass(frozen=True, slots=True)
class QueriedCosts:
    """What matching calls cost."""

    tools: list[ToolCost]
    """The dearest first, likewise their versions."""
    by: CallCosts
    searched_until: datetime | None
    """Set if the budget ended here: older calls were not read, and are in no amount."""


def costs_of_query(
    wanted: CallFilter, of: TimeRange, now: datetime, *, budget: Budget = QUERY_BUDGET
) -> QueriedCosts | None:
    """What the completed calls of a range cost that match. The filter has no payload terms.

    None if the tenant uses no price list.
    """
    held = prices_held(of.start, of.end)
    if held is None:
        return None
    walk = Walk(wanted, now, budget)
    total = Cost()
    versions, agents, models, runs, traces = _Sums(), _Sums(), _Sums(), _Sums(), _Sums()
    for counts, tool, version, agent, agent_version, model, run, trace, *sums in walk.summed(
        "costs_summed_before", held.parameters()
    ):
        if counts:
            calls, priced, amount = sums[:3]
            cost = Cost(calls, priced, amount)
            total.add(cost)
            versions.add(tool, version, cost)
            agents.add(agent, agent_version, cost)
            models.add(model, "", cost)
            runs.add(run, "", cost)
            traces.add(trace, "", cost)
    tools: dict[str, ToolCost] = {}
    for (tool, version), cost in versions.items():
        one = tools.setdefault(tool, ToolCost(tool))
        one.cost.add(cost)
        one.versions.append(VersionCost(tool, version, cost))
    by = CallCosts(
        held.currency, total, agents.listed(), models.listed(), runs.listed(), traces.listed()
    )
    return QueriedCosts(by_dearest(tools), by, walk.stopped.at if walk.stopped else None)


class _Sums(dict[tuple[str, str], Cost]):
    """Costs by name and version."""

    def add(self, name: str | None, version: str | None, cost: Cost) -> None:
        self.setdefault((name or "", version or ""), Cost()).add(cost)

    def listed(self) -> list[NamedCost]:
        """The dearest ones."""
        named = [NamedCost(*key, cost) for key, cost in self.items()]
        return sorted(named, key=_dearest_named)[:LISTED]


def _dearest_named(one: NamedCost) -> tuple[Decimal, int, str]:
    return dearest(one.cost, f"{one.name}\0{one.version}")
