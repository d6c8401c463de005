"""Tries a rule on the past: when it would have fired. Changes nothing.

The same values are judged by the same rules as in `audit.alerts.evaluation`. The one difference: a
call that arrived too late for the evaluation counts here.
"""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from audit.alerts.cells import instant, instant_before, read_calls, read_quarters, spans
from audit.alerts.judging import Cell, Episode, Value, episodes, values
from audit.alerts.rules import WindowCondition

BACK = timedelta(days=30)
READ_SECONDS = 4.0
"""Calls are read day by day, sums week by week, newest first, for so long."""
_DAY, _WEEK = timedelta(days=1), timedelta(days=7)
"""What is read at once of calls, and of quarters of an hour."""
_READ_MS = 8_000


@dataclass(frozen=True, slots=True)
class Trial:
    """What a rule would have said from `start` to `end`."""

    condition: WindowCondition
    start: datetime
    end: datetime
    values: list[Value]
    episodes: list[Episode]
    is_whole: bool
    """Whether all the time was read that was asked for."""

    def at(self, number: int) -> datetime:
        """The time of an instant."""
        return instant(self.condition, number)


def try_rule(
    condition: WindowCondition,
    end: datetime,
    *,
    back: timedelta = BACK,
    seconds: float = READ_SECONDS,
) -> Trial:
    """Judge a condition at all instants of a time that ends now. Needs the scope.

    Reads at most `seconds`, and at least a day.
    """
    last = instant_before(condition, end)
    first = instant_before(condition, end - back) + 1
    wait = condition.steps(condition.for_minutes)
    cells, first_read = _read(condition, first - wait, last, seconds)
    is_whole = first_read <= first - wait
    start = first if is_whole else min(first_read + wait, last)
    judged = values(condition, cells, start - wait, last)
    return Trial(
        condition,
        instant(condition, start),
        instant(condition, last),
        judged[wait:],
        episodes(condition, judged, start),
        is_whole,
    )


def _read(
    condition: WindowCondition, first: int, last: int, seconds: float
) -> tuple[dict[int, Cell], int]:
    """The sums for these instants, and the first instant for which all are there."""
    cells: dict[int, Cell] = {}
    is_long = condition.step_minutes > 1
    read, length = (read_quarters, _WEEK) if is_long else (read_calls, _DAY)
    deadline = time.monotonic() + seconds
    ((oldest, _), *_others) = spans(condition, first, last)
    until = instant(condition, last)
    while until > oldest:
        since = max(oldest, until - length)
        try:
            for at, cell in read(condition, since, until, _READ_MS).items():
                cells.setdefault(at, Cell()).add(cell)
        except TimeoutError:
            break
        until = since
        if time.monotonic() > deadline:
            break
    back = condition.window + timedelta(minutes=condition.compare_with.minutes)
    return cells, instant_before(condition, until + back)
