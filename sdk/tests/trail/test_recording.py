"""A call records two events: paired, in order, and valid."""

import asyncio
import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import pytest
from pydantic import BaseModel
from tooltrail import Trail
from tooltrail.contracts import ToolResult, ToolResultMeta
from tooltrail.events import ToolExecutionEnd, ToolExecutionStart
from tooltrail.testing import MemoryTrail
from tooltrail.tools import Tool, compute_call_id


def test_call_emits_a_valid_start_and_end_event(trail: MemoryTrail) -> None:
    @trail.tool(version="7", timeouts_ms=1500)
    def search(query: str, limit: int = 10) -> list[str]:
        return [query] * 2

    with trail.trace("trace-123", run_id="graph_run_1", case_id="crm-7"):
        assert search("hats") == ["hats", "hats"]

    start, end = trail.models
    assert isinstance(start, ToolExecutionStart)
    assert isinstance(end, ToolExecutionEnd)
    assert start.args == {"query": "hats", "limit": 10}
    assert end.output == {"status": "ok", "data": ["hats", "hats"], "meta": {"took_ms": 1}}
    assert (end.duration_ms, end.is_error) == (1.0, False)
    for event in (start, end):
        assert event.tool_name == "search"
        assert event.tool_version == "7"
        assert event.trace_id == "trace-123"
        assert event.run_id == "graph_run_1"
        assert event.case_id == "crm-7"
        assert event.timeouts_ms == 1500
        assert event.started_at == datetime(2026, 1, 1, tzinfo=UTC)
        # Defaults are recorded but do not name the call.
        assert event.call_id == compute_call_id("search", {"query": "hats"})
    assert start.invocation_id == end.invocation_id
    assert start.event_id != end.event_id
    assert (start.producer_seq, end.producer_seq) == (0, 1)
    assert start.producer_id == end.producer_id


def test_exception_reaches_the_caller_and_the_end_event(trail: MemoryTrail) -> None:
    @trail.tool
    def fetch(url: str) -> str:
        trail.current().attempt = 2
        raise ConnectionResetError("gone")

    with pytest.raises(ConnectionResetError, match="gone"):
        fetch("http://x")

    end = trail.events[1]
    assert end["is_error"] is True
    assert end["output"]["status"] == "error"
    assert end["output"]["error"] == {
        "type": "RETRYABLE",
        "message": "gone",
        "cause": "ConnectionResetError",
        "attempt": 2,
    }


def test_each_outermost_call_without_a_trace_gets_a_new_trace_id(trail: MemoryTrail) -> None:
    @trail.tool
    def ping() -> None: ...

    ping()
    ping()
    first, first_end, second, _ = trail.events
    assert first["trace_id"] == first_end["trace_id"] != second["trace_id"]
    assert len(first["trace_id"]) == 32


def test_calls_nest_through_await_gather_and_to_thread(trail: MemoryTrail) -> None:
    @trail.tool
    def leaf(n: int) -> int:
        return n

    @trail.tool
    async def branch(n: int) -> int:
        await asyncio.sleep(0)
        return leaf(n) + await asyncio.to_thread(leaf, n)

    @trail.tool
    async def root() -> int:
        return sum(await asyncio.gather(branch(1), branch(2)))

    assert asyncio.run(root()) == 6

    starts = [event for event in trail.events if event["type"] == "toolExecutionStart"]
    by_name: dict[str, list[dict[str, Any]]] = {}
    for start in starts:
        by_name.setdefault(start["tool_name"], []).append(start)
    [top] = by_name["root"]
    assert "parent_invocation_id" not in top
    branches = {each["invocation_id"]: each["args"]["n"] for each in by_name["branch"]}
    assert {each["parent_invocation_id"] for each in by_name["branch"]} == {top["invocation_id"]}
    assert len(by_name["leaf"]) == 4
    for each in by_name["leaf"]:
        assert branches[each["parent_invocation_id"]] == each["args"]["n"]
    assert {each["trace_id"] for each in starts} == {top["trace_id"]}


def test_calls_after_a_failed_call_are_not_nested_in_the_failed_call(trail: MemoryTrail) -> None:
    @trail.tool
    def fail() -> None:
        raise ValueError

    with trail.trace("t"):
        for _ in range(2):
            with contextlib.suppress(ValueError):
                fail()
    assert all("parent_invocation_id" not in event for event in trail.events)


