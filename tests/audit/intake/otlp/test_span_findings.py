"""Outputs of spans validated on arrival: findings follow a fuller account of the same call."""

import itertools
import json
from typing import Any

import pytest
from django.db import connection

from audit.index.reindex import reindex
from audit.intake import arrival
from audit.intake.otlp import recording
from audit.models import Invocation, RejectedEvent, Violation
from tenants.scope import tenant_scope
from tests.support.arrival_checks import VIOLATING_OUTPUT, register_checked_tool
from tests.support.factories import Cast, make_call, make_ingest_key, send_events
from tests.support.index_contents import index_contents
from tests.support.otlp_requests import JSON, calls, post, request, span
from tests.support.recount import assert_consistent

TRACE = "0af7651916cd43dd8448eb211c80319d"
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"}
MCP = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "get_weather"}
BROKEN = json.dumps(VIOLATING_OUTPUT["data"])
KINDS = [
    ("$.celsius", "MISSING_REQUIRED"),
    ("$.days[1]", "WRONG_TYPE"),
    ("$.days[3]", "WRONG_TYPE"),
]


@pytest.fixture(autouse=True)
def known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "BELIEVED_FOR", 0.0)


@pytest.fixture
def key(acme: Cast) -> str:
    register_checked_tool(acme.tenant)
    return make_ingest_key(acme.tenant)


def body(
    number: int, parent: int = 0, result: str | None = None, *, scope: str = "mcp", **members: Any
) -> bytes:
    attributes = members.pop("attributes", MCP)
    if result is not None:
        attributes = attributes | {"gen_ai.tool.call.result": result}
    ids: dict[str, Any] = {
        "traceId": members.pop("traceId", TRACE),
        "spanId": f"{number:016x}",
    }
    if parent:
        ids["parentSpanId"] = f"{parent:016x}"
    return request(span("tools/call", **ids, attributes=attributes, **members), scope=scope)


def agent(result: str | None = None, **members: Any) -> bytes:
    return body(2, 1, result, scope="agent", attributes=TOOL, **members)


def client(result: str | None = None, **members: Any) -> bytes:
    return body(3, 2, result, kind=3, **members)


def server(result: str | None = BROKEN, **members: Any) -> bytes:
    return body(4, 3, result, kind=2, **members)


def send(key: str, *bodies: bytes) -> None:
    assert {post(key, each, JSON).status_code for each in bodies} == {200}


def violations_of(acme: Cast) -> list[tuple[str, str]]:
    with tenant_scope(acme.tenant.id):
        rows = Violation.objects.for_tenant(acme.tenant.id).order_by("invocation_id", "ordinal")
        assert {row.found_by for row in rows} <= {"server"}
        return [(row.path, row.code) for row in rows]


def check(acme: Cast) -> None:
    with tenant_scope(acme.tenant.id):
        assert not RejectedEvent.objects.for_tenant(acme.tenant.id).exists()
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM violation_day WHERE violation_count <= 0")
            assert cursor.fetchone() == (0,)
    assert_consistent(acme.tenant)
    report = reindex(acme.tenant.id, repair=False, progress=lambda done, size: None)
    assert report.is_clean, report.comparison.examples


@pytest.mark.slow
def test_outputs_of_spans_are_validated_like_those_of_events(acme: Cast, key: str) -> None:
    send(key, server(), request(span(), span(name="chat", attributes={})))
    send_events(acme.tenant, make_call(output=VIOLATING_OUTPUT))
    assert violations_of(acme) == KINDS * 2
    check(acme)


@pytest.mark.generated(2)
@pytest.mark.slow
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_finding_is_counted_once_in_any_order_of_accounts(
    acme: Cast, key: str, order: tuple[int, ...]
) -> None:
    bodies = [agent(), client(), server()]
    send(key, *(bodies[at] for at in order), *bodies)
    assert len(calls(acme.tenant)) == 1
    assert violations_of(acme) == KINDS
    check(acme)


@pytest.mark.slow
@pytest.mark.generated(2)
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_finding_goes_if_the_fuller_account_has_none(
    acme: Cast, key: str, order: tuple[int, ...]
) -> None:
    """The agent's own result is the one its caller got, and the outermost counts."""
    bodies = [agent('{"celsius": 1}'), client(), server()]
    send(key, *(bodies[at] for at in order))
    assert violations_of(acme) == []
    check(acme)


@pytest.mark.slow
def test_finding_comes_with_the_fuller_account(acme: Cast, key: str) -> None:
    send(key, server('{"celsius": 1}'))
    assert violations_of(acme) == []
    send(key, client(BROKEN))
    assert violations_of(acme) == KINDS
    check(acme)


