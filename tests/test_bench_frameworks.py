"""The table of bench/frameworks: what it calls right and what wrong."""

from dataclasses import replace

from bench.frameworks.calls import SeenCall, of_events
from bench.frameworks.judging import COLUMNS, Mark, judge, worse

WEATHER = SeenCall("get_weather", {"city": "London"}, result={"celsius": 22.5}, agent="concierge")
PARIS = replace(WEATHER, args={"city": "Paris"})
LOOKUP = SeenCall("lookup", {"key": "k"}, result="v", parent="helper", agent="inner")
BOOM = SeenCall("boom", {"n": 7}, state="failed", message="boom 7")
MADE = [WEATHER, PARIS, LOOKUP, BOOM]


def signs(*shown: SeenCall, made: list[SeenCall] = MADE) -> dict[str, str]:
    """The signs that are not ●."""
    marks = judge(made, shown)
    assert set(marks) == set(COLUMNS)
    assert all(mark.why for mark in marks.values() if mark.sign in "◐○")
    return {name: mark.sign for name, mark in marks.items() if mark.sign != "●"}


def test_calls_shown_as_they_were_are_right_in_any_order() -> None:
    assert signs(*MADE) == signs(*reversed(MADE)) == {}


def test_each_column_sees_what_is_wrong_and_no_other_does() -> None:
    others = MADE[1:]
    assert signs(replace(WEATHER, args=None), *others) == {"args": "◐"}
    assert signs(replace(WEATHER, result=None), *others) == {"result": "◐"}
    assert signs(replace(WEATHER, parent="helper"), *others) == {"nest": "◐"}
    assert signs(replace(WEATHER, agent=None), *others) == {"context": "◐"}
    assert signs(*others) == {"all": "◐"}
    assert signs(*MADE, WEATHER) == {"once": "○"}
    assert signs(*MADE, SeenCall("(merged tools)")) == {"name": "◐"}
    assert signs(WEATHER, PARIS, LOOKUP, replace(BOOM, state="ok")) == {"error": "○"}
    assert signs(WEATHER, PARIS, LOOKUP, replace(BOOM, message="redacted")) == {"error": "○"}


def test_pair_that_sends_no_tools_is_judged_by_nothing_else() -> None:
    rest = dict.fromkeys(COLUMNS[1:], "–")
    assert signs() == {"all": "○", **rest}


def test_refused_call_may_be_shown_and_need_not() -> None:
    refused = SeenCall("pay", {"n": 1}, "refused")
    assert signs(*MADE, made=[*MADE, refused]) == {}
    assert signs(*MADE, replace(refused, state="failed"), made=[*MADE, refused]) == {}


def test_worse_mark_counts() -> None:
    right, half, wrong = Mark("●"), Mark("◐", "why"), Mark("○", "why")
    assert worse(right, half) == worse(half, right) == half
    assert worse(half, wrong) == wrong
    assert worse(Mark("–"), right) == right


def test_calls_of_events_have_parents_states_and_what_was_refused() -> None:
    start = {"type": "toolExecutionStart", "args": {}, "context": {"agent": "a"}}
    end = {"type": "toolExecutionEnd", "is_error": False, "output": {"data": 1}}
    decision = {"type": "toolCallDecision", "invocation_id": "3", "tool_name": "pay"}
    outer, inner, refused = of_events(
        [
            {**start, "invocation_id": "1", "tool_name": "helper"},
            {**start, "invocation_id": "2", "tool_name": "lookup", "parent_invocation_id": "1"},
            {**end, "invocation_id": "2"},
            {**end, "invocation_id": "1", "call_state": "cancelled", "is_error": True},
            decision,
        ]
    )
    assert (outer.tool, outer.state, outer.agent) == ("helper", "cancelled", "a")
    assert (inner.tool, inner.parent, inner.state, inner.result) == ("lookup", "helper", "ok", 1)
    assert (refused.tool, refused.state) == ("pay", "refused")
