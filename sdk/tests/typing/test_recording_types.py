"""Recording code under mypy strict: a decorated function keeps its signature.

The `type: ignore` comments are assertions too: mypy fails where one is not needed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, assert_type

from tooltrail import Redactor, Trail
from tooltrail.testing import MemoryTrail


def test_bare_decorator_keeps_the_signature() -> None:
    trail: Trail = MemoryTrail()

    @trail.tool
    def add(left: int, right: int = 1) -> int:
        return left + right

    assert_type(add(1), int)
    assert add(1, right=2) == 3


def test_decorator_with_options_keeps_the_signature() -> None:
    trail = MemoryTrail(redact=Redactor(keys=["iban"]))

    @trail.tool(name="weather.get", output_schema={"type": "object"}, on_invalid="throw")
    async def get_weather(city: str) -> dict[str, Any]:
        return {"city": city}

    pending = get_weather(city="London")
    assert_type(asyncio.run(_wait(pending)), dict[str, Any])


async def _wait[T](pending: Awaitable[T]) -> T:
    return await pending


def test_wrong_arguments_of_a_tool_are_type_errors() -> None:
    trail = MemoryTrail()

    @trail.tool
    def shout(text: str) -> str:
        return text.upper()

    def wrong() -> None:
        shout(text=1)  # type: ignore[arg-type]  # mypy must refuse it
        shout("a", "b")  # type: ignore[call-arg]  # mypy must refuse it

    assert callable(wrong)
    assert shout("a") == "A"


def test_traces_calls_and_counters_are_typed() -> None:
    trail = MemoryTrail()

    @trail.tool
    def summarise(text: str) -> str:
        trail.current().token_usage = {"prompt": 3, "completion": 2}
        trail.current().cache_hit = False
        return text[:3]

    with trail.trace("trace-123", run_id="graph_run_1") as trace_id:
        assert_type(trace_id, str)
        summarise("long text")
    with trail.record("lookup", {"key": "a"}) as recorded:
        recorded.output = {"value": 1}

    assert_type(trail.events, list[dict[str, Any]])
    assert_type(trail.stats().dropped.get("expired"), int | None)
    assert_type(trail.flush(timeout=1.0), bool)
    assert len(trail.events) == 4


def test_carried_function_keeps_its_signature() -> None:
    trail = MemoryTrail()

    def work(item: int) -> str:
        return str(item)

    carried: Callable[[int], str] = trail.carry(work)
    assert_type(trail.carry(work)(1), str)
    assert carried(2) == "2"


def test_option_names_and_values_are_type_checked() -> None:
    def wrong() -> None:
        Trail(spool="disk")  # type: ignore[arg-type]  # mypy must refuse it
        Trail(capture="some")  # type: ignore[arg-type]  # mypy must refuse it
        Trail(when_full="wait")  # type: ignore[arg-type]  # mypy must refuse it
        Trail(retries=3)  # type: ignore[call-arg]  # mypy must refuse it

    assert callable(wrong)
