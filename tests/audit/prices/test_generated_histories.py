"""Costs of random calls by random price lists equal a count call by call, after any changes."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from audit.ledger.actions import enter_all_actions
from audit.ledger.baseline import enter_baseline
from audit.ledger.rows import unexplained
from audit.models import PriceList
from audit.queries.call_query import parse
from audit.queries.call_walk import Budget
from audit.queries.costs import (
    Cost,
    cost_of_trace,
    costs_by_dimension,
    costs_of_agents,
    costs_over_time,
)
from audit.queries.price_lists import prices_held
from audit.queries.queried_costs import costs_of_query
from audit.queries.time_range import TimeRange
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.price_histories import DAYS, TOOLS, History, Sent


def sums(cost: Cost) -> tuple[int, int, Decimal]:
    return cost.calls, cost.priced, cost.amount


@pytest.mark.slow
@pytest.mark.generated(4)
@pytest.mark.parametrize("seed", range(12))
def test_costs_equal_a_recount(acme: Cast, seed: int) -> None:
    history = History(acme, random.Random(seed))
    for _ in range(history.rng.randrange(3, 6)):
        for act in history.rng.sample(history.acts, 3):
            act()
    if not history.lists:
        history.change_lists()
    history.count_units()
    with tenant_scope(acme.tenant.id):
        lists = PriceList.objects.for_tenant(acme.tenant.id)
        assert all(one.in_use == one.prices for one in lists)
    for _ in range(6):
        check_a_range(history)
    check_traces(history)
    check_queries(history)


type Chosen = Callable[[Sent], bool]


def between(start: datetime, end: datetime) -> Chosen:
    return lambda call: start <= call.at < end


def both(one: Chosen, other: Chosen) -> Chosen:
    return lambda call: one(call) and other(call)


def has(**values: str) -> Chosen:
    return lambda call: all(getattr(call, name) == value for name, value in values.items())


def some_range(rng: random.Random) -> TimeRange:
    now = datetime.now(UTC)
    earliest = datetime.combine(DAYS[0], datetime.min.time(), UTC)
    start = rng.choice((earliest, earliest + (now - earliest) * rng.random()))
    end = start + (now - start) * rng.choice((1, rng.random()))
    return TimeRange(start, max(end, start + timedelta(minutes=1)), UTC)


def check_a_range(history: History) -> None:
    of = some_range(history.rng)
    within = between(of.start, of.end)
    with tenant_scope(history.cast.tenant.id):
        costs, by = costs_over_time(of), costs_by_dimension(of)
        of_agents, of_planner = costs_of_agents(of), costs_of_agents(of, "planner")
    if costs is None or by is None or of_agents is None or of_planner is None:
        assert not history.lists
        return
    assert sums(costs.total) == sums(by.total) == history.cost(within)
    assert sums(costs.previous) == history.cost(between(of.previous.start, of.start))
    for part, bounds in zip(costs.parts, of.parts, strict=True):
        assert sums(part) == history.cost(between(*bounds))
    called = {(call.tool, call.version) for call in history.calls if within(call)}
    versions = [each for one in costs.tools for each in one.versions if each.cost.calls]
    assert {(each.tool, each.version) for each in versions} == called
    for each in versions:
        chosen = both(within, has(tool=each.tool, version=each.version))
        assert sums(each.cost) == history.cost(chosen)
    for tool in costs.tools:
        assert sums(tool.cost) == history.cost(both(within, has(tool=tool.tool)))
    agents = {call.agent for call in history.calls if within(call)}
    assert {one.name for one in by.agents} == agents
    for one in by.agents:
        assert sums(one.cost) == history.cost(both(within, has(agent=one.name)))
    assert sums(of_agents.total) == history.cost(within)
    assert of_agents.agents == {one.name: one.cost for one in by.agents}
    assert sums(of_planner.total) == history.cost(both(within, has(agent="planner")))


def check_traces(history: History) -> None:
    with tenant_scope(history.cast.tenant.id):
        for trace_id in {call.trace_id for call in history.calls}:
            costs = cost_of_trace(prices_held(), trace_id)
            if costs is not None:
                assert sums(costs.total) == history.cost(has(trace_id=trace_id))


def terms_of_cost(history: History) -> list[tuple[str, Chosen]]:
    """Queries by the cost of calls, with an amount that a call has, and which calls they find."""

    def costs(test: Callable[[Decimal], bool]) -> Chosen:
        def chosen(call: Sent) -> bool:
            _, priced, cost = history.cost(lambda one: one is call)
            return bool(priced) and test(cost)

        return chosen

    example = history.rng.choice(history.calls)
    _, _, amount = history.cost(lambda one: one is example)
    more = amount + history.rng.choice((Decimal(0), Decimal("0.5")))
    priced = costs(lambda _: True)
    return [
        (f"cost:>{amount:f}", costs(lambda cost: cost > amount)),
        (f"cost:<={amount:f}", costs(lambda cost: cost <= amount)),
        (f"cost:{amount:f}..{more:f}", costs(lambda cost: amount <= cost <= more)),
        (f"cost:{amount:f}", costs(lambda cost: cost == amount)),
        ("cost:none", lambda call: not priced(call)),
        ("NOT cost:none", priced),
    ]


def check_queries(history: History) -> None:
    of, now = some_range(history.rng), datetime.now(UTC)
    within = between(of.start, of.end)
    tool = history.rng.choice(TOOLS)
    budget = Budget(rows=100_000, seconds=600)
    for text, chosen in (
        ("NOT tool:none", within),
        (f"tool:{tool}", both(within, has(tool=tool))),
        ("agent:planner", both(within, has(agent="planner"))),
        *((text, both(within, chosen)) for text, chosen in terms_of_cost(history)),
    ):
        wanted = replace(parse(text).wanted, since=of.start, until=of.end)
        with tenant_scope(history.cast.tenant.id):
            found = costs_of_query(wanted, of, now, budget=budget)
        if found is None:
            continue
        assert found.searched_until is None
        assert sums(found.by.total) == history.cost(chosen)
        for one in found.tools:
            assert sums(one.cost) == history.cost(both(chosen, has(tool=one.tool)))
        for each in found.by.agents:
            assert sums(each.cost) == history.cost(both(chosen, has(agent=each.name)))
        for each in found.by.traces:
            assert sums(each.cost) == history.cost(both(chosen, has(trace_id=each.name)))


def test_changes_of_lists_are_proved(acme: Cast) -> None:
    enter_baseline(acme.tenant.id, datetime.now(UTC))
    history = History(acme, random.Random(1))
    for _ in range(8):
        history.change_lists()
    enter_all_actions(acme.tenant.id)
    with tenant_scope(acme.tenant.id):
        assert unexplained(acme.tenant.id) == []
        lists = PriceList.objects.for_tenant(acme.tenant.id)
        day = lists.order_by("holds_from").values_list("holds_from", flat=True)[0]
        lists.filter(holds_from=day).update(currency="USD")
        assert unexplained(acme.tenant.id) == [
            f"the price list {day} was changed, and no entry of the ledger says so"
        ]
