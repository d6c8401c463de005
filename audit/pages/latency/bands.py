"""Groups the buckets of a histogram into as many bands as a chart can show.

Pure. A band's limits are whole microseconds, so that a query for its calls returns exactly the
calls that the histogram counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import ceil, exp

from audit.index.histogram import (
    BUCKET_COUNT,
    LOG_GROWTH,
    LOWEST_US,
    bucket_of,
)
from audit.show import figures
from audit.show.figures import NBSP

_POWERS = tuple(10**n for n in range(3, 10))
"""Microseconds from 1 ms to 1,000 s."""
DOUBLING = 7
"""Number of buckets over which durations double (2.01 times)."""


@dataclass(frozen=True, slots=True)
class Band:
    """Adjacent buckets: durations from `low_us` to below `high_us`. None: no upper limit."""

    first: int
    last: int
    low_us: int
    high_us: int | None

    @property
    def label(self) -> str:
        """The lower limit: `135 ms`."""
        return figures.duration(self.low_us) if self.low_us else "0"

    @property
    def name(self) -> str:
        """Both limits: `135 ms to 272 ms`."""
        if self.high_us is None:
            return f"{figures.duration(self.low_us)} or more"
        if not self.low_us:
            return f"less than {figures.duration(self.high_us)}"
        return f"{figures.duration(self.low_us)} to {figures.duration(self.high_us)}"

    @property
    def term(self) -> str:
        """The query term for its calls."""
        if self.high_us is None:
            return f"duration:>={self.low_us}us"
        return f"duration:{self.low_us}us..{self.high_us - 1}us"

    @property
    def power_of_ten(self) -> str:
        """`1 ms`, `10 ms`, …: the power of ten that is in the band; '' if none is."""
        high = self.high_us if self.high_us is not None else 10 * _POWERS[-1]
        inside = (us for us in _POWERS if self.low_us <= us < high)
        return next(
            (f"{us // 1000}{NBSP}ms" if us < 10**6 else f"{us // 10**6:,}{NBSP}s" for us in inside),
            "",
        )

    def count(self, latency: Sequence[int]) -> int:
        """Return the number of a histogram's calls in the band."""
        return sum(latency[self.first : self.last + 1])


def bands(latency: Sequence[int], buckets: int | None = None, *, at_most: int = 48) -> list[Band]:
    """Return the bands from a histogram's fastest calls to its slowest, `buckets` buckets each.

    By default, `buckets` is the least number that needs at most `at_most` bands. The first bucket,
    below 1 ms, is a band of its own. The bands' edges do not depend on the counts, only on
    `buckets`.
    """
    used = [bucket for bucket, count in enumerate(latency) if count > 0]
    if not used:
        return []
    if buckets is None:
        buckets = max(1, ceil((used[-1] - used[0] + 1) / at_most))
    edges = [0, *range(1, BUCKET_COUNT, buckets), BUCKET_COUNT]
    result = []
    for first, end in pairwise(edges):
        if end > used[0] and first <= used[-1]:
            high = first_us(end) if end < BUCKET_COUNT else None
            result.append(Band(first, end - 1, first_us(first), high))
    return result


@cache
def first_us(bucket: int) -> int:
    """Return the shortest duration in a bucket, in microseconds."""
    if bucket == 0:
        return 0
    duration_us = int(LOWEST_US * exp((bucket - 1) * LOG_GROWTH)) - 1
    while bucket_of(duration_us) < bucket:
        duration_us += 1
    return duration_us
