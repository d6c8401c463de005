"""The list of calls: whatever is filtered, a page of it, all of it, and how many there are.

Every question is the same walk: newest first along an index, past what does not match, in
stretches, until there is enough, nothing is left, or its budget is spent. Page, live tail,
API, export and payload search differ in how many calls they take and how long they walk.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from audit.queries.call_conditions import Conditions
from audit.queries.call_filter import CallFilter, Text
from audit.queries.calls import FirstViolation, Look, State, look_of
from audit.queries.cursor import BEGINNING, NEWEST, Cursor
from audit.queries.payload_terms import holding
from audit.queries.traces import prefix_end
from audit.sql.run import rows

SILENCE = timedelta(minutes=15)
"""A producer that was not heard for so long is presumed to have crashed."""

_CHUNK = 10_000
"""Rows an export walks over in one scope."""
_LONGEST = 5_000
"""Rows of one statement at most: what is lost when it takes too long."""
_PAYLOADS = 200
"""Calls whose payloads are read at once."""
_WINDOWS = (timedelta(days=3), timedelta(days=15))
"""Days of the first statements: most pages are full within the newest four, and planning for a
whole month's partitions takes longer than answering."""
AHEAD = timedelta(days=2)
"""The intake takes no call that starts later than this from now."""
DAYS_BACK = 400
"""Days among which a call is looked for of which nobody says when it started."""
_PAGES = {"before": "calls_before", "after": "calls_after"}
"""The statement of each direction."""
_WALKED = ("tool", "trace", "run", "call")


@dataclass(frozen=True, slots=True)
class ListedCall:
    """A call with all the index knows of it."""

    started_on: date
    invocation_id: UUID
    started_at: datetime
    ended_at: datetime | None
    duration_us: int | None
    state: State
    tool_name: str
    tool_version: str
    trace_id: str
    parent_invocation_id: UUID | None
    call_id: str
    tool_call_id: str | None
    error_type: str
    error_code: str | None
    error_message: str | None
    upstream_status: int | None
    retry_after_ms: int | None
    attempt: int | None
    guard_strategy: str | None
    guard_outcome: str | None
    violation_count: int
    prompt_tokens: int
    completion_tokens: int
    cache_hit: bool | None
    turn_id: str | None
    run_id: str | None
    ingestion_run_id: str | None
    workflow_id: str | None
    collection_id: str | None
    document_id: str | None
    document_version_id: str | None
    case_id: str | None
    timeouts_ms: int | None
    producer_id: str | None
    start_batch_id: UUID | None
    start_pos: int | None
    end_batch_id: UUID | None
    end_pos: int | None
    pair_conflict: bool

    @property
    def look(self) -> Look:
        """Its colour and shape."""
        return look_of(self.state, self.violation_count)


@dataclass(frozen=True, slots=True)
class Budget:
    """How far one question may walk: rows, and seconds from its first statement."""

    rows: int = 200_000
    seconds: float = 0.1
    first: int = 1_000
    """Rows of the first statement, from which it is known what others will take: while what it
    reads is cached 2 ms, else 40."""


@dataclass(frozen=True, slots=True)
class CallPage:
    """A page of the list, newest first, and the cursors to the pages beside it."""

    calls: list[ListedCall]
    newer: Cursor[UUID] | None
    older: Cursor[UUID] | None
    searched_until: datetime | None
    """The budget ended here without filling the page; `older` goes on from there."""


_PAYLOAD_SECONDS = 0.5
"""How long one question about payloads may take: reading one takes 20 times as long as a row."""

NO_CALLS = CallPage([], None, None, None)
"""The page of a query that cannot be read: nothing was searched."""


@dataclass(frozen=True, slots=True)
class CallCount:
    """How many calls match. `until` is None when all were looked at: then it is exact."""

    count: int
    until: datetime | None


def call_page(
    wanted: CallFilter,
    *,
    now: datetime,
    before: Cursor[UUID] | None = None,
    after: Cursor[UUID] | None = None,
    size: int = 50,
    budget: Budget | None = None,
) -> CallPage:
    """The calls before a cursor (older) or after one (newer), at most `size`.

    One statement where an index serves the filter, and one for each stretch of others.
    """
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
    wanted: CallFilter, *, now: datetime, before: Cursor[UUID], size: int
) -> tuple[list[ListedCall], Cursor[UUID] | None]:
    """The next calls of all that match, and where to go on; None at the end of them.

    Walks one stretch at most, so that a scope is never open for long: a chunk may be empty
    and not the last.
    """
    budget = Budget(rows=_CHUNK, first=_CHUNK)
    calls, stopped = Walk(wanted, now, budget).take("before", before, size)
    if len(calls) == size:
        return calls, _place(calls[-1])
    return calls, stopped


