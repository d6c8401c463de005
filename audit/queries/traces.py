"""The list of traces: filters, paging by key, merged days, and the reason each needs attention."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

from audit.queries.cursor import BEGINNING, END, Cursor
from audit.sql.run import rows

TraceState = Literal["", "failed", "violation", "open", "ok", "decided"]
"""`decided`: with decisions about calls, whether these ran or not."""

MERGE_DAYS = 35
"""In the list, rows of a trace id are one trace within this many days on either side."""

SCAN_LIMIT = 50_000
"""Day rows that one page may scan (≈ 50 ms). Then the reader must ask for older ones."""

REASON_SEARCH_LIMIT = 200
"""Failed calls of one trace that the list searches for the first one to end."""

_KINDS: tuple[TraceState, ...] = ("failed", "violation", "open")  # the worst first


@dataclass(frozen=True, slots=True)
class TraceDay:
    """The summary of a trace, or of its part that started on one UTC day."""

    trace_id: str
    first_started_at: datetime
    last_at: datetime
    first_tool_name: str
    run_id: str | None
    started_count: int
    completed_count: int
    failed_count: int
    violation_count: int
    prompt_tokens: int
    completion_tokens: int
    decision_count: int = 0
    """Decisions about calls, whether the calls ran or not."""

    cancelled_count: int = 0

    @property
    def open_count(self) -> int:
        return self.started_count - self.completed_count - self.cancelled_count

    @property
    def duration_us(self) -> int | None:
        """Microseconds from its first start to its last known event.

        None until one of its calls has ended: starts alone give no duration.
        """
        if not self.completed_count + self.cancelled_count:
            return None
        return (self.last_at - self.first_started_at) // timedelta(microseconds=1)

    @property
    def is_clean(self) -> bool:
        return not (self.failed_count or self.violation_count or self.open_count)

    def matches(self, state: TraceState) -> bool:
        """Whether it has this state: the same test as in the SQL of the list."""
        match state:
            case "failed":
                return self.failed_count > 0
            case "violation":
                return self.violation_count > 0
            case "open":
                return self.open_count > 0
            case "ok":
                return self.is_clean
            case "decided":
                return self.decision_count > 0
            case _:
                return True


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a trace needs attention: the call that failed, violates its schema or is open."""

    tool_name: str
    state: str
    error_type: str
    error_code: str | None
    error_message: str | None
    upstream_status: int | None
    started_at: datetime
    violation_path: str | None
    violation_code: str | None


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """Which traces to list. `prefix` is of the trace id; it began between two instants."""

    state: TraceState = ""
    prefix: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class TracePage:
    """A page of the list, newest first, and the cursors of the newer and the older page."""

    traces: list[TraceDay]
    reasons: dict[str, Reason]
    newer: Cursor[str] | None
    older: Cursor[str] | None
    searched_until: datetime | None
    """Set if the scan stopped here before the page was full. `older` continues from there."""


NO_TRACES = TracePage([], {}, None, None, None)
"""The page of an invalid filter: nothing was searched."""


def trace_page(
    wanted: TraceFilter,
    *,
    before: Cursor[str] | None = None,
    after: Cursor[str] | None = None,
    size: int = 50,
    scan_limit: int = SCAN_LIMIT,
) -> TracePage:
    """At most `size` traces, older than `before` or newer than `after`.

    A trace whose calls started on several days has one row for each day. It is listed once, at the
    newest row that matches, with the sums of all its days. So a page may be shorter than `size`.
    Three statements; a fourth if a filter leaves the page unfilled.
    """
    since, until = wanted.since or BEGINNING, wanted.until or END
    cursor = after or before or Cursor(until, "")
    parameters: dict[str, Any] = {
        "first_day": since.astimezone(UTC).date() if after is None else _day(cursor.at),
        "last_day": date.max if after is not None else _day(cursor.at),
        "since": since,
        "until": until,
        "at": cursor.at,
        "id": cursor.id,
        "prefix": wanted.prefix,
        "prefix_end": prefix_end(wanted.prefix),
        "state": wanted.state,
        "scan_limit": scan_limit,
        "page_limit": size + 1,
    }
    name = "trace_days_before" if after is None else "trace_days_after"
    trace_days = [TraceDay(*row) for row in rows(name, parameters)]
    has_more = len(trace_days) > size
    trace_days = trace_days[:size]
    if after is not None:
        trace_days.reverse()
    scan_end: Cursor[str] | None = None
    if after is None and not has_more and wanted.state:
        scan_end = next((Cursor(*row) for row in rows("trace_scan_end", parameters)), None)
    traces = _merge(trace_days, wanted)
    newer = older = None
    if trace_days:
        first, last = trace_days[0], trace_days[-1]
        if has_more if after is not None else before is not None:
            newer = Cursor(first.first_started_at, first.trace_id)
        if has_more if after is None else True:
            older = Cursor(last.first_started_at, last.trace_id)
    if scan_end is not None:
        older = scan_end
    return TracePage(traces, reasons_of(traces), newer, older, scan_end.at if scan_end else None)


