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
        monkeypatch.setattr(Statements, "keep_index_order", lambda _: None)
    days_ago = 5 + keeps_order
    fill_partition(acme, days_ago, 100)
    at_ns = int((timezone.now() - timedelta(days=days_ago)).timestamp() * 1e9)
    body = request(span(startTimeUnixNano=at_ns, endTimeUnixNano=at_ns + 1))

    assert post(make_ingest_key(acme.tenant), body, JSON).status_code == 200

    assert plans
    assert all(("Sort" not in plan) == keeps_order for plan in plans), "\n\n".join(plans)
