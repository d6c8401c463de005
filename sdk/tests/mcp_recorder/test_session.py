"""What the messages of a session mean: calls, their states, their peers, and lists of tools."""

import json
import tracemalloc
from typing import Any

import pytest
from tooltrail.mcp_recorder.messages import Line
from tooltrail.mcp_recorder.session import Recorder, Session
from tooltrail.mcp_results import ResultDocument
from tooltrail.spool import SpoolFullError
from tooltrail.testing import MemoryTrail

from sdk.tests.support.mcp_events import TEXT, state

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
SPAN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Talk:
    """A session, whose messages are given as Python values."""

    def __init__(self, trail: MemoryTrail) -> None:
        self.trail = trail
        self.session = Session(Recorder(trail, "npx-server"))

    def client(self, message: Any) -> None:
        self.session.from_client(line(message))

    def server(self, message: Any) -> None:
        self.session.from_server(line(message))

    def call(self, id: Any = 1, tool: str = "weather", **params: Any) -> None:
        params = {"name": tool, "arguments": {"city": "London"}, **params}
        self.client({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})

    def answer(self, result: Any, id: Any = 1) -> None:
        self.server({"jsonrpc": "2.0", "id": id, "result": result})

    def states(self) -> list[str]:
        """The types of the events, and what their ends say."""
        return [state(event) for event in self.trail.events]


def line(message: Any) -> Line:
    text = message if isinstance(message, bytes) else json.dumps(message).encode()
    return Line(len(text), text)


@pytest.fixture
def talk(trail: MemoryTrail) -> Talk:
    return Talk(trail)


