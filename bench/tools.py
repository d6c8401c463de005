"""What calling a tool costs: `uv run bench/tools.py`. Prints a table, fails above its limits.

Arguments have 500 bytes, and the handler does nothing. The ADK itself was not measured. The limits
keep a call together with its recording (bench/sdk.py) within the promised figures.
"""

import asyncio
import sys
import time
import timeit
from collections.abc import Callable
from typing import Any

from tooltrail.testing import MemoryTrail
from tooltrail.tools import (
    InMemorySpoolReader,
    SpooledArtifact,
    Tool,
    canonical_stringify,
    compute_call_id,
)

ARGS: dict[str, Any] = {
    "query": "which hats were in fashion in London " * 6,
    "filters": {"language": "en", "tags": ["hats", "fashion", "history"], "since": 1890},
    "limit": 25,
    "session": {"user": "a-user", "note": "n" * 120, "score": 0.75, "is_new": False},
}
SCHEMA = {
    "type": "object",
    "required": ["query"],
    "properties": {
        "query": {"type": "string"},
        "filters": {"type": "object"},
        "limit": {"type": "integer", "default": 10, "maximum": 100},
        "session": {"type": "object", "properties": {"score": {"type": "number"}}},
    },
}


class Context:
    """A context that ignores all events."""

    id = "turn-1"

    def emit_tool_execution_start(self, event: Any) -> None:
        pass

    def emit_tool_execution_end(self, event: Any) -> None:
        pass


def from_function(query: str, filters: dict[str, Any], limit: int, session: dict[str, Any]) -> str:
    """Find hats."""
    return "hats"


def microseconds(call: Callable[[], object]) -> float:
    """The best of seven rounds of about 50 ms, in CPU time, which other work hardly affects."""
    timer = timeit.Timer(call, timer=time.process_time)
    number = max(1, int(timer.autorange()[0] / 4))
    return min(timer.repeat(7, number)) / number * 1e6


def executing(tool: Tool, context: Any) -> Callable[[], object]:
    """One call of a tool; runs its coroutine directly, to exclude the cost of an event loop."""
    execute = tool.executor(context)

    def run() -> None:
        try:
            execute(ARGS).send(None)
        except StopIteration:
            return

    return run


def main() -> int:
    plain = Tool(
        name="search",
        description="Find hats",
        input_schema=SCHEMA,
        handler=lambda args, ctx, meta: "hats",
    )
    typed = Tool.from_function(from_function, name="search")
    trail = MemoryTrail(clock=None)
    lines = SpooledArtifact(InMemorySpoolReader("a line of a log, not a long one\n" * 1000))
    asyncio.run(plain.executor(Context())(ARGS))
    rows = (
        ("canonical_stringify", lambda: canonical_stringify(ARGS), 8),
        ("compute_call_id", lambda: compute_call_id("search", ARGS), 10),
        ("Tool.executor, JSON Schema", executing(plain, Context()), 40),
        ("Tool.executor, from_function", executing(typed, Context()), 45),
        ("Tool.executor, JSON Schema, recorded", executing(plain, trail.context("turn-1")), 150),
        ("Tool(…)", lambda: Tool(**_members()), 150),
        ("Tool.describe", plain.describe, 25),
        ("grep 1,000 lines", lambda: asyncio.run(lines.grep("^a (line|word)")), 2000),
    )
    print(f"{'':40} {'µs':>9} {'limit':>7}")
    failed = False
    for label, call, limit in rows:
        time_us = microseconds(call)
        trail.clear()
        failed |= time_us > limit
        print(f"{label:40} {time_us:9.2f} {limit:7}")
    return int(failed)


def _members() -> dict[str, Any]:
    return {"name": "t", "description": "d", "input_schema": SCHEMA, "handler": print}


if __name__ == "__main__":
    sys.exit(main())
