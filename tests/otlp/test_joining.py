"""Spans of one call in requests of their own, in any order: one call, and figures that add up."""

import itertools
import json
import threading
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from audit.models import RejectedEvent
from audit.otlp.spans import span_uuid
from audit.queries.calls import call_detail, trace_detail
from audit.reindex import reindex
from tenants.scope import tenant_scope
from tests.audit.recount import assert_consistent
from tests.factories import Cast, make_ingest_key
from tests.otlp.sending import JSON, Answer, Stored, calls, fixture, post, request, span

TRACE = "0af7651916cd43dd8448eb211c80319c"
GENAI = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"}
MCP = {"mcp.method.name": "tools/call"}


@pytest.fixture
def key(acme: Cast) -> str:
    return make_ingest_key(acme.tenant)


def numbered(number: int, parent: int = 0, **members: Any) -> dict[str, Any]:
    """The span of that number in the one trace."""
    ids = {"traceId": TRACE, "spanId": f"{number:016x}"}
    return span(**ids, **({"parentSpanId": f"{parent:016x}"} if parent else {}), **members)


def agent() -> bytes:
    """What an agent says of its call, below a span that is no call."""
    attributes = GENAI | {"gen_ai.tool.call.id": "call_1", "gen_ai.conversation.id": "c-7"}
    return request(numbered(2, 1, attributes=attributes), scope="agent")


def client() -> bytes:
    """What the MCP client says of it: nothing but its name."""
    return request(
        numbered(3, 2, kind=3, attributes=MCP, name="MCP send tools/call get_weather"), scope="mcp"
    )


def server() -> bytes:
    """What the MCP server says: arguments, result, and that the tool failed."""
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


def check(acme: Cast) -> None:
    """Totals, log and index agree, and the inbox is empty."""
    with tenant_scope(acme.tenant.id):
        assert not RejectedEvent.objects.for_tenant(acme.tenant.id).exists()
    assert_consistent(acme.tenant)
    report = reindex(acme.tenant.id, repair=False, progress=lambda done, size: None)
    assert report.is_clean, report.comparison.examples


def the_call(acme: Cast) -> Stored:
    return next(call for call in calls(acme.tenant) if call.row.tool_name == "get_weather")


@pytest.mark.parametrize(
    "order",
    [order for order in itertools.permutations((0, 1, 2)) if order not in ((0, 2, 1), (2, 0, 1))],
)
def test_layers_in_any_order_are_one_call(acme: Cast, key: str, order: tuple[int, ...]) -> None:
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
    check(acme)


def test_what_is_sent_again_is_not_counted_again(acme: Cast, key: str) -> None:
    bodies = [server(), client(), agent()]
    send(key, *bodies, *bodies, bodies[2], bodies[0])
    send(key, request(*(span for body in bodies for span in _spans(body))))

    (call,) = calls(acme.tenant)
    assert call.row.state == "failed"
    check(acme)


def _spans(body: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(body)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return found


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_call_lies_below_the_call_around_the_spans_between(
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
    check(acme)


def test_a_call_below_one_that_was_stored_by_its_inner_span(acme: Cast, key: str) -> None:
    look_up = GENAI | {"gen_ai.tool.name": "look_up"}
    send(key, server(), request(numbered(5, 4, attributes=look_up)), client())

    with tenant_scope(acme.tenant.id):
        detail = trace_detail(TRACE)
    assert detail is not None
    shown = {call.tool_name: call for call in detail.calls}
    assert shown["look_up"].parent_invocation_id == shown["get_weather"].invocation_id
    assert len(detail.calls) == 2


def test_a_client_and_a_server_that_export_at_once_make_one_call(acme: Cast, key: str) -> None:
    """The MCP SDK's spans, from two processes, with their requests in a race."""
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
    check(acme)


def test_an_executors_own_call_is_never_told_otherwise(acme: Cast, key: str) -> None:
    """The id of a span's call is no secret: an event of the SDK's may have it."""
    from tests.factories import make_call, send_events

    own = make_call(invocation_id=str(span_uuid(TRACE, f"{2:016x}")), trace_id=TRACE)
    send_events(acme.tenant, own, key=key)
    answer = post(key, agent(), JSON)

    assert (answer.status_code, answer.rejected) == (200, 1)
    assert the_call(acme).row.call_id == "c" * 64


def test_another_tenants_spans_are_not_found(acme: Cast, globex: Cast, key: str) -> None:
    send(key, server())
    send(make_ingest_key(globex.tenant), client())

    assert [call.row.state for call in calls(acme.tenant)] == ["failed"]
    assert [call.row.state for call in calls(globex.tenant)] == ["ok"]
