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
    read: "Read"

    def at(self, number: int) -> datetime:
        """The time of an instant."""
        return instant(self.condition, number)


@dataclass(frozen=True, slots=True)
class Read:
    """Sums of the calls that were read: all from an instant on."""

    cells: dict[int, Cell]
    since: datetime


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
    nothing = nothing_read(condition, end)
    read = read_back(condition, nothing, end, back, time.monotonic() + seconds)
    return judge(condition, read, end, back)


def nothing_read(condition: WindowCondition, end: datetime) -> Read:
    """Where reading begins, for a time that ends now."""
    return Read({}, instant(condition, instant_before(condition, end)))


def oldest_of(condition: WindowCondition, end: datetime, back: timedelta) -> datetime:
    """The start of the calls that decide about a time that ends now."""
    first, last = _instants(condition, end, back)
    wait = condition.steps(condition.for_minutes)
    return spans(condition, first - wait, last)[0][0]


def read_back(
    condition: WindowCondition, read: Read, end: datetime, back: timedelta, deadline: float
) -> Read:
    """Go on with older calls until a time of `time.monotonic`; at least with those of a day.

    It ends early if these cannot be read in time. Needs the scope.
    """
    cells, until = dict(read.cells), read.since
    is_long = condition.step_minutes > 1
    read_some, length = (read_quarters, _WEEK) if is_long else (read_calls, _DAY)
    oldest = oldest_of(condition, end, back)
    while until > oldest:
        since = max(oldest, until - length)
        try:
            for at, cell in read_some(condition, since, until, _READ_MS).items():
                cells.setdefault(at, Cell()).add(cell)
        except TimeoutError:
            break
        until = since
        if time.monotonic() > deadline:
            break
    return Read(cells, until)


def judge(condition: WindowCondition, read: Read, end: datetime, back: timedelta) -> Trial:
    """What the rule would have said at the instants whose calls were read."""
    first, last = _instants(condition, end, back)
    wait = condition.steps(condition.for_minutes)
    window = condition.window + timedelta(minutes=condition.compare_with.minutes)
    first_read = instant_before(condition, read.since + window)
    is_whole = first_read <= first - wait
    start = first if is_whole else min(first_read + wait, last)
    judged = values(condition, read.cells, start - wait, last)
    return Trial(
        condition,
        instant(condition, start),
        instant(condition, last),
        judged[wait:],
        episodes(condition, judged, start),
        is_whole,
        read,
    )


def _instants(condition: WindowCondition, end: datetime, back: timedelta) -> tuple[int, int]:
    return instant_before(condition, end - back) + 1, instant_before(condition, end)
