"""Beside OpenTelemetry: a call names the span it ran in and joins that span's trace."""

import asyncio
import subprocess
import sys
import textwrap
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.trace import Span, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from tooltrail.events import ToolExecutionEnd, ToolExecutionStart
from tooltrail.testing import MemoryTrail
from tooltrail.tools import Tool
from tooltrail.tracing import parse_traceparent, resolve_trace

TRACER = TracerProvider().get_tracer("an-agent")


def traceparent(span: Any) -> str:
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def ids(span: Any) -> tuple[str, str]:
    parsed = parse_traceparent(traceparent(span))
    assert parsed is not None
    return parsed.trace_id, parsed.span_id


def test_call_inside_a_span_records_traceparent_and_trace_id(trail: MemoryTrail) -> None:
    @trail.tool
    def ping() -> str:
        return "pong"

    with TRACER.start_as_current_span("execute_tool ping") as span:
        ping()

    start, end = trail.models
    assert isinstance(start, ToolExecutionStart)
    assert isinstance(end, ToolExecutionEnd)
    assert start.traceparent == traceparent(span)
    assert start.trace_id == end.trace_id == ids(span)[0]
    assert "traceparent" not in trail.events[1]


def test_call_outside_a_span_has_no_traceparent(trail: MemoryTrail) -> None:
    trail.tool(name="ping")(lambda: None)()

    assert "traceparent" not in trail.events[0]
    assert len(trail.events[0]["trace_id"]) == 32


def test_nested_call_records_only_spans_opened_inside_the_outer_call(trail: MemoryTrail) -> None:
    @trail.tool
    def look_up() -> None: ...

    @trail.tool
    def plan() -> None:
        look_up()
        with TRACER.start_as_current_span("execute_tool look_up") as span:
            inner.append(traceparent(span))
            look_up()

    inner: list[str] = []
    with TRACER.start_as_current_span("invoke_agent") as outer:
        plan()

    starts = [event for event in trail.events if event["type"] == "toolExecutionStart"]
    assert [start.get("traceparent") for start in starts] == [traceparent(outer), None, *inner]
    assert {start["trace_id"] for start in starts} == {ids(outer)[0]}
    assert [start.get("parent_invocation_id") for start in starts] == [
        None,
        starts[0]["invocation_id"],
        starts[0]["invocation_id"],
    ]


def test_concurrent_calls_in_a_span_each_record_its_traceparent(trail: MemoryTrail) -> None:
    @trail.tool
    async def ping() -> None: ...

    async def both() -> None:
        await asyncio.gather(ping(), ping())

    with TRACER.start_as_current_span("invoke_agent") as span:
        asyncio.run(both())

    starts = [event for event in trail.events if event["type"] == "toolExecutionStart"]
    assert [start["traceparent"] for start in starts] == [traceparent(span)] * 2


def test_explicit_trace_id_is_kept_and_the_span_is_recorded(trail: MemoryTrail) -> None:
    with TRACER.start_as_current_span("chat") as span:
        with trail.trace("case-7"), trail.record("ping"):
            pass
        with trail.trace() as fresh, trail.record("ping"):
            pass

    named, _, unnamed, _ = trail.events
    assert (named["trace_id"], named["traceparent"]) == ("case-7", traceparent(span))
    assert unnamed["trace_id"] == fresh == ids(span)[0]


def test_request_without_a_trace_id_uses_the_trace_of_the_span(trail: MemoryTrail) -> None:
    with TRACER.start_as_current_span("GET /") as span:
        assert resolve_trace({}).trace_id == ids(span)[0]
        assert resolve_trace({"x-trace-id": "mine"}).trace_id == "mine"


def test_adk_tool_inside_a_span_records_traceparent(trail: MemoryTrail) -> None:
    tool = Tool(
        name="ping",
        description="Pings.",
        input_schema={"type": "object"},
        handler=lambda args, ctx, meta: "pong",
    )
    with TRACER.start_as_current_span("execute_tool ping") as span:
        asyncio.run(tool.executor(trail.context("turn-1"))({}))

    start, end = trail.events
    assert start["traceparent"] == traceparent(span)
    assert "traceparent" not in end


def test_unsampled_span_is_recorded_with_its_flag(trail: MemoryTrail) -> None:
    tracer = TracerProvider(sampler=ALWAYS_OFF).get_tracer("an-agent")
    with tracer.start_as_current_span("chat") as span, trail.record("ping"):
        pass

    assert not isinstance(span, Span)
    assert trail.events[0]["traceparent"] == traceparent(span)
    parsed = parse_traceparent(trail.events[0]["traceparent"])
    assert parsed is not None
    assert not parsed.is_sampled


class Hostile(ModuleType):
    """Something that is imported under the name, and no OpenTelemetry."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


@pytest.mark.parametrize(
    "module",
    [
        None,
        ModuleType("opentelemetry.trace"),
        Hostile("opentelemetry.trace"),
        SimpleNamespace(get_current_span=lambda: None),
    ],
)
def test_broken_opentelemetry_modules_do_not_affect_tools(
    trail: MemoryTrail, monkeypatch: pytest.MonkeyPatch, module: Any
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", module)

    assert trail.tool(name="ping")(lambda: "pong")() == "pong"
    assert "traceparent" not in trail.events[0]


@pytest.mark.slow
def test_opentelemetry_is_not_imported_by_the_sdk() -> None:
    script = """
        import sys
        from tooltrail.testing import MemoryTrail

        trail = MemoryTrail()
        trail.tool(name="ping")(lambda: None)()
        assert "traceparent" not in trail.events[0]
        assert not [name for name in sys.modules if name.startswith("opentelemetry")]
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
