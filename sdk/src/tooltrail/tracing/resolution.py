"""Finds the trace id in a request, in the AI Core's order of sources."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from tooltrail.scope import fresh_trace_id
from tooltrail.tracing.traceparent import fresh_span_id, parse_traceparent

Headers = Mapping[str, str] | Iterable[tuple[str, str]]
Query = Mapping[str, Any] | str | bytes | None
Body = str | bytes | None


@dataclass(frozen=True, slots=True)
class ResolvedTrace:
    """The trace a request belongs to, and the calling span if a `traceparent` has one.

    If the request names no trace, the trace id is that of OpenTelemetry's current span or a new
    one, with a new span id.
    """

    trace_id: str
    span_id: str | None = None


def resolve_trace(
    headers: Headers,
    query: Query = None,
    body: Body | Callable[[], Body] = None,
    content_type: str | None = None,
) -> ResolvedTrace:
    """Find the trace id of a request; without one, take OpenTelemetry's current or a new one.

    Never fails. The id is the first of these that is not blank: a valid W3C `traceparent`, the
    headers `X-Trace-Id` and `X-Request-ID` (in any case), the query's `trace_id` and
    `request_id`, and the same two members of a JSON body. Text is trimmed and otherwise
    unchanged; other JSON becomes text. `query` is a mapping or the raw query string. The body is
    used if the content type contains `application/json`; a body given as a function is read only
    when needed.
    """
    trace = find_trace(headers, query, body, content_type)
    return trace or ResolvedTrace(fresh_trace_id(), fresh_span_id())


def find_trace(
    headers: Headers,
    query: Query = None,
    body: Body | Callable[[], Body] = None,
    content_type: str | None = None,
) -> ResolvedTrace | None:
    """Find the trace id as `resolve_trace` does; None if the request has none."""
    given = {name.lower(): value for name, value in _pairs(headers)}
    parent = parse_traceparent(given.get("traceparent", ""))
    if parent is not None:
        return ResolvedTrace(parent.trace_id, parent.span_id)
    for candidate in _candidates(given, query, body, content_type):
        if trace_id := candidate.strip():
            return ResolvedTrace(trace_id)
    return None


def _candidates(
    headers: Mapping[str, str],
    query: Query,
    body: Body | Callable[[], Body],
    content_type: str | None,
) -> Iterator[str]:
    """The texts that may be the id, best first. A generator, so that a body can stay unread."""
    yield headers.get("x-trace-id", "")
    yield headers.get("x-request-id", "")
    params = _query_members(query)
    yield params.get("trace_id", "")
    yield params.get("request_id", "")
    if "application/json" in (content_type or "").lower():
        members = _body_members(body() if callable(body) else body)
        yield _text(members.get("trace_id"))
        # As in the AI Core: a falsy request id counts as absent.
        yield _text(members.get("request_id") or None)


def _pairs(headers: Headers) -> Iterable[tuple[str, str]]:
    return headers.items() if isinstance(headers, Mapping) else headers


def _query_members(query: Query) -> dict[str, str]:
    if query is None:
        return {}
    if isinstance(query, bytes):
        query = query.decode("latin-1")
    if isinstance(query, str):
        query = dict(parse_qsl(query))
    members = {}
    for name in ("trace_id", "request_id"):
        value = query.get(name)
        if isinstance(value, list | tuple):  # some frameworks keep every occurrence
            value = value[-1] if value else None
        members[name] = _text(value)
    return members


def _body_members(body: Body) -> dict[str, Any]:
    try:
        members = json.loads(body or "null")
    except (ValueError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}


def _text(value: Any) -> str:
    return "" if value is None else str(value)
