"""Latency histograms: 128 log-scaled buckets, their merging and percentiles.

Pure. Between 1 ms and 298 s a percentile is off by at most 5 % of its value. Faster calls
share bucket 0, slower ones the last bucket; there the results are 0.5 ms and "298 s or more".

A stored histogram is one decimal number with twelve digits for each bucket. So PostgreSQL's own
`+` and `sum()` merge histograms, 25 times as fast as with arrays (docs/adr/0010).
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import exp, log

BUCKET_COUNT = 128
LOWEST_US = 1_000
MAX_RELATIVE_ERROR = 0.05
GROWTH = (1 + MAX_RELATIVE_ERROR) / (1 - MAX_RELATIVE_ERROR)
"""Each bucket's upper bound divided by its lower one. The middle is then off by 5 % at both."""

DIGITS = 12
"""Digits of each bucket in a stored number. They can count 10¹² calls."""

LOG_GROWTH = log(GROWTH)
_LAST = BUCKET_COUNT - 1
_NONE = "0" * DIGITS
_PLACES = tuple(10 ** (DIGITS * bucket) for bucket in range(BUCKET_COUNT))


def bucket_of(duration_us: int) -> int:
    """The bucket of a duration in microseconds."""
    if duration_us < LOWEST_US:
        return 0
    return min(1 + int(log(duration_us / LOWEST_US) / LOG_GROWTH), _LAST)


def histogram(durations_us: Iterable[int]) -> list[int]:
    """The histogram of these durations."""
    buckets = [0] * BUCKET_COUNT
    for duration_us in durations_us:
        buckets[bucket_of(duration_us)] += 1
    return buckets


def merge(histograms: Iterable[Sequence[int]]) -> list[int]:
    """The sum of these histograms; an empty histogram if there are none."""
    merged = [0] * BUCKET_COUNT
    for buckets in histograms:
        merged = [a + b for a, b in zip(merged, buckets, strict=True)]
    return merged


def to_number(counts: Mapping[int, int]) -> str:
    """The stored number of a histogram with these counts by bucket. Counts may be negative."""
    if not counts:
        return "0"
    if min(counts.values()) < 0:
        return str(sum(count * _PLACES[bucket] for bucket, count in counts.items()))
    parts: list[str] = []
    above = max(counts) + 1
    for bucket in sorted(counts, reverse=True):  # str() of 1,500 digits takes ten times as long
        parts += ("0" * (DIGITS * (above - bucket - 1)), f"{counts[bucket]:0{DIGITS}d}")
        above = bucket
    return "".join(parts) + "0" * (DIGITS * above)


def from_number(number: str) -> list[int]:
    """The histogram of a stored number, which must not be negative."""
    number = number.zfill(-(-len(number) // DIGITS) * DIGITS)
    counts = [
        0 if (digits := number[at - DIGITS : at]) == _NONE else int(digits)
        for at in range(len(number), 0, -DIGITS)
    ]
    return counts + [0] * (BUCKET_COUNT - len(counts))


def percentile(buckets: Sequence[int], share: float) -> float | None:
    """The duration in microseconds that `share` (0 to 1) of the calls do not exceed.

    None if there are no calls.
    """
    seen = list(accumulate(buckets))
    if not seen or not seen[-1]:
        return None
    return middle_us(bisect_left(seen, max(1, share * seen[-1])))


def middle_us(bucket: int) -> float:
    """The duration that represents a bucket, in microseconds."""
    if bucket == 0:
        return LOWEST_US / 2
    lower = LOWEST_US * exp((bucket - 1) * LOG_GROWTH)
    # The harmonic mean: its relative distance to both bounds is the same.
    return lower if bucket == _LAST else 2 * lower * GROWTH / (GROWTH + 1)
