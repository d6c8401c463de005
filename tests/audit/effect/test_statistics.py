"""The statistical tests against published answers, exact sums, and real resamples."""

import math
import random
from fractions import Fraction

import pytest

from audit.effect.statistics import compare_percentiles, compare_shares, upper_tail
from audit.index import histogram


def test_z_test_matches_a_published_result() -> None:
    # The example of proportions_ztest in the documentation of statsmodels: 0.159.
    comparison = compare_shares(5, 83, 12, 99)
    assert (comparison.by, round(comparison.p, 3)) == ("z", 0.159)
    assert comparison.z is not None
    assert comparison.z > 0, "the second share is larger"


@pytest.mark.parametrize(
    ("table", "p"),
    [
        ((3, 4, 1, 4), 0.485714),  # Fisher's lady tasting tea, two-sided (R, ?fisher.test)
        ((6, 8, 1, 5), 0.102564),  # scipy.stats.fisher_exact, its documentation
        ((8, 10, 1, 6), 0.034965),  # the example of earlier versions
    ],
)
def test_fisher_test_matches_published_results(table: tuple[int, int, int, int], p: float) -> None:
    comparison = compare_shares(*table)
    assert (comparison.by, round(comparison.p, 6)) == ("fisher", p)
    hits, calls, hits_after, calls_after = table
    for other in (
        (hits_after, calls_after, hits, calls),
        (calls - hits, calls, calls_after - hits_after, calls_after),
    ):
        assert compare_shares(*other).p == pytest.approx(p, abs=1e-6)


@pytest.mark.parametrize("seed", range(200))
def test_probability_is_symmetric_and_within_bounds(seed: int) -> None:
    rng = random.Random(seed)
    calls, after = (rng.randint(1, rng.choice((9, 300, 30_000))) for _ in range(2))
    hits, hits_after = (round(n * rng.random() ** rng.choice((1, 6))) for n in (calls, after))
    comparison = compare_shares(hits, calls, hits_after, after)
    assert 0 <= comparison.p <= 1
    assert compare_shares(hits, calls, hits, calls).p == pytest.approx(1)
    assert compare_shares(hits_after, after, hits, calls).p == pytest.approx(comparison.p, abs=1e-7)


def test_invalid_shares_are_rejected() -> None:
    for table in ((0, 0, 1, 2), (1, 2, 0, 0), (3, 2, 1, 2), (-1, 2, 1, 2)):
        with pytest.raises(ValueError, match="more hits than calls"):
            compare_shares(*table)


@pytest.mark.parametrize("n", [1, 30, 199])
@pytest.mark.parametrize("p", [0.01, 0.5, 0.93, 0.95, 0.999])
def test_binomial_tail_equals_the_exact_sum(n: int, p: float) -> None:
    exact = Fraction(p)
    for k in {1, n // 2 + 1, math.ceil(0.95 * n), n}:
        ways = (math.comb(n, i) * exact**i * (1 - exact) ** (n - i) for i in range(k, n + 1))
        assert upper_tail(n, p, k) == pytest.approx(float(sum(ways)), rel=1e-9, abs=1e-12)
    assert upper_tail(n, p, 0) == 1
    assert upper_tail(n, p, n + 1) == 0


def test_binomial_tail_of_large_counts_approximates_the_normal_tail() -> None:
    n, p = 10_000_000, 0.95
    for deviations in (-3, -1, 0, 1, 3):
        k = round(n * p + deviations * math.sqrt(n * p * (1 - p)))
        normal = math.erfc((k - 0.5 - n * p) / math.sqrt(2 * n * p * (1 - p))) / 2
        assert upper_tail(n, p, k) == pytest.approx(normal, abs=2e-4)


@pytest.mark.slow
def test_percentile_interval_agrees_with_resampling() -> None:
    rng = random.Random(7)
    samples = [[int(math.exp(rng.gauss(mean, 0.6))) for _ in range(300)] for mean in (12.0, 12.35)]
    values = [float(n) for n in range(histogram.BUCKET_COUNT)]

    def resampled(sample: list[int]) -> float:
        counts = histogram.histogram(rng.choices(sample, k=len(sample)))
        percentile = histogram.percentile(counts, 0.95)
        return float(histogram.bucket_of(int(percentile or 0)))

    drawn = sorted(resampled(samples[1]) - resampled(samples[0]) for _ in range(4_000))
    counts = [histogram.histogram(sample) for sample in samples]
    for alpha in (0.01, 0.1, 0.5):
        interval = compare_percentiles(counts[0], counts[1], values, share=0.95, alpha=alpha)
        for value, place in ((interval.low, alpha / 2), (interval.high, 1 - alpha / 2)):
            below = sum(each < value for each in drawn) / len(drawn)
            up_to = sum(each <= value for each in drawn) / len(drawn)
            assert below - 0.02 <= place <= up_to + 0.02


def test_percentile_difference_is_detected_and_not_invented() -> None:
    values = [float(n) for n in range(128)]
    alike = [0] * 128
    alike[40], alike[60] = 900, 100
    interval = compare_percentiles(alike, alike, values, share=0.95, alpha=0.01)
    assert (interval.low, interval.high, interval.excludes_zero) == (0, 0, False)
    slower = [0] * 128
    slower[40], slower[70] = 900, 100
    interval = compare_percentiles(alike, slower, values, share=0.95, alpha=0.01)
    assert (interval.low, interval.high, interval.excludes_zero) == (10, 10, True)
    assert compare_percentiles(slower, alike, values, share=0.95, alpha=0.01).high == -10
    with pytest.raises(ValueError, match="at least one call"):
        compare_percentiles([0], [1], values, share=0.95, alpha=0.01)


@pytest.mark.slow
def test_equal_distributions_rarely_differ_significantly() -> None:
    values = [histogram.middle_us(n) for n in range(histogram.BUCKET_COUNT)]
    significant = 0
    for seed in range(300):
        rng = random.Random(seed)
        sides = [
            histogram.histogram(int(math.exp(rng.gauss(12, 1))) for _ in range(n))
            for n in (150, 600)
        ]
        interval = compare_percentiles(sides[0], sides[1], values, share=0.95, alpha=0.01)
        significant += interval.excludes_zero
    assert significant <= 9, "3 are expected of 300; the generator's seeds are fixed"
