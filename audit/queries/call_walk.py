"""The walk over calls that every list, count and export of them uses.

It reads calls along an index, newest first, and skips calls that do not match. It reads in
sections, one statement each, until there are enough calls, no calls are left, or the budget is
spent.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from audit.queries.call_conditions import Conditions
from audit.queries.call_filter import OPEN, UNRUN, CallFilter, Text
from audit.queries.cursor import BEGINNING, NEWEST, Cursor
from audit.queries.listed_call import ListedCall
from audit.queries.payload_terms import holding
from audit.queries.traces import prefix_end
from audit.sql.run import Row, rows

SILENCE = timedelta(minutes=15)
"""A producer that has been silent for this long is presumed to have crashed."""

AHEAD = timedelta(days=2)
"""Ingest accepts no call that starts further in the future than this."""

_LONGEST = 5_000
"""Maximum rows of one statement. They are lost if it takes too long."""
_PAYLOADS = 200
"""Calls whose payloads are read at once."""
_WINDOWS = (timedelta(days=3), timedelta(days=15))
"""Days of the first statements. Most pages are full within the newest four days, and planning for
the partitions of a whole month takes longer than the query itself."""
_PAGES = {"before": "calls_before", "after": "calls_after"}
"""The statement of each direction."""
_WALKED = ("tool", "trace", "run", "call")
_PAYLOAD_SECONDS = 0.5
"""Budget of a walk with payload conditions: reading a payload takes 20 times as long as a row."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How far a walk may go: rows, and seconds from its first statement."""

    rows: int = 200_000
    seconds: float = 0.1
    first: int = 1_000
    """Rows of the first statement. It takes 2 ms if they are cached, otherwise 40 ms. Its time
    shows how long later statements will take."""


QUERY_BUDGET = Budget(rows=100_000, seconds=1.0)
"""Of figures of a query: the calls that are read, matching or not, and seconds."""


@dataclass(frozen=True, slots=True)
class CallCount:
    """How many calls match. The count is exact if `until` is None: all calls were checked."""

    count: int
    until: datetime | None


