"""Figures of a query: of one that finds all calls, they are the figures of the range."""

import random
from dataclasses import replace
from datetime import UTC, timedelta

import pytest

from audit.queries.agents import agents_in, agents_of_query
from audit.queries.call_filter import CallFilter
from audit.queries.call_query import Reader, parse
from audit.queries.call_walk import Budget
from audit.queries.conversations import conversations_in, conversations_of_query
from audit.queries.latency import ToolFilter, latency
from audit.queries.queried import figures_of_query, violations_of_query
from audit.queries.summary import summary
from audit.queries.time_range import TimeRange
from audit.queries.unrun import unrun_calls
from audit.queries.violations import ViolationFilter, violations
from tenants.scope import tenant_scope
from tests.support.call_histories import MIDNIGHT, some_call, some_decision, some_long_call
from tests.support.factories import Cast, make_decision, send_events

OF = TimeRange(MIDNIGHT - timedelta(minutes=57), MIDNIGHT + timedelta(minutes=49), UTC)
NOW = MIDNIGHT + timedelta(hours=2)
ALL = "NOT tool:none*"
UNRUN = "state:refused OR state:awaiting OR state:approved"


def within(text: str, of: TimeRange = OF) -> CallFilter:
    query = parse(text, Reader(sees_payloads=True))
    assert not query.problems
    return replace(query.wanted, since=of.start, until=of.end)


@pytest.fixture
def history(acme: Cast) -> Cast:
    """A tenant with calls of all kinds, and decisions."""
    rng = random.Random(29)
    events = [some_call(rng, number) for number in range(150)]
    events += [some_long_call(rng, number) for number in range(12)]
    send_events(acme.tenant, [one for call in events for one in call])
    send_events(acme.tenant, [some_decision(rng) for _ in range(20)])
    return acme


def test_query_of_all_calls_has_the_figures_of_the_range(history: Cast) -> None:
    with tenant_scope(history.tenant.pk):
        found = figures_of_query(within(ALL), OF, NOW)
        whole = latency(OF, ToolFilter())
        assert found.searched_until is None
        assert found.summary == summary(OF.start, OF.end)
        assert found.summary.cancelled
        assert found.latency.total == whole.total
        assert found.latency.parts == whole.parts
        assert found.latency.versions == whole.versions
        assert found.latency.errors == whole.errors
        assert found.unrun.calls == 0


def test_query_of_a_tool_has_the_figures_of_the_tool(history: Cast) -> None:
    with tenant_scope(history.tenant.pk):
        for tool in ("a", "b", "ä"):
            found = figures_of_query(within(f"tool:{tool}"), OF, NOW)
            whole = latency(OF, ToolFilter(tool=tool))
            assert found.latency.total == whole.total
            assert found.latency.parts == whole.parts


def test_parts_of_a_query_add_up(history: Cast) -> None:
    with tenant_scope(history.tenant.pk):
        every = figures_of_query(within(ALL), OF, NOW).summary
        parts = [
            figures_of_query(within(text), OF, NOW).summary
            for text in ("run:r1 state:failed", "run:r1 NOT state:failed", "NOT run:r1")
        ]
    assert parts[0].errors == parts[0].calls > 0 == parts[1].errors
    for name in ("calls", "open", "cancelled", "errors", "violations", "prompt_tokens"):
        assert sum(getattr(one, name) for one in parts) == getattr(every, name)


def test_calls_that_did_not_run_are_counted_if_the_query_asks_for_them(history: Cast) -> None:
    with tenant_scope(history.tenant.pk):
        found = figures_of_query(within(f"{UNRUN} OR {ALL}"), OF, NOW)
        started = found.counts.calls + found.counts.open + found.counts.cancelled
        whole = unrun_calls(OF.start, OF.end, {"": started}).total
        assert found.summary == summary(OF.start, OF.end)
    assert found.unrun.calls > 0
    for name in ("started", "refused", "awaiting", "approved", "asked_for", "refusal_rate"):
        assert getattr(found.unrun, name) == getattr(whole, name), name


@pytest.mark.parametrize(
    "only",
    [
        ViolationFilter(),
        ViolationFilter(tool="a"),
        ViolationFilter(version="2", outcome="coerced"),
        ViolationFilter(code="WRONG_TYPE", path="$.items[*]"),
        ViolationFilter(code="OTHER"),
    ],
)
def test_violations_of_all_calls_are_those_of_the_range(
    only: ViolationFilter, history: Cast
) -> None:
    with tenant_scope(history.tenant.pk):
        found = violations_of_query(within(ALL), OF, only, NOW)
        whole = violations(OF, replace(only, side="results"))
    assert found.searched_until is None
    assert found.violations == whole
    assert bool(whole.total) == (only.code != "OTHER")


