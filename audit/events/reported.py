"""Which spans an event was made of, as its `otlp` member says: two accounts of the same call.

Pure. An agent framework, an MCP client and an MCP server each report a call in a request of their
own (`audit.intake.otlp.joining`). The later account has the spans of the earlier one and more, and
takes its place in the index; the log keeps both, and tells from them alone which it is.

Where an executor itself reported the call (`audit.intake.otlp.executors`), the index keeps its
account. What the spans say of that call is an event of the log, and takes no place in the index.
"""

from uuid import UUID

import msgspec

from audit.events.instants import DAY_US
from audit.events.spans import span_uuid


class _Span(msgspec.Struct):
    trace_id: str
    span_id: str
    start_time_unix_nano: int = 0


class _Source(msgspec.Struct):
    span: _Span
    merged: list[_Span] = []
    of_executor: bool = False


class _Event(msgspec.Struct):
    otlp: _Source | None = None


_EVENT = msgspec.json.Decoder(_Event)


def tells_more(raw: bytes, stored: bytes) -> bool:
    """Whether an event is made of all spans of the stored one and of others."""
    return (known := _spans_of(stored)) is not None and (_spans_of(raw) or set()) > known


def tells_no_more(raw: bytes, stored: bytes) -> bool:
    """Whether an event is made of nothing but spans of the stored one."""
    told = _spans_of(raw)
    return told is not None and told <= (_spans_of(stored) or set())


def is_beside(raw: bytes) -> bool:
    """Whether an event tells the spans of a call that an executor itself has reported."""
    if b'"of_executor"' not in raw:
        return False
    source = _source(raw)
    return source is not None and source.of_executor


def spans_in(raw: bytes) -> list[tuple[str, str, int]]:
    """The spans an event was made of: trace id, span id, start in nanoseconds since 1970."""
    return [(span.trace_id, span.span_id, span.start_time_unix_nano) for span in _read(raw) or ()]


def calls_of(raw: bytes) -> set[tuple[int, UUID]]:
    """The day since 1970 and the id of the call that each of an event's spans makes by itself."""
    return {
        (span.start_time_unix_nano // 1000 // DAY_US, span_uuid(span.trace_id, span.span_id))
        for span in _read(raw) or ()
    }


def _spans_of(raw: bytes) -> set[tuple[str, str]] | None:
    """The spans an event was made of; None for one that was made of none."""
    spans = _read(raw)
    return None if spans is None else {(span.trace_id, span.span_id) for span in spans}


def _read(raw: bytes) -> list[_Span] | None:
    source = _source(raw)
    return None if source is None else [source.span, *source.merged]


def _source(raw: bytes) -> _Source | None:
    if b'"otlp"' not in raw:
        return None
    try:
        return _EVENT.decode(raw).otlp
    except (msgspec.MsgspecError, RecursionError):
        return None
