"""The spans an event was made from, read from its `otlp` member. Compares reports of one call.

Pure. An agent framework, an MCP client and an MCP server each report a call in their own request
(`audit.intake.otlp.joining`). A later event contains the spans of the earlier one and more, and
replaces it in the index. The log keeps both; their spans alone decide which one is indexed.

Context of a call, such as its agent, may arrive later than its spans. An event counts the spans
above the call that have any (`above`). Of two events of the same spans, the one with more counts.
If both have as many, one that was made by reading the spans again with a later mapping counts
(`audit.intake.otlp.remapping`).

If an executor itself reported the call (`audit.intake.otlp.executors`), the index keeps the
executor's report. The event made from spans is then only in the log, not in the index.
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
    above: int = 0
    of_executor: bool = False
    remapped: bool = False
    mapping_version: int = 0


class _Event(msgspec.Struct):
    otlp: _Source | None = None


_EVENT = msgspec.json.Decoder(_Event)


def is_fuller(raw: bytes, stored: bytes) -> bool:
    """Whether an event has all spans of the stored event, and more spans, or more context, or was
    made of them by a later mapping.
    """
    known, reported = _extent(stored), _extent(raw)
    if known is None or reported is None:
        return False
    return reported[0] > known[0] or (reported[0] == known[0] and reported[1:] > known[1:])


def is_no_fuller(raw: bytes, stored: bytes) -> bool:
    """Whether an event has only spans of the stored event, no more context, no later mapping."""
    reported, known = _extent(raw), _extent(stored)
    if reported is None or known is None:
        return False
    return reported[0] < known[0] or (reported[0] == known[0] and reported[1:] <= known[1:])


def is_part_of(raw: bytes, account: bytes) -> bool:
    """Whether all spans of an event are among those of `account`, whatever its context."""
    part, whole = _extent(raw), _extent(account)
    return part is not None and whole is not None and part[0] <= whole[0]


def is_beside(raw: bytes) -> bool:
    """Whether an event has the spans of a call that an executor itself reported."""
    source = _source(raw)
    return source is not None and source.of_executor


def spans_in(raw: bytes) -> list[tuple[str, str, int]]:
    """An event's spans: trace id, span id, start in nanoseconds since 1970."""
    return [(span.trace_id, span.span_id, span.start_time_unix_nano) for span in _read(raw) or ()]


def calls_of(raw: bytes) -> set[tuple[int, UUID]]:
    """For each of an event's spans, the call it would make alone: days since 1970, and id."""
    return {
        (span.start_time_unix_nano // 1000 // DAY_US, span_uuid(span.trace_id, span.span_id))
        for span in _read(raw) or ()
    }


def _extent(raw: bytes) -> tuple[set[tuple[str, str]], int, int] | None:
    """Trace id and span id of an event's spans, how many spans above them have context, and the
    mapping with which they were read again, 0 if they were not.

    None if the event was not made from spans.
    """
    source = _source(raw)
    if source is None:
        return None
    spans = {(span.trace_id, span.span_id) for span in (source.span, *source.merged)}
    return spans, source.above, source.mapping_version if source.remapped else 0


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
