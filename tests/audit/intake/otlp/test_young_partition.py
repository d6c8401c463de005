"""The intake looks spans up by the right index of a partition that has no statistics yet."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection, connections
from django.utils import timezone

from audit.sql import run
from audit.sql.run import Statements
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_ingest_key
from tests.support.otlp_requests import JSON, post, request, span


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How PostgreSQL looked spans up, each time: the plan for the values of that request."""
    found: list[str] = []
    execute = Statements._execute

    def explained(self: Statements, name: str, parameters: dict[str, Any]) -> Any:
        if name == "known_spans":
            text, names = run._numbered(name)
            values = self._constants | parameters
            cursor = psycopg.RawCursor(self._connection)
            cursor.execute(b"EXPLAIN " + text, [values[each] for each in names], binary=True)
            found.append("\n".join(row[0] for row in cursor.fetchall()))
        return execute(self, name, parameters)

    monkeypatch.setattr(Statements, "_execute", explained)
    return found


def fill_partition(cast: Cast, days_ago: int, count: int) -> None:
    """Store spans with long ids of calls, so that the index of these has more levels."""
    day = timezone.now().date() - timedelta(days=days_ago)
    with connections["owner"].cursor() as cursor:
        cursor.execute(f"ALTER TABLE otlp_span_{day:%Y%m%d} SET (autovacuum_enabled = off)")
    with tenant_scope(cast.tenant.id), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO otlp_span (tenant_id, started_on, span_uuid, parent_uuid, invocation_id,"
            " call_started_at, tool_name, tool_call_id, scope, kind)"
            " SELECT %s, %s, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), %s, 'x',"
            " lpad(n::text, 128, '0'), '', 1 FROM generate_series(1, %s) AS n",
            [cast.tenant.id, day, day, count],
        )


@pytest.mark.one_node
@pytest.mark.parametrize("keeps_order", [True, False])
def test_spans_are_looked_up_by_the_index_that_has_all_columns(
    acme: Cast, plans: list[str], monkeypatch: pytest.MonkeyPatch, keeps_order: bool
) -> None:
    if not keeps_order:
        monkeypatch.setattr(Statements, "look_up", Statements.run)
    days_ago = 5 + keeps_order
    fill_partition(acme, days_ago, 100)
    at_ns = int((timezone.now() - timedelta(days=days_ago)).timestamp() * 1e9)
    body = request(span(startTimeUnixNano=at_ns, endTimeUnixNano=at_ns + 1))

    assert post(make_ingest_key(acme.tenant), body, JSON).status_code == 200

    assert plans
    assert all(("Sort" not in plan) == keeps_order for plan in plans), "\n\n".join(plans)


def test_only_look_ups_go_without_sorting(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it PostgreSQL read all answers of models to find those of a trace."""
    sorting: dict[str, set[str]] = {}
    execute = Statements._execute

    def noting(self: Statements, name: str, parameters: dict[str, Any]) -> Any:
        (value,) = self._connection.execute("SHOW enable_sort").fetchone() or ("",)
        sorting.setdefault(name, set()).add(value)
        return execute(self, name, parameters)

    monkeypatch.setattr(Statements, "_execute", noting)
    key = make_ingest_key(acme.tenant)
    answer = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.usage.input_tokens": {"intValue": 3},
        "gen_ai.usage.output_tokens": {"intValue": 4},
    }
    for number in (1, 2):
        chat = span(spanId=f"{number:016x}", name="chat m", attributes=answer)
        tool = span(spanId=f"{number + 2:016x}", parentSpanId=f"{number:016x}")
        assert post(key, request(chat, tool), JSON).status_code == 200

    looked_up = {"known_spans", "traces_with_calls", "calls_below", "spans_above", "calls_on_day"}
    assert "known_spans" in sorting
    assert "llm_usage_of_traces" in sorting
    for name, values in sorting.items():
        assert values == {"off" if name in looked_up else "on"}, name
