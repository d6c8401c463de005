"""The parts of the latency page without a database: bands, retries, members of end events."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.events.end_meta import (
    Ended,
    Route,
    Routed,
    summarize,
)
from audit.index.histogram import BUCKET_COUNT, bucket_of, histogram
from audit.pages.latency.bands import DOUBLING, bands, first_us
from audit.queries.call_query import parse
from audit.queries.retries import (
    Attempt,
    Refusal,
    Wait,
    waits,
)

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
durations = st.integers(0, 3_600_000_000)


# bands of a histogram


@pytest.mark.slow
@given(st.lists(durations, min_size=1, max_size=50), st.sampled_from([None, 1, DOUBLING]))
def test_bands_cover_each_call_once_and_match_their_query(
    durations_us: list[int], buckets: int | None
) -> None:
    latency = histogram(durations_us)
    all_bands = bands(latency, buckets)
    assert sum(band.count(latency) for band in all_bands) == len(durations_us)
    assert all(one.high_us == other.low_us for one, other in pairwise(all_bands))
    assert buckets is not None or len(all_bands) <= 50
    for band in all_bands:
        query = parse(band.term)
        assert query.problems == ()
        limits = query.wanted.duration
        assert limits is not None
        assert band.count(latency) == sum(
            (limits.low or 0) <= us <= (us if limits.high is None else limits.high)
            for us in durations_us
        )


def test_no_calls_yield_no_bands() -> None:
    assert bands([0] * BUCKET_COUNT) == []


def test_bucket_starts_at_its_shortest_duration() -> None:
    for bucket in range(1, BUCKET_COUNT):
        assert bucket_of(first_us(bucket)) == bucket == bucket_of(first_us(bucket) - 1) + 1


# whether the delay before a retry was respected


def refusal(**members: Any) -> Refusal:
    given: dict[str, Any] = {"started_on": AT.date(), "invocation_id": UUID(int=1)}
    given |= {"tool_name": "t"}
    given |= {"trace_id": "a", "call_id": "c", "attempt": 1, "started_at": AT}
    given |= {"ended_at": AT, "retry_after_ms": 500, "error_type": "RATE_LIMIT"}
    return Refusal(**(given | members))


def attempt(after_ms: float = 600, **members: Any) -> Attempt:
    given: dict[str, Any] = {"started_on": AT.date(), "invocation_id": UUID(int=2)}
    given |= {"tool_name": "t"}
    given |= {"trace_id": "a", "call_id": "c", "attempt": 1}
    given |= {"started_at": AT + timedelta(milliseconds=after_ms)}
    return Attempt(**(given | members))


@pytest.mark.parametrize(
    ("later", "verdict"),
    [
        ([], "none"),
        ([attempt(500)], "waited"),
        ([attempt(499.999)], "early"),
        ([attempt(100, call_id="other")], "none"),
        ([attempt(100, call_id="other", attempt=2)], "early"),
        ([attempt(100, call_id="other", attempt=3)], "none"),
        ([attempt(100, trace_id="b")], "none"),
        ([attempt(100, tool_name="u")], "none"),
        ([attempt(-1)], "none"),  # it ran in parallel with the failed one
        ([attempt(100, tool_name="u"), attempt(700), attempt(800)], "waited"),
        ([attempt(0, invocation_id=UUID(int=1))], "none"),  # itself
    ],
)
def test_next_attempt_decides_the_verdict(later: list[Attempt], verdict: str) -> None:
    (wait,) = waits([refusal()], later)
    assert wait.verdict == verdict


attempts = st.builds(
    attempt,
    st.integers(-2000, 2000),
    invocation_id=st.uuids(),
    trace_id=st.sampled_from("ab"),
    tool_name=st.sampled_from("tu"),
    call_id=st.sampled_from("cd"),
    attempt=st.integers(1, 3),
)


@given(st.lists(attempts, max_size=12), st.integers(0, 2**63 - 1) | st.integers(0, 2000))
def test_verdict_uses_the_first_possible_attempt(later: list[Attempt], retry_after_ms: int) -> None:
    later.sort(key=lambda one: one.started_at)
    one = refusal(retry_after_ms=retry_after_ms)
    (wait,) = waits([one], later)
    could_be = [
        each
        for each in later
        if (each.trace_id, each.tool_name) == ("a", "t")
        and each.started_at >= one.ended_at
        and (each.call_id == "c" or each.attempt == 2)
    ]
    assert wait == Wait(one, could_be[0] if could_be else None)
    if could_be:
        passed = (could_be[0].started_at - AT) // timedelta(milliseconds=1)
        assert wait.verdict == ("waited" if passed >= retry_after_ms else "early")
    else:
        assert wait.verdict == "none"


def test_each_retry_after_is_judged_separately() -> None:
    again = refusal(invocation_id=UUID(int=2), attempt=2, ended_at=AT + timedelta(seconds=1))
    third = attempt(1100, attempt=3, invocation_id=UUID(int=3))
    judged = waits([refusal(), again], [attempt(600), third])
    assert [one.verdict for one in judged] == ["waited", "early"]


# metadata of end events


def ended(meta: object, **members: Any) -> Ended:
    raw = json.dumps({"type": "toolExecutionEnd", "output": {"meta": meta}}).encode()
    given: dict[str, Any] = {"tool_name": "t", "duration_us": 1000, "tokens": 5, "raw": raw}
    return Ended(**(given | members))


def test_routing_and_sources_are_summed() -> None:
    summary = summarize(
        [
            ended({"routing": {"profile": "fast", "space": "s", "index": 3, "b": [1], "c": None}}),
            ended({"routing": {"profile": "fast", "space": "s", "index": 3, "b": [2], "c": None}}),
            ended({"routing": {"profile": True}, "source_counts": {"laws": 3, "pages": 0}}),
            ended({"source_counts": {"laws": 4, "odd": "x", "yes": True}}),
            ended({}, raw=None),
        ]
    )
    assert (summary.calls, summary.erased) == (5, 1)
    assert summary.routes == {
        Route("t", "fast", "s", "b …, index 3"): Routed([1000, 1000], 10),
        Route("t", "true", "", ""): Routed([1000], 5),
    }
    assert {key: (one.calls, one.results) for key, one in summary.sources.items()} == {
        ("t", "laws"): (2, 7),
        ("t", "pages"): (1, 0),
    }
    assert summary.sources["t", "laws"].mean == 3.5


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_arbitrary_end_values_are_accepted_or_ignored(value: Any) -> None:
    raw = json.dumps({"output": value}).encode()
    ends = [
        ended(value),
        ended({"routing": value, "source_counts": value}),
        *(Ended("t", 1, 1, each) for each in (raw, json.dumps(value).encode(), b"\xff", b"")),
    ]
    assert summarize(ends).calls == 6


@given(st.lists(durations, min_size=1, max_size=40), st.sampled_from([0.5, 0.95, 1.0]))
def test_percentiles_of_few_calls_are_exact(durations_us: list[int], share: float) -> None:
    ms = Routed(durations_us).duration_ms(share)
    assert sum(us / 1000 <= ms for us in durations_us) >= share * len(durations_us)
    assert sum(us / 1000 < ms for us in durations_us) < share * len(durations_us)
