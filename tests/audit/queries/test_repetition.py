"""The cost of repeats, and whether their results differ. Without a database."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from audit.queries.repetition import (
    LOOP,
    InTrace,
    compare,
    loops,
    repeats,
    result_digest,
)

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)

# A call: tool, call id, trace, duration in microseconds, tokens. Calls start one after another.
calls = st.lists(
    st.tuples(
        st.sampled_from("tu"),
        st.sampled_from("abc"),
        st.sampled_from("xy"),
        st.integers(0, 10**9),
        st.integers(0, 10**6),
    ),
    max_size=30,
)
type Call = tuple[str, str, str, int, int]


def in_traces(drawn_calls: list[Call]) -> list[InTrace]:
    groups: dict[tuple[str, str, str], list[tuple[int, Call]]] = {}
    for n, call in enumerate(drawn_calls):
        groups.setdefault(call[:3], []).append((n, call))
    return [
        InTrace(
            *key,
            calls=len(own),
            failed=0,
            cache_hits=0,
            duration_us=sum(call[3] for _, call in own),
            tokens=sum(call[4] for _, call in own),
            first_at=AT + timedelta(seconds=own[0][0]),
            last_at=AT + timedelta(seconds=own[-1][0]),
            first_duration_us=own[0][1][3],
            first_tokens=own[0][1][4],
        )
        for key, own in groups.items()
    ]


@pytest.mark.slow
@given(calls)
def test_all_calls_of_a_loop_but_the_first_are_avoidable(drawn_calls: list[Call]) -> None:
    all_loops = loops(in_traces(drawn_calls))
    for one in all_loops:
        own = [
            call for call in drawn_calls if call[:3] == (one.tool_name, one.call_id, one.trace_id)
        ]
        assert len(own) == one.calls >= LOOP
        assert one.wasted_us == sum(call[3] for call in own[1:])
        assert one.wasted_tokens == sum(call[4] for call in own[1:])
    keys = {call[:3] for call in drawn_calls}
    assert len(all_loops) == sum(
        sum(call[:3] == key for call in drawn_calls) >= LOOP for key in keys
    )
    assert [one.wasted_us for one in all_loops] == sorted(
        (o.wasted_us for o in all_loops), reverse=True
    )


@pytest.mark.slow
@given(calls)
def test_repeats_span_all_traces_and_only_the_first_call_is_not_avoidable(
    drawn_calls: list[Call],
) -> None:
    all_repeats = repeats(in_traces(drawn_calls))
    expected = {}
    for key in {call[:2] for call in drawn_calls}:
        own = [call for call in drawn_calls if call[:2] == key]
        if len(own) > 1:
            expected[key] = (
                len(own),
                len({call[2] for call in own}),
                sum(call[3] for call in own[1:]),
                sum(call[4] for call in own[1:]),
            )
    assert {
        (one.tool_name, one.call_id): (one.calls, one.traces, one.wasted_us, one.wasted_tokens)
        for one in all_repeats
    } == expected
    assert [one.calls for one in all_repeats] == sorted(
        (one.calls for one in all_repeats), reverse=True
    )


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        ([], "unknown"),
        ([b"a"], "unknown"),
        ([None, None, b"a"], "unknown"),
        ([b"a", b"a"], "same"),
        ([b"a", None, b"a"], "same"),
        ([b"a", b"b", b"a"], "different"),
    ],
)
def test_results_are_compared_if_two_are_known(results: list[bytes | None], verdict: str) -> None:
    assert compare(results) == verdict


def end(output: Any) -> bytes:
    return json.dumps({"type": "toolExecutionEnd", "output": output}).encode()


def test_result_digest_covers_only_the_data_of_an_envelope() -> None:
    one = result_digest(end({"status": "ok", "data": {"a": 1, "b": 2}, "meta": {"took_ms": 1}}))
    other = result_digest(end({"meta": {"took_ms": 7}, "status": "ok", "data": {"b": 2, "a": 1}}))
    assert one == other
    assert one is not None
    assert one != result_digest(end({"status": "ok", "data": {"a": 1, "b": 3}, "meta": {}}))
    assert result_digest(end("plain")) == result_digest(end("plain"))
    for nothing in (None, b"", b"\xff", b"[]", end(None), b'{"type": "toolExecutionEnd"}'):
        assert result_digest(nothing) is None


@pytest.mark.slow
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
@example(b"1")
@example(b'"\\ud800"')
@example(b"[" * 5_000)
def test_result_digest_compares_any_stored_bytes(raw: bytes) -> None:
    for event in (raw, b'{"output": ' + raw + b"}"):
        digest = result_digest(event)
        assert digest is None or len(digest) == 32
        verdict = "unknown" if digest is None else "same"
        assert compare([digest, result_digest(event)]) == verdict
