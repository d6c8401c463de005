"""The query language: parsing, errors with their position, completion."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.pages.calls.call_list import with_fields
from audit.pages.calls.completion import complete, last_name
from audit.queries.call_filter import (
    UNPRICED,
    Ago,
    AllOf,
    AnyOf,
    Bounds,
    CallFilter,
    Condition,
    Contains,
    Has,
    Midnight,
    Not,
    PayloadHas,
    Text,
)
from audit.queries.call_query import (
    ANYBODY,
    MAX_LENGTH,
    InvalidQueryError,
    Reader,
    parse,
    parse_pinned,
    quoted,
)
from audit.queries.call_query_grammar import MAX_DEPTH, MAX_TERMS
from audit.queries.call_query_values import MAX_VALUE
from audit.queries.filter_names import FILTER_NAMES, Kind

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
        ("until:2026-11-20", {"until": datetime(2026, 11, 20, tzinfo=UTC)}),
        ("since:yesterday", {"since": Midnight(1)}),
        ("until:Today", {"until": Midnight(0)}),
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
)  # fmt: skip  # one case a line
def test_terms_are_parsed(text: str, wanted: dict[str, Any]) -> None:
    query = parse(text)
    assert query.problems == ()
    assert query.wanted == CallFilter(**wanted)


A, B, C = (Has("tool", Text(name)) for name in "abc")
X = PayloadHas("args", ("x",), Text("1"))
Y = PayloadHas("output", ("rows", None, "id"), Text("7", True))


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("NOT tool:a", [Not(A)]),
        ("not tool:a", [Not(A)]),
        ("NOT NOT tool:a", [AllOf((A,))]),
        ("NOT(tool:a)", [Not(A)]),
        ("tool:a OR tool:b", [AnyOf((A, B))]),
        ("tool:a OR tool:b AND tool:c", [AnyOf((A, AllOf((B, C))))]),
        ("tool:a tool:b OR tool:c", [AnyOf((AllOf((A, B)), C))]),
        ("(tool:a OR tool:b) NOT tool:c", [AnyOf((A, B)), Not(C)]),
        ("NOT (tool:a OR tool:b)", [Not(AnyOf((A, B)))]),
        ("((NOT (tool:a tool:b)))", [Not(AllOf((A, B)))]),
        ("rate limit", [Contains("rate"), Contains("limit")]),
        ('"rate limit"', [Contains("rate limit")]),
        ("limit*", [Contains("limit")]),
        ('"OR" nothing', [Contains("OR"), Contains("nothing")]),
        ("ORacle NOTe", [Contains("ORacle"), Contains("NOTe")]),
        ("f(x) y", [Contains("f(x)"), Contains("y")]),
        ("(f(x) OR y)", [AnyOf((Contains("f(x)"), Contains("y")))]),
    ],
)
def test_operators_are_parsed(text: str, others: list[Condition]) -> None:
    query = parse(text)
    assert query.problems == ()
    assert query.wanted == CallFilter(others=tuple(others))
    assert parse(str(query)).wanted == query.wanted


@pytest.mark.parametrize(
    ("text", "payload"),
    [
        ("args.x:1", [X]),
        ("output.rows[*].id:7*", [Y]),
        ("args.x:1 NOT output.rows[*].id:7*", [X, Not(Y)]),
        ("(args.x:1 OR output.rows[*].id:7*)", [AnyOf((X, Y))]),
        ('args.a[0]:"two words"', [PayloadHas("args", ("a", 0), Text("two words"))]),
        ("output.done:*", [PayloadHas("output", ("done",), Text("", True))]),
    ],
)
def test_payload_terms_require_payload_access(text: str, payload: list[Condition]) -> None:
    query = parse(f"{text} state:ok", ANYBODY)
    assert query.problems == ()
    assert query.wanted == CallFilter(state="ok", payload=tuple(payload), sees_messages=True)
    refused = parse(f"{text} state:ok", Reader(sees_payloads=False))
    assert {each.message.partition(" ")[0] for each in refused.problems} == {"Only"}
    with pytest.raises(InvalidQueryError):
        refused.wanted  # noqa: B018  # reading it raises


def test_dates_use_the_time_zone_of_the_reader() -> None:
    berlin = Reader(ZoneInfo("Europe/Berlin"))
    now = datetime(2026, 11, 23, 23, 30, tzinfo=UTC)  # 00:30 of the 24th in that zone
    day = parse("since:2026-11-22 until:2026-11-23", berlin).wanted
    assert day.from_instant(now) == datetime(2026, 11, 21, 23, tzinfo=UTC)
    assert day.to_instant(now) == datetime(2026, 11, 22, 23, tzinfo=UTC)
    relative = parse("since:yesterday until:today", berlin).wanted
    assert relative.from_instant(now) == datetime(2026, 11, 22, 23, tzinfo=UTC)
    assert relative.to_instant(now) == datetime(2026, 11, 23, 23, tzinfo=UTC)
    with_offset = parse("since:2026-11-22T10:15 until:2026-11-22T10:15Z", berlin).wanted
    assert with_offset.from_instant(now) == datetime(2026, 11, 22, 9, 15, tzinfo=UTC)
    assert with_offset.to_instant(now) == datetime(2026, 11, 22, 10, 15, tzinfo=UTC)
    (problem,) = parse("since:soon", berlin).problems
    assert "Times are in Europe/Berlin" in problem.message


def test_pinned_query_is_independent_of_reader_and_time() -> None:
    berlin = Reader(ZoneInfo("Europe/Berlin"), sees_payloads=True)
    now = datetime(2026, 11, 23, 12, tzinfo=UTC)
    query = parse("tool:a OR tool:b", berlin)
    assert query.pinned(now) == "tool:a OR tool:b"
    query = parse("since:yesterday (tool:a OR x) args.city:London until:1h", berlin)
    assert query.pinned(now) == (
        "since:2026-11-21T23:00:00Z (tool:a OR x) args.city:London until:2026-11-23T11:00:00Z"
    )
    assert query.on_record(now) == (
        "since:2026-11-21T23:00:00Z (tool:a OR x) args.city:… until:2026-11-23T11:00:00Z"
    )
    hidden = parse("NOT args.city:London OR NOT args.city:Paris", berlin).on_record(now)
    assert hidden == "(…)"


def test_query_of_maximum_length_is_pinned_completely() -> None:
    """The pinned query used to be empty, which matches every call."""
    now = datetime(2026, 11, 23, 12, tzinfo=UTC)
    rest = f"(x OR {' '.join('y' * 400 for _ in range(4))}) tool:"
    text = f"since:1h until:1m {rest}"
    query = parse(text + "a" * (MAX_LENGTH - len(text)), Reader(sees_payloads=True))
    assert not query.problems
    pinned = query.pinned(now)
    assert pinned.startswith("since:2026-11-23T11:00:00Z until:2026-11-23T11:59:00Z (x OR y")
    assert pinned == query.on_record(now)
    again = parse_pinned(pinned, Reader(sees_payloads=True)).wanted
    assert again == replace(
        query.wanted, since=query.wanted.from_instant(now), until=query.wanted.to_instant(now)
    )


def test_depth_and_number_of_terms_are_limited() -> None:
    assert parse("(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH).problems == ()
    deep = parse("(" * 900 + "a" + ")" * 900)
    assert [each.message for each in deep.problems] == [
        "Parentheses can be nested at most 10 levels deep."
    ]
    assert parse("a " * MAX_TERMS).problems == ()
    (problem,) = parse("a " * (MAX_TERMS + 1)).problems
    assert problem.message == "A query can have at most 50 terms."
    assert parse("NOT " * 499 + "a").wanted.others == (Not(Contains("a")),)


@pytest.mark.parametrize(
    ("text", "where", "expected"),
    [
        ("tol:search", "tol", "Did you mean tool?"),
        ("xyzzy:1", "xyzzy", "Available filters: tool, version"),
        (":a", "", "filter before the colon is missing"),
        ("tool:", ":", "tool:search"),
        ("tool:*", "*", "value is missing"),
        ("tool:a tool:b", "tool:b", "used twice"),
        ("state:faild", "faild", "Did you mean failed?"),
        ("state:f*", "f*", "* is not supported here"),
        ("duration:2s", "2s", "duration:>2s"),
        ("duration:>2", ">2", "Add a unit: 2ms"),
        ("duration:>2parsecs", ">2parsecs", "Not a duration"),
        ("duration:..", "..", "has no limits"),
        ("duration:2s..1s", "2s..1s", "above its upper limit"),
        ("tokens:>many", ">many", "Not a whole number"),
        ("tokens:-1", "-1", "Not a whole number"),
        ("since:tomorrow", "tomorrow", "today, yesterday, 2026-11-20"),
        ("http://x", "http", "Put a text with a colon in quotes"),
        ("tool:a state!=ok", "state!=ok", "Use a colon: state:error"),
        ("duration>2s", "duration>2s", "To search for this text, put it in quotes"),
        ("code=5", "code=5", "To search for this text, put it in quotes"),
        ("output.celsius:>3", ">3", "> and < are not supported here"),
        ("OR tool:a", "OR", "on both sides"),
        ("tool:a OR", "OR", "on both sides"),
        ("tool:a OR OR tool:b", "OR", "on both sides"),
        ("(tool:a OR) b", "OR", "on both sides"),
        ("tool:a AND", "AND", "on both sides"),
        ("AND tool:a", "AND", "on both sides"),
        ("NOT", "NOT", "after it"),
        ("(NOT)", "NOT", "after it"),
        ("NOT OR a", "NOT", "after it"),
        ("()", "()", "are empty"),
        ("(tool:a", "(", "not closed"),
        ("tool:a) b", ")", "has no opening"),
        ("NOT since:1h", "NOT since:1h", "since: applies to the whole query"),
        ("tool:a OR until:1h", "tool:a OR until:1h", "until: applies to the whole query"),
        ("args:London", "London", "Write the path of the value"),
        ("args.a..b:x", "x", "Write the path of the value"),
        ("args.a[-1]:x", "x", "Write the path of the value"),
        ("args.city:", ":", "value is missing"),
        ("args.city:London OR tool:a", "args.city:London OR tool:a", "cannot be in one OR"),
        ("NOT (state:ok args.city:x)", "NOT (state:ok args.city:x)", "cannot be in one OR"),
        ('""', '""', "is empty"),
        ("*", "*", "is empty"),
        ("since:2026-02-30", "2026-02-30", "does not exist"),
        ("until:2026-11-20T25:00", "2026-11-20T25:00", "does not exist"),
        ("since:0001-01-01T00:00+14:00", "0001-01-01T00:00+14:00", "does not exist"),
        ("since:1999-01-01", "1999-01-01", "between 2000 and 9989"),
        ("until:yesterday since:today", "until:yesterday", "later than since"),
        ("since:1h until:2h", "until:2h", "later than since"),
        ("since:2026-11-20 until:2026-11-20", "until:2026-11-20", "It is exclusive"),
        ('tool:"a b', '"a b', "is not closed"),
        ('tool:"a"b', "b", "Add a space"),
        ("tool:a\x00b", "a\x00b", "character that no call can"),
        ("tool:" + "x" * (MAX_VALUE + 1), "x" * (MAX_VALUE + 1), "at most 512"),
    ],
)
def test_problem_has_a_message_and_a_position(text: str, where: str, expected: str) -> None:
    problem, *more = parse(text, ANYBODY).problems
    assert text[problem.start : problem.end] == where
    assert not more or "OR OR" in text or "NOT OR" in text
    assert expected in problem.message


def test_conditions_can_be_combined() -> None:
    query = parse("is:destructive tool:a is:unapproved is:retry")
    assert query.problems == ()
    assert query.wanted == CallFilter(
        condition="destructive",
        tool=Text("a"),
        others=(Has("condition", "unapproved"), Has("condition", "retry")),
    )
    assert str(query) == query.text
    assert query.value("is") == "destructive"
    assert query.having("is", "orphan") == "is:orphan tool:a is:unapproved is:retry"
    assert query.having("is", "") == "tool:a is:unapproved is:retry"
    assert with_fields(query, {"is": "orphan"}) == "tool:a is:unapproved is:retry is:orphan"


def test_valid_terms_fill_the_form_and_an_invalid_query_is_not_run() -> None:
    query = parse('tool:search nonsense:1 state:error is:late "')
    with pytest.raises(InvalidQueryError, match="Unknown filter “nonsense”"):
        query.wanted  # noqa: B018  # reading it raises
    assert query.readable == CallFilter(tool=Text("search"), state="failed")
    assert str(query) == "tool:search state:error"
    assert [query.text[each.start : each.end] for each in query.problems] == [
        "nonsense",
        "late",
        '"',
    ]


def test_query_length_is_limited() -> None:
    (problem,) = parse("tool:a " * MAX_LENGTH).problems
    assert (problem.start, parse("x" * 10_000).readable) == (MAX_LENGTH, CallFilter())


@given(st.text())
def test_arbitrary_text_never_raises_and_problem_positions_are_valid(text: str) -> None:
    query = parse(text)
    for problem in query.problems:
        assert 0 <= problem.start <= problem.end <= len(text)
        assert problem.message
    for term in query.terms:
        assert text[term.start : term.end] == term.text
    assert parse(str(query)) == replace(parse(str(query)), readable=query.readable, problems=()), (
        "the text of a query must parse to the same query"
    )


_TERMS = st.sampled_from(list(FILTER_NAMES)).flatmap(
    lambda name: st.builds(
        lambda value: f"{name}:{value}",
        st.text(st.sampled_from('01239amsdh.<>=*"\\$ :-TZ+'), max_size=12),
    )
)


_PIECES = st.one_of(_TERMS, st.sampled_from(["OR", "NOT", "AND", "(", ")", "args.x:1", "word"]))


@pytest.mark.slow
@given(st.lists(_PIECES, max_size=12).map(" ".join))
def test_query_like_text_never_raises(text: str) -> None:
    query = parse(text)
    assert all(0 <= p.start <= p.end <= len(text) for p in query.problems)
    assert parse(str(query)).wanted == query.readable
    assert parse(str(query)).problems == ()


@given(st.sampled_from(TEXT_NAMES), SENDABLE, st.booleans())
def test_any_text_can_be_quoted_as_a_value(name: str, value: str, is_prefix: bool) -> None:
    query = parse(f"{name}:{quoted(value, is_prefix=is_prefix)}")
    assert query.problems == ()
    assert getattr(query.wanted, FILTER_NAMES[name].field) == Text(value, is_prefix)


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_number_bounds_are_parsed_exactly(one: int, other: int) -> None:
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
        ("NOT tool:a x", "state", "failed", "NOT tool:a x state:failed"),
        ("tool:a OR tool:b", "since", "1h", "(tool:a OR tool:b) since:1h"),
        ("(tool:a OR tool:b) since:1h", "since", "2h", "(tool:a OR tool:b) since:2h"),
        ("(tool:a x) OR (tool:b y)", "since", "1h", "((tool:a x) OR (tool:b y)) since:1h"),
        ("rubbish:1 tool:a", "since", "1h", "tool:a since:1h"),
    ],
)
def test_having_replaces_one_term(text: str, name: str, value: str, becomes: str) -> None:
    assert parse(text).having(name, value) == becomes


def test_relative_time_is_relative_to_the_given_moment() -> None:
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
        ("NOT to", ["NOT tool:", "NOT tokens:"]),
        ("(to", ["(tool:", "(tokens:"]),
        ("tool:a OR to", ["tool:a OR tool:", "tool:a OR tokens:"]),
        ("state:ok ((tool:f", ["state:ok ((tool:fetch"]),
        ("tool:se", ["tool:search"]),
        ('tool:"se', ['tool:"send mail"']),
        ('tool:"send mail', ['tool:"send mail"']),
        ("state:f", ["state:failed"]),
        ("is:or", ["is:orphan"]),
        ("is:retry i", ["is:retry is:", "is:retry ingestion:"]),
        ("violation:", ["violation:*"]),
        ("since:2", ["since:24h"]),
        ("nothing:", []),
        ("tool:search", []),
    ],
)
def test_completions_match_the_typed_text(text: str, suggested: list[str]) -> None:
    assert [one.query for one in complete(text, KNOWN)] == suggested


def test_empty_query_is_completed_with_names() -> None:
    assert [one.query for one in complete("", {})][:3] == ["tool:", "version:", "state:"]
    assert last_name("tool:a ver") == ""
    assert last_name('tool:"a ver') == "tool"


@given(st.text())
def test_every_completion_extends_the_typed_text(text: str) -> None:
    for one in complete(text, KNOWN):
        assert one.query.startswith(text)
        assert one.query != text


@pytest.mark.parametrize("name", FILTER_NAMES.values(), ids=lambda name: name.name)
def test_every_example_is_a_valid_query(name: Any) -> None:
    query = parse(name.example)
    assert query.problems == ()
    assert getattr(query.wanted, name.field) is not None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("cost:none", UNPRICED),
        ("cost:NONE", UNPRICED),
        ("cost:>0.01", Bounds(low=10**22 + 1)),
        ("cost:<2", Bounds(high=2 * 10**24 - 1)),
        ("cost:0.5..2", Bounds(5 * 10**23, 2 * 10**24)),
        ("cost:0.000000000000000000000001", Bounds(1, 1)),
        ("cost:>=999999999999999", Bounds(low=999_999_999_999_999 * 10**24)),
    ],
)
def test_amounts_are_parsed_exactly(text: str, wanted: Any) -> None:
    assert parse(text).wanted.cost == wanted


@pytest.mark.parametrize(
    "value", ["", "*", "free", "1e3", "-1", "0,5", "1.", ".5", ">none", "2..1"]
)
def test_amounts_that_are_none_are_refused(value: str) -> None:
    (problem,) = parse(f"cost:{value}").problems
    assert problem.message
