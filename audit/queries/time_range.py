"""The stretch of time a page of figures is about, read from its address, and its parts.

Pure: no clock, no database. Instants are aware, a range holds its start and not its end.
Charts show it part by part. Parts begin where the viewer's own clock strikes (a day in
Kathmandu at 18:15 UTC; one of 23 or 25 hours when clocks change), so that the first and the
last may be shorter than the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import cached_property
from itertools import pairwise

_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

LENGTHS: dict[str, tuple[str, timedelta]] = {
    "15m": ("15 min", 15 * _MINUTE),
    "1h": ("1 h", _HOUR),
    "6h": ("6 h", 6 * _HOUR),
    "24h": ("24 h", _DAY),
    "7d": ("7 d", 7 * _DAY),
    "30d": ("30 d", 30 * _DAY),
    "90d": ("90 d", 90 * _DAY),
}
"""What the picker offers, by its value in an address: a label, and how far back from now."""

DEFAULT = "24h"
MAX_LENGTH = 400 * _DAY
"""The longest range of one's own."""

_EARLIEST, _LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
_NO_SUCH_YEAR = "There is no call of that year."
_STEPS = (  # a range of at most this length has parts of that
    (_HOUR, _MINUTE, "minute"),
    (6 * _HOUR, 15 * _MINUTE, "15 minutes"),
    (2 * _DAY, _HOUR, "hour"),
    (4 * _DAY, 3 * _HOUR, "3 hours"),
    (10 * _DAY, 6 * _HOUR, "6 hours"),
    (100 * _DAY, _DAY, "day"),
    (MAX_LENGTH, 7 * _DAY, "week"),
)


@dataclass(frozen=True)
class TimeRange:
    """From `start` on and before `end`, as somebody in `zone` sees it."""

    start: datetime
    end: datetime
    zone: tzinfo
    name: str = ""
    """Of `LENGTHS`; '' for a range of one's own."""

    @property
    def length(self) -> timedelta:
        """How long it is, in time that passed."""
        return self.end - self.start

    @property
    def previous(self) -> "TimeRange":
        """The stretch of the same length that ended where this one begins."""
        return TimeRange(self.start - self.length, self.start, self.zone)

    @property
    def step(self) -> timedelta:
        """How long a part is by the clock on the wall."""
        return next(step for longest, step, _ in _STEPS if self.length <= longest)

    @property
    def step_name(self) -> str:
        """The step in words: `15 minutes`, `day`."""
        return next(words for longest, _, words in _STEPS if self.length <= longest)

    @cached_property
    def bounds(self) -> tuple[datetime, ...]:
        """Start, the instants between parts, end, in UTC; one more than there are parts."""
        inner = (at for at in self._strokes() if self.start < at < self.end)
        return (self.start.astimezone(UTC), *inner, self.end.astimezone(UTC))

    @property
    def parts(self) -> list[tuple[datetime, datetime]]:
        """From and to of each part, in UTC."""
        return list(pairwise(self.bounds))

    @property
    def is_whole(self) -> list[bool]:
        """Of each part whether it is a whole step: the first and the last may be cut off."""
        strokes = set(self._strokes())
        return [start in strokes and end in strokes for start, end in self.parts]

    def whole[T](self, of_parts: Sequence[T]) -> list[T]:
        """What there is of whole steps. A part of an hour has few calls: drawn without a mark,
        a count looks like a fall, and a rate like a peak.
        """
        parts = zip(of_parts, self.is_whole, strict=True)
        return [one for one, is_whole in parts if is_whole]

    def _strokes(self) -> Iterator[datetime]:
        """Where the wall's clock shows a multiple of the step, in UTC and in order."""
        step = self.step
        if step < 30 * _MINUTE:  # all zones are whole quarters of an hour from UTC
            at = _floor(self.start, step)
            while at <= self.end:
                yield at
                at += step
            return
        days = max(1, step // _DAY)
        first = self.start.astimezone(self.zone).date() - _DAY
        first -= timedelta(days=first.weekday() if days == 7 else 0)
        last = self.end.astimezone(self.zone).date() + _DAY
        found: set[datetime] = set()
        for n in range(0, (last - first).days + 1, days):
            day = first + timedelta(days=n)
            for seconds in range(0, 86_400, min(86_400, int(step.total_seconds()))):
                wall = datetime.combine(day, time(seconds // 3600))
                found.update(_instants(wall, self.zone, is_hour=step == _HOUR))
        yield from sorted(found)


@dataclass(frozen=True)
class Asked:
    """A range as an address asks for it. What cannot be read is said, and the default taken."""

    range: TimeRange
    problem: str = ""
    since: str = ""
    """What was typed as the beginning and end of a range of one's own."""
    until: str = ""


def read(asked: Mapping[str, str], *, now: datetime, zone: tzinfo) -> Asked:
    """The range of an address: `range=24h`, or `from` and `to` by the viewer's clock.

    `from` is `2026-11-20T10:00` or a day, `to` likewise (a day to its end) or missing: until now.
    """
    since, until = asked.get("from", "").strip()[:40], asked.get("to", "").strip()[:40]
    name = asked.get("range", "")
    fallback = _last(DEFAULT, now, zone)
    if since or until:
        try:
            return Asked(_own(since, until, now, zone), since=since, until=until)
        except ValueError as error:
            return Asked(fallback, str(error), since, until)
    if name and name not in LENGTHS:
        return Asked(fallback, f"There is no such range. There are: {', '.join(LENGTHS)}.")
    return Asked(_last(name or DEFAULT, now, zone))


def _last(name: str, now: datetime, zone: tzinfo) -> TimeRange:
    return TimeRange(now - LENGTHS[name][1], now, zone, name)


def _own(since: str, until: str, now: datetime, zone: tzinfo) -> TimeRange:
    """A range of one's own. Raises ValueError saying what is wrong with it."""
    if not since:
        raise ValueError("Say from when, too.")
    start = _moment(since, zone, is_end=False)
    end = _moment(until, zone, is_end=True) if until else now
    if end <= start:
        raise ValueError("The range ends before it begins.")
    if end - start > MAX_LENGTH:
        raise ValueError(f"A range has at most {MAX_LENGTH.days} days.")
    return TimeRange(start, end, zone)


def _moment(text: str, zone: tzinfo, *, is_end: bool) -> datetime:
    try:
        if len(text) == len("2026-11-20"):
            day = date.fromisoformat(text) + timedelta(days=int(is_end))
            moment = datetime.combine(day, time(), tzinfo=zone)
        else:
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=zone)
        moment = moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(_NO_SUCH_YEAR) from error
    except ValueError as error:
        raise ValueError("Times are written as 2026-11-20T10:00, days as 2026-11-20.") from error
    if not _EARLIEST <= moment <= _LATEST:
        raise ValueError(_NO_SUCH_YEAR)
    return moment


def _floor(at: datetime, step: timedelta) -> datetime:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return at.astimezone(UTC) - (at - epoch) % step


def _instants(wall: datetime, zone: tzinfo, *, is_hour: bool) -> Iterator[datetime]:
    """When the clock shows this: never, once or, when it is put back, twice (hours alone)."""
    for fold in (0, 1) if is_hour else (0,):
        at = wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)
        if at.astimezone(zone).replace(tzinfo=None) == wall or not is_hour:
            yield at
