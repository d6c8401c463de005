"""Decisions about calls: refused arguments, `trail.decision`, and servers that know none."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict
from tooltrail import Redactor, Trail, shipper
from tooltrail.errors import InvalidToolArgs
from tooltrail.events import Decider, ToolCallDecision, decided_call_id
from tooltrail.spool.slim import slim_line
from tooltrail.testing import MemoryTrail
from tooltrail.tools import Tool

from sdk.tests.support.ingest_server import Server

MakeTrail = Callable[..., Trail]

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "maximum": 7}},
    "required": ["city"],
}


class Place(BaseModel):
    model_config = ConfigDict(extra="forbid")
    city: str
    days: int = 1


class Turn:
    """A context as the ADK's: it knows starts and ends only."""

    id = "turn-1"

    def __init__(self) -> None:
        self.events: list[Any] = []

    def emit_tool_execution_start(self, event: Any) -> None:
        self.events.append(event)

    def emit_tool_execution_end(self, event: Any) -> None:
        self.events.append(event)


def the_decision(trail: MemoryTrail) -> ToolCallDecision:
    (event,) = trail.models
    assert isinstance(event, ToolCallDecision)
    return event


@pytest.mark.parametrize("schema", [SCHEMA, Place], ids=["json-schema", "pydantic"])
def test_decorator_refuses_invalid_arguments_and_records_it(
    tooltrail_trail: MemoryTrail, schema: Any
) -> None:
    runs = []

    @tooltrail_trail.tool(name="weather", version="3", input_schema=schema)
    def weather(city: Any, days: Any = None, **more: Any) -> str:
        runs.append(city)
        return "sunny"

    with tooltrail_trail.trace("t", case_id="c-1"), pytest.raises(InvalidToolArgs):
        weather(5, wind=True)
    assert runs == []
    event = the_decision(tooltrail_trail)
    assert (event.decision, event.tool_name, event.trace_id) == (
        *("rejectedArguments", "weather", "t"),
    )
    assert (event.case_id, event.definition_digest, event.tool_version) == ("c-1", "3", "3")
    assert {(each.path, each.code) for each in event.violations} >= {("$.city", "WRONG_TYPE")}
    assert event.call_id is not None
    tooltrail_trail.clear()
    assert weather("London") == "sunny"
    assert [each.type for each in tooltrail_trail.models] == [
        *("toolExecutionStart", "toolExecutionEnd"),
    ]


def test_async_function_refuses_invalid_arguments(tooltrail_trail: MemoryTrail) -> None:
    @tooltrail_trail.tool(input_schema=SCHEMA)
    async def weather(city: str) -> str:
        return city

    with pytest.raises(InvalidToolArgs):
        asyncio.run(weather(5))  # type: ignore[arg-type]  # the test is about it
    assert the_decision(tooltrail_trail).decision == "rejectedArguments"


def test_default_of_a_parameter_is_not_validated(tooltrail_trail: MemoryTrail) -> None:
    @tooltrail_trail.tool(input_schema=SCHEMA)
    def weather(city: str, days: int | None = None) -> str:
        return city

    assert weather("London") == "London"


def test_function_without_an_input_schema_of_its_own_is_not_checked(
    tooltrail_trail: MemoryTrail,
) -> None:
    @tooltrail_trail.tool
    def weather(city: str) -> str:
        return str(city)

    assert weather(5) == "5"  # type: ignore[arg-type]  # the test is about it


def test_unusable_input_schema_is_not_checked(
    tooltrail_trail: MemoryTrail, caplog: pytest.LogCaptureFixture
) -> None:
    @tooltrail_trail.tool(input_schema={"type": "string"})
    def weather(city: str) -> str:
        return str(city)

    assert weather("x") == "x"
    assert "are not validated" in caplog.text


def test_disabled_trail_refuses_invalid_arguments_too() -> None:
    trail = Trail()
    assert not trail.is_enabled

    @trail.tool(input_schema=SCHEMA)
    def weather(city: str) -> str:
        return city

    with pytest.raises(InvalidToolArgs):
        weather(5)  # type: ignore[arg-type]  # the test is about it


