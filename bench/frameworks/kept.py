"""Pairs that are not run: one good and one failed span of each, as a real run sent them.

They come from runs of the real packages (Node.js, a service, or versions that exclude ours). They
say nothing about nesting, and of the context only what is on the tool's own span.
"""

import json
import time
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from bench.frameworks.calls import SeenCall
from bench.frameworks.capture import ROOT
from bench.frameworks.pairs import NO_CONTENT

_SPANS = ROOT / "tests/audit/intake/otlp/vectors/spans.json"
_TOOLS = {"sk": ("Main-get_weather", "Main-boom"), "mcp-mid": ("mid_weather", "mid_boom")}
_CITIES = {"mcp-mid": "Rome"}

KEPT = {
    "adk-legacy": "Google ADK, own, schema 1",
    "oaa-sens": "OpenAI Agents, OpenInference, without content",
    "lc-toolexc": "LangChain, handle_tool_error, OpenInference",
    "langchain-ls": "LangChain, LangSmith",
    "lc-js": "LangGraph for Node.js, OpenInference",
    "maf": "Microsoft Agent Framework, own",
    "sk": "Semantic Kernel, own",
    "dsp": "DSPy, OpenInference",
    "hay-own": "Haystack, own",
    "vercel-ai": "Vercel AI SDK, own",
    "vercel-oi": "Vercel AI SDK, OpenInference",
    "claude-sdk": "Claude Agent SDK, own",
    "mcp-mid": "MCP 2.3, own, with our middleware",
    "mcp1-tl": "MCP 1.30, OpenLLMetry",
    "lf-mcp": "MCP 1.30, Logfire",
    "fastmcp3": "FastMCP 3, own",
    "tl-dec": "Traceloop SDK, @tool",
    "langfuse": "Langfuse SDK, @observe",
}

_NO_NAMES = "arguments are sent without their names"
THEIRS: dict[str, dict[str, str]] = {
    "oaa-sens": {
        "args": NO_CONTENT,
        "result": NO_CONTENT,
        "error": "the framework redacts messages",
    },
    "lc-toolexc": {"args": _NO_NAMES},
    "lc-js": {"args": _NO_NAMES},
    "claude-sdk": {"args": NO_CONTENT, "error": "said by a span below, which was not kept"},
    "mcp-mid": {"error": "MCP's server hides the message"},
    "fastmcp3": {"args": NO_CONTENT, "result": NO_CONTENT},
    "tl-dec": {"args": _NO_NAMES},
    "langfuse": {"args": _NO_NAMES},
}
"""By pair and column, why the spans themselves do not say it."""


def kept(pair: str) -> tuple[ExportTraceServiceRequest, list[SeenCall]]:
    """The spans of a pair, as if they had just been made, and the calls that they are of."""
    stored = json.loads(_SPANS.read_text())
    request = ExportTraceServiceRequest()
    for number, vector in enumerate((f"{pair} ok", f"{pair} failed"), 1):
        if vector in stored:
            _add(request, stored[vector], number)
    weather, boom = _TOOLS.get(pair, ("get_weather", "boom"))
    city = _CITIES.get(pair, "London")
    result: dict[str, Any] = {"city": city, "celsius": 21.5}
    if pair in ("lc-toolexc", "tl-dec"):  # their tool returned the city only
        del result["celsius"]
    calls = [
        SeenCall(weather, args={"city": city}, result=result),
        SeenCall(boom, args={"code": 7}, state="failed", message="boom 7"),
    ]
    return request, calls


def _add(request: ExportTraceServiceRequest, stored: dict[str, Any], number: int) -> None:
    scopes = request.resource_spans.add().scope_spans.add()
    scopes.scope.name = stored.get("scope", {}).get("name", "")
    now = time.time_ns()
    span = scopes.spans.add(
        trace_id=bytes([number] * 16),
        span_id=bytes([number] * 8),
        name=stored["name"],
        kind=stored.get("kind", 0),
        start_time_unix_nano=now - 1_000_000,
        end_time_unix_nano=now,
    )
    status = stored.get("status", {})
    span.status.code, span.status.message = status.get("code", 0), status.get("message", "")
    _set(span, stored["attributes"])
    for event in stored.get("events", ()):
        _set(span.events.add(name=event["name"], time_unix_nano=now), event.get("attributes", {}))


def _set(holder: Any, attributes: dict[str, Any]) -> None:
    for key, value in attributes.items():
        _put(holder.attributes.add(key=key).value, value)


def _put(slot: Any, value: Any) -> None:
    match value:
        case bool():
            slot.bool_value = value
        case int():
            slot.int_value = value
        case float():
            slot.double_value = value
        case list():
            slot.array_value.SetInParent()
            for each in value:
                _put(slot.array_value.values.add(), each)
        case _:
            slot.string_value = str(value)