def test_carried_function_runs_in_the_trace_on_any_thread(trail: MemoryTrail) -> None:
    @trail.tool
    def work(n: int) -> int:
        return n

    @trail.tool
    def spread() -> list[int]:
        with ThreadPoolExecutor(2) as pool:
            return [job.result() for job in [pool.submit(trail.carry(work), n) for n in (1, 2)]]

    assert spread() == [1, 2]
    starts = [event for event in trail.events if event["type"] == "toolExecutionStart"]
    parent = starts[0]["invocation_id"]
    assert [start.get("parent_invocation_id") for start in starts] == [None, parent, parent]


def test_trace_exited_in_another_context_does_not_raise(trail: MemoryTrail) -> None:
    block = trail.trace("t-1")

    assert copy_context().run(block.__enter__) == "t-1"
    block.__exit__(None, None, None)  # raises nothing

    trail.tool(lambda: 1)()
    assert trail.events[0]["trace_id"] != "t-1"


def test_traces_inherit_and_replace_context(trail: MemoryTrail) -> None:
    @trail.tool
    def ping() -> None: ...

    with (
        trail.trace("outer", run_id="r", locale="de-DE", tool_call_id="call_1"),
        trail.trace(
            ingestion_run_id="i", parent_invocation_id="0198c0de-0000-7000-8000-00000000000a"
        ),
    ):
        ping()
    start = trail.events[0]
    assert start["trace_id"] == "outer"
    assert start["locale"] == "de-DE"
    assert start["ingestion_run_id"] == "i"
    assert "run_id" not in start
    assert start["tool_call_id"] == "call_1"
    assert start["parent_invocation_id"] == "0198c0de-0000-7000-8000-00000000000a"


def test_tool_call_id_is_not_inherited_by_nested_calls(trail: MemoryTrail) -> None:
    @trail.tool
    def inner() -> None: ...

    @trail.tool
    def outer() -> None:
        inner()

    with trail.trace("t", tool_call_id="call_1", case_id="c"):
        outer()
    first, second = trail.events[:2]
    assert (first["tool_call_id"], first["case_id"]) == ("call_1", "c")
    assert ("tool_call_id" in second, second["case_id"]) == (False, "c")


def test_auth_and_unknown_context_are_never_sent(
    trail: MemoryTrail, caplog: pytest.LogCaptureFixture
) -> None:
    @trail.tool
    def ping() -> None: ...

    with trail.trace("t", auth={"token": "hunter2"}, password="hunter2", case_id="c"):
        ping()
    assert trail.events[0]["case_id"] == "c"
    for text in (json.dumps(trail.events), caplog.text):
        assert "hunter2" not in text
    for member in ("auth", "password"):
        assert all(member not in event for event in trail.events)
        assert f"trace() got an unknown context member {member!r}" in caplog.text


class Answer(BaseModel):
    text: str


class Question(BaseModel):
    query: str


@pytest.mark.parametrize(
    ("returned", "output"),
    [
        pytest.param(
            {"status": "ok", "data": 1, "meta": {"took_ms": 42, "cache_hit": True}},
            {"status": "ok", "data": 1, "meta": {"took_ms": 42, "cache_hit": True}},
            id="mapping",
        ),
        pytest.param(
            {"status": "error", "error": {"type": "RATE_LIMIT", "message": "slow down"}},
            {
                "status": "error",
                "error": {"type": "RATE_LIMIT", "message": "slow down"},
                "meta": {"took_ms": 1},
            },
            id="error mapping",
        ),
        pytest.param(
            ToolResult[Question, Answer](
                input=Question(query="q"),
                data=Answer(text="a"),
                meta=ToolResultMeta(took_ms=7, token_usage={"prompt": 1}),
            ),
            {
                "status": "ok",
                "data": {"text": "a"},
                "meta": {"took_ms": 7, "token_usage": {"prompt": 1}},
            },
            id="contract",
        ),
        pytest.param(
            {"status": "ok"},
            {"status": "ok", "data": {"status": "ok"}, "meta": {"took_ms": 1}},
            id="not an envelope",
        ),
    ],
)
def test_returned_envelope_is_recorded_unchanged(
    trail: MemoryTrail, returned: Any, output: Any
) -> None:
    @trail.tool
    def tool() -> Any:
        return returned

    assert tool() is returned
    end = trail.events[1]
    assert end["output"] == output
    assert end["is_error"] is False


def test_current_call_accepts_metadata_for_the_end_event(trail: MemoryTrail) -> None:
    @trail.tool
    def summarise(text: str) -> str:
        call = trail.current()
        call.token_usage = {"prompt": 12, "completion": 3}
        call.cache_hit = False
        call.source_counts = {"docs": 2}
        call.routing = {"profile": "small"}
        return text[:3]

    summarise("hello")
    assert trail.events[1]["output"]["meta"] == {
        "took_ms": 1,
        "token_usage": {"prompt": 12, "completion": 3},
        "cache_hit": False,
        "source_counts": {"docs": 2},
        "routing": {"profile": "small"},
    }
    trail.current().cache_hit = True  # outside any call: nothing happens