def test_executor_records_refused_arguments_before_it_raises(
    tooltrail_trail: MemoryTrail,
) -> None:
    tool = Tool(
        name="weather", description="w", input_schema=SCHEMA, handler=lambda args, ctx, meta: "sun"
    )
    execute = tool.executor(tooltrail_trail.context("turn-1"))
    with pytest.raises(InvalidToolArgs):
        asyncio.run(execute({"days": 9, "wind": 1}))
    event = the_decision(tooltrail_trail)
    assert (event.decision, event.turn_id, event.trace_id) == (
        *("rejectedArguments", "turn-1", "turn-1"),
    )
    assert {(each.path, each.code) for each in event.violations} == {
        ("$.city", "MISSING_REQUIRED"),
        ("$.days", "CONSTRAINT_VIOLATION"),
        ("$.wind", "UNKNOWN_FIELD"),
    }
    assert event.definition_digest is not None
    assert event.args == {"days": 9, "wind": 1}


def test_context_of_the_adk_gets_no_further_event() -> None:
    tool = Tool(
        name="weather", description="w", input_schema=SCHEMA, handler=lambda args, ctx, meta: "sun"
    )
    turn = Turn()
    with pytest.raises(InvalidToolArgs):
        asyncio.run(tool.executor(turn)({}))
    assert turn.events == []


def test_error_of_the_hook_does_not_replace_the_error() -> None:
    class Broken(Turn):
        def emit_tool_call_decision(self, event: Any) -> None:
            raise RuntimeError("full")

    tool = Tool(name="w", description="w", input_schema=SCHEMA, handler=lambda args, ctx, meta: 1)
    with pytest.raises(InvalidToolArgs):
        asyncio.run(tool.executor(Broken())({}))


def test_decision_has_all_its_members(tooltrail_trail: MemoryTrail) -> None:
    with tooltrail_trail.trace("t", run_id="r"):
        named = tooltrail_trail.decision(
            "pay",
            "awaiting",
            args={"amount": 7},
            by=Decider(kind="policy", id="four-eyes", name="Four eyes"),
            reason="over 5",
            requested_by="ada",
            tool_call_id="toolu_1",
            definition_digest="sha256:1",
            version="2",
        )
        again = tooltrail_trail.decision(
            "pay", "approved", by={"kind": "person", "id": "bob"}, invocation_id=named
        )
    assert again == named
    first, second = tooltrail_trail.models
    assert isinstance(first, ToolCallDecision) and isinstance(second, ToolCallDecision)
    assert first.invocation_id == second.invocation_id
    assert first.by == Decider(kind="policy", id="four-eyes", name="Four eyes")
    assert (first.reason, first.requested_by, first.args) == ("over 5", "ada", {"amount": 7})
    assert (first.trace_id, first.run_id, first.tool_call_id) == ("t", "r", "toolu_1")
    assert (first.definition_digest, first.tool_version) == ("sha256:1", "2")


def test_decisions_with_the_same_provider_id_in_a_trace_are_about_one_call(
    tooltrail_trail: MemoryTrail,
) -> None:
    trail = tooltrail_trail

    @trail.tool(input_schema=SCHEMA)
    def pay(city: Any) -> None: ...

    with trail.trace("t", tool_call_id="toolu_1"):
        request = trail.decision("pay", "awaiting")
        answered = trail.decision("pay", "approved")
        with pytest.raises(InvalidToolArgs):
            pay(7)
    with trail.trace("t"):
        also = trail.decision("pay", "cancelled", tool_call_id="toolu_1")
        others = [
            trail.decision("pay", "denied", tool_call_id="toolu_2"),
            trail.decision("pay", "denied"),
            trail.decision("pay", "denied", tool_call_id=""),
        ]
    with trail.trace("u"):
        others.append(trail.decision("pay", "denied", tool_call_id="toolu_1"))
    assert request == answered == also == str(decided_call_id("t", "toolu_1"))
    assert len({request, *others}) == 5
    ids = [each["invocation_id"] for each in trail.events]
    assert ids == [request, request, request, also, *others]