class Walk:
    """One walk over the calls, within a budget.

    The first statement is short. Its time decides how many rows the next statements may read
    within the budget; each reads at most four times as many as the one before. A statement that
    turns out slower (its rows were not cached) is cancelled at the end of the budget, and the walk
    keeps what it had before it. As long as no statement has reached its limit of rows, the walk
    continues, whatever the time.
    """

    def __init__(
        self, wanted: CallFilter, now: datetime, budget: Budget, *, with_unrun: bool = False
    ) -> None:
        conditions = Conditions(wanted)
        self._with_unrun = with_unrun or wanted.is_about_unrun
        self.conditions = conditions.text
        self._parameters = walk_parameters(wanted, now) | conditions.parameters
        self._payload = wanted.payload
        self._first = self._rows = min(budget.first, budget.rows)
        self._rows_left = self._rows_allowed = budget.rows
        self._window = 0
        self._section_seconds = 0.0
        seconds = max(budget.seconds, _PAYLOAD_SECONDS) if wanted.payload else budget.seconds
        self._deadline = time.monotonic() + seconds
        self.stopped: Cursor[UUID] | None = None
        """Where `summed` ended, if the budget ended before the calls."""

    def take(
        self, direction: str, cursor: Cursor[UUID], size: int
    ) -> tuple[list[ListedCall], Cursor[UUID] | None]:
        """Up to `size` calls, and the cursor to continue from if the budget ended first."""
        calls: list[ListedCall] = []
        while True:
            section = self.section(direction, cursor)
            limit = _PAYLOADS if self._payload else size - len(calls)
            began_at = time.monotonic()
            scanned = self._read_section(_PAGES[direction], section | {"page_limit": limit})
            if scanned is None:
                return calls, cursor
            matching = [ListedCall(*row) for *row, is_match, _ in scanned if is_match]
            if self._payload:
                matching = holding(matching, self._payload)
                self._section_seconds = time.monotonic() - began_at
            calls += matching
            if len(calls) >= size:
                return calls[:size], None
            last = scanned[-1] if scanned and (scanned[-1][-1] or len(scanned) == limit) else None
            beyond = self._beyond(direction, section, Cursor(last[2], last[1]) if last else None)
            if beyond is None or self._is_spent():
                return calls, beyond
            cursor = beyond

    def count(self) -> CallCount:
        """Count the calls that match, newest first, until the budget ends."""
        if self._payload:
            calls, stopped = self.take("before", NEWEST, self._rows_allowed + 1)
            return CallCount(len(calls), stopped.at if stopped else None)
        count = sum(number for number, *_ in self.summed("calls_counted_before", {}))
        return CallCount(count, self.stopped.at if self.stopped else None)

    def summed(self, statement: str, parameters: Mapping[str, Any]) -> Iterator[Row]:
        """The rows of a statement that sums up calls, for each section, until the budget ends.

        Newest first. The last two columns of the rows name the last call of a section.
        """
        cursor = NEWEST
        while True:
            section = self.section("before", cursor)
            summed = self._read_section(statement, {**section, **parameters})
            if summed is None:
                self.stopped = cursor
                return
            yield from summed
            last = next((Cursor(at, pk) for *_, at, pk in summed if at is not None), None)
            beyond = self._beyond("before", section, last)
            if beyond is None or self._is_spent():
                self.stopped = beyond
                return
            cursor = beyond

    def section(self, direction: str, cursor: Cursor[UUID]) -> dict[str, Any]:
        """The parameters of the statement for the next section, from a cursor on."""
        return self._parameters | {
            **self._days(direction, cursor),
            "at": cursor.at,
            "id": cursor.id,
            "scan_limit": self._rows,
        }

    def _read_section(
        self, statement: str, section: dict[str, Any]
    ) -> list[tuple[Any, ...]] | None:
        """The rows of a section; None if its statement was cancelled."""
        began_at = time.monotonic()
        if self._rows <= self._first:
            result = rows(
                statement, section, conditions=self.conditions, with_unrun=self._with_unrun
            )
        else:
            left_ms = max(1, int((self._deadline - began_at) * 1000))
            try:
                result = rows(
                    statement,
                    section,
                    conditions=self.conditions,
                    with_unrun=self._with_unrun,
                    timeout_ms=left_ms,
                )
            except TimeoutError:
                return None
        self._section_seconds = time.monotonic() - began_at
        return result

    def _beyond(
        self, direction: str, section: dict[str, Any], last: Cursor[UUID] | None
    ) -> Cursor[UUID] | None:
        """The cursor after a section and its last row; None at the end of the walk."""
        if last is not None:
            self._rows_left -= self._rows
            row_s = self._section_seconds / self._rows
            affordable = int(0.8 * (self._deadline - time.monotonic()) / row_s)
            self._rows = min(affordable, 4 * self._rows, self._rows_left, _LONGEST)
            return last
        if self._window == len(_WINDOWS):
            return None
        self._window += 1
        if direction == "before":
            return Cursor(_midnight(section["first_day"]), UUID(int=0))
        return Cursor(
            _midnight(section["last_day"]) + timedelta(days=1, microseconds=-1), NEWEST.id
        )

    def _is_spent(self) -> bool:
        """Whether the rest of the budget is too small for another statement."""
        if self._rows_left == self._rows_allowed:
            return False
        is_late = time.monotonic() + self._section_seconds >= self._deadline
        return self._rows_left <= 0 or self._rows < self._first or is_late

    def _days(self, direction: str, cursor: Cursor[UUID]) -> dict[str, date]:
        """The days of the next statement. If they are the last ones, no other window follows."""
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


def walk_parameters(wanted: CallFilter, now: datetime) -> dict[str, Any]:
    """The parameters of the part `call_walk`, without the days and the cursor."""
    since = max(wanted.from_instant(now) or BEGINNING, BEGINNING)
    until = min(wanted.to_instant(now) or now + AHEAD, now + AHEAD)
    parameters: dict[str, Any] = {
        "now": now,
        "silent_since": now - SILENCE,
        "since": since,
        "until": until,
        "only_open": wanted.state in OPEN or wanted.condition in {"running", "overdue", "crashed"},
        "only_orphans": wanted.condition == "orphan",
        # Only failed calls have error fields: see `audit.index.projection`.
        "only_failed": wanted.state == "failed"
        or any(one is not None for one in (wanted.error, wanted.code, wanted.upstream)),
        "only_unrun": wanted.state in UNRUN,
        # A call that awaits or has an approval has this as its latest decision.
        "unrun_decision": wanted.state if wanted.state in ("awaiting", "approved") else None,
        # Of calls that did not run, the violations are those of their decisions.
        "only_violating": (wanted.violation is not None or wanted.path is not None)
        and not wanted.is_about_unrun,
        "code": wanted.code.value if wanted.code and not wanted.code.is_prefix else None,
    }
    for name in _WALKED:
        text: Text | None = getattr(wanted, name)
        prefix = text.value if text and text.is_prefix else None
        parameters[name] = text.value if text and not text.is_prefix else None
        parameters[f"{name}_from"] = prefix
        parameters[f"{name}_to"] = (prefix_end(prefix) or None) if prefix else None
    return parameters
