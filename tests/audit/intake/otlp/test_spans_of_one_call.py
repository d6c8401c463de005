"""Spans of one call, in separate requests and any order: one call, and correct figures."""

import itertools
import json
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from audit.events.spans import span_uuid
from audit.models import Trace
from audit.queries.calls import call_detail, trace_detail
from tenants.scope import tenant_scope
from tests.support.factories import (
    Cast,
    make_call,
    make_ingest_key,
    send_events,
)
from tests.support.otlp_requests import (
    JSON,
    Answer,
    Stored,
    calls,
    fixture,
    post,
    request,
    span,
)
from tests.support.recount import assert_all_taken_in

TRACE = "0af7651916cd43dd8448eb211c80319c"
GENAI = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"}
MCP = {"mcp.method.name": "tools/call"}
VIOLATION = {"path": "$.city", "code": "WRONG_TYPE", "expected": "string"}


@pytest.fixture
def key(acme: Cast) -> str:
    return make_ingest_key(acme.tenant)


def numbered(number: int, parent: int = 0, **members: Any) -> dict[str, Any]:
    """The span of that number in the one trace."""
    ids = {"traceId": TRACE, "spanId": f"{number:016x}"}
    return span(**ids, **({"parentSpanId": f"{parent:016x}"} if parent else {}), **members)


def agent() -> bytes:
    """The agent's span of the call, inside a span that is no call."""
    attributes = GENAI | {"gen_ai.tool.call.id": "call_1", "gen_ai.conversation.id": "c-7"}
    return request(numbered(2, 1, attributes=attributes), scope="agent")


def client() -> bytes:
    """The MCP client's span of the call, which has only a name."""
    return request(
        numbered(3, 2, kind=3, attributes=MCP, name="MCP send tools/call get_weather"), scope="mcp"
    )


def server() -> bytes:
    """The MCP server's span of the call: arguments, result, and that the tool failed."""
    content = {
        "gen_ai.tool.call.arguments": '{"city": "London"}',
        "gen_ai.tool.call.result": '{"isError": true, "content": []}',
        "error.type": "tool_error",
    }
    return request(
        numbered(4, 3, kind=2, attributes=MCP | GENAI | content, status={"code": 2}), scope="mcp"
    )


def root() -> bytes:
    return request(
        numbered(1, 9, attributes={}, name="chat"),
        numbered(9, attributes=GENAI | {"gen_ai.tool.name": "plan"}),
        scope="agent",
    )


def send(key: str, *bodies: bytes) -> list[Answer]:
    answers = [post(key, body, JSON) for body in bodies]
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.rejected for answer in answers} == {0}
    return answers


def the_call(acme: Cast) -> Stored:
    return next(call for call in calls(acme.tenant) if call.row.tool_name == "get_weather")


@pytest.mark.slow
@pytest.mark.generated(2)
@pytest.mark.parametrize("order", list(itertools.permutations((0, 1, 2))))
def test_span_layers_in_any_order_are_one_call(
    acme: Cast, key: str, order: tuple[int, ...]
) -> None:
    bodies = [agent(), client(), server()]
    send(key, *(bodies[at] for at in order))

    (call,) = calls(acme.tenant)
    assert (call.row.state, call.row.error_type) == ("failed", "tool_error")
    assert call.start["args"] == {"city": "London"}
    assert (call.row.tool_call_id, call.row.run_id) == ("call_1", "c-7")
    assert call.row.parent_invocation_id == span_uuid(TRACE, f"{1:016x}")
    assert {call.end["otlp"]["span"]["span_id"]} | {
        each["span_id"] for each in call.end["otlp"]["merged"]
    } == {f"{number:016x}" for number in (2, 3, 4)}
    assert_all_taken_in(acme.tenant)


