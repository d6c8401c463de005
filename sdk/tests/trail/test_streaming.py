"""A tool that yields is one call, from its first item to its end."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any

import pytest
from tooltrail.testing import MemoryTrail


def ended(trail: MemoryTrail) -> tuple[dict[str, Any], dict[str, Any]]:
    start, end = trail.events
    assert start["invocation_id"] == end["invocation_id"]
    return start, end


def test_generator_is_recorded_to_its_last_item(trail: MemoryTrail) -> None:
    @trail.tool
    def count(to: int) -> Iterator[int]:
        yield from range(to)

    items = count(1000)
    assert trail.events == [], "it has not run yet"
    assert next(items) == 0
    assert [event["type"] for event in trail.events] == ["toolExecutionStart"]
    assert list(items) == list(range(1, 1000))
    start, end = ended(trail)
    assert start["args"] == {"to": 1000}
    assert end["output"]["data"] == {"items": 1000, "first": 0, "last": 999}
    assert inspect.isgeneratorfunction(count)


def test_async_generator_is_recorded_to_its_last_item(trail: MemoryTrail) -> None:
    @trail.tool
    async def count(to: int) -> AsyncIterator[int]:
        for n in range(to):
            await asyncio.sleep(0)
            yield n

    async def consume() -> list[int]:
        return [n async for n in count(3)]

    assert asyncio.run(consume()) == [0, 1, 2]
    assert ended(trail)[1]["output"]["data"] == {"items": 3, "first": 0, "last": 2}
    assert inspect.isasyncgenfunction(count)


def test_generator_without_items_has_succeeded(trail: MemoryTrail) -> None:
    @trail.tool
    def nothing() -> Iterator[int]:
        yield from ()

    assert list(nothing()) == []
    assert ended(trail)[1]["output"]["data"] == {"items": 0, "first": None, "last": None}


def test_generator_that_raises_midway_has_failed(trail: MemoryTrail) -> None:
    @trail.tool
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("midway")

    with pytest.raises(ValueError, match="midway"):
        list(broken())
    end = ended(trail)[1]
    assert (end["is_error"], end["output"]["error"]["message"]) == (True, "midway")


def test_async_generator_that_raises_midway_has_failed(trail: MemoryTrail) -> None:
    @trail.tool
    async def broken() -> AsyncIterator[int]:
        yield 1
        raise ValueError("midway")

    async def consume() -> None:
        async for _ in broken():
            pass

    with pytest.raises(ValueError, match="midway"):
        asyncio.run(consume())
    assert ended(trail)[1]["output"]["error"]["message"] == "midway"


def test_consumer_that_stops_early_cancels_the_call(trail: MemoryTrail) -> None:
    closed: list[bool] = []

    @trail.tool
    def endless() -> Generator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.append(True)

    items = endless()
    next(items)
    items.close()
    assert closed == [True]
    assert ended(trail)[1]["call_state"] == "cancelled"


def test_cancelled_task_cancels_its_streaming_call(trail: MemoryTrail) -> None:
    @trail.tool
    async def slow() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(60)

    async def consume() -> None:
        async for _ in slow():
            pass

    async def main() -> None:
        task = asyncio.create_task(consume())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended(trail)[1]["call_state"] == "cancelled"


def test_calls_inside_are_nested_and_those_between_items_are_not(trail: MemoryTrail) -> None:
    @trail.tool
    def inner() -> None: ...

    @trail.tool
    def outer() -> None: ...

    @trail.tool
    def items() -> Iterator[int]:
        inner()
        yield 1
        inner()
        yield 2

    with trail.trace("t"):
        for _ in items():
            outer()
    starts = [event for event in trail.events if event["type"] == "toolExecutionStart"]
    of = {
        name: [e for e in starts if e["tool_name"] == name] for name in ("items", "inner", "outer")
    }
    (around,) = of["items"]
    assert [e["parent_invocation_id"] for e in of["inner"]] == [around["invocation_id"]] * 2
    assert [e.get("parent_invocation_id") for e in of["outer"]] == [None, None]


def test_what_is_sent_and_thrown_reaches_the_generator(trail: MemoryTrail) -> None:
    def echo() -> Generator[Any, Any, str]:
        heard = yield "ready"
        try:
            yield heard
        except KeyError:
            yield "caught"
        return "bye"

    def drive(made: Generator[Any, Any, str]) -> list[Any]:
        answers = [next(made), made.send("hello"), made.throw(KeyError("k"))]
        with pytest.raises(StopIteration) as stop:
            next(made)
        return [*answers, stop.value.value]

    tool: Any = trail.tool(echo)
    assert drive(tool()) == drive(echo()) == ["ready", "hello", "caught", "bye"]
    assert ended(trail)[1]["output"]["data"]["items"] == 3
