"""When a rule holds, without a database and without a clock."""

from typing import Any

import pytest
from pydantic import ValidationError

from audit.alerts.judging import Burning, Cell, Episode, episodes, values
from audit.alerts.rules import Rule, Severity, WindowCondition
from audit.index.histogram import bucket_of


def condition(**members: Any) -> WindowCondition:
    return WindowCondition.model_validate(
        {"measure": "failed", "window_minutes": 5, "alert": 0} | members
    )


def failing(*minutes: int) -> dict[int, Cell]:
    """One failed call and one that succeeded, in each of these minutes."""
    return {minute: Cell(started=2, completed=2, failed=1) for minute in minutes}


def short(found: list[Episode]) -> list[tuple[int, int | None, str]]:
    return [(each.start, each.end, each.severity.value) for each in found]


def judge(
    of: WindowCondition, cells: dict[int, Cell], first: int, last: int, **more: Any
) -> list[tuple[int, int | None, str]]:
    return short(episodes(of, values(of, cells, first, last), more.pop("at", first), **more))


def test_window_ends_at_the_instant_and_slides() -> None:
    found = values(condition(), failing(100, 103), 100, 109)
    assert [each.value for each in found] == [0, 1, 1, 1, 2, 2, 1, 1, 1, 0]
    # Where the first instant is does not change any value.
    assert values(condition(), failing(100, 103), 104, 109) == found[4:]


def test_it_fires_at_the_first_instant_and_ends_at_the_first_one_after() -> None:
    assert judge(condition(), failing(100), 95, 120) == [(101, 106, "alert")]
    assert judge(condition(), failing(100), 95, 104) == [(101, None, "alert")]
    assert judge(condition(), failing(100, 104, 111), 95, 120) == [
        (101, 110, "alert"),
        (112, 117, "alert"),
    ]


def test_a_warning_becomes_an_alert_in_the_same_episode() -> None:
    two = condition(warning=0, alert=1)
    assert judge(two, failing(100), 95, 120) == [(101, 106, "warning")]
    (found,) = episodes(two, values(two, failing(100, 102), 95, 120), 95)
    assert short([found]) == [(101, 108, "alert")]
    assert (found.value.at, found.value.value) == (103, 2)


def test_for_how_long_counts_from_before_the_first_instant() -> None:
    steady = condition(for_minutes=3)
    assert judge(steady, failing(100), 90, 120) == [(104, 106, "alert")]
    assert judge(condition(for_minutes=5), failing(100), 90, 120) == []
    # At 103 it has held for two minutes: the values before say so.
    assert judge(steady, failing(100), 100, 120, at=103) == [(104, 106, "alert")]


def test_a_rule_that_is_firing_goes_on_without_waiting_again() -> None:
    burning = Burning(Severity.ALERT)
    steady = condition(for_minutes=3)
    assert judge(steady, failing(100), 103, 120, burning=burning) == [(103, 106, "alert")]
    assert judge(steady, {}, 103, 120, burning=burning) == [(103, 103, "alert")]


@pytest.mark.parametrize(
    ("no_data", "expected"),
    [
        ("nothing", [(101, 106, "alert")]),
        ("keeps", [(101, 121, "alert")]),
        ("fires", [(95, 121, "alert"), (126, None, "alert")]),
    ],
)
def test_no_calls_mean_what_the_rule_says(
    no_data: str, expected: list[tuple[int, int | None, str]]
) -> None:
    cells = failing(100) | {120: Cell(started=1, completed=1)}
    share = condition(measure="failed_share", alert=10, no_data=no_data)
    assert judge(share, cells, 95, 130) == expected


def test_shares_are_percent_and_durations_milliseconds() -> None:
    share = values(condition(measure="failed_share"), failing(100), 100, 101)
    assert [each.value for each in share] == [None, 50]
    latency = {bucket_of(1_000_000): 98, bucket_of(9_000_000): 2}
    (slow,) = values(condition(measure="p99"), {100: Cell(latency=latency)}, 101, 101)
    assert slow.value == pytest.approx(9_000, rel=0.06)
    (median,) = values(condition(measure="p50"), {100: Cell(latency=latency)}, 101, 101)
    assert median.value == pytest.approx(1_000, rel=0.06)


def test_compared_with_the_day_before_thresholds_are_changes_in_percent() -> None:
    day = 1440
    grown = condition(measure="calls", compare_with="day_before", alert=50)
    cells = {100: Cell(started=10), 100 + day: Cell(started=14), 104 + day: Cell(started=2)}
    found = values(grown, cells, 101 + day, 105 + day)
    assert [(each.value, each.before) for each in found] == [(14, 10)] * 4 + [(16, 10)]
    assert judge(grown, cells, 101 + day, 110 + day) == [(105 + day, 110 + day, "alert")]
    # From nothing to something is more than any percentage.
    assert judge(grown, {100 + day: Cell(started=1)}, 101 + day, 101 + day)
    assert not judge(grown, {}, 101 + day, 101 + day)


def test_below_fires_when_calls_stop() -> None:
    silent = condition(measure="calls", direction="below", alert=1, window_minutes=5)
    assert judge(silent, failing(*range(100, 110)), 106, 120) == [(115, None, "alert")]


def test_levels_are_summed_up_from_the_beginning() -> None:
    waiting = condition(measure="open", alert=1)
    cells = {100: Cell(level=1), 103: Cell(level=1), 105: Cell(level=-1), 107: Cell(level=-1)}
    assert [each.value for each in values(waiting, cells, 99, 108)] == [
        *(0, 1, 1, 1, 2, 2, 1, 1, 0, 0),
    ]
    assert judge(waiting, cells, 99, 108) == [(103, 105, "alert")]


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"alert": None}, "Enter a threshold"),
        ({"warning": 5, "alert": 1}, "after the warning"),
        ({"window_minutes": 4}, "greater than or equal to 5"),
        ({"window_minutes": 365}, "multiple of 15"),
        ({"window_minutes": 720, "query": "state:error"}, "only tool and version"),
        ({"window_minutes": 720, "measure": "open"}, "no measure of open calls"),
        ({"query": "since:1h"}, "window of its own"),
        ({"query": "args.city:London"}, "Only members who can see payloads"),
        ({"query": "state:open"}, "Open calls"),
        ({"query": "tool:a OR is:overdue"}, "is:overdue"),
        ({"query": "state:refused"}, "did not run"),
        ({"query": 'tool:"a'}, "quot"),
        ({"measure": "money"}, "Input should be"),
        ({"unknown": 1}, "Extra inputs"),
        ({"alert": float("nan")}, "finite"),
    ],
)
def test_a_rule_that_cannot_be_judged_is_refused(members: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError) as refused:
        condition(**members)
    assert why in str(refused.value)


def test_a_rule_survives_its_own_json() -> None:
    watched = condition(query=" tool:search ")
    assert watched.query == "tool:search"
    rule = Rule(name=" search fails ", condition=watched)
    assert rule.name == "search fails"
    assert Rule.model_validate_json(rule.model_dump_json()) == rule
