"""Requests for approvals and rejected arguments are found by their own indexes, as the app role."""

from contextlib import ExitStack
from datetime import UTC, datetime, time, timedelta
from itertools import batched
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from django.db import connection, connections

from audit import sql
from audit.queries import approvals, violation_samples, violations
from audit.queries.call_query import Reader, parse
from audit.queries.call_walk import Budget, Walk
from audit.queries.cursor import NEWEST
from audit.queries.time_range import TimeRange
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, make_cast, make_decision, send_events
from tests.support.query_plans import days_read

pytestmark = pytest.mark.slow

DAY = datetime.now(UTC).date() - timedelta(days=19)
"""A day that few other tests write on: the planner's statistics are of these decisions."""
NOON = datetime.combine(DAY, time(12), UTC)
WRONG = [{"path": "$.city", "code": "WRONG_TYPE", "expected": "string"}]


@pytest.fixture(scope="module")
def decided() -> Cast:
    """4,000 decisions of a day and 200 calls: 40 requests, one unanswered, and 40 rejections."""
    cast = make_cast("plans")
    events = []
    for n in range(4000):
        at = NOON - timedelta(seconds=n)
        if n % 100 == 0:
            pk = str(uuid4())
            events.append(make_decision("awaiting", decided_at=at, invocation_id=pk))
            if n:
                later = at + timedelta(milliseconds=500)
                events.append(make_decision("approved", decided_at=later, invocation_id=pk))
        elif n % 100 == 1:
            events.append(make_decision("rejectedArguments", decided_at=at, violations=WRONG))
        else:
            events.append(make_decision("denied", decided_at=at))
    for n in range(200):
        events += make_call(started_at=NOON + timedelta(seconds=n + 1))
    for some in batched(events, 1000):
        assert send_events(cast.tenant, some)["rejected"] == []
    with connections["owner"].cursor() as cursor:
        cursor.execute(f"ANALYZE decision_{DAY:%Y%m%d}")
    return cast


def index_of(decision: str) -> str:
    """The index of the day whose rows are these decisions."""
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT indexrelid::regclass::text FROM pg_index"
            " WHERE indrelid = %s::regclass AND pg_get_expr(indpred, indrelid) LIKE %s",
            [f"decision_{DAY:%Y%m%d}", f"%'{decision}'%"],
        )
        ((name,),) = cursor.fetchall()
    return str(name)


def plan_of(cast: Cast, name: str, parameters: dict[str, Any]) -> str:
    with tenant_scope(cast.tenant.id), connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() == ("tooltrail_app",)
        cursor.execute(f"EXPLAIN {sql.QUERIES[name]}", parameters | {"tenant_id": cast.tenant.id})
        return "\n".join(row[0] for row in cursor.fetchall())


def recorded(ask: Any, *modules: Any) -> dict[str, dict[str, Any]]:
    """The parameters of each statement that queries of these modules run."""
    seen: dict[str, dict[str, Any]] = {}

    def noting(real: Any) -> Any:
        def noted(name: str, parameters: dict[str, Any], **options: Any) -> Any:
            seen[name] = dict(parameters)
            return real(name, parameters, **options)

        return noted

    with ExitStack() as patches:
        for module in modules:
            for runner in {"rows", "rows_prepared"} & vars(module).keys():
                patches.enter_context(patch.object(module, runner, noting(getattr(module, runner))))
        ask()
    return seen


def test_requests_without_an_answer_are_found_among_all_decisions(decided: Cast) -> None:
    now = NOON + timedelta(hours=1)
    with tenant_scope(decided.tenant.id):
        statements = recorded(
            lambda: approvals.awaiting_now(now, approvals.ApprovalFilter(), limit=51), approvals
        )
        waiting = approvals.awaiting_now(now, approvals.ApprovalFilter(), limit=51)
    assert [one.decided_at for one in waiting] == [NOON]
    plan = plan_of(decided, "approvals", statements["approvals"])
    assert index_of("awaiting") in plan, plan
    # Whether a call ran is looked up once, and decisions are read twice: not once for each request.
    assert plan.count(f" on invocation_{DAY:%Y%m%d}") == 2, plan
    assert plan.count(f" on decision_{DAY:%Y%m%d}") == 2, plan


def test_approvals_of_a_range_read_its_calls_only(decided: Cast) -> None:
    of = TimeRange(NOON - timedelta(hours=1), NOON + timedelta(hours=1), UTC)
    wanted = approvals.ApprovalFilter()
    with tenant_scope(decided.tenant.id):
        statements = recorded(lambda: approvals.approvals(of, wanted, limit=100), approvals)
        assert len(approvals.approvals(of, wanted, limit=100)) == 37
    plan = plan_of(decided, "approvals", statements["approvals"])
    allowed = {DAY + timedelta(days=n) for n in range(-7, 8)}
    assert DAY in days_read(plan) and days_read(plan) <= allowed


def test_kinds_of_rejected_arguments_are_found_among_all_decisions(decided: Cast) -> None:
    of = TimeRange(NOON - timedelta(hours=10), NOON + timedelta(hours=1), UTC)
    wanted = violations.ViolationFilter(side="arguments")
    with tenant_scope(decided.tenant.id):
        statements = recorded(
            lambda: (
                violations.violations(of, wanted),
                violations.new_violations(of, limit=5, has_decisions=True),
                violation_samples.samples(of, wanted, limit=5),
            ),
            violations,
            violation_samples,
        )
        (kind,) = violations.violations(of, wanted).kinds
    assert (kind.violations, kind.calls) == (40, 40)
    for name in ("violation_kinds", "violation_history", "new_violations", "violation_samples"):
        plan = plan_of(decided, name, statements[name])
        assert index_of("rejectedArguments") in plan, plan


@pytest.mark.parametrize(("state", "count"), [("awaiting", 1), ("approved", 39), ("refused", 51)])
def test_list_of_calls_that_did_not_run_does_not_walk_over_calls(
    decided: Cast, state: str, count: int
) -> None:
    wanted = parse(f"state:{state}", Reader(sees_payloads=True)).wanted
    walk = Walk(wanted, NOON + timedelta(hours=1), Budget(rows=100, first=100))
    with tenant_scope(decided.tenant.id):
        calls, stopped = walk.take("before", NEWEST, 51)
    assert [call.state for call in calls] == [state] * count
    assert stopped is None, "the 200 newer calls would have taken the budget"
