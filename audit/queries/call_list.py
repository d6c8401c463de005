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

from django.utils.dateparse import parse_datetime

from audit.call_filter import Bounds, CallFilter, Text
from audit.queries import rows
from audit.queries.calls import FirstViolation, Look, State, look_of
from audit.queries.traces import BEGINNING, END, prefix_end

SILENCE = timedelta(minutes=15)
"""A producer that was not heard for so long is presumed to have crashed."""

_STRETCH = 10_000
"""Rows of one statement: some 20 ms, after which the clock is looked at."""
_GLANCE = 2_000
"""Rows that are looked at in the newest days alone, before the walk begins."""
_GLANCE_BACK = timedelta(days=3)
AHEAD = timedelta(days=2)
"""The intake takes no call that starts later than this from now."""
DAYS_BACK = 400
"""Days among which a call is looked for of which nobody says when it started."""
_LAST_ID = UUID(int=2**128 - 1)
_WALKED = ("tool", "trace", "run", "call")
_MATCHED = (
    "version",
    "error",
    "code",
    "ingestion",
    "case",
    "workflow",
    "document",
    "collection",
    "producer",
    "violation",
    "path",
)


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
class Cursor:
    """A place in the list: of the call just before or just after it."""

    at: datetime
    id: UUID

    def __str__(self) -> str:
        """As it stands in addresses: `2026-11-20T10:15:00.000001+00:00,<id>`."""
        return f"{self.at.isoformat()},{self.id}"

    @classmethod
    def read(cls, text: str) -> "Cursor | None":
        """The cursor of an address, None if it is none."""
        at, _, invocation_id = text.partition(",")
        try:
            instant, pk = parse_datetime(at), UUID(invocation_id)
        except ValueError:
            return None
        if instant is None or instant.tzinfo is None or not BEGINNING <= instant <= END:
            return None
        return cls(instant, pk)


NEWEST = Cursor(END, _LAST_ID)
"""Before it is everything."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How far one question may walk: rows, and seconds from its first statement."""

    rows: int = 200_000
    seconds: float = 0.1


@dataclass(frozen=True, slots=True)
class CallPage:
    """A page of the list, newest first, and the cursors to the pages beside it."""

    calls: list[ListedCall]
    newer: Cursor | None
    older: Cursor | None
    searched_until: datetime | None
    """The budget ended here without filling the page; `older` goes on from there."""


@dataclass(frozen=True, slots=True)
class CallCount:
    """How many calls match. `until` is None when all were looked at: then it is exact."""

    count: int
    until: datetime | None


