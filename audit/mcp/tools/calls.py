"""Tools about calls and traces."""

from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from django.utils import timezone
from pydantic import Field
from tooltrail.events import ID_MAX_LENGTH

from audit.mcp.caller import McpRequest
from audit.mcp.tool import RowsParams, Tool, ToolParams
from audit.pages.calls.api import (
    CallListParams,
    CallParams,
    CallReadParams,
    OpenCallParams,
    list_calls,
    list_open,
    read_call,
)
from audit.pages.show import schemas
from audit.pages.traces.api import trace_members
from audit.pages.traces.trace_text import rows_of
from audit.queries.calls import TIMELINE_LIMIT
from audit.queries.calls import trace_detail as find_trace
from audit.queries.withheld import without_messages, without_reasons
from config.http.problems import ProblemError
from tenants.api_reads import Page, members_of, seal, unseal


class SearchCallsParams(RowsParams, CallListParams):
    """Which calls."""


class OpenCallsParams(RowsParams, OpenCallParams):
    """Which open calls."""


class GetCallParams(ToolParams, CallParams):
    """Which call."""

    invocation_id: UUID
    """The call's id."""


class GetTraceParams(ToolParams):
    """Which trace."""

    trace_id: str = Field(max_length=ID_MAX_LENGTH)
    """The trace's id."""
    cursor: str = ""
    """`next_cursor` of the previous answer."""
    limit: int = Field(200, ge=1, le=1000)
    """Maximum number of lines."""


class TraceText(Page[str], schemas.Trace):
    """A trace, and each of its calls on a line: id, offset, duration, state, tool, reason.

    Calls are indented below their parent.
    """

    is_cut: bool
    """The trace has more calls than this reads: use search_calls with `trace:`."""
    withheld: bool


def _trace_text(request: McpRequest, params: GetTraceParams) -> dict[str, Any]:
    first = unseal("trace text", params.cursor, _read_place) or 0
    detail = None if "\x00" in params.trace_id else find_trace(params.trace_id)
    if detail is None:
        raise ProblemError("not_found", "Trace not found.")
    sees_payloads = request.auth.sees_payloads
    if not sees_payloads:
        decisions = without_reasons(detail.decisions)
        detail = replace(detail, calls=without_messages(detail.calls), decisions=decisions)
    lines, end = rows_of(detail, timezone.now()), first + params.limit
    return {
        "items": [f"{pk} {line}" for pk, line in lines[first:end]],
        "next": seal("trace text", end) if len(lines) > end else None,
        **trace_members(detail.summary),
        "is_cut": detail.is_cut,
        "withheld": not sees_payloads,
    }


def _read_place(place: list[str]) -> int:
    (first,) = place
    if not 0 < int(first) <= TIMELINE_LIMIT:
        raise ValueError("no place in a trace")
    return int(first)


SEARCH_CALLS: Final = Tool(
    "search_calls",
    "Search calls",
    "Find tool calls by a query such as `tool:search state:error since:24h`, newest first. The"
    " resource tooltrail://docs/queries has the grammar. If nothing is found, ask `explain`.",
    SearchCallsParams,
    schemas.CallPage,
    lambda request, params: members_of(list_calls, request, params=params),
)
OPEN_CALLS: Final = Tool(
    "open_calls",
    "Open calls",
    "List calls without an end: running, overdue or presumed crashed, and ends without a start.",
    OpenCallsParams,
    schemas.OpenPage,
    lambda request, params: members_of(list_open, request, params=params),
)
GET_CALL: Final = Tool(
    "get_call",
    "Get a call",
    "Get one call with its violations, decisions and events. Arguments and output are included if"
    " the key may see payloads.",
    GetCallParams,
    schemas.CallDetail,
    lambda request, params: members_of(
        read_call,
        request,
        invocation_id=params.invocation_id,
        params=CallReadParams(day=params.day),
    ),
    reads=lambda params: str(params.invocation_id),
)
GET_TRACE: Final = Tool(
    "get_trace",
    "Get a trace",
    "Get a trace as text: its totals, and a line for each call, indented below its parent.",
    GetTraceParams,
    TraceText,
    _trace_text,
    reads=lambda params: params.trace_id,
)
