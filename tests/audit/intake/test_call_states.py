"""States of one call besides open, succeeded and failed: waiting, working, cancelled."""

import itertools
import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from audit.index.reindex import reindex
from audit.models import Invocation, RejectedEvent, State, Trace
from audit.queries.call_list import call_page
from audit.queries.call_query import Reader, parse
from audit.queries.over_time import over_time
from audit.queries.summary import summary
from audit.queries.time_range import TimeRange
from tenants.scope import tenant_scope
from tests.support.erasures import erase
from tests.support.factories import Cast, make_call, make_ingest_key, make_tenant
from tests.support.index_contents import index_contents
from tests.support.otlp_requests import JSON, post, request, span
from tests.support.random_requests import record_request
from tests.support.recount import assert_consistent
from tests.support.stored_events import stored_lines

NOON = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)


def interim(end: dict[str, Any], state: str, seconds: int) -> dict[str, Any]:
    """An event that says what the call of `end` does, some seconds after its start."""
    at = datetime.fromisoformat(end["started_at"]) + timedelta(seconds=seconds)
    members = {name: value for name, value in end.items() if name != "output"}
    return members | {
        "event_id": str(uuid.uuid4()),
        "call_state": state,
        "ended_at": at.isoformat(),
        "duration_ms": seconds * 1000.0,
    }


def send(cast: Cast, events: list[dict[str, Any]]) -> dict[str, Any]:
    return record_request(cast.tenant, events)


def matches(cast: Cast, query: str) -> list[str]:
    """The states of the calls that a query finds."""
    parsed = parse(query, Reader(sees_payloads=True))
    assert not parsed.problems
    with tenant_scope(cast.tenant.id):
        return sorted(call.state for call in call_page(parsed.wanted, now=datetime.now(UTC)).calls)


def row(cast: Cast, invocation_id: str) -> Invocation:
    with tenant_scope(cast.tenant.id):
        return Invocation.objects.for_tenant(cast.tenant.id).get(invocation_id=invocation_id)


@pytest.fixture
def events() -> list[dict[str, Any]]:
    """Start, waiting, working, end."""
    start, end = make_call(started_at=NOON, duration_ms=60_000)
    return [start, interim(end, "waiting", 10), interim(end, "working", 20), end]


@pytest.mark.slow
def test_a_call_waits_then_works_then_ends(acme: Cast, events: list[dict[str, Any]]) -> None:
    pk = events[0]["invocation_id"]
    for event, state in zip(
        events, (State.OPEN, State.WAITING, State.WORKING, State.OK), strict=True
    ):
        assert send(acme, [event])["accepted"] == 1
        assert row(acme, pk).state == state
        assert_consistent(acme.tenant)
    assert send(acme, events)["duplicates"] == 4
    report = reindex(acme.tenant.id, repair=False, progress=lambda done, size: None)
    assert report.is_clean, report.comparison.examples


def test_an_end_that_was_first_stays(acme: Cast, events: list[dict[str, Any]]) -> None:
    start, waiting, working, end = events
    send(acme, [end])
    assert send(acme, [waiting])["accepted"] == 1
    assert send(acme, [working, start])["accepted"] == 2
    assert row(acme, start["invocation_id"]).state == State.OK
    assert_consistent(acme.tenant)


def test_an_interim_event_alone_is_a_call_without_a_start(
    acme: Cast, events: list[dict[str, Any]]
) -> None:
    start, waiting, _, end = events
    send(acme, [waiting])
    assert row(acme, start["invocation_id"]).state == State.WAITING
    send(acme, [start])
    assert row(acme, start["invocation_id"]).state == State.WAITING
    send(acme, [end])
    assert_consistent(acme.tenant)


@pytest.mark.slow
def test_cancelled_is_in_no_figure_but_its_own(acme: Cast) -> None:
    start, end = make_call(started_at=NOON)
    failed = make_call(started_at=NOON, is_error=True)
    gone = {"call_state": "cancelled", "is_error": True}
    error = {"type": "RETRYABLE", "code": "CANCELLED", "message": "stopped"}
    gone["output"] = {"status": "error", "error": error}
    waiting, waiting_end = make_call(started_at=NOON)
    send(
        acme,
        [start, end | gone, *failed, waiting, interim(waiting_end, "waiting", 5)],
    )
    call = row(acme, start["invocation_id"])
    assert (call.state, call.error_type, call.error_code) == (State.CANCELLED, "", "CANCELLED")
    assert_consistent(acme.tenant)
    since, until = NOON - timedelta(hours=1), NOON + timedelta(hours=1)
    with tenant_scope(acme.tenant.id):
        totals = summary(since, until)
        shown = over_time(TimeRange(since, until, UTC)).total
        traces = Trace.objects.for_tenant(acme.tenant.id)
        assert sum(each.cancelled_count for each in traces) == 1
    assert (totals.calls, totals.errors, totals.open, totals.cancelled) == (1, 1, 1, 1)
    assert (shown.calls, shown.failed, shown.open, shown.cancelled) == (1, 1, 1, 1)
    assert shown.error_rate == 1
    assert matches(acme, "state:cancelled") == ["cancelled"]
    assert matches(acme, "state:open") == matches(acme, "state:waiting") == ["waiting"]
    assert matches(acme, "NOT state:open") == ["cancelled", "failed"]
    assert matches(acme, "state:working OR is:running OR is:crashed") == []
    client = Client()
    client.force_login(acme.editor)
    page = client.get(f"/calls/{NOON:%Y-%m-%d}/{start['invocation_id']}").content.decode()
    assert "it neither succeeded nor failed" in page
    assert 'class="error is-cancelled"' in page, "not in the colour of failures"


