"""The list of calls: pages, chunks and counts of the calls that match a filter, newest first.

All of them use the same walk (`audit.queries.call_walk`). Page, live tail, API, export and payload
search differ in how many calls they take and how long they walk.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from audit.queries.call_filter import CallFilter
from audit.queries.call_walk import AHEAD, Budget, CallCount, Walk
from audit.queries.calls import FirstViolation
from audit.queries.cursor import NEWEST, Cursor
from audit.queries.listed_call import ListedCall
from audit.sql.run import rows

_CHUNK = 10_000
"""Rows that an export walks over in one scope."""
DAYS_BACK = 400
"""Days that are searched for a call whose start is not known."""


@dataclass(frozen=True, slots=True)
class CallPage:
    """A page of the list, newest first, and the cursors of the newer and the older page."""

    calls: list[ListedCall]
    newer: Cursor[UUID] | None
    older: Cursor[UUID] | None
    searched_until: datetime | None
    """Set if the budget ended here before the page was full. `older` continues from there."""


NO_CALLS = CallPage([], None, None, None)
"""The page of an invalid query: nothing was searched."""


def call_page(
    wanted: CallFilter,
    *,
    now: datetime,
    before: Cursor[UUID] | None = None,
    after: Cursor[UUID] | None = None,
    size: int = 50,
    budget: Budget | None = None,
) -> CallPage:
    """At most `size` calls, older than `before` or newer than `after`.

    One statement if an index serves the filter, otherwise one for each section of the walk.
    """
    if wanted.is_without_time:
        return NO_CALLS
    walk = Walk(wanted, now, budget or Budget())
    if after is not None:
        calls, stopped = walk.take("after", after, size + 1)
        has_more, calls = len(calls) > size, calls[:size][::-1]
        newer = _place(calls[0]) if has_more else stopped
        older = _place(calls[-1]) if calls else after
        return CallPage(calls, newer, older, None)
    calls, stopped = walk.take("before", before or NEWEST, size + 1)
    has_more, calls = len(calls) > size, calls[:size]
    return CallPage(
        calls,
        newer=_place(calls[0]) if calls and before is not None else None,
        older=_place(calls[-1]) if has_more else stopped,
        searched_until=stopped.at if stopped else None,
    )


def call_chunk(
    wanted: CallFilter,
    *,
    now: datetime,
    before: Cursor[UUID],
    size: int,
    with_unrun: bool = False,
) -> tuple[list[ListedCall], Cursor[UUID] | None]:
    """The next calls that match, and the cursor to continue from; None at the end.

    `with_unrun`: also calls that did not run, if the filter does not mention them. Walks at most
    one section, so that a scope is never open for long. So a chunk may be empty without being the
    last.
    """
    budget = Budget(rows=_CHUNK, first=_CHUNK)
    walk = Walk(wanted, now, budget, with_unrun=with_unrun)
    calls, stopped = walk.take("before", before, size)
    if len(calls) == size:
        return calls, _place(calls[-1])
    return calls, stopped


def count_calls(wanted: CallFilter, *, now: datetime, budget: Budget | None = None) -> CallCount:
    """How many calls match, as far as the budget goes. One statement for each section."""
    return Walk(wanted, now, budget or Budget()).count()


def calls_by_id(places: Iterable[tuple[datetime, UUID]]) -> list[ListedCall]:
    """The calls that started at these instants and have these ids, newest first."""
    return calls_by_day((at.astimezone(UTC).date(), pk) for at, pk in places)


def calls_by_day(places: Iterable[tuple[date, UUID]]) -> list[ListedCall]:
    """The calls that started on these days and have these ids, newest first. One statement."""
    wanted = dict.fromkeys(places)
    if not wanted:
        return []
    days = sorted({day for day, _ in wanted})
    parameters = {
        "days": days,
        "first_day": days[0],
        "last_day": days[-1],
        "invocation_ids": [pk for _, pk in wanted],
    }
    return [ListedCall(*row) for row in rows("calls_by_id", parameters)]


def call_day(invocation_id: UUID, *, now: datetime) -> date | None:
    """The newest day within `DAYS_BACK` on which a call with this id started. One statement."""
    newest = (now + AHEAD).astimezone(UTC).date()
    days = [newest - timedelta(days=n) for n in range(DAYS_BACK)]
    matches = rows("call_day", {"days": days, "invocation_id": invocation_id})
    return matches[0][0] if matches else None


def violations_of(calls: list[ListedCall]) -> dict[UUID, FirstViolation]:
    """The first violation of each of these calls that has one. At most one statement."""
    broken = [call for call in calls if call.violation_count]
    if not broken:
        return {}
    parameters = {
        "days": sorted({call.started_on for call in broken}),
        "invocation_ids": [call.invocation_id for call in broken],
    }
    return {row[0]: FirstViolation(*row[1:]) for row in rows("first_violations", parameters)}


def _place(call: ListedCall) -> Cursor[UUID]:
    return Cursor(call.started_at, call.invocation_id)