def _merge(trace_days: Sequence[TraceDay], wanted: TraceFilter) -> list[TraceDay]:
    """The rows as whole traces, without rows whose trace is listed at a newer row."""
    if not trace_days:
        return []
    days = _days_around(row.first_started_at for row in trace_days)
    parts: dict[str, list[TraceDay]] = {}
    parameters = {"days": days, "trace_ids": [row.trace_id for row in trace_days]}
    for values in rows("trace_days_of", parameters):
        day = TraceDay(*values)
        parts.setdefault(day.trace_id, []).append(day)
    whole: list[TraceDay] = []
    for row in trace_days:
        days_of_trace = parts.get(row.trace_id, [row])
        newest = max(
            (
                day.first_started_at
                for day in days_of_trace
                if day.matches(wanted.state) and day.first_started_at < (wanted.until or END)
            ),
            default=row.first_started_at,
        )
        if row.first_started_at >= newest:
            whole.append(merge_days(days_of_trace))
    return whole


def merge_days(days: Sequence[TraceDay]) -> TraceDay:
    """One trace from its day rows: sums, the earliest start with its tool, the latest end."""
    first = min(days, key=lambda day: day.first_started_at)
    return TraceDay(
        trace_id=first.trace_id,
        first_started_at=first.first_started_at,
        last_at=max(day.last_at for day in days),
        first_tool_name=first.first_tool_name,
        run_id=next((day.run_id for day in days if day.run_id), None),
        started_count=sum(day.started_count for day in days),
        completed_count=sum(day.completed_count for day in days),
        failed_count=sum(day.failed_count for day in days),
        violation_count=sum(day.violation_count for day in days),
        prompt_tokens=sum(day.prompt_tokens for day in days),
        completion_tokens=sum(day.completion_tokens for day in days),
        decision_count=sum(day.decision_count for day in days),
        cancelled_count=sum(day.cancelled_count for day in days),
    )


def whole_traces(places: Mapping[str, datetime]) -> list[TraceDay]:
    """These traces in this order, each with the sums of all its days. At most one statement.

    `places` has an instant of each.
    """
    if not places:
        return []
    parts: dict[str, list[TraceDay]] = {}
    parameters = {"days": _days_around(places.values()), "trace_ids": list(places)}
    for values in rows("trace_days_of", parameters):
        day = TraceDay(*values)
        parts.setdefault(day.trace_id, []).append(day)
    return [merge_days(parts[trace_id]) for trace_id in places if trace_id in parts]


def reasons_of(traces: Sequence[TraceDay]) -> dict[str, Reason]:
    """Why each of these traces needs attention, if one does. At most one statement."""
    kinds: dict[str, str] = {}
    for trace in traces:
        for kind in _KINDS:
            if trace.matches(kind):
                kinds[trace.trace_id] = kind
                break
    if not kinds:
        return {}
    shown = [trace for trace in traces if trace.trace_id in kinds]
    parameters = {
        "trace_ids": list(kinds),
        "kinds": list(kinds.values()),
        "first_day": min(_day(trace.first_started_at) for trace in shown),
        "last_day": max(_day(trace.last_at) for trace in shown),
        "search_limit": REASON_SEARCH_LIMIT,
    }
    return {row[0]: Reason(*row[1:]) for row in rows("trace_reasons", parameters)}


def prefix_end(prefix: str) -> str:
    """The first text after all texts with this prefix, by code points; '' if there is none."""
    for position in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[position]) + 1
        if code == 0xD800:  # no text holds a surrogate
            code = 0xE000
        if code <= 0x10FFFF:
            return prefix[:position] + chr(code)
    return ""


def _day(instant: datetime) -> date:
    return instant.astimezone(UTC).date()


def _days_around(instants: Iterable[datetime]) -> list[date]:
    days = {_day(instant) for instant in instants}
    first, last = min(days), max(days)
    length = (last - first).days + 2 * MERGE_DAYS
    return [first + timedelta(days=n - MERGE_DAYS) for n in range(length + 1)]
