"""Two versions' calls held against each other: which windows, which figures, what they say. Pure.

The windows end and begin where the version was published, and are of one length: as long as was
asked for, or as long as the version has been there. What differs is said to differ only if a test
at `ALPHA` says so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Final, Literal

from audit.effect.statistics import Interval, ShareTest, compare_percentiles, compare_shares
from audit.index import histogram
from audit.queries.time_range import TimeRange

ALPHA: Final = 0.01
CALLS_MIN: Final = 30
"""On either side; below nothing is said."""
PERCENTILE_CALLS_MIN: Final = 150
"""Of a p95: of fewer calls the bootstrap finds differences where there are none (docs/adr/0019)."""
SHARE: Final = 0.95

LENGTHS: Final[dict[str, tuple[str, timedelta]]] = {
    "6h": ("6 h", timedelta(hours=6)),
    "24h": ("24 h", timedelta(days=1)),
    "7d": ("7 d", timedelta(days=7)),
    "30d": ("30 d", timedelta(days=30)),
}
"""How long before and after a version was published, by their names in an address."""
DEFAULT: Final = "7d"

Which = Literal["named", "all"]
"""The calls that name the version, or all calls of the tool, whatever they name."""

_VALUES_MS: Final = [histogram.middle_us(n) / 1000 for n in range(histogram.BUCKET_COUNT)]


@dataclass(frozen=True, slots=True)
class Windows:
    """Two stretches of one length that meet where a version was published."""

    before: TimeRange
    after: TimeRange
    is_short: bool
    """Whether the version has not been there for as long as was asked for."""

    @property
    def bounds(self) -> tuple[datetime, ...]:
        """Those of the parts of both, one behind the other."""
        return (*self.before.bounds, *self.after.bounds[1:])

    @property
    def parts_before(self) -> int:
        """How many of the parts lie before."""
        return len(self.before.bounds) - 1


def windows(at: datetime, length: timedelta, now: datetime, zone: tzinfo) -> Windows | None:
    """The windows about an instant; None while it is not past."""
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
        """Milliseconds, off by at most 5 %; None without a call."""
        found = histogram.percentile(self.latency, SHARE)
        return None if found is None else found / 1000

    def plus(self, other: "Calls", sign: int = 1) -> "Calls":
        """Both together, or without the other."""
        return Calls(
            self.calls + sign * other.calls,
            self.failed + sign * other.failed,
            self.violating + sign * other.violating,
            [a + sign * b for a, b in zip(self.latency, other.latency, strict=True)],
        )


@dataclass(slots=True)
class Counted:
    """Calls by part of both windows, and by whose they are: `before`, `after`, …"""

    windows: Windows
    parts: dict[tuple[int, str], Calls] = field(default_factory=dict)

    def add(self, part: int, side: str, calls: Calls, sign: int) -> None:
        """Count calls in, or out again."""
        known = self.parts.get((part, side), Calls())
        self.parts[part, side] = known.plus(calls, sign)

    def of_part(self, part: int, *sides: str) -> Calls:
        """The calls of a part that are these sides', by default all."""
        found = Calls()
        for (place, side), calls in self.parts.items():
            if place == part and (side in sides or not sides):
                found = found.plus(calls)
        return found

    def total(self, *sides: str, is_after: bool) -> Calls:
        """The calls of one window that are these sides', by default all."""
        middle = self.windows.parts_before
        found = Calls()
        for (part, side), calls in self.parts.items():
            if (part >= middle) is is_after and (side in sides or not sides):
                found = found.plus(calls)
        return found


class Verdict(StrEnum):
    """What a test says; more is worse of each measure."""

    NOT_ENOUGH = "not_enough_data"
    SAME = "no_significant_difference"
    LOWER = "lower"
    HIGHER = "higher"


@dataclass(frozen=True, slots=True)
class Compared:
    """One measure before and after, and whether it differs."""

    name: Literal["error_rate", "violation_rate", "p95_ms"]
    before: float | None
    after: float | None
    verdict: Verdict
    needs: int
    """Calls on either side, to say anything."""
    test: ShareTest | None = None
    interval: Interval | None = None
    """Of the difference in milliseconds, with a confidence of 1 − `ALPHA`."""


@dataclass(frozen=True, slots=True)
class Effect:
    """All measures of two sides' calls."""

    before: Calls
    after: Calls
    measures: list[Compared]


def effect_of(counted: Counted, which: Which) -> Effect:
    """What is to be said of the calls before and after."""
    sides = (("before",), ("after",)) if which == "named" else ((), ())
    before = counted.total(*sides[0], is_after=False)
    after = counted.total(*sides[1], is_after=True)
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
