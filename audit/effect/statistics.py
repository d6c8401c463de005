"""Tests whether two shares or two percentiles differ, correct for few calls too. Pure.

Shares are compared by the two-proportion z-test with a pooled variance. It does not hold if fewer
than `EXPECTED_MIN` calls are expected in one of its four cells; then Fisher's exact test is used.
Both are two-sided.

Percentiles are compared by the bootstrap. The k-th smallest call of a resample of n calls is in one
of the first buckets if k or more of its calls are. The share of such resamples is a binomial tail.
So the result is computed exactly and is the same every time, while drawing a million resamples
would only approximate it.
Source: B. Efron, The Jackknife, the Bootstrap and Other Resampling Plans (1982), 10.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, erfc, exp, inf, lgamma, log, log1p, sqrt
from typing import Final, Literal

EXPECTED_MIN: Final = 5
_NEAR: Final = 1 + 1e-7
"""Probabilities within this factor count as equal: sums of logarithms are not exact."""
_EPSILON: Final = 1e-14
_TINY: Final = 1e-300


@dataclass(frozen=True, slots=True)
class ShareTest:
    """The probability `p` of a difference at least as large if nothing has changed."""

    p: float
    by: Literal["z", "fisher"]
    z: float | None = None
    """Positive if the second share is larger; None for Fisher's test."""


def compare_shares(hits: int, calls: int, hits_after: int, calls_after: int) -> ShareTest:
    """Test whether two shares of calls differ. Raises ValueError if a side has no calls."""
    if not (0 <= hits <= calls and 0 <= hits_after <= calls_after and calls and calls_after):
        raise ValueError("more hits than calls")
    pooled = (hits + hits_after) / (calls + calls_after)
    if min(pooled, 1 - pooled) * min(calls, calls_after) < EXPECTED_MIN:
        return ShareTest(_fisher(hits, calls, hits_after, calls_after), "fisher")
    error = sqrt(pooled * (1 - pooled) * (1 / calls + 1 / calls_after))
    z = (hits_after / calls_after - hits / calls) / error
    return ShareTest(erfc(abs(z) / sqrt(2)), "z", z)


def _fisher(hits: int, calls: int, hits_after: int, calls_after: int) -> float:
    """The total probability of all tables with these margins at most as likely as this one."""
    # Count the rarer outcome on the smaller side: the fewest tables, and symmetric results.
    total_hits = hits + hits_after
    if 2 * total_hits > calls + calls_after:
        hits, hits_after = calls - hits, calls_after - hits_after
        total_hits = hits + hits_after
    if calls > calls_after:
        hits, calls, calls_after = hits_after, calls_after, calls

    def table(hits: int) -> float:
        ways = _log_choose(calls, hits) + _log_choose(calls_after, total_hits - hits)
        return exp(ways - _log_choose(calls + calls_after, total_hits))

    limit = table(hits) * _NEAR
    possible = range(max(0, total_hits - calls_after), min(calls, total_hits) + 1)
    return min(1.0, sum(each for each in map(table, possible) if each <= limit))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


@dataclass(frozen=True, slots=True)
class Interval:
    """The confidence interval of a difference."""

    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the difference is significant at that confidence."""
        return self.low > 0 or self.high < 0


def compare_percentiles(
    before: Sequence[int],
    after: Sequence[int],
    values: Sequence[float],
    *,
    share: float,
    alpha: float,
) -> Interval:
    """The bootstrap interval of a percentile's difference, after minus before.

    Both sides are counts by bucket; `values` has the value of each bucket, ascending. The interval
    is that of the percentile bootstrap: `alpha / 2` of all pairs of resamples are below it, and
    `alpha / 2` above. Raises ValueError if a side has no calls.
    """
    sides = [_resampled(counts, share) for counts in (before, after)]
    differences = sorted(
        (values[second] - values[first], chance * other)
        for first, chance in sides[0]
        for second, other in sides[1]
    )
    below, low, high = 0.0, inf, differences[-1][0]
    for difference, chance in differences:
        below += chance
        if low == inf and below >= alpha / 2:
            low = difference
        if below >= 1 - alpha / 2:
            high = difference
            break
    return Interval(low, high)


def _resampled(counts: Sequence[int], share: float) -> list[tuple[int, float]]:
    """The buckets that may hold a resample's percentile, each with its probability."""
    calls = sum(counts)
    if not calls:
        raise ValueError("a percentile needs at least one call")
    rank = max(1, ceil(share * calls))
    probabilities, before = [], 0.0
    for bucket, below in enumerate(accumulate(counts)):
        if not counts[bucket]:
            continue
        within = upper_tail(calls, below / calls, rank)
        if within > before:
            probabilities.append((bucket, within - before))
        before = within
    return probabilities


def upper_tail(n: int, p: float, k: int) -> float:
    """The probability of k or more successes in n trials with probability p."""
    if k <= 0 or p >= 1:
        return 1.0
    if k > n or p <= 0:
        return 0.0
    return _incomplete_beta(k, n - k + 1, p)


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function. Source: DLMF 8.17.22, by Lentz's method."""
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    if x > (a + 1) / (a + b + 2):  # there, the other tail's fraction converges fast
        return 1 - front * _fraction(b, a, 1 - x) / b
    return front * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    fraction, m = d, 0
    while True:
        m += 1
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            fraction *= c * d
        if abs(c * d - 1) < _EPSILON:
            return fraction


def _not_zero(number: float) -> float:
    return number if abs(number) > _TINY else _TINY
