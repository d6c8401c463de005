"""Query plans of the list of calls, as the application role.

Under row-level security only leakproof operators can use an index; another operator would read
every tenant's rows. Sequential scans are made expensive: one that remains has no alternative.
"""

import re
from datetime import UTC, datetime, timedelta
from itertools import batched
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from audit import sql
from audit.queries.call_query import parse
from audit.queries.call_walk import Budget, Walk
from audit.queries.cursor import Cursor
from audit.sql.run import rows_prepared
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.query_plans import days_read, index_conditions

NOW = datetime.now(UTC) - timedelta(days=17)
"""On a day that no other test writes on: the planner's statistics are of these calls."""
TODAY = NOW.date()
STATEMENTS = ["calls_before", "calls_after", "calls_counted_before"]
FAILED = {"status": "error", "error": {"type": "UPSTREAM", "code": "E1", "message": "no"}}
CURSOR = Cursor(NOW - timedelta(minutes=30), UUID(int=7))


def explained(cast: Cast, statement: str, query: str) -> str:
    wanted = parse(query)
    assert wanted.problems == ()
    direction = statement.rpartition("_")[2]
    walk = Walk(wanted.wanted, NOW, Budget())
    parameters: dict[str, Any] = {
        **walk.section(direction, CURSOR),
        "tenant_id": cast.tenant.id,
        "page_limit": 51,
    }
    with tenant_scope(cast.tenant.id), connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() == ("tooltrail_app",)
        cursor.execute("SET LOCAL enable_seqscan = off")
        statement_text = sql.QUERIES[statement].replace(sql.CONDITIONS, walk.conditions)
        cursor.execute(f"EXPLAIN {statement_text}", parameters)
        return "\n".join(row[0] for row in cursor.fetchall())


@pytest.fixture(scope="module")
def recorded() -> Cast:
    """A tenant with a thousand calls, and with the statistics that PostgreSQL has in production."""
    from tests.support.factories import make_cast

    cast = make_cast("acme")
    calls = (
        make_call(
            started_at=NOW - timedelta(seconds=3 * n),
            trace_id=f"t{n}",
            run_id=f"r{n}",
            call_id=f"c{n}",
            tool_name=f"tool-{n}",
            output=FAILED if n % 4 == 0 else None,
        )
        for n in range(1000)
    )
    for events in batched((event for call in calls for event in call), 1000):
        send_events(cast.tenant, events)
    with connections["owner"].cursor() as cursor:
        for day in {NOW.date(), (NOW - timedelta(hours=1)).date()}:
            cursor.execute(f"ANALYZE invocation_{day:%Y%m%d}")
    return cast


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize(
    ("query", "served"),
    [
        ("", ["started_at"]),
        ("tool:tool-7", ["tool_name = 'tool-7'"]),
        ("trace:t7", ["trace_id = 't7'"]),
        ("run:r7", ["run_id = 'r7'"]),
        ("call:c7", ["call_id = 'c7'"]),
        ("code:NEVER", ["error_code = 'NEVER'"]),
        ("state:open", ["started_at"]),
        ("is:orphan", ["started_at"]),
        ("state:failed violation:WRONG_TYPE duration:>2s", ["started_at"]),
    ],
)
def test_query_uses_an_index(recorded: Cast, statement: str, query: str, served: list[str]) -> None:
    plan = explained(recorded, statement, f"{query} since:1h")
    assert "Seq Scan on invocation" not in plan, plan
    assert "Seq Scan on violation" not in plan, plan
    for condition in served:
        assert condition in index_conditions(plan), plan
    assert all("tenant_id = " in line for line in index_conditions(plan).splitlines()), plan


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize(
    ("query", "known"),
    [
        ("state:failed", "state = 'failed'"),
        ("tool:tool-* state:failed", "state = 'failed'"),
        ("error:TIMEOUT", "state = 'failed'"),
        ("code:*", "state = 'failed'"),
        ("upstream:>=500", "state = 'failed'"),
        ("violation:WRONG_TYPE", "violation_count > 0"),
        ("path:data.*", "violation_count > 0"),
    ],
)
def test_failed_and_violating_calls_have_partial_indexes(
    recorded: Cast, statement: str, query: str, known: str
) -> None:
    """The plan must not test the index's predicate again for each row."""
    plan = explained(recorded, statement, f"{query} since:1h")
    assert "Index Scan" in plan, plan
    assert known not in "\n".join(re.findall(r" Filter: .*", plan)), plan


@pytest.mark.parametrize("statement", STATEMENTS)
def test_only_the_requested_days_are_read(recorded: Cast, statement: str) -> None:
    plan = explained(recorded, statement, "since:3h violation:*")
    allowed_days = {(NOW - timedelta(hours=3)).date(), TODAY, TODAY + timedelta(days=1)}
    allowed_days |= {TODAY + timedelta(days=2)}  # calls from a clock that is ahead of the server's
    assert days_read(plan)
    assert days_read(plan) <= allowed_days
    assert days_read(plan, "violation") <= allowed_days
    assert days_read(plan, "violation") or "walked" in statement
    if not statement.endswith("after"):  # the page starts at its cursor anyway
        assert min(days_read(explained(recorded, statement, "violation:*"))) < min(allowed_days)