@pytest.mark.parametrize("version", VERSIONS)
def test_call_has_arguments_result_and_peers_in_each_version(talk: Talk, version: str) -> None:
    meta: dict[str, Any] = {}
    served: dict[str, Any] = {}
    if version == VERSIONS[-1]:  # no handshake: both name themselves in each message
        prefix = "io.modelcontextprotocol/"
        meta = {prefix + "clientInfo": {"name": "desk", "version": "2"}}
        meta[prefix + "protocolVersion"] = version
        served = {prefix + "serverInfo": {"name": "sky", "version": "1"}}
    else:
        asked = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "desk", "version": "2"}}
        talk.client({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": asked})
        said = {"protocolVersion": version, "serverInfo": {"name": "sky", "version": "1"}}
        talk.answer(said, id=0)
    talk.call(_meta=meta)
    talk.answer(TEXT | {"_meta": served})

    start, end = talk.trail.events
    assert start["args"] == {"city": "London"}
    assert (start["tool_name"], start["run_id"]) == ("weather", end["run_id"])
    assert end["output"]["data"]["content"] == TEXT["content"]
    assert end["output_type"] == "CallToolResult"
    assert end["mcp"] == {
        "client": {"name": "desk", "version": "2"},
        "server": {"name": "sky", "version": "1"},
        "protocol_version": version,
    }
    assert len(talk.trail.models) == 2


def test_result_with_is_error_is_a_failed_call_with_its_text(talk: Talk) -> None:
    talk.call()
    talk.answer(TEXT | {"isError": True})

    _, end = talk.trail.events
    assert state(end) == "failed"
    assert end["output"]["error"]["message"] == "22.5"


def test_error_of_the_protocol_is_a_failed_call(talk: Talk) -> None:
    talk.call()
    error = {"code": -32603, "message": "no", "data": {"password": "x", "seat": 1}}
    talk.server({"jsonrpc": "2.0", "id": 1, "error": error})

    _, end = talk.trail.events
    detail = end["output"]["error"]
    assert (detail["code"], detail["message"]) == ("-32603", "no")
    assert detail["details"]["data"] == {"password": "[redacted]", "seat": 1}


def test_refused_arguments_are_a_decision_about_the_call(talk: Talk) -> None:
    talk.call()
    error = {"code": -32602, "message": "city is no city"}
    talk.server({"jsonrpc": "2.0", "id": 1, "error": error})

    start, decision, end = talk.trail.events
    assert talk.trail.models
    assert [state(each) for each in (start, decision, end)] == [
        "start",
        "rejectedArguments",
        "failed",
    ]
    assert decision["invocation_id"] == start["invocation_id"]
    assert decision["trace_id"] == start["trace_id"]
    assert decision["reason"] == "city is no city"


def test_secrets_are_removed_before_anything_is_written(talk: Talk) -> None:
    talk.call(arguments={"api_key": "hidden", "city": "London"})
    talk.answer({"structuredContent": {"access_token": "hidden"}, "content": []})

    assert "hidden" not in json.dumps(talk.trail.events)


def test_cancelled_call_ends_when_the_client_says_so(talk: Talk) -> None:
    talk.call(id="a")
    params = {"requestId": "a", "reason": "user left"}
    talk.client({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    talk.answer(TEXT, id="a")

    assert talk.states() == ["start", "cancelled"]


def test_rounds_of_input_are_one_call(talk: Talk) -> None:
    talk.call(id=1)
    talk.answer({"resultType": "input_required", "requestState": "s1", "inputRequests": {}}, id=1)
    talk.call(id=2, requestState="s1", inputResponses={})
    talk.answer(TEXT | {"resultType": "complete"}, id=2)

    assert [state(each) for each in talk.trail.events] == ["start", "waiting", "ok"]


@pytest.mark.parametrize("how", ["polled", "told", "fetched"])
def test_task_is_one_call_until_its_result(talk: Talk, how: str) -> None:
    task = {"taskId": "t1", "status": "working"}
    talk.call()
    talk.answer({"task": task} if how == "fetched" else {"resultType": "task", **task})
    talk.client({"id": 2, "method": "tasks/get", "params": {"taskId": "t1"}})
    talk.answer({"taskId": "t1", "status": "input_required"}, id=2)
    ended = {"taskId": "t1", "status": "completed", "result": TEXT}
    if how == "told":
        talk.server({"method": "notifications/tasks/status", "params": ended})
    else:
        method = "tasks/get" if how == "polled" else "tasks/result"
        talk.client({"id": 3, "method": method, "params": {"taskId": "t1"}})
        talk.answer(ended if how == "polled" else TEXT, id=3)

    assert talk.states() == ["start", "working", "waiting", "ok"]


def test_progress_is_told_but_not_each_step(talk: Talk) -> None:
    talk.call(_meta={"progressToken": "p"})
    for step in range(50):
        params = {"progressToken": "p", "progress": step, "total": 50, "message": "on it"}
        talk.server({"method": "notifications/progress", "params": params})
    talk.server({"method": "notifications/progress", "params": {"progressToken": "other"}})
    talk.answer(TEXT)

    start, *reports, end = talk.trail.events
    assert [state(each) for each in (start, end)] == ["start", "ok"]
    assert {state(each) for each in reports} == {"working"}
    assert reports[0]["output"] == {"progress": 0, "total": 50, "message": "on it"}
    assert len(reports) < 50


def test_request_ids_of_two_types_are_two_requests(talk: Talk) -> None:
    talk.call(id=1, tool="number")
    talk.call(id="1", tool="text")
    talk.answer(TEXT, id="1")

    number, _, end = talk.trail.events
    assert end["tool_name"] == "text"
    assert number["tool_name"] == "number"


def test_span_of_the_request_is_the_span_of_the_call(talk: Talk) -> None:
    talk.call(_meta={"traceparent": SPAN})
    talk.call(id=2, _meta={"traceparent": "no span"})

    named, other = talk.trail.events
    assert (named["traceparent"], named["trace_id"]) == (SPAN, SPAN[3:35])
    assert "traceparent" not in other


def test_batch_of_requests_is_a_call_each(talk: Talk) -> None:
    request = {"method": "tools/call", "params": {"name": "weather"}}
    talk.client([{"id": 1, **request}, {"id": 2, **request}])
    talk.server([{"id": 2, "result": TEXT}, {"id": 1, "result": TEXT}])

    assert talk.states() == ["start", "start", "ok", "ok"]


def test_list_of_tools_is_reported_with_its_last_page_and_when_it_changes(talk: Talk) -> None:
    def list_tools(cursor: str | None, *names: str, following: str | None = None) -> None:
        params = {} if cursor is None else {"cursor": cursor}
        talk.client({"id": 9, "method": "tools/list", "params": params})
        tools = [{"name": name, "inputSchema": {}} for name in names]
        talk.answer({"tools": tools} | ({"nextCursor": following} if following else {}), id=9)

    list_tools(None, "a", following="2")
    assert talk.trail.events == []
    list_tools("2", "b")
    list_tools(None, "a", following="2")
    list_tools("2", "b")
    list_tools(None, "c")

    first, changed = talk.trail.events
    assert [tool["name"] for tool in first["tools"]] == ["a", "b"]
    assert first["server"] == {"name": "npx-server"}
    assert [tool["name"] for tool in changed["tools"]] == ["c"]


def test_what_cannot_be_read_is_a_declared_gap_and_a_log_of_the_server_is_none(talk: Talk) -> None:
    talk.session.from_server(line(b"Server started on stdio"))
    talk.session.from_server(line(b'{"jsonrpc":"2.0","id":1,"res'))
    talk.call()
    talk.session.from_client(line(b"GET / HTTP/1.1"))
    talk.call(id=2)

    assert talk.states() == [
        "gap unreadable-message",
        "start",
        "gap not-a-message",
        "start",
    ]


PAYLOADS = {
    "secret": {"text": "a", "password": "hidden"},
    "kept": {"text": "x" * 200_000},
    "cut": {"text": "x" * 300_000, "note": "the token=hidden is at the end"},
    "many": {"items": [{"n": n} for n in range(7_000)]},
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_payload_is_recorded_as_by_the_sdk_in_the_tool(trail: MemoryTrail, name: str) -> None:
    """With the same redaction, limit and notes as a recorded function with this value."""
    payload = PAYLOADS[name]
    talk = Talk(trail)
    talk.call(arguments=payload)
    talk.answer({"structuredContent": payload, "content": []})
    call = trail.begin("weather", payload)
    call.finish(ResultDocument({"structuredContent": payload, "content": []}))

    start, end, *expected = trail.events
    for seen, wanted in zip((start, end), expected, strict=True):
        assert seen.get("args") == wanted.get("args")
        assert seen.get("removed") == wanted.get("removed")
        assert (seen.get("output") or {}).get("data") == (wanted.get("output") or {}).get("data")
    assert "hidden" not in json.dumps([start, end])
    assert len(trail.models) == 4


def test_long_messages_are_told_by_their_length(talk: Talk) -> None:
    talk.call(arguments={"text": "x" * 600_000})
    talk.answer({"content": [{"type": "text", "text": "y" * 600_000}]})
    talk.call(id=2)
    talk.answer({"content": [{"type": "text", "text": "y" * 600_000}], "isError": True}, id=2)

    start, end, _, failed = talk.trail.events
    assert talk.trail.models
    assert start["args"] is None
    assert start["removed"][0]["reason"].startswith("too long: 600")
    assert end["output"]["data"] is None
    assert end["removed"][0]["path"] == "$.output.data"
    assert [state(each) for each in (end, failed)] == ["ok", "failed"]


def test_list_that_is_too_long_for_one_report_is_reported_in_parts(talk: Talk) -> None:
    for page in range(4):
        talk.client({"id": page, "method": "tools/list", "params": {"cursor": str(page)}})
        tool = {"name": f"t{page}", "inputSchema": {}, "description": "d" * 240_000}
        pages = {"tools": [tool, tool | {"name": f"u{page}"}], "nextCursor": str(page + 1)}
        talk.answer(pages if page < 3 else {"tools": pages["tools"]}, id=page)

    names = [tool["name"] for each in talk.trail.events for tool in each["tools"]]
    assert names == ["t0", "u0", "t1", "u1", "t2", "u2", "t3", "u3"]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["tool", "id", "cursor", "task", "state", "token", "names"])
def test_what_a_peer_names_is_not_kept_at_its_length(what: str) -> None:
    """Of 40 open requests with names of 200 kB, 8 MB, next to nothing is kept."""
    talk = Talk(MemoryTrail(max_payload_bytes=100))
    talk.call()
    tracemalloc.start()
    for number in range(40):
        long = f"{number} " + "x" * 200_000
        match what:
            case "tool":
                talk.call(id=number, tool=long)
            case "id":
                talk.call(id=long)
            case "cursor":
                talk.client({"id": number, "method": "tools/list", "params": {"cursor": long}})
            case "task":
                talk.client({"id": number, "method": "tasks/get", "params": {"taskId": long}})
            case "state":
                talk.call(id=number)
                talk.answer({"resultType": "input_required", "requestState": long}, id=number)
            case "token":
                talk.call(id=number, _meta={"progressToken": long})
            case _:
                talk.call(id=number, arguments={long: 1, "password": 1})
        talk.trail.events.clear()
        talk.trail.models.clear()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert kept < 1_000_000


def test_calls_that_nobody_answers_end_with_the_session(talk: Talk) -> None:
    talk.call()
    talk.session.fail(ConnectionAbortedError("the server ended"))

    _, end = talk.trail.events
    assert state(end) == "failed"
    assert end["output"]["error"]["message"] == "the server ended"
    assert not talk.session.is_waiting


def test_flood_of_open_calls_is_bounded_and_its_ends_are_declared_lost(talk: Talk) -> None:
    for number in range(1100):
        talk.call(id=number)
    talk.session.fail(ConnectionAbortedError("the server ended"))

    states = talk.states()
    lost = [each for each in talk.trail.models if each.type == "gap"]
    assert states.count("start") == 1100
    assert states.count("failed") == 1000
    assert sum(each.count for each in lost) == 100


@pytest.mark.parametrize(
    "message",
    [
        {"id": 1, "method": "tools/call", "params": {"name": 7}},
        {"id": 1, "method": "tools/call", "params": []},
        {"id": 1, "method": ["tools/call"]},
        {"id": {"a": 1}, "method": "tools/call", "params": {"name": "t", "_meta": 3}},
        {"id": True, "method": "tools/list", "params": {"cursor": {}}},
        {"id": 1e400, "method": "tasks/get", "params": {"taskId": [1]}},
        {"method": "notifications/cancelled", "params": {"requestId": {}}},
        {"id": 1, "method": "initialize", "params": {"clientInfo": "x", "protocolVersion": 5}},
        {"id": "\ud800" * 500, "method": "tools/call", "params": {"name": "\ud800"}},
    ],
)
@pytest.mark.parametrize(
    "answer",
    [
        {"id": 1, "result": None},
        {"id": 1, "result": []},
        {"id": 1, "error": {"code": [], "message": {}}},
        {"id": 1, "error": "no"},
        {"id": 1, "result": {"tools": "x", "nextCursor": 1, "_meta": []}},
        {"id": 1, "result": {"tools": [1, {}], "serverInfo": {"name": 1}}},
        {"id": 1},
        {"method": {}, "params": 1},
        {"method": "notifications/progress", "params": {"progressToken": {}}},
    ],
)
def test_malformed_messages_are_no_mistake_of_the_recorder(
    make_quiet: MemoryTrail, message: Any, answer: Any
) -> None:
    talk = Talk(make_quiet)
    talk.client(message)
    talk.server(answer)
    talk.session.fail(ConnectionAbortedError("the server ended"))

    assert not [each for each in talk.states() if each == "gap recorder-error"]


@pytest.fixture
def make_quiet() -> MemoryTrail:
    """A trail that notes what it complains of, as a real one does, but for mistakes in lists."""

    class Quiet(MemoryTrail):
        def _complain(self, error: Exception) -> None:
            if not isinstance(error, ValueError | TypeError):  # a list that is none
                raise error

    return Quiet()


def test_fail_closed_refuses_what_it_cannot_record() -> None:
    trail = MemoryTrail(when_full="raise", max_bytes=1)
    talk = Talk(trail)
    with pytest.raises(SpoolFullError):
        talk.session.from_client(line(b'{"id":1,"method":'))
    trail._make_producer().spool.allowance = 0
    with pytest.raises(SpoolFullError):
        talk.call()
