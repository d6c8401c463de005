"""Reads and writes the W3C `traceparent` header. Source: W3C Trace Context, level 1."""

import re
from secrets import token_hex
from typing import NamedTuple

from tooltrail.scope import current_scope

_FORM = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace_id>[0-9a-f]{32})-(?P<span_id>[0-9a-f]{16})"
    r"-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?",
    re.ASCII | re.DOTALL,
)
_W3C_TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}", re.ASCII)


class TraceParent(NamedTuple):
    """A trace and its calling span: 32 and 16 lower-case hexadecimal digits."""

    trace_id: str
    span_id: str
    is_sampled: bool = True


def parse_traceparent(value: str) -> TraceParent | None:
    """Read the header after trimming and lower-casing. Returns None if it is malformed.

    Version 00 has exactly four parts, later versions may have more. Version ff, and ids that
    are all zeros, are malformed.
    """
    match = _FORM.fullmatch(value.strip().lower())
    if match is None or match["version"] == "ff" or (match["version"] == "00" and match["more"]):
        return None
    if not match["trace_id"].strip("0") or not match["span_id"].strip("0"):
        return None
    return TraceParent(match["trace_id"], match["span_id"], bool(int(match["flags"], 16) & 1))


def format_traceparent(trace_id: str, span_id: str | None = None, is_sampled: bool = True) -> str:
    """Write the header, version 00. Without a span id, a new one is generated.

    Raises ValueError unless both ids have W3C's form, which free-text trace ids lack.
    """
    span_id = fresh_span_id() if span_id is None else span_id
    header = f"00-{trace_id}-{span_id}-{'01' if is_sampled else '00'}"
    if parse_traceparent(header) is None or header != header.lower():
        raise ValueError("trace id and span id must be 32 and 16 lower-case hexadecimal digits")
    return header


def fresh_span_id() -> str:
    """A random span id."""
    return token_hex(8)


def outgoing_headers() -> dict[str, str]:
    """The headers that pass the current trace to another service. Empty outside of a trace.

    `X-Trace-Id` is there if a header can hold the id. `traceparent` is there only if the id has
    W3C's form: with another id it would replace the real one. Its span id is the last 16 digits
    of the running call's invocation id.
    """
    scope = current_scope()
    if scope is None:
        return {}
    headers = {"X-Trace-Id": scope.trace_id} if fits_header(scope.trace_id) else {}
    if _W3C_TRACE_ID.fullmatch(scope.trace_id):
        digits = (scope.parent_id or "").replace("-", "")[-16:]
        headers["traceparent"] = format_traceparent(scope.trace_id, digits or None)
    return headers


def fits_header(value: str) -> bool:
    """Whether a header can hold the text: printable ASCII without surrounding blanks."""
    return value.isascii() and value.isprintable() and value == value.strip() != ""