def test_attempt_number_is_recorded_for_failed_and_successful_calls(trail: MemoryTrail) -> None:
    @trail.tool
    def fetch(attempt: int) -> str:
        trail.current().attempt = attempt
        if attempt == 1:
            raise TimeoutError("no answer")
        return "page"

    with trail.trace("t"):
        with pytest.raises(TimeoutError):
            fetch(1)
        assert fetch(2) == "page"

    _, failed, _, succeeded = trail.events
    assert failed["output"]["error"]["attempt"] == 1
    assert failed["output"]["meta"]["attempt"] == 1
    assert succeeded["output"]["meta"] == {"took_ms": 1, "attempt": 2}
    assert trail.models


def test_record_creates_a_call_without_a_function(trail: MemoryTrail) -> None:
    with trail.record("shell", {"command": "ls"}, version="1") as recorded:
        recorded.call.attempt = 1
        recorded.output = ["a", "b"]
    with pytest.raises(KeyError), trail.record("shell"):
        raise KeyError("x")
    start, end, _, failed = trail.events
    assert (start["tool_name"], start["tool_version"]) == ("shell", "1")
    assert end["output"]["data"] == ["a", "b"]
    assert failed["is_error"]


def test_self_is_not_recorded_as_argument(trail: MemoryTrail) -> None:
    class Shop:
        @trail.tool
        def find(self, hat: str, *, size: int = 3) -> str:
            return f"{hat}{size}"

    assert Shop().find("bowler", size=4) == "bowler4"
    assert trail.events[0]["args"] == {"hat": "bowler", "size": 4}


def test_any_signature_is_recorded_and_a_wrong_call_raises_type_error(trail: MemoryTrail) -> None:
    @trail.tool
    def anything(first: int, /, *rest: int, **more: int) -> int:
        return first + sum(rest) + sum(more.values())

    assert anything(1, 2, 3, x=4) == 10
    assert trail.events[0]["args"] == {"first": 1, "rest": [2, 3], "x": 4}

    # Written in C, without a signature to read.
    assert trail.tool(dict)(a=1) == {"a": 1}
    assert trail.events[2]["args"] == {"a": 1}

    @trail.tool
    def strict(a: int) -> int:
        return a

    with pytest.raises(TypeError, match="unexpected keyword"):
        strict(1, b=2)  # type: ignore[call-arg]  # what mypy would refuse
    assert trail.events[-1]["is_error"]


@dataclass
class Point:
    x: int


class Odd:
    def __repr__(self) -> str:
        raise AssertionError("reprs are not asked for")


def test_recording_does_not_consume_generators(trail: MemoryTrail) -> None:
    """Neither the tool nor its caller may find it empty."""

    def numbers() -> Any:
        yield from (1, 2, 3)

    @trail.tool
    def double(given: Any) -> Any:
        return {"rows": [{"doubled": (2 * n for n in given["numbers"])}]}

    answer = double({"numbers": numbers()})

    assert list(answer["rows"][0]["doubled"]) == [2, 4, 6]
    assert list(trail.tool(lambda: numbers())()) == [1, 2, 3]
    trail.emit(trail.events[0] | {"args": (given := numbers())})
    assert list(given) == [1, 2, 3]
    start, end, _, whole, emitted = trail.events
    assert start["args"] == {"given": {"numbers": "<generator>"}}
    assert end["output"]["data"] == {"rows": [{"doubled": "<generator>"}]}
    assert whole["output"]["data"] == emitted["args"] == "<generator>"


def _cycle() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


def _deep() -> list[Any]:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    return deep