@pytest.mark.slow
def test_fuller_account_that_failed_has_no_finding(acme: Cast, key: str) -> None:
    send(key, server())
    send(key, client(status={"code": 2, "message": "gone"}))
    (call,) = calls(acme.tenant)
    assert (call.row.state, call.row.violation_count) == ("failed", 0)
    assert violations_of(acme) == []
    check(acme)


@pytest.mark.slow
def test_other_calls_of_the_kind_keep_their_sums(acme: Cast, key: str) -> None:
    send(key, request(span(attributes=MCP | {"gen_ai.tool.call.result": BROKEN})), server())
    send_events(acme.tenant, make_call(output=VIOLATING_OUTPUT))
    assert violations_of(acme) == KINDS * 3
    send(key, client('{"celsius": 1}'))
    assert violations_of(acme) == KINDS * 2
    check(acme)


@pytest.mark.slow
def test_call_of_the_executor_replaces_the_finding_of_its_spans(acme: Cast, key: str) -> None:
    send(key, server())
    start, end = make_call(trace_id=TRACE, output={"status": "ok", "data": {"celsius": 1}})
    send_events(acme.tenant, [start | {"traceparent": f"00-{TRACE}-{4:016x}-01"}, end])
    (call,) = (call for call in calls_of(acme))
    assert str(call.invocation_id) == start["invocation_id"]
    assert violations_of(acme) == []
    send(key, client(BROKEN))
    assert violations_of(acme) == [], "spans of an executor's call are logged only"
    check(acme)


def calls_of(acme: Cast) -> list[Invocation]:
    with tenant_scope(acme.tenant.id):
        return list(Invocation.objects.for_tenant(acme.tenant.id))


def test_result_that_no_span_recorded_is_not_validated(acme: Cast, key: str) -> None:
    usage = {"gen_ai.usage.input_tokens": {"intValue": "7"}}
    send(key, body(4, attributes=TOOL | usage), body(5, attributes=TOOL))
    assert violations_of(acme) == []


@pytest.mark.slow
def test_structured_content_of_a_span_is_validated(acme: Cast, key: str) -> None:
    content = {"content": [{"type": "text", "text": "warm"}]}
    send(key, server(json.dumps(content | {"structuredContent": {"celsius": 1}})))
    assert violations_of(acme) == []
    send(key, body(5, 9, json.dumps(content), kind=2))
    assert violations_of(acme) == [("$", "MISSING_STRUCTURED_CONTENT")]
    check(acme)


@pytest.mark.slow
def test_batches_of_one_request_share_the_work(
    acme: Cast, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_BATCH_EVENTS", 2)
    monkeypatch.setattr(arrival, "REQUEST_STEPS", 80)
    monkeypatch.setattr(arrival, "VERDICT_STEPS", 10)
    broken = MCP | {"gen_ai.tool.call.result": BROKEN}
    send(key, request(*(span(attributes=broken) for _ in range(4))))
    assert 0 < len(violations_of(acme)) < 3 * len(KINDS)
    check(acme)


@pytest.mark.slow
@pytest.mark.generated(2)
@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[::5])
def test_merged_calls_leave_the_same_index_in_any_order(
    acme: Cast, key: str, order: tuple[int, ...]
) -> None:
    """Two broken layers arrive apart, so both are calls with violations until the middle comes."""
    other = body(7, 9, BROKEN, kind=2, traceId="1" * 32)
    bodies = [agent(BROKEN), client(), server(), other]
    send(key, *(bodies[at] for at in order))
    assert len(calls(acme.tenant)) == 2
    assert violations_of(acme) == KINDS * 2
    assert len(index_contents(acme.tenant)["violation"]) == 2 * len(KINDS)
    check(acme)


@pytest.mark.one_node
def test_application_deletes_only_what_the_server_found(acme: Cast, key: str) -> None:
    send_events(acme.tenant, make_call(output=VIOLATING_OUTPUT))
    guard = {
        "strategy": "throw",
        "outcome": "failed",
        "violations": [{"path": "$", "code": "WRONG_TYPE"}],
    }
    start, end = make_call(trace_id=TRACE, tool_name="other", guard=guard)
    send_events(acme.tenant, [start | {"traceparent": f"00-{TRACE}-{8:016x}-01"}, end])
    send(key, server())
    with tenant_scope(acme.tenant.id), connection.cursor() as cursor:
        cursor.execute("DELETE FROM violation")
        cursor.execute("SELECT code, found_by FROM violation")
        assert cursor.fetchall() == [("WRONG_TYPE", "executor")]
        cursor.execute("DELETE FROM violation_day")
        assert cursor.rowcount == 0