def test_violations_of_a_query_are_of_its_calls(history: Cast) -> None:
    with tenant_scope(history.tenant.pk):
        found = violations_of_query(within("violation:* tool:a"), OF, ViolationFilter(), NOW)
        whole = violations(OF, ViolationFilter(tool="a", side="results"))
    assert found.violations.total == whole.total
    kinds = zip(found.violations.kinds, whole.kinds, strict=True)
    assert all(one.of_calls == one.calls <= other.of_calls for one, other in kinds)


def test_what_the_budget_did_not_reach_is_in_no_figure(history: Cast) -> None:
    budget = Budget(rows=20, seconds=600, first=10)
    with tenant_scope(history.tenant.pk):
        cut = figures_of_query(within(ALL), OF, NOW, budget=budget)
        assert cut.unrun.started == 20
        assert cut.searched_until is not None
        since = replace(OF, start=cut.searched_until)
        newer = figures_of_query(within(ALL, since), OF, NOW)
        after = replace(OF, start=cut.searched_until + timedelta(microseconds=1))
        newest = figures_of_query(within(ALL, after), OF, NOW)
        broken = violations_of_query(within(ALL), OF, ViolationFilter(), NOW, budget=budget)
    # The calls of one instant may be on both sides of the end.
    assert newest.unrun.started < 20 <= newer.unrun.started
    assert newest.summary.calls <= cut.summary.calls <= newer.summary.calls
    assert broken.searched_until == cut.searched_until
    assert broken.violations.total == cut.summary.violations


def test_query_outside_the_range_finds_nothing(history: Cast) -> None:
    before = within(ALL, replace(OF, start=OF.end, end=OF.start))
    with tenant_scope(history.tenant.pk):
        found = figures_of_query(before, OF, NOW)
        broken = violations_of_query(before, OF, ViolationFilter(), NOW)
    assert (found.unrun.started, found.searched_until) == (0, None)
    assert (broken.violations.kinds, broken.searched_until) == ([], None)


@pytest.mark.slow
def test_agents_of_all_calls_are_those_of_the_range(acme: Cast) -> None:
    rng = random.Random(30)
    for agent, version in (("planner", "1"), ("planner", "2"), ("writer", None), (None, None)):
        for number in range(15):
            members = {"agent": agent, "agent_version": version}
            context = {name: value for name, value in members.items() if value}
            start, *end = some_call(rng, number)
            send_events(acme.tenant, [start | {"context": context}, *end])
    send_events(acme.tenant, [some_decision(rng) for _ in range(5)])
    context = {"agent": "planner"}
    ago = [timedelta(minutes=minutes) for minutes in (121, 122, 400)]  # the last is too early
    refusals = [make_decision("denied", decided_at=NOW - each, context=context) for each in ago]
    send_events(acme.tenant, refusals)
    with tenant_scope(acme.tenant.pk):
        whole = agents_in(OF).agents
        assert {one.total.name for one in whole} == {"planner", "", "writer"}
        for text in (ALL, f"{UNRUN} OR {ALL}"):
            assert agents_of_query(within(text), OF, NOW) == (whole, None)
        ((planner,), _) = agents_of_query(within("agent:planner agent-version:2"), OF, NOW)
        budget = Budget(rows=20, seconds=600, first=10)
        some, searched_until = agents_of_query(within(ALL), OF, NOW, budget=budget)
        refused = agents_of_query(within("agent:planner"), OF, NOW)[0][0].total.refused
    assert refused == 2
    assert [one.name for one in planner.versions] == ["2"]
    assert sum(one.total.calls for one in some) == 20
    assert searched_until is not None


def test_conversations_of_all_calls_are_those_of_the_range(history: Cast) -> None:
    """Traces of a range are those that began in it: so of a range that has them whole."""
    of = TimeRange(MIDNIGHT - timedelta(hours=2), MIDNIGHT + timedelta(hours=2), UTC)
    with tenant_scope(history.tenant.pk):
        found, searched_until = conversations_of_query(within(ALL, of), NOW)
        of_one, _ = conversations_of_query(within("run:r1 trace:trace-1", of), NOW)
        whole = {one.run_id: one for one in conversations_in(of)}
    assert searched_until is None
    assert {one.run_id for one in found} == {"r1", "r2"}
    assert sum(one.calls for one in found) == 150
    assert [one.last_at for one in found] == sorted((one.last_at for one in found), reverse=True)
    assert found[0].last_at == max(one.last_at for one in whole.values())
    assert [(one.run_id, one.traces) for one in of_one] == [("r1", 1)]
