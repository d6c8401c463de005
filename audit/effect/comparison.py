"""Compares two sets of calls, such as those of two versions: windows, figures, verdicts. Pure.

Of versions, one window ends when the version was published, the other begins then. Both have the
same length: the requested one, or the version's age if that is shorter. A figure counts as
different only if a test at `ALPHA` is significant.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Final, Literal, NamedTuple

from audit.effect.statistics import Interval, ShareTest, compare_percentiles, compare_shares
from audit.index import histogram
from audit.queries.time_range import TimeRange

ALPHA: Final = 0.01
CALLS_MIN: Final = 30
"""The fewest calls on each side; with fewer there is no verdict."""
PERCENTILE_CALLS_MIN: Final = 150
"""The same for p95: with fewer calls the bootstrap finds false differences (docs/adr/0019)."""
SHARE: Final = 0.95


class Length(NamedTuple):
    """A length that a window may have."""

    label: str
    duration: timedelta


LENGTHS: Final = {
    "6h": Length("6 h", timedelta(hours=6)),
    "24h": Length("24 h", timedelta(days=1)),
    "7d": Length("7 d", timedelta(days=7)),
    "30d": Length("30 d", timedelta(days=30)),
}
"""Lengths of a window, by their names in a URL."""
DEFAULT: Final = "7d"

Which = Literal["named", "all"]
"""Only calls that name the version, or all calls of the tool."""

_VALUES_MS: Final = [histogram.middle_us(n) / 1000 for n in range(histogram.BUCKET_COUNT)]


@dataclass(frozen=True, slots=True)
class Windows:
    """Two ranges of the same length that meet when a version was published."""

    before: TimeRange
    after: TimeRange
    is_short: bool
    """Whether the version is younger than the requested length."""

    @property
    def bounds(self) -> tuple[datetime, ...]:
        """The bounds of the parts of both windows, in order."""
        return (*self.before.bounds, *self.after.bounds[1:])

    @property
    def parts_before(self) -> int:
        """The number of parts in the window before."""
        return len(self.before.bounds) - 1


def windows(at: datetime, length: timedelta, now: datetime, zone: tzinfo) -> Windows | None:
    """The windows around an instant; None until 1 s after it."""
    there = min(length, now - at)
    if there < timedelta(seconds=1):
        return None
    return Windows(
        TimeRange(at - there, at, zone), TimeRange(at, at + there, zone), is_short=there < length
    )


@dataclass(slots=True)
class Calls:
    """Completed calls, and how long they took."""

    calls: int = 0
    failed: int = 0
    violating: int = 0
    latency: Sequence[int] = field(default_factory=lambda: [0] * histogram.BUCKET_COUNT)

    @property
    def p95_ms(self) -> float | None:
        """The p95 in milliseconds, off by at most 5 %; None without calls."""
        p95_us = histogram.percentile(self.latency, SHARE)
        return None if p95_us is None else p95_us / 1000

    def plus(self, other: "Calls", sign: int = 1) -> "Calls":
        """The sum of both; with `sign` -1 the difference."""
        return Calls(
            self.calls + sign * other.calls,
            self.failed + sign * other.failed,
            self.violating + sign * other.violating,
            [a + sign * b for a, b in zip(self.latency, other.latency, strict=True)],
        )


@dataclass(slots=True)
class Counted:
    """Calls by part of the windows and side: version `before` or `after`, `other` or `unnamed`."""

    windows: Windows
    parts: dict[tuple[int, str], Calls] = field(default_factory=dict)

    def add(self, part: int, side: str, calls: Calls, sign: int) -> None:
        """Add calls to a part; with `sign` -1, subtract them."""
        known = self.parts.get((part, side), Calls())
        self.parts[part, side] = known.plus(calls, sign)

    def of_part(self, part: int, *sides: str) -> Calls:
        """The calls of a part of these sides, by default of all."""
        summed = Calls()
        for (place, side), calls in self.parts.items():
            if place == part and (side in sides or not sides):
                summed = summed.plus(calls)
        return summed

    def total(self, *sides: str, is_after: bool) -> Calls:
        """The calls of one window of these sides, by default of all."""
        middle = self.windows.parts_before
        summed = Calls()
        for (part, side), calls in self.parts.items():
            if (part >= middle) is is_after and (side in sides or not sides):
                summed = summed.plus(calls)
        return summed


class Verdict(StrEnum):
    """The result of a test. For every measure, higher is worse."""

    NOT_ENOUGH = "not_enough_data"
    SAME = "no_significant_difference"
    LOWER = "lower"
    HIGHER = "higher"


@dataclass(frozen=True, slots=True)
class Compared:
    """One measure before and after, and whether the two differ."""

    name: Literal["error_rate", "violation_rate", "p95_ms"]
    before: float | None
    after: float | None
    verdict: Verdict
    needs: int
    """The fewest calls on each side for a verdict."""
    test: ShareTest | None = None
    interval: Interval | None = None
    """The interval of the difference in milliseconds, with a confidence of 1 − `ALPHA`."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The calls of both sides, and all measures compared."""

    before: Calls
    after: Calls
    measures: list[Compared]


def effect_of(counted: Counted, which: Which) -> Effect:
    """Compare the calls before and after."""
    sides = (("before",), ("after",)) if which == "named" else ((), ())
    return compare(
        counted.total(*sides[0], is_after=False), counted.total(*sides[1], is_after=True)
    )


def compare(before: Calls, after: Calls) -> Effect:
    """Compare any two sets of calls in all measures."""
    return Effect(
        before,
        after,
        [
            _share("error_rate", before, after, lambda calls: calls.failed),
            _share("violation_rate", before, after, lambda calls: calls.violating),
            _p95(before, after),
        ],
    )


def _share(
    name: Literal["error_rate", "violation_rate"],
    before: Calls,
    after: Calls,
    hits: Callable[[Calls], int],
) -> Compared:
    rate_before, rate_after = (
        hits(side) / side.calls if side.calls else None for side in (before, after)
    )
    if min(before.calls, after.calls) < CALLS_MIN:
        return Compared(name, rate_before, rate_after, Verdict.NOT_ENOUGH, CALLS_MIN)
    test = compare_shares(hits(before), before.calls, hits(after), after.calls)
    verdict = _verdict(test.p < ALPHA, (rate_after or 0) - (rate_before or 0))
    return Compared(name, rate_before, rate_after, verdict, CALLS_MIN, test=test)


def _p95(before: Calls, after: Calls) -> Compared:
    p95 = before.p95_ms, after.p95_ms
    if min(before.calls, after.calls) < PERCENTILE_CALLS_MIN:
        return Compared("p95_ms", *p95, Verdict.NOT_ENOUGH, PERCENTILE_CALLS_MIN)
    interval = compare_percentiles(
        before.latency, after.latency, _VALUES_MS, share=SHARE, alpha=ALPHA
    )
    verdict = _verdict(interval.excludes_zero, interval.low + interval.high)
    return Compared("p95_ms", *p95, verdict, PERCENTILE_CALLS_MIN, interval=interval)


def _verdict(is_significant: bool, difference: float) -> Verdict:
    if not is_significant:
        return Verdict.SAME
    return Verdict.HIGHER if difference > 0 else Verdict.LOWER
