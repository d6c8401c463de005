"""Two traces side by side, over the API. Without payloads: those are read call by call."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Query
from pydantic import Field
from tooltrail.events import ID_MAX_LENGTH

from audit.pages.show.router import router
from audit.pages.show.schemas import State
from audit.pages.traces.alignment import ALIGNED_MAX, Pair, align
from audit.queries.calls import Call, TraceDetail
from audit.queries.calls import trace_detail as find_trace
from config.http.problems import ProblemError
from tenants.api_reads import Answer, Params, reads


class CompareTracesParams(Params):
    """Which traces."""

    a: str = Field(max_length=ID_MAX_LENGTH, examples=["4bf92f3577b34da6a3ce929d0e0e4736"])
    """The id of the first trace."""
    b: str = Field(max_length=ID_MAX_LENGTH)
    """The id of the other one."""


class ComparedTrace(Answer):
    """One of the traces."""

    trace_id: str
    calls: int
    duration_ms: float | None


class AlignedCall(Answer):
    """A call of one of the traces."""

    invocation_id: UUID
    tool_name: str
    state: State
    error_type: str | None
    duration_ms: float | None


class AlignedPair(Answer):
    """A call of each trace that belong together, or a call that only one of them has (null)."""

    a: AlignedCall | None
    b: AlignedCall | None
    same_arguments: bool | None
    """By their call ids; null unless both have the call."""
    same_outcome: bool | None
    """State, type of error, and whether they violate their schema."""
    slower_ms: float | None
    """How much longer `b` took; null unless both have ended."""


class ComparedTraces(Answer):
    """Two traces, their calls aligned by tool and order."""

    a: ComparedTrace
    b: ComparedTrace
    pairs: list[AlignedPair]
    is_cut: bool
    """Whether only the first 500 calls of each were aligned."""


@reads(router, "/compare/traces", ComparedTraces, tag="traces", problems=("not_found",))
def compare_traces(request: HttpRequest, params: Query[CompareTracesParams]) -> dict[str, Any]:
    """Compare two traces: what only one has, other arguments and outcomes, durations."""
    left, right = _trace(params.a), _trace(params.b)
    return {
        "a": _summary(left),
        "b": _summary(right),
        "pairs": [_pair(pair) for pair in align(left.calls, right.calls)],
        "is_cut": any(each.is_cut or len(each.calls) > ALIGNED_MAX for each in (left, right)),
    }


def _trace(trace_id: str) -> TraceDetail:
    detail = None if "\x00" in trace_id else find_trace(trace_id)
    if detail is None:
        raise ProblemError("not_found", "Trace not found.")
    return detail


def _summary(detail: TraceDetail) -> dict[str, Any]:
    summary = detail.summary
    return {
        "trace_id": summary.trace_id,
        "calls": summary.started_count,
        "duration_ms": _ms(summary.duration_us),
    }


def _pair(pair: Pair) -> dict[str, Any]:
    has_both = pair.left is not None and pair.right is not None
    return {
        "a": _call(pair.left),
        "b": _call(pair.right),
        "same_arguments": pair.has_same_arguments if has_both else None,
        "same_outcome": pair.has_same_outcome if has_both else None,
        "slower_ms": _ms(pair.slower_us),
    }


def _call(call: Call | None) -> dict[str, Any] | None:
    if call is None:
        return None
    return {
        "invocation_id": call.invocation_id,
        "tool_name": call.tool_name,
        "state": call.state,
        "error_type": call.error_type or None,
        "duration_ms": _ms(call.duration_us),
    }


def _ms(duration_us: int | None) -> float | None:
    return None if duration_us is None else duration_us / 1000