@pytest.mark.parametrize(
    ("value", "recorded"),
    [
        (Point(1), {"x": 1}),
        (Answer(text="a"), {"text": "a"}),
        (date(2026, 1, 2), "2026-01-02"),
        (b"\xff\x00", "/wA="),
        (float("nan"), "NaN"),
        ({1: {2}}, {"1": [2]}),
        (Odd(), "<Odd>"),
        ("\ud800", "\ud800"),
        (2**70, 2**70),
        (_cycle(), None),
        (_deep(), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_without_json_form_are_recorded_approximately(
    trail: MemoryTrail, value: Any, recorded: Any
) -> None:
    @trail.tool
    def echo(value: Any) -> Any:
        return value

    assert echo(value) is value
    start, end = trail.events
    assert start["args"] in ({"value": recorded}, recorded)
    assert end["output"]["data"] == recorded
    assert len(start["call_id"]) == 64


@pytest.mark.parametrize("capture", ["shape", "none"])
def test_capture_modes_omit_values(trail: MemoryTrail, capture: Any) -> None:
    @trail.tool(capture=capture)
    def find(name: str, ages: list[int]) -> dict[str, Any]:
        if not ages:
            raise ValueError("hunter2 has no age")
        return {"name": name, "n": 1.5, "ok": True, "none": None}

    find("hunter2", [1, 2])
    with pytest.raises(ValueError, match="hunter2"):
        find("hunter2", [])
    text = json.dumps(trail.events)
    assert "hunter2" not in text
    start, end, _, failed = trail.events
    if capture == "shape":
        assert start["args"] == {"name": "string", "ages": ["integer", "integer"]}
        assert end["output"]["data"] == {
            "name": "string",
            "n": "number",
            "ok": "boolean",
            "none": "null",
        }
    else:
        assert start["args"] is None
        assert end["output"]["data"] is None
    assert failed["output"]["error"]["type"] == "FATAL"
    assert start["removed"]


def test_long_payloads_are_truncated_after_redaction() -> None:
    trail = MemoryTrail(max_payload_bytes=10_000)

    @trail.tool
    def read(text: str) -> str:
        return text

    read("x" * 20_000 + " Bearer abcdefghijklmnopqrstuvwxyz")
    read("y" * 20_000)
    redacted, _, cut, _ = trail.events
    assert redacted["args"] == {"text": "[redacted]"}
    assert cut["args"].startswith('{"text":"yyy')
    assert len(cut["args"]) == 4096
    assert cut["removed"][0]["reason"].startswith("too long")


def test_adk_tool_runs_in_the_context_of_a_trail(trail: MemoryTrail) -> None:
    @trail.tool
    def inner() -> int:
        return 1

    outer = Tool(
        name="outer",
        description="calls inner",
        input_schema={"type": "object", "properties": {"password": {"type": "string"}}},
        handler=lambda args, ctx, meta: inner(),
    )

    async def run() -> list[Any]:
        execute = outer.executor(trail.context("turn-1"))
        return await asyncio.gather(*(execute({"password": "hunter2"}) for _ in range(3)))

    assert asyncio.run(run()) == [1, 1, 1]
    trail.models  # noqa: B018  # all of them valid
    events = trail.events
    starts = {e["invocation_id"]: e for e in events if e["type"] == "toolExecutionStart"}
    ends = {e["invocation_id"]: e for e in events if e["type"] == "toolExecutionEnd"}
    assert starts.keys() == ends.keys()
    assert len(starts) == 6
    outers = {i for i, e in starts.items() if e["tool_name"] == "outer"}
    assert {e["turn_id"] for i, e in starts.items() if i in outers} == {"turn-1"}
    parents = [e["parent_invocation_id"] for i, e in starts.items() if i not in outers]
    assert sorted(parents) == sorted(outers)
    assert "hunter2" not in json.dumps(events)


def test_emit_accepts_any_event_of_the_contract(trail: MemoryTrail) -> None:
    trail.emit(
        {
            "type": "toolExecutionStart",
            "turn_id": "t",
            "tool_name": "x",
            "call_id": "c",
            "started_at": datetime(2026, 1, 1, tzinfo=UTC),
            "args": {"token": "hunter2"},
            "auth": {"token": "hunter2"},
        }
    )
    [event] = trail.events
    assert event["args"] == {"token": "[redacted]"}
    assert event["removed"] == [{"path": "$.args.token", "reason": "name"}]
    assert "auth" not in event
    assert trail.models


def test_tools_run_without_a_server_after_one_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOOLTRAIL_URL", raising=False)
    trail = Trail()

    @trail.tool
    def double(n: int) -> int:
        with trail.trace("t"):
            trail.current().cache_hit = True
        return 2 * n

    assert [double(n) for n in range(3)] == [0, 2, 4]
    assert not trail.is_enabled
    assert trail.flush()
    assert len(caplog.records) == 1
    assert "TOOLTRAIL_URL" in caplog.text


def test_internal_errors_do_not_reach_the_host(
    make_trail: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    trail: Trail = make_trail(clock=lambda: 1 / 0)

    @trail.tool
    def double(n: int) -> int:
        return 2 * n

    assert [double(n) for n in range(3)] == [0, 2, 4]
    assert caplog.text.count("ZeroDivisionError") == 1
