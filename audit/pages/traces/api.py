"""Traces: the list, and one with its calls."""

from datetime import UTC
from typing import Any, Literal, cast
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query
from pydantic import Field
from tooltrail.events import ID_MAX_LENGTH

from audit.exports.call_document import document
from audit.pages.show import schemas
from audit.pages.show.api_query import indexed_filter, within
from audit.pages.show.ranges import ListRangeParams, Span
from audit.pages.show.router import router
from audit.queries.call_filter import Text
from audit.queries.call_rows import MatchedTraces, matched_traces
from audit.queries.calls import TIMELINE_LIMIT
from audit.queries.calls import trace_detail as find_trace
from audit.queries.cursor import Cursor, parse_cursor
from audit.queries.traces import Reason, TraceDay, TraceFilter, TracePage, trace_page
from audit.queries.withheld import without_message, without_messages
from config.http.problems import ProblemError
from tenants.api_auth import ApiRequest
from tenants.api_reads import Params, reads, seal, unseal

_CALL_COLUMNS = tuple(schemas.CallInTrace.model_fields)


class TraceListParams(ListRangeParams):
    """Which traces."""

    limit: int = Field(50, ge=1, le=200)
    """Maximum number of rows."""
    state: Literal["all", "failed", "violation", "open", "ok", "decided"] = "all"
    """Only traces with such a call. `ok`: traces without failed, violating or open calls;
    `decided`: those with decisions about calls."""
    trace: str = Field("", max_length=ID_MAX_LENGTH)
    """Prefix of the trace id."""
    q: str = Field("", examples=["tool:search state:error"])
    """Only traces with a call that matches this query, as in the list of calls."""


class TraceParams(Params):
    """How many calls of a trace."""

    limit: int = Field(1000, ge=1, le=TIMELINE_LIMIT)
    """Maximum number of calls."""


@reads(
    router,
    "/traces",
    schemas.TracePage,
    tag="traces",
    problems=("query", "range", "cursor", "limit"),
)
def list_traces(request: HttpRequest, params: Query[TraceListParams]) -> dict[str, Any]:
    """List traces, newest first, each with its first failed, violating or open call if any.

    A trace whose calls started on several days is listed once, so a page can have fewer than
    `limit` rows and not be the last. With `q`, the range is of the calls that match, and the trace
    with the newest of them is first.
    """
    wanted = TraceFilter(
        "" if params.state == "all" else params.state,
        params.trace.replace("\x00", "\ufffd"),
        *params.read_span(),
    )
    page: TracePage | MatchedTraces
    older: str | None
    if params.q.strip():
        page = _matched(request, params, wanted)
        older = seal("traces q", page.older) if page.older else None
    else:
        page = trace_page(
            wanted, before=unseal("traces", params.cursor, _read_cursor), size=params.limit
        )
        older = seal("traces", page.older) if page.older else None
    with_payloads = cast(ApiRequest, request).auth.sees_payloads
    return {
        "items": [
            {
                **trace_members(trace),
                "reason": _reason(page.reasons.get(trace.trace_id), with_payloads=with_payloads),
            }
            for trace in page.traces
        ],
        "next": older,
        "searched_until": page.searched_until and page.searched_until.astimezone(UTC),
        "withheld": not with_payloads,
    }


@reads(
    router,
    "/traces/{path:trace_id}",
    schemas.TraceDetail,
    tag="traces",
    problems=("not_found", "limit"),
)
def read_trace(
    request: HttpRequest, trace_id: Path[str], params: Query[TraceParams]
) -> dict[str, Any]:
    """Get a trace with its calls, ordered by start.

    The trace id is percent-encoded as one path segment, slashes included.
    """
    detail = None if "\x00" in trace_id else find_trace(trace_id, limit=params.limit)
    if detail is None:
        raise ProblemError("not_found", "Trace not found.")
    with_payloads = cast(ApiRequest, request).auth.sees_payloads
    calls = detail.calls if with_payloads else without_messages(detail.calls)
    return {
        **trace_members(detail.summary),
        "calls": [
            document(call, detail.violations.get(call.invocation_id), _CALL_COLUMNS)
            for call in calls
        ],
        "is_cut": detail.is_cut,
        "withheld": not with_payloads,
    }


def _matched(request: HttpRequest, params: TraceListParams, wanted: TraceFilter) -> MatchedTraces:
    """A page of traces with a call of the query. Raises ProblemError."""
    now = timezone.now()
    calls = within(indexed_filter(request, params.q), Span(wanted.since, wanted.until), now)
    if wanted.prefix:
        calls = calls.also("trace", Text(wanted.prefix, is_prefix=True))
    before = unseal("traces q", params.cursor, lambda at: parse_cursor("\n".join(at), UUID))
    return matched_traces(calls, now=now, state=wanted.state, before=before, size=params.limit)


def trace_members(trace: TraceDay) -> dict[str, Any]:
    """The members of `schemas.Trace`."""
    return {
        "trace_id": trace.trace_id,
        "first_started_at": trace.first_started_at.astimezone(UTC),
        "last_at": trace.last_at.astimezone(UTC),
        "duration_ms": None if trace.duration_us is None else trace.duration_us / 1000,
        "first_tool_name": trace.first_tool_name,
        "run_id": trace.run_id,
        "calls_started": trace.started_count,
        "calls_completed": trace.completed_count,
        "calls_failed": trace.failed_count,
        "calls_open": trace.open_count,
        "calls_cancelled": trace.cancelled_count,
        "violations": trace.violation_count,
        "prompt_tokens": trace.prompt_tokens,
        "completion_tokens": trace.completion_tokens,
    }


def _reason(reason: Reason | None, *, with_payloads: bool) -> dict[str, Any] | None:
    if reason is None:
        return None
    shown = reason if with_payloads else without_message(reason)
    return {
        "tool_name": shown.tool_name,
        "state": shown.state,
        "error_type": shown.error_type or None,
        "error_code": shown.error_code,
        "error_message": shown.error_message,
        "upstream_status": shown.upstream_status,
        "started_at": shown.started_at.astimezone(UTC),
        "violation_path": shown.violation_path,
        "violation_code": shown.violation_code,
    }


def _read_cursor(place: list[str]) -> Cursor[str]:
    return parse_cursor("\n".join(place), str)
