"""Calls that wait for input, work on as a task, or are cancelled: interim events of one call."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from mcp_types import CallToolResult, CreateTaskResult, InputRequiredResult, Task, TextContent
from tooltrail import Trail
from tooltrail.events import ToolExecutionEnd
from tooltrail.recording import Call
from tooltrail.testing import MemoryTrail

from sdk.tests.support.ingest_server import Server

ASKS = InputRequiredResult(request_state="s1")
DONE = CallToolResult(content=[TextContent(text="booked")])
TIME = "2026-11-25T10:00:00Z"


def task(status: Any, **members: Any) -> CreateTaskResult:
    times = {"created_at": TIME, "last_updated_at": TIME}
    return CreateTaskResult(task=Task(task_id="t", status=status, ttl=None, **times, **members))


def ends(trail: MemoryTrail) -> list[ToolExecutionEnd]:
    return [each for each in trail.models if isinstance(each, ToolExecutionEnd)]


@pytest.mark.parametrize(
    ("result", "state"),
    [
        (ASKS, "waiting"),
        (task("working"), "working"),
        (task("input_required"), "waiting"),
        (task("cancelled"), "cancelled"),
        (DONE, None),
    ],
    ids=["asks", "working", "asks_as_task", "cancelled", "done"],
)
def test_result_of_a_server_says_what_the_call_does(
    trail: MemoryTrail, result: Any, state: str | None
) -> None:
    @trail.tool()
    def book() -> Any:
        return result

    assert book() is result
    (end,) = ends(trail)
    assert (end.call_state, end.is_error, end.output_type) == (state, False, "CallToolResult")


def test_failed_task_is_a_failed_call(trail: MemoryTrail) -> None:
    failed = task("failed", status_message="no such seat")

    @trail.tool(output_schema={"required": ["seat"]})
    def book() -> Any:
        return failed

    assert book() is failed
    (end,) = ends(trail)
    assert (end.call_state, end.is_error, end.guard) == (None, True, None)
    assert isinstance(end.output, dict)
    assert end.output["error"]["message"] == "no such seat"


def test_rounds_of_one_call_have_one_invocation(trail: MemoryTrail) -> None:
    kept: list[Call] = []

    @trail.tool()
    def book() -> Any:
        kept.append(trail.current())
        return task("working")

    book()
    (call,) = kept
    call.report("waiting")
    call.finish(DONE)
    ended = ends(trail)
    assert [each.call_state for each in ended] == ["working", "waiting", None]
    assert {each.invocation_id for each in ended} == {ended[0].invocation_id}
    assert len({each.event_id for each in ended}) == 3


def test_cancelled_task_of_asyncio_is_cancelled(trail: MemoryTrail) -> None:
    @trail.tool()
    async def book() -> None:
        await asyncio.sleep(60)

    async def main() -> None:
        running = asyncio.create_task(book())
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    (end,) = ends(trail)
    assert (end.call_state, end.is_error) == ("cancelled", True)


@pytest.mark.parametrize("result", [ASKS, task("working")], ids=["asks", "task"])
def test_guard_does_not_judge_what_is_no_result_yet(trail: MemoryTrail, result: Any) -> None:
    @trail.tool(output_schema={"type": "object", "required": ["celsius"]})
    def book() -> Any:
        return result

    assert book() is result
    (end,) = ends(trail)
    assert end.guard is None or not end.guard.violations


def test_interim_events_wait_for_an_older_server(
    make_trail: Callable[..., Trail], server: Server
) -> None:
    server.contract = 1
    trail = make_trail()

    @trail.tool
    def book() -> Any:
        trail.current().report("working")
        return DONE

    book()
    trail.emit({"type": "toolExecutionEnd", "tool_name": "book", "call_state": "waiting"})
    assert not trail.flush(20)
    sent = [(each["type"], each.get("call_state")) for each in server.events]
    assert sent == [("toolExecutionStart", None), ("toolExecutionEnd", None)]
    assert trail.stats().waiting == 2