@pytest.mark.parametrize("name", ["tool", "trace", "run", "call"])
def test_text_prefix_is_an_index_range(recorded: Cast, name: str) -> None:
    column = {"tool": "tool_name", "trace": "trace_id", "run": "run_id", "call": "call_id"}[name]
    with tenant_scope(recorded.tenant.id), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(
            f"EXPLAIN SELECT FROM invocation WHERE tenant_id = %s AND started_on = %s"
            f" AND {column} >= 'abc' AND {column} < 'abd'",
            [recorded.tenant.id, TODAY],
        )
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert f"{column} >= 'abc'" in index_conditions(plan), plan


@pytest.mark.parametrize(
    "name", ["known_tools", "known_error_types", "known_violations", "known_error_codes"]
)
def test_completion_queries_read_only_their_days(recorded: Cast, name: str) -> None:
    days = {"first_day": TODAY - timedelta(days=6), "last_day": TODAY}
    with tenant_scope(recorded.tenant.id), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {sql.QUERIES[name]}", {"tenant_id": recorded.tenant.id, **days})
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Seq Scan" not in plan, plan
    table = re.findall(r" on (\w+)_\d{8}", plan)[0]
    assert days_read(plan, table) <= {TODAY - timedelta(days=n) for n in range(7)}


@pytest.mark.parametrize("name", ["open_tally", "producers_heard", "calls_by_id"])
def test_open_call_queries_use_an_index(recorded: Cast, name: str) -> None:
    parameters: dict[str, Any] = {
        "tenant_id": recorded.tenant.id,
        "now": NOW,
        "silent_since": NOW - timedelta(minutes=15),
        "last_day": TODAY,
        "count_limit": 100,
        "producer_ids": ["web-1"],
        "days": [TODAY],
        "first_day": TODAY,
        "invocation_ids": [UUID(int=7), UUID(int=8)],
    }
    with tenant_scope(recorded.tenant.id), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {sql.QUERIES[name]}", parameters)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Seq Scan" not in plan, plan
    assert all("tenant_id = " in line for line in index_conditions(plan).splitlines()), plan
    if name == "calls_by_id":  # that a call did not run is known from a week around its decision
        assert days_read(plan) == {TODAY + timedelta(days=n) for n in range(-7, 8)}
        assert min(days_read(plan, "decision")) == TODAY
    else:
        assert TODAY + timedelta(days=1) not in days_read(plan)


@pytest.mark.one_node
@pytest.mark.parametrize(
    ("name", "parameters", "served"),
    [
        ("trace_calls", {"trace_id": "t7", "limit": 5001}, "trace_id >= $2"),
        (
            "calls_alike",
            {"call_id": "c7", "started_on": TODAY, "invocation_id": UUID(int=7), "limit": 21},
            "call_id >= $2",
        ),
    ],
)
def test_statements_without_days_use_a_generic_plan(
    recorded: Cast, name: str, parameters: dict[str, Any], served: str
) -> None:
    with tenant_scope(recorded.tenant.id), connection.cursor() as cursor:
        for _ in range(2):
            assert rows_prepared(name, parameters)
        cursor.execute(
            "SELECT name, generic_plans, custom_plans FROM pg_prepared_statements"
            " WHERE statement LIKE %s",
            [f"{sql.QUERIES[name].splitlines()[0]}%"],
        )
        ((prepared, generic, custom),) = cursor.fetchall()
        assert generic >= 2
        assert custom == 0
        cursor.execute(
            f"EXPLAIN EXECUTE {prepared}(%s{', %s' * len(parameters)})",
            [recorded.tenant.id, *parameters.values()],
        )
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Seq Scan" not in plan, plan
    read = index_conditions(plan).splitlines()
    assert len(read) >= 50
    assert all("tenant_id = $1" in line and served in line for line in read), plan


@pytest.mark.one_node
def test_plans_are_set_to_be_generic_once_in_each_transaction(recorded: Cast) -> None:
    def set_by(count: int) -> int:
        with CaptureQueriesContext(connection) as captured:
            for _ in range(count):
                rows_prepared("newest_decision", {})
        return sum("SET LOCAL plan_cache_mode" in each["sql"] for each in captured)

    def mode() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SHOW plan_cache_mode")
            return str(cursor.fetchone()[0])

    for _ in range(2):
        with tenant_scope(recorded.tenant.id):
            assert mode() == "auto"
            before = connection.savepoint()
            assert before is not None
            assert set_by(2) == 1
            connection.savepoint_rollback(before)
            assert mode() == "auto"
            assert set_by(2) == 1
            assert mode() == "force_generic_plan"


@pytest.mark.one_node
@pytest.mark.parametrize("name", ["decisions_of_own_call", "decisions_of_call"])
def test_decisions_of_a_call_are_read_from_indexes(recorded: Cast, name: str) -> None:
    parameters: dict[str, Any] = {
        "tenant_id": recorded.tenant.id,
        "invocation_id": UUID(int=7),
        "trace_id": "t7",
        "tool_call_id": "p7",
        "limit": 200,
    }
    with tenant_scope(recorded.tenant.id), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {sql.QUERIES[name]}", parameters)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Seq Scan" not in plan, plan
    assert ("trace_id" in index_conditions(plan)) == (name == "decisions_of_call")
