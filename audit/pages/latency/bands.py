"""The buckets of a histogram put together into as many bands as a chart can show.

Pure. A band's limits are whole microseconds, so that a query for its calls finds exactly those
the histogram counted.
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

DOUBLING = 7
"""Buckets after which durations have doubled (2.01 times)."""


@dataclass(frozen=True, slots=True)
class Band:
    """Neighbouring buckets: durations from `low_us` on and below `high_us`, None without end."""

    first: int
    last: int
    low_us: int
    high_us: int | None

    @property
    def label(self) -> str:
        """Where it begins: `135 ms`."""
        return figures.duration(self.low_us) if self.low_us else "0"

    @property
    def name(self) -> str:
        """From and to: `135 ms to 272 ms`."""
        if self.high_us is None:
            return f"{figures.duration(self.low_us)} and more"
        if not self.low_us:
            return f"less than {figures.duration(self.high_us)}"
        return f"{figures.duration(self.low_us)} to {figures.duration(self.high_us)}"

    @property
    def term(self) -> str:
        """The term of a query for its calls."""
        if self.high_us is None:
            return f"duration:>={self.low_us}us"
        return f"duration:{self.low_us}us..{self.high_us - 1}us"

    def count(self, latency: Sequence[int]) -> int:
        """A histogram's calls in it."""
        return sum(latency[self.first : self.last + 1])


def bands(latency: Sequence[int], buckets: int | None = None, *, at_most: int = 48) -> list[Band]:
    """The bands from the fastest calls of a histogram to the slowest, of so many buckets each.

    Without a number of as few as make `at_most` bands. The first bucket, below 1 ms, is a band of
    its own, and bands begin at the same durations whatever was counted.
    """
    used = [bucket for bucket, count in enumerate(latency) if count > 0]
    if not used:
        return []
    if buckets is None:
        buckets = max(1, ceil((used[-1] - used[0] + 1) / at_most))
    edges = [0, *range(1, BUCKET_COUNT, buckets), BUCKET_COUNT]
    found = []
    for first, end in pairwise(edges):
        if end > used[0] and first <= used[-1]:
            high = first_us(end) if end < BUCKET_COUNT else None
            found.append(Band(first, end - 1, first_us(first), high))
    return found


@cache
def first_us(bucket: int) -> int:
    """The shortest duration that belongs to a bucket."""
    if bucket == 0:
        return 0
    duration_us = int(LOWEST_US * exp((bucket - 1) * LOG_GROWTH)) - 1
    while bucket_of(duration_us) < bucket:
        duration_us += 1
    return duration_us