@pytest.mark.slow
def test_resent_spans_are_not_counted_again(acme: Cast, key: str) -> None:
    bodies = [server(), client(), agent()]
    send(key, *bodies, *bodies, bodies[2], bodies[0])
    send(key, request(*(span for body in bodies for span in _spans(body))))

    (call,) = calls(acme.tenant)
    assert call.row.state == "failed"
    assert_all_taken_in(acme.tenant)


def _spans(body: bytes) -> list[dict[str, Any]]:
    spans: list[dict[str, Any]] = json.loads(body)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return spans


@pytest.mark.slow
def test_middle_span_arriving_last_merges_two_calls(acme: Cast, key: str) -> None:
    below = [
        request(numbered(number, 4, attributes=GENAI | {"gen_ai.tool.name": f"look_up_{number}"}))
        for number in (5, 6)
    ]
    send(key, server(), below[0], agent())
    inner, outer = span_uuid(TRACE, f"{4:016x}"), span_uuid(TRACE, f"{2:016x}")
    assert {call.row.invocation_id for call in calls(acme.tenant)} > {inner, outer}
    send(key, client(), below[1], server(), client(), agent())

    with tenant_scope(acme.tenant.id):
        detail = trace_detail(TRACE)
    assert detail is not None
    shown = {call.tool_name: call for call in detail.calls}
    assert {call.invocation_id for call in detail.calls} == {
        outer,
        *(span_uuid(TRACE, f"{number:016x}") for number in (5, 6)),
    }
    assert shown["look_up_5"].parent_invocation_id == outer
    assert shown["look_up_6"].parent_invocation_id == outer
    assert shown["get_weather"].state == "failed"
    assert_all_taken_in(acme.tenant)


def test_url_of_a_merged_call_redirects_to_the_remaining_call(
    acme: Cast, globex: Cast, key: str
) -> None:
    send(key, server(), agent())
    shown = {call.row.invocation_id: call.row for call in calls(acme.tenant)}
    send(key, client())
    (call,) = calls(acme.tenant)
    (gone,) = shown.keys() - {call.row.invocation_id}
    address = f"/calls/{shown[gone].started_on}/{gone}"

    ours, other_client = Client(), Client()
    ours.force_login(acme.viewer)
    other_client.force_login(globex.viewer)

    answer = ours.get(address)
    assert answer.status_code == 302
    assert answer["Location"] == f"/calls/{call.row.started_on}/{call.row.invocation_id}"
    assert other_client.get(address).status_code == 404


@pytest.mark.slow
def test_trace_values_of_a_merged_call_are_removed(acme: Cast, key: str) -> None:
    """The server's clock is slow, so its span is before midnight, in another conversation."""
    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)

    def layer(number: int, after_s: int, conversation: str, **members: Any) -> dict[str, Any]:
        started = int((midnight - timedelta(days=1, seconds=-after_s)).timestamp()) * 10**9
        attributes = GENAI | MCP | {"gen_ai.conversation.id": conversation}
        times = {"startTimeUnixNano": str(started), "endTimeUnixNano": str(started + 10**9)}
        return numbered(number, number - 1, attributes=attributes, **times, **members)

    outer = request(layer(2, 10, "c-7"), scope="agent")
    middle = request(layer(3, 11, "c-8", kind=3), scope="mcp")
    inner = request(layer(4, -30, "a-first", kind=2), scope="mcp")
    send(key, inner, outer)
    with tenant_scope(acme.tenant.id):
        runs = {trace.run_id for trace in Trace.objects.for_tenant(acme.tenant.id)}
    assert runs == {"a-first", "c-7"}
    send(key, middle)

    (call,) = calls(acme.tenant)
    with tenant_scope(acme.tenant.id):
        (trace,) = Trace.objects.for_tenant(acme.tenant.id)
    assert (trace.started_on, trace.run_id) == (call.row.started_on, "c-7")
    assert trace.first_started_at == call.row.started_at
    assert_all_taken_in(acme.tenant)