def count_calls(wanted: CallFilter, *, now: datetime, budget: Budget | None = None) -> CallCount:
    """How many calls match, as far as the budget goes. One statement a stretch."""
    return Walk(wanted, now, budget or Budget()).count()


def calls_by_id(places: Iterable[tuple[datetime, UUID]]) -> list[ListedCall]:
    """The calls that started at these instants and have these ids, newest first."""
    wanted = dict.fromkeys(places)
    parameters = {
        "days": sorted({at.astimezone(UTC).date() for at, _ in wanted}),
        "invocation_ids": [pk for _, pk in wanted],
    }
    return [ListedCall(*row) for row in rows("calls_by_id", parameters)] if wanted else []


def call_day(invocation_id: UUID, *, now: datetime) -> date | None:
    """The newest day on which a call of this id started; one statement over all of `DAYS_BACK`."""
    newest = (now + AHEAD).astimezone(UTC).date()
    days = [newest - timedelta(days=n) for n in range(DAYS_BACK)]
    found = rows("call_day", {"days": days, "invocation_id": invocation_id})
    return found[0][0] if found else None


def violations_of(calls: list[ListedCall]) -> dict[UUID, FirstViolation]:
    """The first violation of each of these calls that has one. One statement, or none."""
    broken = [call for call in calls if call.violation_count]
    if not broken:
        return {}
    parameters = {
        "days": sorted({call.started_on for call in broken}),
        "invocation_ids": [call.invocation_id for call in broken],
    }
    return {row[0]: FirstViolation(*row[1:]) for row in rows("first_violations", parameters)}


