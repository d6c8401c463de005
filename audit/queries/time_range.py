"""The time range of a page of figures, read from its address, and the parts of the range.

Pure: no clock, no database. Instants are aware. A range includes its start and excludes its end.
Charts show a range part by part. Parts begin at whole steps of the viewer's local time (a day in
Kathmandu begins at 18:15 UTC; a day has 23 or 25 hours when clocks change). So the first and the
last part may be shorter than the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


class RangeChoice(NamedTuple):
    """A range that the picker offers, up to now."""

    label: str
    length: timedelta


LENGTHS: dict[str, RangeChoice] = {
    "15m": RangeChoice("15 min", 15 * _MINUTE),
    "1h": RangeChoice("1 h", _HOUR),
    "6h": RangeChoice("6 h", 6 * _HOUR),
    "24h": RangeChoice("24 h", _DAY),
    "7d": RangeChoice("7 d", 7 * _DAY),
    "30d": RangeChoice("30 d", 30 * _DAY),
    "90d": RangeChoice("90 d", 90 * _DAY),
}
"""The ranges that the picker offers, by value in an address."""

DEFAULT = "24h"
MAX_LENGTH = 400 * _DAY
"""The longest custom range."""

_EARLIEST, _LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
_OUT_OF_BOUNDS = "The year must be between 2000 and 8999."
_STEPS = (  # for ranges of at most this length: the step, and its name
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
    """A range from `start` on and before `end`, as seen in the time zone `zone`."""

    start: datetime
    end: datetime
    zone: tzinfo
    name: str = ""
    """The key in `LENGTHS`; '' for a custom range."""

    @property
    def length(self) -> timedelta:
        """The elapsed time from start to end."""
        return self.end - self.start

    @property
    def previous(self) -> "TimeRange":
        """The range of the same length that ends where this one begins."""
        return TimeRange(self.start - self.length, self.start, self.zone)

    @property
    def length_name(self) -> str:
        """Its length in words: `24 h`, `3 d`, `45 min`."""
        if self.name:
            return LENGTHS[self.name].label
        unit, name = next(
            (one, name)
            for one, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (timedelta(0), ""))
            if not one or (not self.length % one and self.length >= (3 if name == "d" else 1) * one)
        )
        return f"{self.length // unit} {name}" if unit else "as long"

    @property
    def step(self) -> timedelta:
        """The length of a part in local time."""
        return next(step for longest, step, _ in _STEPS if self.length <= longest)

    @property
    def step_name(self) -> str:
        """The step in words: `15 minutes`, `day`."""
        return next(words for longest, _, words in _STEPS if self.length <= longest)

    @cached_property
    def bounds(self) -> tuple[datetime, ...]:
        """Start, the instants between parts, end, in UTC; one more than there are parts."""
        inner = (at for at in self._strokes if self.start < at < self.end)
        return (self.start.astimezone(UTC), *inner, self.end.astimezone(UTC))

    @property
    def parts(self) -> list[tuple[datetime, datetime]]:
        """From and to of each part, in UTC."""
        return list(pairwise(self.bounds))

    @cached_property
    def is_whole(self) -> list[bool]:
        """For each part, whether it is a whole step. The first and the last may be cut."""
        strokes = set(self._strokes)
        return [start in strokes and end in strokes for start, end in self.parts]

    @property
    def has_parts_before(self) -> bool:
        """Whether the range before has the same parts: whole quarters of an hour, or longer."""
        return self.step >= 15 * _MINUTE and not self.length % self.step

    @property
    def bounds_before(self) -> list[datetime]:
        """The beginnings of the parts of the range before, each one length before a part.

        If it does not have the same parts, only its beginning.
        """
        if not self.has_parts_before:
            return [self.previous.start]
        return [at - self.length for at in self.bounds[:-1]]

    def whole[T](self, of_parts: Sequence[T]) -> list[T]:
        """The values of the parts that are whole steps.

        A part of an hour has few calls. Drawn without a mark, its count would look like a drop, and
        its rate like a peak.
        """
        parts = zip(of_parts, self.is_whole, strict=True)
        return [one for one, is_whole in parts if is_whole]

    @cached_property
    def _strokes(self) -> Sequence[datetime]:
        """The instants at which local time is a multiple of the step, in UTC and in order."""
        step = self.step
        if step < 30 * _MINUTE:  # every zone's offset is a multiple of 15 min
            first_at = _floor(self.start, step)
            return [first_at + n * step for n in range((self.end - first_at) // step + 1)]
        days = max(1, step // _DAY)
        first = self.start.astimezone(self.zone).date() - _DAY
        first -= timedelta(days=first.weekday() if days == 7 else 0)
        last = self.end.astimezone(self.zone).date() + _DAY
        instants: set[datetime] = set()
        for n in range(0, (last - first).days + 1, days):
            day = first + timedelta(days=n)
            for seconds in range(0, 86_400, min(86_400, int(step.total_seconds()))):
                wall = datetime.combine(day, time(seconds // 3600))
                instants.update(_instants(wall, self.zone, is_hour=step == _HOUR))
        return sorted(instants)


@dataclass(frozen=True)
class RequestedRange:
    """The range in an address. If it is invalid, `problem` says why and `range` is the default."""

    range: TimeRange
    problem: str = ""
    since: str = ""
    """What was typed as the start of a custom range; `until` is its end."""
    until: str = ""


def read(params: Mapping[str, str], *, now: datetime, zone: tzinfo) -> RequestedRange:
    """The range in an address: `range=24h`, or `from` and `to` in the viewer's local time.

    `from` and `to` are like `2026-11-20T10:00`, or a day. A day as `to` means its end. Without
    `to` the range ends now.
    """
    since, until = params.get("from", "").strip()[:40], params.get("to", "").strip()[:40]
    name = params.get("range", "")
    fallback = _last(DEFAULT, now, zone)
    if since or until:
        try:
            return RequestedRange(_own(since, until, now, zone), since=since, until=until)
        except ValueError as error:
            return RequestedRange(fallback, str(error), since, until)
    if name and name not in LENGTHS:
        return RequestedRange(fallback, f"Unknown range. Available ranges: {', '.join(LENGTHS)}.")
    return RequestedRange(_last(name or DEFAULT, now, zone))


def _last(name: str, now: datetime, zone: tzinfo) -> TimeRange:
    return TimeRange(now - LENGTHS[name].length, now, zone, name)


def _own(since: str, until: str, now: datetime, zone: tzinfo) -> TimeRange:
    """A custom range. Raises ValueError with a message that says what is wrong."""
    if not since:
        raise ValueError("The start of the range is missing.")
    start = _moment(since, zone, is_end=False)
    end = _moment(until, zone, is_end=True) if until else now
    if end <= start:
        raise ValueError("The range must end after it starts.")
    if end - start > MAX_LENGTH:
        raise ValueError(f"A range cannot be longer than {MAX_LENGTH.days} days.")
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
        raise ValueError(_OUT_OF_BOUNDS) from error
    except ValueError as error:
        raise ValueError("Enter a time as 2026-11-20T10:00 or a day as 2026-11-20.") from error
    if not _EARLIEST <= moment <= _LATEST:
        raise ValueError(_OUT_OF_BOUNDS)
    return moment


def _floor(at: datetime, step: timedelta) -> datetime:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return at.astimezone(UTC) - (at - epoch) % step


def _instants(wall: datetime, zone: tzinfo, *, is_hour: bool) -> Iterator[datetime]:
    """The instants with this local time: for hours none, one, or two when clocks go back."""
    for fold in (0, 1) if is_hour else (0,):
        at = wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)
        if at.astimezone(zone).replace(tzinfo=None) == wall or not is_hour:
            yield at