@pytest.mark.slow
@pytest.mark.parametrize("names_spans", [True, False])
def test_calls_from_other_sources_are_never_withdrawn(
    acme: Cast, key: str, *, names_spans: bool
) -> None:
    """A sender of events can set a span's id, or the same members with a violation."""
    send(key, agent(), client())
    violations = [VIOLATION] if names_spans else []
    own = make_call(
        invocation_id=str(span_uuid(TRACE, f"{4:016x}")),
        trace_id=TRACE,
        guard={"strategy": "warn", "outcome": "passed", "violations": violations},
    )
    if names_spans:
        source = {"span": {"trace_id": TRACE, "span_id": f"{4:016x}"}}
        own = [event | {"otlp": source} for event in own]
    send_events(acme.tenant, own, key=key)
    send(key, server())

    kept = {call.row.invocation_id: call.row.violation_count for call in calls(acme.tenant)}
    assert kept == {
        span_uuid(TRACE, f"{4:016x}"): len(violations),
        span_uuid(TRACE, f"{2:016x}"): 0,
    }
    assert_all_taken_in(acme.tenant)


@pytest.mark.slow
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_parent_is_the_nearest_call_above_the_spans_between(
    acme: Cast, key: str, order: tuple[int, ...]
) -> None:
    bodies = [agent(), root()]
    send(key, *(bodies[at] for at in order))

    with tenant_scope(acme.tenant.id):
        detail = trace_detail(TRACE)
        assert detail is not None
        shown = {call.tool_name: call for call in detail.calls}
        assert shown["get_weather"].parent_invocation_id == shown["plan"].invocation_id
        opened = call_detail(shown["get_weather"].started_on, shown["get_weather"].invocation_id)
    assert opened is not None
    assert opened.parent_invocation_id == shown["plan"].invocation_id
    assert_all_taken_in(acme.tenant)


def test_child_of_an_inner_span_moves_to_the_merged_call(acme: Cast, key: str) -> None:
    lookup_span = GENAI | {"gen_ai.tool.name": "look_up"}
    send(key, server(), request(numbered(5, 4, attributes=lookup_span)), client())

    with tenant_scope(acme.tenant.id):
        detail = trace_detail(TRACE)
    assert detail is not None
    shown = {call.tool_name: call for call in detail.calls}
    assert shown["look_up"].parent_invocation_id == shown["get_weather"].invocation_id
    assert len(detail.calls) == 2


@pytest.mark.slow
def test_concurrent_exports_of_client_and_server_make_one_call(acme: Cast, key: str) -> None:
    """Spans of the MCP SDK from two processes that send at the same time."""
    bodies = [fixture(f"mcp-{role}.pb", timezone.now()) for role in ("client", "server")]
    answers: list[Answer] = []

    def deliver(body: bytes) -> None:
        try:
            answers.append(post(key, body))
        finally:
            connection.close()

    threads = [threading.Thread(target=deliver, args=(body,)) for body in bodies * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [answer.status_code for answer in answers] == [200] * 4
    states = [(call.row.tool_name, call.row.state) for call in calls(acme.tenant)]
    assert states == [("book_flight", "failed"), ("get_weather", "ok"), ("get_weather", "ok")]
    assert_all_taken_in(acme.tenant)


def test_span_with_the_id_of_an_sdk_call_is_rejected(acme: Cast, key: str) -> None:
    """The id of a span's call can be computed, so an event of the SDK may have the same id."""
    own = make_call(invocation_id=str(span_uuid(TRACE, f"{2:016x}")), trace_id=TRACE)
    send_events(acme.tenant, own, key=key)
    answer = post(key, agent(), JSON)

    assert (answer.status_code, answer.rejected) == (200, 1)
    assert the_call(acme).row.call_id == "c" * 64


def test_spans_of_another_tenant_are_not_merged(acme: Cast, globex: Cast, key: str) -> None:
    send(key, server())
    send(make_ingest_key(globex.tenant), client())

    assert [call.row.state for call in calls(acme.tenant)] == ["failed"]
    assert [call.row.state for call in calls(globex.tenant)] == ["ok"]