class Walk:
    """One question under way.

    Its first statement is short. By what that took, those after it are as long as the budget
    allows, none more than four times the one before; what turns out slower (what it reads was not
    cached) is cancelled at the budget's end, and the walk is as far as it was before it. As long as
    there were fewer rows than a first statement takes it goes on whatever the time.
    """

    def __init__(self, wanted: CallFilter, now: datetime, budget: Budget) -> None:
        conditions = Conditions(wanted)
        self.conditions = conditions.text
        self._parameters = _parameters(wanted, now) | conditions.parameters
        self._payload = wanted.payload
        self._first = self._rows = min(budget.first, budget.rows)
        self._rows_left = self._rows_allowed = budget.rows
        self._window = 0
        self._took = 0.0
        seconds = max(budget.seconds, _PAYLOAD_SECONDS) if wanted.payload else budget.seconds
        self._deadline = time.monotonic() + seconds

    def take(
        self, direction: str, cursor: Cursor[UUID], size: int
    ) -> tuple[list[ListedCall], Cursor[UUID] | None]:
        """Up to `size` calls, and where the budget ended before there were as many."""
        calls: list[ListedCall] = []
        while True:
            stretch = self.stretch(direction, cursor)
            limit = _PAYLOADS if self._payload else size - len(calls)
            began_at = time.monotonic()
            found = self._asked(_PAGES[direction], stretch | {"page_limit": limit})
            if found is None:
                return calls, cursor
            matching = [ListedCall(*row) for *row, is_match, _ in found if is_match]
            if self._payload:
                matching = holding(matching, self._payload)
                self._took = time.monotonic() - began_at
            calls += matching
            if len(calls) >= size:
                return calls[:size], None
            last = found[-1] if found and (found[-1][-1] or len(found) == limit) else None
            beyond = self._beyond(direction, stretch, Cursor(last[2], last[1]) if last else None)
            if beyond is None or self._is_spent():
                return calls, beyond
            cursor = beyond

    def count(self) -> CallCount:
        """All that match, newest first, until the budget ends."""
        if self._payload:
            calls, stopped = self.take("before", NEWEST, self._rows_allowed + 1)
            return CallCount(len(calls), stopped.at if stopped else None)
        count, cursor = 0, NEWEST
        while True:
            stretch = self.stretch("before", cursor)
            found = self._asked("calls_counted_before", stretch)
            if found is None:
                return CallCount(count, cursor.at)
            ((number, at, pk),) = found
            count += number
            beyond = self._beyond("before", stretch, Cursor(at, pk) if at else None)
            if beyond is None or self._is_spent():
                return CallCount(count, beyond.at if beyond else None)
            cursor = beyond

    def stretch(self, direction: str, cursor: Cursor[UUID]) -> dict[str, Any]:
        """The parameters of the statement about the next rows from a cursor."""
        return self._parameters | {
            **self._days(direction, cursor),
            "at": cursor.at,
            "id": cursor.id,
            "scan_limit": self._rows,
        }

    def _asked(self, statement: str, stretch: dict[str, Any]) -> list[tuple[Any, ...]] | None:
        """The rows of a stretch; None if it was cancelled."""
        began_at = time.monotonic()
        if self._rows <= self._first:
            found = rows(statement, stretch, conditions=self.conditions)
        else:
            left_ms = max(1, int((self._deadline - began_at) * 1000))
            try:
                found = rows(statement, stretch, conditions=self.conditions, timeout_ms=left_ms)
            except TimeoutError:
                return None
        self._took = time.monotonic() - began_at
        return found

    def _beyond(
        self, direction: str, stretch: dict[str, Any], last: Cursor[UUID] | None
    ) -> Cursor[UUID] | None:
        """Where the walk goes on after a stretch and its last row; None if nothing lies there."""
        if last is not None:
            self._rows_left -= self._rows
            row_s = self._took / self._rows
            affordable = int(0.8 * (self._deadline - time.monotonic()) / row_s)
            self._rows = min(affordable, 4 * self._rows, self._rows_left, _LONGEST)
            return last
        if self._window == len(_WINDOWS):
            return None
        self._window += 1
        if direction == "before":
            return Cursor(_midnight(stretch["first_day"]), UUID(int=0))
        return Cursor(
            _midnight(stretch["last_day"]) + timedelta(days=1, microseconds=-1), NEWEST.id
        )

    def _is_spent(self) -> bool:
        """Whether what may still be walked over is not worth a statement."""
        if self._rows_left == self._rows_allowed:
            return False
        is_late = time.monotonic() + self._took >= self._deadline
        return self._rows_left <= 0 or self._rows < self._first or is_late

    def _days(self, direction: str, cursor: Cursor[UUID]) -> dict[str, date]:
        """The days of the next statement, and no window more if they are all that are left."""
        days = _days(self._parameters, direction, cursor)
        if self._window < len(_WINDOWS):
            first_day, last_day = days["first_day"], days["last_day"]
            if last_day - first_day <= _WINDOWS[self._window]:
                self._window = len(_WINDOWS)
            elif direction == "before":
                days["first_day"] = last_day - _WINDOWS[self._window]
            else:
                days["last_day"] = first_day + _WINDOWS[self._window]
        return days


def _place(call: ListedCall) -> Cursor[UUID]:
    return Cursor(call.started_at, call.invocation_id)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, datetime.min.time(), UTC)


def _days(parameters: dict[str, Any], direction: str, cursor: Cursor[UUID]) -> dict[str, date]:
    """The UTC days whose partitions the walk can touch; all others are pruned."""
    since, until = parameters["since"], parameters["until"]
    if direction == "after":
        since = max(since, cursor.at)
    else:
        until = min(until, cursor.at)
    return {"first_day": since.astimezone(UTC).date(), "last_day": until.astimezone(UTC).date()}


def _parameters(wanted: CallFilter, now: datetime) -> dict[str, Any]:
    since = max(wanted.from_instant(now) or BEGINNING, BEGINNING)
    until = min(wanted.to_instant(now) or now + AHEAD, now + AHEAD)
    found: dict[str, Any] = {
        "now": now,
        "silent_since": now - SILENCE,
        "since": since,
        "until": until,
        "only_open": wanted.state == "open"
        or wanted.condition in {"running", "overdue", "crashed"},
        "only_orphans": wanted.condition == "orphan",
        # What errors say only failed calls have: `audit.index.projection`.
        "only_failed": wanted.state == "failed"
        or any(one is not None for one in (wanted.error, wanted.code, wanted.upstream)),
        "only_violating": wanted.violation is not None or wanted.path is not None,
        "code": wanted.code.value if wanted.code and not wanted.code.is_prefix else None,
    }
    for name in _WALKED:
        text: Text | None = getattr(wanted, name)
        prefix = text.value if text and text.is_prefix else None
        found[name] = text.value if text and not text.is_prefix else None
        found[f"{name}_from"] = prefix
        found[f"{name}_to"] = (prefix_end(prefix) or None) if prefix else None
    return found