def call_page(
    wanted: CallFilter,
    *,
    now: datetime,
    before: Cursor | None = None,
    after: Cursor | None = None,
    size: int = 50,
    budget: Budget | None = None,
) -> CallPage:
    """The calls before a cursor (older) or after one (newer), at most `size`.

    One statement where an index serves the filter; each stretch of others costs two.
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
    wanted: CallFilter, *, now: datetime, before: Cursor, size: int
) -> tuple[list[ListedCall], Cursor | None]:
    """The next calls of all that match, and where to go on; None at the end of them.

    Walks one stretch at most, so that a scope is never open for long: a chunk may be empty
    and not the last.
    """
    calls, stopped = Walk(wanted, now, Budget(rows=_STRETCH)).take("before", before, size)
    if len(calls) == size:
        return calls, _place(calls[-1])
    return calls, stopped


def count_calls(wanted: CallFilter, *, now: datetime, budget: Budget | None = None) -> CallCount:
    """How many calls match, as far as the budget goes. Two statements a stretch."""
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
    """One question under way."""

    def __init__(self, wanted: CallFilter, now: datetime, budget: Budget) -> None:
        self._parameters = _parameters(wanted, now)
        self._rows_left = budget.rows
        self._began_at = time.monotonic()
        self._deadline = self._began_at + budget.seconds

    def take(
        self, direction: str, cursor: Cursor, size: int
    ) -> tuple[list[ListedCall], Cursor | None]:
        """Up to `size` calls, and where the budget ended before there were as many."""
        glance = _glance(self.stretch(direction, cursor, _GLANCE))
        if direction == "before" and glance is not None:
            found = rows("calls_before", glance | {"page_limit": size})
            if len(found) >= size:
                return [ListedCall(*row) for row in found], None
        calls: list[ListedCall] = []
        while True:
            stretch = self.stretch(direction, cursor)
            found = rows(f"calls_{direction}", stretch | {"page_limit": size - len(calls)})
            calls += [ListedCall(*row) for row in found]
            if len(calls) >= size:
                return calls, None
            end = self._end(direction, stretch)
            if end is None or self._is_spent():
                return calls, end
            cursor = end

    def count(self) -> CallCount:
        """All that match, newest first, until the budget ends."""
        count, cursor = 0, NEWEST
        while True:
            stretch = self.stretch("before", cursor)
            ((number,),) = rows("calls_counted_before", stretch)
            count += number
            end = self._end("before", stretch)
            if end is None or self._is_spent():
                return CallCount(count, end.at if end else None)
            cursor = end

    def stretch(self, direction: str, cursor: Cursor, most: int | None = None) -> dict[str, Any]:
        """The parameters of the statements about the next rows from a cursor."""
        self._began_at = time.monotonic()
        scan_limit = min(most or _STRETCH, self._rows_left)
        self._rows_left -= 0 if most else scan_limit
        return self._parameters | {
            **_days(self._parameters, direction, cursor),
            "at": cursor.at,
            "id": cursor.id,
            "scan_limit": scan_limit,
        }

    def _end(self, direction: str, stretch: dict[str, Any]) -> Cursor | None:
        """The last row of a stretch; None if nothing lies beyond it."""
        found = rows(f"calls_walked_{direction}", stretch)
        return Cursor(*found[0]) if found else None

    def _is_spent(self) -> bool:
        """Whether another stretch that takes as long as this one would be too much."""
        now = time.monotonic()
        return self._rows_left <= 0 or now + (now - self._began_at) >= self._deadline


def _place(call: ListedCall) -> Cursor:
    return Cursor(call.started_at, call.invocation_id)


def _glance(stretch: dict[str, Any]) -> dict[str, Any] | None:
    """The newest few days of a stretch; None if it has no more.

    Most pages are full within them, and planning a statement over a whole month's partitions
    takes longer than answering it.
    """
    first_day = stretch["last_day"] - _GLANCE_BACK
    return stretch | {"first_day": first_day} if first_day > stretch["first_day"] else None


def _days(parameters: dict[str, Any], direction: str, cursor: Cursor) -> dict[str, date]:
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
    duration, tokens = wanted.duration or Bounds(), wanted.tokens or Bounds()
    upstream = wanted.upstream or Bounds()
    found: dict[str, Any] = {
        "now": now,
        "silent_since": now - SILENCE,
        "since": since,
        "until": until,
        # Failed and open ones are walked along.
        "state": "ok" if wanted.state == "ok" else None,
        "condition": wanted.condition,
        "only_open": wanted.state == "open"
        or wanted.condition in {"running", "overdue", "crashed"},
        "only_orphans": wanted.condition == "orphan",
        # What errors say only failed calls have: `audit.projection`.
        "only_failed": wanted.state == "failed"
        or any(one is not None for one in (wanted.error, wanted.code, wanted.upstream)),
        "only_violating": wanted.violation is not None or wanted.path is not None,
        "cache": None if wanted.cache is None else wanted.cache == "hit",
        "duration_low": duration.low,
        "duration_high": duration.high,
        "tokens_low": tokens.low,
        "tokens_high": tokens.high,
        "upstream_low": upstream.low,
        "upstream_high": upstream.high,
    }
    for name in _WALKED:
        text: Text | None = getattr(wanted, name)
        prefix = text.value if text and text.is_prefix else None
        found[name] = text.value if text and not text.is_prefix else None
        found[f"{name}_from"] = prefix
        found[f"{name}_to"] = (prefix_end(prefix) or None) if prefix else None
    for name in _MATCHED:
        text = getattr(wanted, name)
        found[name] = text.value if text and not text.is_prefix else None
        found[f"{name}_prefix"] = text.value if text and text.is_prefix else None
    return found