@pytest.mark.parametrize("state", ["waiting", "working"])
def test_an_interim_event_must_name_its_call(acme: Cast, state: str) -> None:
    _, end = make_call(started_at=NOON)
    nameless = {name: value for name, value in end.items() if name != "invocation_id"}
    (rejected,) = send(acme, [nameless | {"call_state": state}])["rejected"]
    assert "invocation_id is missing" in rejected["message"]


def test_an_unknown_state_is_ignored(acme: Cast) -> None:
    start, end = make_call(started_at=NOON)
    send(acme, [start, end | {"call_state": "dreaming"}])
    assert row(acme, start["invocation_id"]).state == State.OK


def test_pages_and_api_say_what_a_call_does(acme: Cast, events: list[dict[str, Any]]) -> None:
    start, waiting, working, _ = events
    requests = {"q": {"method": "elicitation/create"}}
    output = {"resultType": "input_required", "inputRequests": requests}
    asks = {"output_type": "CallToolResult", "output": output}
    send(acme, [start, waiting | asks])
    client = Client()
    client.force_login(acme.editor)
    address = f"/calls/{NOON:%Y-%m-%d}/{start['invocation_id']}"
    page = client.get(address).content.decode()
    assert "The tool asked for input at" in page
    assert "elicitation/create" in page
    assert client.get(f"{address}/interim").status_code == 200
    assert "waiting" in client.get(f"/traces/{start['trace_id']}").content.decode()
    listed = client.get("/calls/?q=state:waiting").content.decode()
    assert start["tool_name"] in listed
    send(acme, [working])
    assert "The call runs as a task" in client.get(address).content.decode()
    assert "working" in client.get("/calls/open").content.decode()


@pytest.mark.slow
def test_erasure_reaches_every_interim_event(acme: Cast, events: list[dict[str, Any]]) -> None:
    secret = {"output": {"asked": "the secret"}}
    start, waiting, working, end = events
    other = make_call(tool_name="other")
    send(acme, [start, waiting | secret, working | secret, end | secret, *other])
    erase(acme, "tool:get_weather")
    assert not [line for line in stored_lines(acme) if b"the secret" in line]
    assert reindex(acme.tenant.id, repair=False, progress=lambda done, size: None).is_clean


MCP = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "get_weather"}
TRACE = "0af7651916cd43dd8448eb211c80319d"


def layer(number: int, parent: int = 0, *, kind: int, result: Any = None, **members: Any) -> bytes:
    shown = {} if result is None else {"gen_ai.tool.call.result": json.dumps(result)}
    ids = {"traceId": TRACE, "spanId": f"{number:016x}"}
    if parent:
        ids["parentSpanId"] = f"{parent:016x}"
    attributes = MCP | members.pop("attributes", {}) | shown
    each = span("tools/call get_weather", kind=kind, attributes=attributes, **ids, **members)
    return request(each, scope="mcp")


ASKS = {"resultType": "input_required", "requestState": "s"}
TASK = {"resultType": "task", "task": {"taskId": "t", "status": "working"}}
GONE = {"resultType": "task", "task": {"taskId": "t", "status": "cancelled"}}
FAILED = {"task": {"taskId": "t", "status": "failed", "statusMessage": "no such seat"}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("result", "state"),
    [(ASKS, "waiting"), (TASK, "working"), (GONE, "cancelled"), (FAILED, "failed")],
    ids=["asks", "task", "gone", "failed"],
)
def test_spans_say_what_a_call_does_in_any_order(acme: Cast, result: Any, state: str) -> None:
    bodies = [layer(2, kind=3), layer(3, 2, kind=2, result=result)]
    contents = []
    for order in itertools.permutations(bodies):
        tenant = make_tenant("spans")
        key = make_ingest_key(tenant)
        assert {post(key, each, JSON).status_code for each in order} == {200}
        contents.append(index_contents(tenant))
        assert_consistent(tenant)
        assert reindex(tenant.id, repair=False, progress=lambda done, size: None).is_clean
        with tenant_scope(tenant.id):
            (call,) = Invocation.objects.for_tenant(tenant.id)
            assert not RejectedEvent.objects.for_tenant(tenant.id).exists()
        assert call.state == state
    assert contents[0]["rollup"] == contents[1]["rollup"]


@pytest.mark.parametrize("word", ["cancelled", "asyncio.exceptions.CancelledError", "CANCELLED"])
def test_a_cancelled_span_is_cancelled(acme: Cast, word: str) -> None:
    key = make_ingest_key(acme.tenant)
    each = layer(2, kind=3, attributes={"error.type": word}, status={"code": 2})
    assert post(key, each, JSON).status_code == 200
    assert matches(acme, "state:cancelled") == ["cancelled"]


def test_a_round_of_a_server_of_the_python_sdk_waits(acme: Cast) -> None:
    """The attributes and the result are those of mcp 2.3.0, with the middleware of our docs."""
    result = {
        "requestState": "s1",
        "resultType": "input_required",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "weather", "version": "7.1"}},
    }
    attributes = {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2026-07-28",
        "jsonrpc.request.id": "2",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "book",
        "gen_ai.tool.call.result": json.dumps(result),
    }
    each = span("tools/call book", kind=2, attributes=attributes)
    assert post(make_ingest_key(acme.tenant), request(each), JSON).status_code == 200
    query = 'state:waiting server:"weather 7.1" protocol:2026-07-28'
    assert matches(acme, query) == ["waiting"]
