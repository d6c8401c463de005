"""Tools that were stopped: what their spans say of it, if anything.

`vectors/cancelled.json` holds the spans, the outermost first, that real packages sent of a call of
`slow()` whose run was cancelled.
"""

import json
from typing import Any

import msgspec
import pytest

from audit.events.spans import STATUS_OK, Span, Status
from audit.intake.otlp.accounts import to_events
from audit.intake.otlp.mapping import map_spans
from tests.support.otlp.sent_spans import START, TRACE, VECTORS, events_of, read

STOPPED: dict[str, list[dict[str, Any]]] = json.loads((VECTORS / "cancelled.json").read_text())
SILENT = {"autogen", "mcp2", "fastmcp4"}
"""Pairs whose span of a cancelled call differs in nothing from that of a good one."""


def spans_of(pair: str, **attributes: Any) -> list[Span]:
    """The spans of the cancelled call, each below the one before."""
    return [
        msgspec.convert(
            {
                **vector,
                "attributes": {**vector["attributes"], **attributes},
                "trace_id": TRACE,
                "span_id": f"{number:016x}",
                "parent_span_id": f"{number - 1:016x}" if number > 1 else "",
                "start_time_unix_nano": START,
                "end_time_unix_nano": START + 900_000,
            },
            Span,
        )
        for number, vector in enumerate(STOPPED[pair], 1)
    ]


@pytest.mark.parametrize("pair", sorted(STOPPED))
def test_stopped_tool_is_cancelled_if_its_span_says_so(pair: str) -> None:
    """ADK, Strands and AutoGen with OpenInference say OK or nothing; what is missing shows it."""
    start, end = events_of(*spans_of(pair))

    assert start["tool_name"] == "slow"
    assert start.get("tool_call_id") != "<not specified>"
    assert end.get("call_state") == (None if pair in SILENT else "cancelled")


@pytest.mark.parametrize("pair", ["adk-content", "adk-legacy", "adk-oi", "strands"])
def test_tool_that_returned_or_raised_is_not_cancelled(pair: str) -> None:
    for outcome in ("ok", "failed"):
        _, end = events_of(read(f"{pair} {outcome}"))
        assert "call_state" not in end
        assert end["is_error"] == (outcome == "failed")


def test_autogen_tool_that_returned_nothing_is_not_cancelled() -> None:
    outer, inner = spans_of("autogen-oi")
    _, end = events_of(msgspec.structs.replace(outer, status=Status(STATUS_OK)), inner)

    assert (end["is_error"], end.get("call_state")) == (False, None)


def test_adk_tool_that_answers_later_is_not_cancelled() -> None:
    (span,) = spans_of("adk", **{"gen_ai.tool.type": "LongRunningFunctionTool"})
    _, end = events_of(span)

    assert (end["is_error"], end.get("call_state")) == (False, None)


def test_openinference_layer_that_was_stopped_decides_also_if_it_comes_alone() -> None:
    """Each span may come in a request of its own."""
    outer, inner = spans_of("autogen-oi")
    states = []
    for spans in ([outer], [inner], [inner, outer]):
        (call,) = map_spans(spans).calls
        states.append(json.loads(to_events(call)[1]).get("call_state"))

    assert states == ["cancelled", None, "cancelled"]
