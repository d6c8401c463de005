"""An erasure takes away whom a call was made for: in calls, decisions and spans, for good."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections

from audit.index.reindex import reindex
from tenants.scope import tenant_scope
from tests.support.erasures import erase
from tests.support.factories import Cast, make_call, make_decision, make_ingest_key, send_events
from tests.support.otlp_requests import JSON, post, request, span
from tests.support.retention import index_agrees_with_log

pytestmark = pytest.mark.usefixtures("clear_principals")

USER = "ada.lovelace"


def mentions(cast: Cast) -> dict[str, int]:
    """How many rows of the index name the user, by table."""
    counts = {}
    with tenant_scope(cast.tenant.id, using="owner"), connections["owner"].cursor() as cursor:
        for table in ("invocation", "decision", "otlp_span", "trace"):
            cursor.execute(
                f"SELECT count(*) FROM {table} t WHERE tenant_id = %s AND t::text LIKE %s",
                [cast.tenant.id, f"%{USER}%"],
            )
            counts[table] = cursor.fetchone()[0]
    return counts


def run() -> list[dict[str, Any]]:
    """An agent that works for the user calls a tool, which runs another agent with a tool."""
    tool = {"gen_ai.operation.name": "execute_tool"}
    documents: list[tuple[str, dict[str, Any]]] = [
        ("invoke_agent main", {"gen_ai.agent.name": "main", "user.id": USER}),
        ("execute_tool helper", tool | {"gen_ai.tool.name": "helper"}),
        ("invoke_agent sub", {"gen_ai.agent.name": "sub"}),
        ("execute_tool look_up", tool | {"gen_ai.tool.name": "look_up"}),
    ]
    spans = []
    for number, (name, attributes) in enumerate(documents, 1):
        above = {"parentSpanId": f"{number - 1:016x}"} if number > 1 else {}
        ids = {"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": f"{number:016x}", **above}
        spans.append(span(name, **ids, attributes=attributes))
    return spans


def repair(cast: Cast) -> None:
    reindex(cast.tenant.id, repair=True, progress=lambda done, size: None)


@pytest.mark.slow
def test_spans_of_erased_calls_and_those_above_name_nobody(acme: Cast) -> None:
    key = make_ingest_key(acme.tenant)
    for each in reversed(run()):  # children first: their context comes late
        answer = post(key, request(each, scope="agent"), JSON)
        assert (answer.status_code, answer.rejected) == (200, 0)
    named = mentions(acme)
    assert (named["invocation"], named["otlp_span"]) == (2, 1)
    erase(acme, "tool:helper")
    assert mentions(acme) == {"invocation": 1, "decision": 0, "otlp_span": 0, "trace": 0}
    erase(acme, "tool:look_up")
    for _ in range(2):
        assert mentions(acme) == dict.fromkeys(named, 0)
        assert index_agrees_with_log(acme)
        repair(acme)


@pytest.mark.slow
def test_erased_decisions_name_nobody(acme: Cast) -> None:
    at = datetime.now(UTC) - timedelta(minutes=5)
    refused = make_decision("denied", decided_at=at, case_id="mine", requested_by=USER)
    ran = make_call(case_id="mine")
    allowed = make_decision(
        "approved",
        decided_at=at,
        case_id="mine",
        requested_by=USER,
        invocation_id=ran[0]["invocation_id"],
    )
    other = make_decision("denied", decided_at=at, case_id="other", requested_by=USER)
    send_events(acme.tenant, [refused, allowed, *ran, other])
    assert mentions(acme)["decision"] == 3
    erase(acme)
    for _ in range(2):
        assert mentions(acme)["decision"] == 1, "of the other case"
        assert index_agrees_with_log(acme)
        repair(acme)
