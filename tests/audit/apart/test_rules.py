"""The rules by which values are named, on plain columns."""

import random
from fractions import Fraction
from math import comb

import pytest

from audit.apart.rules import CALLS_MIN, Alike, Column, chance_of_more, set_apart


def test_the_chance_of_more_is_the_exact_sum() -> None:
    rng = random.Random(1)
    for _ in range(2_000):
        of = rng.randrange(2, 80)
        marked, chosen = rng.randrange(of + 1), rng.randrange(of + 1)
        low, high = max(0, chosen + marked - of), min(chosen, marked)
        hits = rng.randint(low, high)
        ways = (comb(marked, k) * comb(of - marked, chosen - k) for k in range(hits, high + 1))
        exact = float(Fraction(sum(ways), comb(of, chosen)))
        chance = chance_of_more(hits, marked, chosen=chosen, of=of)
        assert chance == pytest.approx(exact, rel=1e-9), (hits, marked, chosen, of)


@pytest.mark.slow
def test_the_chance_of_more_is_exact_far_from_the_mean() -> None:
    hits, marked, chosen, of = 900, 1_000, 30_000, 60_000
    ways = sum(comb(marked, k) * comb(of - marked, chosen - k) for k in range(hits, marked + 1))
    exact = float(Fraction(ways, comb(of, chosen)))
    assert chance_of_more(hits, marked, chosen=chosen, of=of) == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize(
    ("hits", "marked", "chosen", "of"), [(5, 4, 9, 9), (0, 9, 9, 9), (1, 1, 2, 1)]
)
def test_an_impossible_draw_is_an_error(hits: int, marked: int, chosen: int, of: int) -> None:
    with pytest.raises(ValueError, match="no such draw"):
        chance_of_more(hits, marked, chosen=chosen, of=of)


def _column(name: str, *runs: tuple[str | None, int]) -> Column:
    return Column(name, [value for value, calls in runs for _ in range(calls)], is_paired=True)


def test_a_value_is_named_with_its_shares() -> None:
    is_selected = [True] * 50 + [False] * 950
    column = _column("version", ("4", 45), ("3", 5), ("4", 95), ("3", 855))
    verdict = set_apart([column], is_selected)
    (named,) = verdict.differences
    assert named.values == (("version", "4"),)
    assert (named.selected, named.rest) == (45, 95)
    assert (named.share_selected, named.share_rest) == (0.9, 0.1)
    assert named.lift == pytest.approx(9)
    assert named.p == chance_of_more(45, 140, chosen=50, of=1_000)


def test_a_value_that_only_the_selection_has_has_no_lift() -> None:
    column = _column("version", ("4", 50), ("3", 950))
    (named,) = set_apart([column], [True] * 50 + [False] * 950).differences
    assert named.lift is None
    assert named.share_rest == 0


def test_a_difference_that_is_certain_but_small_is_not_named() -> None:
    column = _column("version", ("4", 3_600), ("3", 26_400), ("4", 3_000), ("3", 27_000))
    assert chance_of_more(3_600, 6_600, chosen=30_000, of=60_000) < 1e-12
    assert set_apart([column], [True] * 30_000 + [False] * 30_000).differences == ()


def test_a_pair_of_which_one_value_is_the_cause_is_not_named() -> None:
    rng = random.Random(2)
    calls = [(rng.choice("1234"), rng.choice("abcd")) for _ in range(5_000)]
    is_selected = [rng.random() < (0.5 if version == "4" else 0.05) for version, _ in calls]
    columns = [
        Column("version", [one for one, _ in calls], is_paired=True),
        Column("agent", [one for _, one in calls], is_paired=True),
    ]
    assert [one.values for one in set_apart(columns, is_selected).differences] == [
        (("version", "4"),)
    ]


@pytest.mark.parametrize("selected", [CALLS_MIN - 1, 1_000 - CALLS_MIN + 1])
def test_too_few_calls_are_not_compared(selected: int) -> None:
    column = _column("version", ("4", selected), ("3", 1_000 - selected))
    verdict = set_apart([column], [True] * selected + [False] * (1_000 - selected))
    assert not verdict.is_enough
    assert verdict.differences == ()


def test_a_column_needs_a_value_for_each_call() -> None:
    with pytest.raises(ValueError, match="a value for each call"):
        set_apart([Column("tool", ["a"])], [True, False])


def _clustered(rng: random.Random, traces: int) -> tuple[list[str], list[bool], list[str]]:
    """Calls of traces of eight, each with one agent and one hour."""
    ids, is_selected, hours = [], [], []
    for number in range(traces):
        chosen, hour = rng.random() < 0.3, str(rng.randrange(10))
        ids += [str(number)] * 8
        is_selected += [chosen] * 8
        hours += [hour] * 8
    return ids, is_selected, hours


def test_calls_of_one_trace_count_less_if_they_are_alike() -> None:
    rng, named, named_without = random.Random(3), 0, 0
    for _ in range(200):
        traces, is_selected, hours = _clustered(rng, 150)
        columns = [Column("hour", hours)]
        named += bool(set_apart(columns, is_selected, traces).differences)
        named_without += bool(set_apart(columns, is_selected).differences)
    assert named <= 1
    assert named_without > 50, "the calls of a trace alone would have shown a difference"


def test_the_design_effect_is_that_of_the_traces() -> None:
    rng = random.Random(4)
    traces, is_selected, hours = _clustered(rng, 2_000)
    has_value = [hour == "3" for hour in hours]
    assert Alike(traces, is_selected).effect(has_value) == pytest.approx(8, rel=0.1)
    each_its_own = [str(number) for number in range(len(traces))]
    assert Alike(each_its_own, is_selected).effect(has_value) == pytest.approx(1, rel=0.01)
    by_chance = [rng.random() < 0.3 for _ in is_selected]
    assert Alike(traces, by_chance).effect(has_value) < 1.25


def test_values_of_the_same_calls_are_one_row() -> None:
    is_selected = [True] * 50 + [False] * 950
    version = _column("version", ("4", 45), ("3", 5), ("4", 95), ("3", 855))
    model = _column("model", ("m-4", 45), ("m-3", 5), ("m-4", 95), ("m-3", 855))
    nearly = _column("host", ("a", 44), ("b", 6), ("a", 95), ("b", 855))
    first, second = set_apart([version, model, nearly], is_selected).differences
    assert first.values == (("model", "m-4"),)
    assert first.also == ((("version", "4"),),)
    assert second.values == (("host", "a"),)
    assert second.also == ()
