"""Which spans an event was made of, as its `otlp` member says: two accounts of the same call.

Pure. An agent framework, an MCP client and an MCP server each report a call in a request of
their own (`audit.otlp.joining`). The later account has the spans of the earlier one and more,
and takes its place in the index; the log keeps both, and tells from them alone which it is.
"""

import msgspec


class _Span(msgspec.Struct):
    trace_id: str
    span_id: str


class _Source(msgspec.Struct):
    span: _Span
    merged: list[_Span] = []


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


def _spans_of(raw: bytes) -> set[tuple[str, str]] | None:
    """The spans an event was made of; None for one that was made of none."""
    if b'"otlp"' not in raw:
        return None
    try:
        source = _EVENT.decode(raw).otlp
    except (msgspec.MsgspecError, RecursionError):
        return None
    if source is None:
        return None
    return {(span.trace_id, span.span_id) for span in (source.span, *source.merged)}
