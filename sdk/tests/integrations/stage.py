"""What the scripts of all frameworks have in common: the trail, and the tools' bodies.

Runs in each framework's own environment, without pytest.
"""

import asyncio
import json
import sys
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from tooltrail.testing import MemoryTrail

WEATHER = {"celsius": 22.5}
PROMPT_TOKENS, COMPLETION_TOKENS = 812, 64  # of each answer of a scripted model
ROWS = [{"n": 1}, {"n": 2}]


def make_trail() -> MemoryTrail:
    """A trail in memory with real times and ids; it raises an adapter's mistakes."""
    return MemoryTrail(clock=None, ids=None)


def get_weather(city: str) -> dict[str, float]:
    """The weather of a city.

    Args:
        city: The city.
    """
    return WEATHER


def lookup(key: str) -> str:
    """Look it up.

    Args:
        key: The key.
    """
    return f"value of {key}"


def report(title: str, rows: list[dict[str, int]]) -> dict[str, Any]:
    """Write a report.

    Args:
        title: The title.
        rows: The rows.
    """
    return {"title": title, "rows": rows}


def boom(n: int) -> str:
    """Fail.

    Args:
        n: A number.
    """
    raise ValueError(f"boom {n}")


slow_runs = asyncio.Event()


async def slow() -> str:
    """Take long."""
    slow_runs.set()
    await asyncio.sleep(60)
    return "never"


def turns(call: Any, *more: Any) -> list[Any]:
    """What the model asks for, turn by turn. `call` makes a call in the framework's form."""
    return [
        [call("get_weather", 1, city="London"), call("get_weather", 2, city="Paris")],
        [call("helper", 3, task="look")],
        [call("report", 4, title="T", rows=ROWS)],
        *more,
        [call("boom", 5, n=7)],
    ]


async def cancel(run: Coroutine[Any, Any, Any]) -> None:
    """Cancel a run when it is in `slow`, and wait for its end."""
    task = asyncio.create_task(run)
    await slow_runs.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


class Beside:
    """Beside OpenTelemetry: a trail for one more call of `get_weather`, and the spans around it.

    `tracer_provider` is the global one, too. Needs `opentelemetry-sdk` in the requirements.
    """

    def __init__(self) -> None:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self.trail = make_trail()
        self._spans = InMemorySpanExporter()
        self.tracer_provider = TracerProvider()
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._spans))
        trace.set_tracer_provider(self.tracer_provider)

    def sent(self) -> dict[str, Any]:
        """What the server gets: the events, and the spans as OTLP's JSON."""
        spans = [_otlp(span) for span in self._spans.get_finished_spans()]
        return {"events": self.trail.events, "spans": {"resourceSpans": [{"scopeSpans": spans}]}}


def _otlp(span: Any) -> dict[str, Any]:
    own = {
        "traceId": f"{span.context.trace_id:032x}",
        "spanId": f"{span.context.span_id:016x}",
        "parentSpanId": f"{span.parent.span_id:016x}" if span.parent else "",
        "name": span.name,
        "kind": span.kind.value + 1,
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "attributes": [
            {"key": key, "value": {"stringValue": value}}
            for key, value in span.attributes.items()
            if isinstance(value, str)
        ],
    }
    return {"scope": {"name": span.instrumentation_scope.name}, "spans": [own]}


def finish(trail: MemoryTrail, beside: Beside | None = None) -> None:
    """Write what was recorded to the file that the test has named."""
    sent = None if beside is None else beside.sent()
    Path(sys.argv[1]).write_text(json.dumps({"events": trail.events, "beside": sent}))
