"""Histograms: the accuracy of percentiles, and stored histograms add up."""

import math

from hypothesis import given
from hypothesis import strategies as st

from audit.index import histogram
from audit.index.histogram import BUCKET_COUNT, LOWEST_US, MAX_RELATIVE_ERROR

MEASURABLE_US = st.integers(LOWEST_US, 297_000_000)
BUCKETS = st.integers(0, BUCKET_COUNT - 1)
COUNTS = st.dictionaries(BUCKETS, st.integers(1, 10**9), min_size=1, max_size=BUCKET_COUNT)


def dense(counts: dict[int, int]) -> list[int]:
    return [counts.get(bucket, 0) for bucket in range(BUCKET_COUNT)]


@given(st.lists(MEASURABLE_US, min_size=1, max_size=60), st.sampled_from([0.5, 0.9, 0.95, 0.99, 1]))
def test_percentile_error_is_within_the_stated_bound(durations: list[int], share: float) -> None:
    exact = sorted(durations)[max(math.ceil(share * len(durations)), 1) - 1]
    estimated = histogram.percentile(histogram.histogram(durations), share)
    assert estimated is not None
    assert abs(estimated - exact) <= exact * (MAX_RELATIVE_ERROR + 1e-9)


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_longer_call_is_never_in_a_lower_bucket(one: int, other: int) -> None:
    shorter, longer = sorted((one, other))
    assert histogram.bucket_of(shorter) <= histogram.bucket_of(longer) < BUCKET_COUNT


def test_no_calls_have_no_percentile() -> None:
    assert histogram.percentile([0] * BUCKET_COUNT, 0.5) is None


@given(COUNTS)
def test_histogram_number_round_trips(counts: dict[int, int]) -> None:
    number = int(histogram.to_number(counts))
    assert histogram.from_number(str(number)) == dense(counts)


@given(COUNTS, COUNTS)
def test_histogram_numbers_add_up_like_histograms(
    one: dict[int, int], other: dict[int, int]
) -> None:
    total = int(histogram.to_number(one)) + int(histogram.to_number(other))
    assert histogram.from_number(str(total)) == histogram.merge([dense(one), dense(other)])


@given(COUNTS, st.data())
def test_withdrawn_call_leaves_its_bucket(counts: dict[int, int], data: st.DataObject) -> None:
    """A call whose end changes moves to another bucket: one count of -1 and one of +1."""
    left, entered = data.draw(st.sampled_from(sorted(counts))), data.draw(BUCKETS)
    change = {left: -1} | ({entered: 1} if entered != left else {left: 0})
    after = dict(counts)
    for bucket, by in change.items():
        after[bucket] = after.get(bucket, 0) + by
    total = int(histogram.to_number(counts)) + int(histogram.to_number(change))
    assert histogram.from_number(str(total)) == dense(after)
