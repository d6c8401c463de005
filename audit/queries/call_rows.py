"""Traces and violations of the calls that a query selects, along the walk over the calls.

A page reads as many calls as one page of calls may. So it can be short, or empty, and not be the
last.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from audit.queries.call_conditions import Conditions
from audit.queries.call_filter import CallFilter, Text
from audit.queries.call_list import call_page
from audit.queries.call_walk import walk_parameters
from audit.queries.cursor import Cursor
from audit.queries.traces import Reason, TraceDay, TraceState, reasons_of, whole_traces
from audit.queries.violation_samples import Sample, SamplePlace, samples_of
from audit.queries.violations import ViolationFilter
from audit.sql.run import rows

_CALLS = 1_000
"""Calls that a page of traces reads at most."""


@dataclass(frozen=True, slots=True)
class MatchedTraces:
    """A page of traces with a matching call: that with the newest such call first."""

    traces: list[TraceDay]
    reasons: dict[str, Reason]
    older: Cursor[UUID] | None
    searched_until: datetime | None
    """Set if the page is not full: `older` continues from there."""


@dataclass(frozen=True, slots=True)
class MatchedViolations:
    """A page of violations of matching calls, newest first."""

    violations: list[Sample]
    older: SamplePlace | None
    searched_until: datetime | None
    """Set if the page is not full: `older` continues from there."""


def matched_traces(
    wanted: CallFilter,
    *,
    now: datetime,
    state: TraceState,
    before: Cursor[UUID] | None,
    size: int,
) -> MatchedTraces:
    """Traces with a call that matches, and in a state. The filter has no payload terms.

    At most four statements more than a page of calls.
    """
    page = call_page(wanted, now=now, before=before, size=_CALLS)
    newest: dict[str, datetime] = {}
    older = page.older
    last = before
    for call in page.calls:
        if call.trace_id not in newest:
            if len(newest) == size:
                older = last
                break
            newest[call.trace_id] = call.started_at
        last = Cursor(call.started_at, call.invocation_id)
    if before is not None and newest:
        for trace_id in _listed_before(wanted, now, list(newest), before):
            del newest[trace_id]
    traces = [trace for trace in whole_traces(newest) if trace.matches(state)]
    is_short = older is not None and len(traces) < size
    return MatchedTraces(
        traces, reasons_of(traces), older, older.at if older and is_short else None
    )


def matched_violations(
    wanted: CallFilter,
    of: ViolationFilter,
    *,
    now: datetime,
    before: SamplePlace | None,
    size: int,
) -> MatchedViolations:
    """Violations of the results of matching calls. One statement more than a page of calls."""
    for member, value in (("tool", of.tool), ("version", of.version), ("path", of.path)):
        if value is not None:
            wanted = wanted.also(member, Text(value))
    code = Text("", is_prefix=True) if of.code is None else Text(of.code)
    wanted = wanted.also("violation", code)
    place = Cursor(before[0], before[1]) if before else None
    page = call_page(wanted, now=now, before=place, size=size + 1)
    calls = [(call.started_on, call.invocation_id) for call in page.calls]
    if before is not None:  # the last call of the page before may have more of them
        calls.append((before[0].astimezone(UTC).date(), before[1]))
    violations = samples_of(calls, of, limit=size + 1, before=before) if calls else []
    shown = violations[:size]
    if len(violations) > size:
        last = shown[-1]
        return MatchedViolations(shown, (last.started_at, last.place_id, last.ordinal), None)
    older = page.older
    return MatchedViolations(
        shown, (older.at, older.id, 0) if older else None, older.at if older else None
    )


def _listed_before(
    wanted: CallFilter, now: datetime, trace_ids: Sequence[str], place: Cursor[UUID]
) -> set[str]:
    """Which of these traces have a matching call at a place or after it. One statement."""
    conditions = Conditions(wanted)
    parameters = walk_parameters(wanted, now) | conditions.parameters
    parameters |= {
        "first_day": place.at.astimezone(UTC).date(),
        "last_day": parameters["until"].astimezone(UTC).date(),
        "trace_ids": trace_ids,
        "at": place.at,
        "id": place.id,
    }
    listed = rows(
        "traces_matched_after",
        parameters,
        conditions=conditions.text,
        with_unrun=wanted.is_about_unrun,
    )
    return {row[0] for row in listed}