def test_secrets_leave_no_trace_in_a_decision() -> None:
    trail = MemoryTrail(redact=Redactor(keys=["iban"], patterns={"mail": r"[a-z]+@[a-z.]+"}))
    trail.emit(
        {
            "type": "toolCallDecision",
            "trace_id": "t",
            "tool_name": "pay",
            "decided_at": "2026-11-20T10:15:00Z",
            "decision": "denied",
            "by": {"kind": "person", "id": "ada@x.org", "name": "ada@x.org"},
            "reason": "ada@x.org may not pay DE89",
            "args": {"iban": "DE89", "n": 1},
            "violations": [
                {"path": "$.iban", "code": "WRONG_TYPE", "received": "DE89", "message": "DE89"},
                {"path": "$.n", "code": "WRONG_TYPE", "received": "integer"},
            ],
        }
    )
    (event,) = trail.events
    assert event["args"] == {"iban": "[redacted]", "n": 1}
    assert "ada@" not in event["reason"]
    assert event["by"]["id"] == "ada@x.org" and "ada@" not in event["by"]["name"]
    assert event["violations"][0]["received"] == event["violations"][0]["message"] == ""
    assert event["violations"][1]["received"] == "integer"


def test_nothing_private_is_captured_with_capture_none() -> None:
    trail = MemoryTrail(capture="none")
    trail.decision("pay", "denied", args={"n": 1}, reason="because of 1")
    (event,) = trail.events
    assert (event["args"], event["reason"]) == (None, None)


def test_decision_without_room_keeps_place_and_codes() -> None:
    trail = MemoryTrail()
    trail.emit(
        {
            "type": "toolCallDecision",
            "trace_id": "t",
            "tool_name": "pay",
            "decided_at": "2026-11-20T10:15:00Z",
            "decision": "denied",
            "reason": "secret",
            "args": {"n": "secret"},
            "violations": [{"path": "$.n", "code": "WRONG_TYPE", "received": "secret"}],
        }
    )
    (line,) = trail._all_lines()
    slim = slim_line(line, "spool-full")
    assert b"secret" not in slim
    assert b'"WRONG_TYPE"' in slim
    assert slim.startswith(b'{"type":"toolCallDecision"')


# Servers that know no decisions


def some(trail: Trail) -> None:
    @trail.tool(name="echo", version="1")
    def echo(n: int) -> int:
        return n

    with trail.trace("t"):
        echo(1)
        trail.decision("pay", "denied")
        echo(2)


def kinds(server: Server) -> list[str]:
    return sorted(event["type"] for event in server.events)


CALLS = ["toolExecutionEnd", "toolExecutionEnd", "toolExecutionStart", "toolExecutionStart"]


def test_decisions_are_sent_to_a_server_that_knows_them(
    make_trail: MakeTrail, server: Server
) -> None:
    trail = make_trail()
    some(trail)
    assert trail.flush(20)
    assert kinds(server) == sorted([*CALLS, "toolCallDecision"])
    trail.decision("pay", "denied")
    assert trail.flush(20)
    assert len(server.events) == 6
    assert server.was_asked == 0


def test_decisions_alone_make_the_sdk_ask(make_trail: MakeTrail, server: Server) -> None:
    trail = make_trail()
    trail.decision("pay", "denied")
    assert trail.flush(20)
    assert (server.was_asked, kinds(server)) == (1, ["toolCallDecision"])


def test_decisions_wait_for_an_older_server_to_be_upgraded(
    make_trail: MakeTrail,
    server: Server,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shipper, "KEEP_HOUSE_SECONDS", 0.05)
    monkeypatch.setattr(shipper, "ASK_AGAIN_SECONDS", 0.05)
    caplog.set_level(logging.WARNING)
    server.contract = 1
    trail = make_trail()
    some(trail)
    assert not trail.flush(20), "the decision is not sent"
    assert kinds(server) == CALLS
    assert trail.stats().waiting == 1
    assert trail.stats().dropped == {}
    trail.decision("pay", "awaiting")
    assert not trail.flush(20)
    assert caplog.text.count("the server is older than this SDK") == 1
    server.contract = 2
    server.wait(lambda: len(server.events) == 6)
    assert trail.flush(20)
    assert trail.stats().waiting == 0


@pytest.mark.slow
def test_decisions_survive_the_process_at_an_older_server(
    make_trail: MakeTrail, server: Server
) -> None:
    server.contract = 1
    trail = make_trail()
    some(trail)
    assert not trail.close(5)
    assert kinds(server) == CALLS
    server.contract = 2
    later = make_trail()
    later.decision("pay", "denied")
    server.wait(lambda: len(server.events) == 6)
    assert later.flush(20)
