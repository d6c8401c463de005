"""Every kind of callable behaves as before when it is decorated, and is recorded."""

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial, partialmethod, wraps
from typing import Any

import pytest
from tooltrail import Trail
from tooltrail.errors import InvalidToolArgs
from tooltrail.spool import SpoolFullError
from tooltrail.testing import MemoryTrail


def test_carried_function_runs_concurrently_many_times(trail: MemoryTrail) -> None:
    meeting = threading.Barrier(4, timeout=20)

    @trail.tool
    def work(n: int) -> int:
        if n < 4:
            meeting.wait()  # four of them are inside at once
        return n

    with trail.trace("trace-1"), ThreadPoolExecutor(4) as pool:
        carried = trail.carry(work)
        assert list(pool.map(carried, range(200))) == list(range(200))
        assert carried(200) == 200
    starts = [event for event in trail.events if event["type"] == "toolExecutionStart"]
    assert len(starts) == 201
    assert {start["trace_id"] for start in starts} == {"trace-1"}
    assert not any("parent_invocation_id" in start for start in starts), "no run is in another"


class Search:
    """Searches."""

    def query(self, kind: str, n: int = 1) -> tuple[str, int]:
        """Query it."""
        return kind, n

    ping = partialmethod(query, "ping")

    def __call__(self, text: str) -> str:
        return text


@pytest.mark.parametrize(
    ("fn", "given", "name", "args"),
    [
        (partial(Search().query, "deep"), (5,), "query", {"kind": "deep", "n": 5}),
        (partial(Search().query, n=7), ("web",), "query", {"kind": "web", "n": 7}),
        (partial(partial(Search().query, "deep"), n=7), (), "query", {"kind": "deep", "n": 7}),
        (partial(Search.query, Search()), ("web",), "query", {"kind": "web", "n": 1}),
        (partial(Search(), "hello"), (), "Search", {"text": "hello"}),
        (Search().ping, (3,), "query", {"kind": "ping", "n": 3}),
        (Search(), ("hello",), "Search", {"text": "hello"}),
        (lambda text: text, ("hello",), "<lambda>", {"text": "hello"}),
        (wraps(Search().query)(lambda *rest: rest), ("web", 2), "query", {"kind": "web", "n": 2}),
    ],
)
def test_decorated_partial_keeps_its_name_and_bound_arguments(
    trail: MemoryTrail, fn: Any, given: tuple[Any, ...], name: str, args: dict[str, Any]
) -> None:
    tool: Any = trail.tool(fn)
    assert tool(*given) == fn(*given)
    start = trail.events[0]
    assert (start["tool_name"], start["args"]) == (name, args)
    assert tool.__name__ == name


def first_only(a: int, /, *more: int, **rest: int) -> None: ...


@pytest.mark.parametrize(
    ("call", "args"),
    [
        (lambda fn: fn(1, city="Oslo"), {"a": 1, "city": "Oslo"}),
        (lambda fn: fn(1, 2, 3, rest=4), {"a": 1, "more": [2, 3], "rest": 4}),
        (lambda fn: fn(1, a=2, more=3), {"a": 1, "rest": {"a": 2, "more": 3}}),
        (lambda fn: fn(1), {"a": 1}),
    ],
)
def test_further_keyword_arguments_are_arguments_of_the_tool(
    trail: MemoryTrail, call: Callable[[Any], Any], args: dict[str, Any]
) -> None:
    call(trail.tool(first_only))
    assert trail.events[0]["args"] == args


def test_input_schema_is_that_of_further_keyword_arguments(trail: MemoryTrail) -> None:
    schema = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}

    @trail.tool(input_schema=schema)
    def forward(**arguments: Any) -> Any:
        return arguments

    assert forward(city="Oslo") == {"city": "Oslo"}
    with pytest.raises(InvalidToolArgs):
        forward(town="Oslo")
    assert [each["type"] for each in trail.events] == [
        *("toolExecutionStart", "toolExecutionEnd", "toolCallDecision")
    ]


def test_partial_method_is_recorded(trail: MemoryTrail) -> None:
    class Tools:
        deep = trail.tool(partialmethod(Search.query, "deep"))  # type: ignore[call-overload]  # no function

    tools: Any = Tools()
    assert tools.deep(n=2) == ("deep", 2)
    assert trail.events[0]["tool_name"] == "query"
    assert trail.events[0]["args"] == {"kind": "deep", "n": 2}


def test_partial_of_an_async_function_is_awaited_and_keeps_its_name(trail: MemoryTrail) -> None:
    async def add(a: int, b: int) -> int:
        return a + b

    named = partial(add, 1)
    named.__name__ = "increment"  # type: ignore[attr-defined]  # not in partial's type
    tool = trail.tool(named)
    assert inspect.iscoroutinefunction(tool)
    assert asyncio.run(tool(2)) == 3
    assert trail.events[0]["tool_name"] == "increment"
    assert trail.events[0]["args"] == {"a": 1, "b": 2}


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def out_of_ids() -> str:
    raise RuntimeError("no more ids")


def odd_calls() -> Iterator[Callable[[], int]]:
    """Calls that cannot be recorded as they are; each tool returns 1."""

    def tool(trail: Trail, **options: Any) -> Callable[[], int]:
        wrapped: Callable[[], int] = trail.tool(**options)(lambda: 1)
        return wrapped

    trail = Trail("http://127.0.0.1:9", "key", spool="memory")
    yield tool(trail, name="\ud800")
    yield tool(trail, name="odd", timeouts_ms=Unprintable())
    yield tool(Trail("http://127.0.0.1:9", "key", spool="memory", ids=out_of_ids), name="no ids")
    yield tool(Trail("http://[::1", "key", spool="memory", register="strict"), name="no address")

    for context in (
        {"trace_id": "\ud800"},
        {"case_id": Unprintable()},
        {"trace_id": Unprintable()},
    ):

        def traced(context: dict[str, Any] = context) -> int:
            with trail.trace(**context):
                return tool(trail, name="traced")()

        yield traced

    def recorded() -> int:
        with trail.record("\ud800") as call:
            call.output = 1
        return 1

    yield recorded


@pytest.mark.parametrize("call", list(odd_calls()))
def test_unrecordable_calls_still_run(call: Callable[[], int]) -> None:
    assert call() == 1


def test_unrecordable_call_raises_and_does_not_run_with_when_full_raise() -> None:
    trail = Trail("http://127.0.0.1:9", "key", spool="memory", when_full="raise", ids=out_of_ids)
    ran: list[int] = []
    with pytest.raises(SpoolFullError):
        trail.tool(lambda: ran.append(1))()
    assert not ran


def test_events_wait_in_memory_without_a_home_directory(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("TOOLTRAIL_SPOOL_DIR", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "~nobody-of-this-name/state")
    trail = Trail("http://127.0.0.1:9", "key")
    assert trail.tool(lambda: 1)() == 1
    assert trail.stats().emitted == 2
    assert "events are kept in memory only" in caplog.text
