"""The query language: what is read, what is refused and where, what may come next."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.call_completion import complete, last_name
from audit.call_filter import FILTER_NAMES, Ago, Bounds, CallFilter, Kind, Text
from audit.call_query import MAX_LENGTH, MAX_VALUE, InvalidQueryError, parse, quoted

TEXT_NAMES = [one.name for one in FILTER_NAMES.values() if one.kind is Kind.TEXT]
SENDABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", {}),
        ("tool:search", {"tool": Text("search")}),
        ("tool:sear*", {"tool": Text("sear", True)}),
        ('tool:"two words"', {"tool": Text("two words")}),
        ('tool:"two w"*', {"tool": Text("two w", True)}),
        ('tool:"a*"', {"tool": Text("a*")}),
        (r'tool:"say \"hi\" \\"', {"tool": Text('say "hi" \\')}),
        ("tool:a:b", {"tool": Text("a:b")}),
        ('tool:a"b', {"tool": Text('a"b')}),
        ("state:error", {"state": "failed"}),
        ("state:Failed", {"state": "failed"}),
        ("is:overdue", {"condition": "overdue"}),
        ("violation:*", {"violation": Text("", True)}),
        ("path:$.items[*].name", {"path": Text("$.items[*].name")}),
        ("duration:>2s", {"duration": Bounds(low=2_000_001)}),
        ("duration:>=1.5s", {"duration": Bounds(low=1_500_000)}),
        ("duration:<10ms", {"duration": Bounds(high=9_999)}),
        ("duration:<=2min", {"duration": Bounds(high=120_000_000)}),
        ("duration:1s..2s", {"duration": Bounds(1_000_000, 2_000_000)}),
        ("duration:..2h", {"duration": Bounds(high=7_200_000_000)}),
        ("duration:>999999999999d", {"duration": Bounds(low=2**63 - 1)}),
        ("tokens:>10k", {"tokens": Bounds(low=10_001)}),
        ("tokens:0", {"tokens": Bounds(0, 0)}),
        ("cache:hit", {"cache": "hit"}),
        ("since:24h", {"since": Ago(timedelta(hours=24))}),
        ("since:2026-11-20", {"since": datetime(2026, 11, 20, tzinfo=UTC)}),
        ("until:2026-11-20", {"until": datetime(2026, 11, 21, tzinfo=UTC)}),
        ("until:2026-11-20T10:15", {"until": datetime(2026, 11, 20, 10, 15, tzinfo=UTC)}),
        ("since:2026-11-20T10:15+02:00", {"since": datetime(2026, 11, 20, 8, 15, tzinfo=UTC)}),
        (
            " tool:search  state:error\tduration:>2s violation:WRONG_TYPE run:graph_run_1\n",
            {
                "tool": Text("search"),
                "state": "failed",
                "duration": Bounds(low=2_000_001),
                "violation": Text("WRONG_TYPE"),
                "run": Text("graph_run_1"),
            },
        ),
    ],
)  # fmt: skip  # by line as they belong together
def test_what_is_read(text: str, wanted: dict[str, Any]) -> None:
    query = parse(text)
    assert query.problems == ()
    assert query.wanted == CallFilter(**wanted)


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        ("search", "search", "tool:search"),
        ("tol:search", "tol", "Did you mean tool?"),
        ("xyzzy:1", "xyzzy", "There are: tool, version"),
        (":a", "", "empty name"),
        ("tool:", ":", "tool:search"),
        ("tool:*", "*", "What is missing"),
        ("tool:a tool:b", "tool:b", "given twice"),
        ("state:faild", "faild", "Did you mean failed?"),
        ("state:f*", "f*", "No * here"),
        ("duration:2s", "2s", "duration:>2s"),
        ("duration:>2", ">2", "2 of what?"),
        ("duration:>2parsecs", ">2parsecs", "no length of time"),
        ("duration:..", "..", "From where"),
        ("duration:2s..1s", "2s..1s", "first is the larger"),
        ("tokens:>many", ">many", "no whole number"),
        ("tokens:-1", "-1", "no whole number"),
        ("since:yesterday", "yesterday", "neither how long ago"),
        ("since:2026-02-30", "2026-02-30", "no such day"),
        ("until:2026-11-20T25:00", "2026-11-20T25:00", "no such day or time"),
        ("since:0001-01-01T00:00+14:00", "0001-01-01T00:00+14:00", "no such day or time"),
        ("since:1999-01-01", "1999-01-01", "no call of that year"),
        ('tool:"a b', '"a b', "no end"),
        ('tool:"a"b', "b", "Leave a space"),
        ("tool:a\x00b", "a\x00b", "such a character"),
        ("tool:" + "x" * (MAX_VALUE + 1), "x" * (MAX_VALUE + 1), "at most 512"),
    ],
)
def test_what_is_refused_says_why_and_where(text: str, where: str, says: str) -> None:
    (problem,) = parse(text).problems
    assert text[problem.start : problem.end] == where
    assert says in problem.message


def test_what_can_be_read_fills_the_form_and_nothing_is_searched_by_it() -> None:
    query = parse('tool:search nonsense state:error is:late "')
    with pytest.raises(InvalidQueryError, match="Say what to look in"):
        query.wanted  # noqa: B018
    assert query.readable == CallFilter(tool=Text("search"), state="failed")
    assert str(query) == "tool:search state:error"
    assert [query.text[each.start : each.end] for each in query.problems] == [
        "nonsense",
        "late",
        '"',
    ]


def test_a_query_is_not_endless() -> None:
    (problem,) = parse("tool:a " * MAX_LENGTH).problems
    assert (problem.start, parse("x" * 10_000).readable) == (MAX_LENGTH, CallFilter())


@given(st.text())
def test_nothing_that_is_typed_raises_and_every_problem_lies_within(text: str) -> None:
    query = parse(text)
    for problem in query.problems:
        assert 0 <= problem.start <= problem.end <= len(text)
        assert problem.message
    for term in query.terms:
        assert text[term.start : term.end] == term.text
    assert parse(str(query)) == replace(parse(str(query)), readable=query.readable, problems=()), (
        "what was read is read again"
    )


_TERMS = st.sampled_from(list(FILTER_NAMES)).flatmap(
    lambda name: st.builds(
        lambda value: f"{name}:{value}",
        st.text(st.sampled_from('01239amsdh.<>=*"\\$ :-TZ+'), max_size=12),
    )
)


@given(st.lists(_TERMS, max_size=6).map(" ".join))
def test_nothing_that_looks_like_a_query_raises(text: str) -> None:
    query = parse(text)
    assert all(0 <= p.start <= p.end <= len(text) for p in query.problems)
    assert parse(str(query)).wanted == query.readable
    assert parse(str(query)).problems == ()


@given(st.sampled_from(TEXT_NAMES), SENDABLE, st.booleans())
def test_any_text_can_be_asked_for(name: str, value: str, is_prefix: bool) -> None:
    query = parse(f"{name}:{quoted(value, is_prefix=is_prefix)}")
    assert query.problems == ()
    assert getattr(query.wanted, FILTER_NAMES[name].field) == Text(value, is_prefix)


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_bounds_of_numbers_are_those_written(one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert parse(f"tokens:{low}..{high}").wanted.tokens == Bounds(low, high)
    assert parse(f"duration:{low}us..{high}us").wanted.duration == Bounds(low, high)
    assert parse(f"tokens:>{low}").wanted.tokens == Bounds(low=low + 1)
    assert parse(f"duration:<{high}ms").wanted.duration == Bounds(high=high * 1000 - 1)


@pytest.mark.parametrize(
    ("text", "name", "value", "becomes"),
    [
        ("", "state", "failed", "state:failed"),
        ("tool:a", "state", "failed", "tool:a state:failed"),
        ("state:ok tool:a", "state", "failed", "state:failed tool:a"),
        ("state:ok tool:a", "state", "", "tool:a"),
        ("state:ok", "state", "", ""),
        ("rubbish tool:a", "since", "1h", "tool:a since:1h"),
    ],
)
def test_a_control_changes_one_term(text: str, name: str, value: str, becomes: str) -> None:
    assert parse(text).having(name, value) == becomes


def test_a_relative_time_is_relative_to_the_question() -> None:
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    wanted = parse("since:24h until:30m").wanted
    assert wanted.from_instant(now) == datetime(2026, 11, 20, 12, tzinfo=UTC)
    assert wanted.to_instant(now) == datetime(2026, 11, 21, 11, 30, tzinfo=UTC)
    assert CallFilter().from_instant(now) is None


KNOWN = {"tool": ["search", "send mail", "fetch"]}


@pytest.mark.parametrize(
    ("text", "suggested"),
    [
        ("to", ["tool:", "tokens:"]),
        ("state:error to", ["state:error tool:", "state:error tokens:"]),
        ("tool:a to", ["tool:a tokens:"]),
        ("tool:se", ["tool:search"]),
        ('tool:"se', ['tool:"send mail"']),
        ('tool:"send mail', ['tool:"send mail"']),
        ("state:f", ["state:failed"]),
        ("is:or", ["is:orphan"]),
        ("violation:", ["violation:*"]),
        ("since:2", ["since:24h"]),
        ("nothing:", []),
        ("tool:search", []),
    ],
)
def test_what_may_come_next(text: str, suggested: list[str]) -> None:
    assert [one.query for one in complete(text, KNOWN)] == suggested


def test_at_the_beginning_every_name_is_offered_up_to_a_limit() -> None:
    assert [one.query for one in complete("", {})][:3] == ["tool:", "version:", "state:"]
    assert last_name("tool:a ver") == ""
    assert last_name('tool:"a ver') == "tool"


@given(st.text())
def test_every_suggestion_goes_on_from_what_was_typed(text: str) -> None:
    for one in complete(text, KNOWN):
        assert one.query.startswith(text)
        assert one.query != text


@pytest.mark.parametrize("name", FILTER_NAMES.values(), ids=lambda name: name.name)
def test_every_example_is_a_query(name: Any) -> None:
    query = parse(name.example)
    assert query.problems == ()
    assert getattr(query.wanted, name.field) is not None
