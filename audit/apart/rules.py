"""Which values are more frequent in a selection of calls than in the rest. Pure.

Each value of each property is tested, and each pair of values of two properties, by the exact
hypergeometric test. A pair counts only if neither of its two values explains it alone: it is tested
among the calls that have the first value, and among those that have the second, and the larger
probability is the pair's. The false discovery rate over all tests is held at `Q` by Benjamini and
Hochberg, so that thousands of tests do not find something in nothing.
Source: Y. Benjamini, Y. Hochberg, Controlling the False Discovery Rate (1995).

Calls of one trace are often alike, so that ten of them say as much as one. How much less they say
is measured for each value that is named, and its counts are divided by it (the design effect).
Source: J. Rao, A. Scott, A Simple Method for the Analysis of Clustered Binary Data (1992).

Which values are tested depends only on how frequent they are in both sides together. This keeps
the test exact: it holds for each number of calls with the value.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, compress
from math import exp, lgamma, log, sqrt
from operator import add, and_
from typing import Any, Final

Q: Final = 0.001
"""The expected share of false values among those that are named."""
CALLS_MIN: Final = 10
"""The fewest calls on each side; with fewer nothing is tested."""
VALUE_CALLS_MIN: Final = 5
"""The fewest calls of the selection with a value that is named; of both sides, with one that is
tested."""
LIFT_MIN: Final = 1.1
ODDS_MIN: Final = 1.5
"""A value that is named has at least this ratio of odds: with many calls the test also finds
differences that do not matter, such as 11 % beside 10 %."""
PAIRED_VALUES: Final = 30
"""Of each property, the most frequent values that are tested in pairs."""
NAMED_MAX: Final = 40
"""The most values that are named: for each of them the traces are counted."""
_SURE: Final = 3.29
"""The ratio of odds is greater than the limit by which values are ranked, with 99.9 %."""
_NEGLIGIBLE: Final = 1e-17


@dataclass(frozen=True, slots=True)
class Column:
    """A property's value of each call; None: the call has none that could be named."""

    name: str
    values: Sequence[str | None]
    is_paired: bool = False
    """Whether its values are also tested together with those of other properties."""
    share_min: float = 0.0
    """The least share of the selection with a value that is named."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One value, or two together, that are more frequent in the selection."""

    values: tuple[tuple[str, str], ...]
    """Property and value."""
    selected: int
    """Calls of the selection with the value; `rest`: of the others."""
    rest: int
    sides: tuple[int, int]
    """All calls of the selection, and all others."""
    among: tuple[tuple[int, int], ...]
    """The calls of both sides among which it was tested: all, or those with one of two values."""
    p: float
    sure_odds: float
    """The lower limit of the ratio of odds."""
    also: tuple[tuple[tuple[str, str], ...], ...] = ()
    """Other values of exactly the same calls: the data cannot tell which one is the cause."""

    @property
    def share_selected(self) -> float:
        """The share of the selection that has the value."""
        return self.selected / self.sides[0]

    @property
    def share_rest(self) -> float:
        """The share of the other calls that has the value."""
        return self.rest / self.sides[1]

    @property
    def lift(self) -> float | None:
        """How many times as frequent the value is in the selection; None: the rest has none."""
        return self.share_selected / self.share_rest if self.rest else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What sets a selection apart, the strongest first."""

    selected: int
    rest: int
    tested: int
    """How many values and pairs were tested."""
    differences: tuple[Difference, ...]

    @property
    def is_enough(self) -> bool:
        """Whether both sides have enough calls for a test."""
        return min(self.selected, self.rest) >= CALLS_MIN


def set_apart(
    columns: Sequence[Column],
    is_selected: Sequence[bool],
    traces: Sequence[str | None] | None = None,
) -> Verdict:
    """Compare the selected calls with the others, in all properties.

    `traces` are the traces of the calls; None: calls say the same whatever their trace. Raises
    ValueError if a column has not one value for each call.
    """
    if any(len(column.values) != len(is_selected) for column in columns):
        raise ValueError("a column needs a value for each call")
    selected = sum(is_selected)
    rest = len(is_selected) - selected
    if min(selected, rest) < CALLS_MIN:
        return Verdict(selected, rest, 0, ())
    sides = selected, rest
    counted = {column.name: _counted(column.values, is_selected) for column in columns}
    least = {column.name: column.share_min for column in columns}
    large, tested = list[Difference](), 0
    for name, table in counted.items():
        for value, (inside, outside) in table.items():
            tested += 1
            one = _compared(((name, value),), (inside, outside), sides, [sides])
            large += [one] if one and one.share_selected >= least[name] else []
    coded = [
        _coded(column, counted[column.name], is_selected) for column in columns if column.is_paired
    ]
    for first, second in combinations((one for one in coded if len(one.values) > 1), 2):
        for a, b, cell in _counted_pairs(first, second):
            tested += 1
            among = [counted[first.name][a], counted[second.name][b]]
            one = _compared(((first.name, a), (second.name, b)), cell, sides, among)
            large += [one] if one else []
    named = _ranked(_discoveries(large, tested))[:NAMED_MAX]
    by_name = {column.name: column.values for column in columns}
    having = {one.values: _having(one, by_name) for one in named}
    if traces is not None:
        alike = Alike(traces, is_selected)
        weighed = [_weighed(one, alike.effect(having[one.values])) for one in named]
        named = _ranked(_discoveries(weighed, tested))
    return Verdict(selected, rest, tested, tuple(_folded(named, having)))


def _ranked(differences: Iterable[Difference]) -> list[Difference]:
    return sorted(differences, key=lambda one: (-one.sure_odds, one.values))


class Alike:
    """How much the calls of one trace are alike."""

    def __init__(self, traces: Sequence[str | None], is_selected: Sequence[bool]) -> None:
        self._traces, self._is_selected = traces, is_selected
        self._sides = sum(is_selected), len(is_selected) - sum(is_selected)
        self._calls, self._selected = Counter(traces), Counter(compress(traces, is_selected))
        pairs = [(calls, self._selected[trace]) for trace, calls in self._calls.items()]
        self._squares = (
            sum(calls * calls for calls, _ in pairs),
            sum(calls * selected for calls, selected in pairs),
            sum(selected * selected for _, selected in pairs),
        )

    def effect(self, has_value: Sequence[bool] | bytes) -> float:
        """The design effect of the difference between calls with a value and without it: 1 or more.

        It is the variance of the difference of both shares of selected calls if traces are
        independent, divided by the variance if calls are. For a trace, the deviations of its calls
        from their share are summed up; those of traces without the value from sums of squares.
        """
        calls = Counter(compress(self._traces, has_value))
        both = map(and_, has_value, self._is_selected)
        selected = Counter(compress(self._traces, both))
        n1, s1 = calls.total(), selected.total()
        n0, s0 = sum(self._sides) - n1, self._sides[0] - s1
        if not n0 or not n1:
            return 1.0
        p1, p0 = (s1 + 0.5) / (n1 + 1), (s0 + 0.5) / (n0 + 1)
        of_calls, mixed, of_selected = self._squares
        without = of_selected - 2 * p0 * mixed + p0 * p0 * of_calls
        with_value = 0.0
        for trace, n in calls.items():
            all_n, all_s, s = self._calls[trace], self._selected[trace], selected[trace]
            without -= (all_s - p0 * all_n) ** 2
            rest = (all_s - s) - p0 * (all_n - n)
            with_value += ((s - p1 * n) / n1 - rest / n0) ** 2
        clustered = with_value + max(0.0, without) / (n0 * n0)
        single = _variance(s1, n1, p1) + _variance(s0, n0, p0)
        return max(1.0, clustered / single)


def _variance(selected: int, calls: int, share: float) -> float:
    """The variance of a share if calls are independent, as deviations from `share`."""
    deviations = selected * (1 - share) ** 2 + (calls - selected) * share**2
    return deviations / (calls * calls)


def _weighed(one: Difference, effect: float) -> Difference:
    """The difference with counts divided by the design effect in its probability and odds."""
    return _difference(one.values, (one.selected, one.rest), one.sides, one.among, effect)


def _having(one: Difference, values: Mapping[str, Sequence[str | None]]) -> bytes:
    """For each call 1 if it has the values, else 0."""
    columns = [bytes(each == value for each in values[name]) for name, value in one.values]
    return columns[0] if len(columns) == 1 else bytes(map(and_, *columns))


def _folded(named: Sequence[Difference], having: Mapping[Any, bytes]) -> list[Difference]:
    """The differences; those that the same calls have are in the first one's `also`."""
    folded: dict[bytes, Difference] = {}
    for one in named:
        calls = having[one.values]
        first = folded.get(calls)
        folded[calls] = one if first is None else replace(first, also=(*first.also, one.values))
    return list(folded.values())


def _counted(
    values: Sequence[str | None], is_selected: Sequence[bool]
) -> dict[str, tuple[int, int]]:
    """How many calls of each side have a value, of values that are frequent enough."""
    total, inside = Counter(values), Counter(compress(values, is_selected))
    return {
        value: (inside[value], calls - inside[value])
        for value, calls in total.items()
        if value is not None and calls >= VALUE_CALLS_MIN
    }


@dataclass(frozen=True, slots=True)
class _Coded:
    """A column with its most frequent values as numbers, from 1 on; 0 is any other or none.

    Adding a number of `low` and one of `high` gives a pair and its side in one step: counting pairs
    of texts took twice as long.
    """

    name: str
    values: tuple[str | None, ...]
    low: Sequence[int]
    """Twice the number, plus 1 for selected calls."""
    high: Sequence[int]


_SHIFT: Final = 2 * (PAIRED_VALUES + 1)


def _coded(
    column: Column, counted: dict[str, tuple[int, int]], is_selected: Sequence[bool]
) -> _Coded:
    ranked = sorted(counted, key=lambda value: (-sum(counted[value]), value))[:PAIRED_VALUES]
    if sum(map(sum, counted.values())) == len(is_selected) and len(ranked) == 1:
        ranked = []  # all calls have this value: a pair with it is the other value alone
    numbers: dict[str | None, int] = {value: n for n, value in enumerate(ranked, 1)}
    codes = [numbers.get(value, 0) for value in column.values]
    low = [2 * code + chosen for code, chosen in zip(codes, is_selected, strict=True)]
    return _Coded(column.name, (None, *ranked), low, [_SHIFT * code for code in codes])


def _counted_pairs(first: _Coded, second: _Coded) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """The pairs of values that are frequent enough, and how many calls of each side have them."""
    calls = Counter(map(add, first.high, second.low))
    for code in sorted({code // 2 for code in calls}):
        a, b = (
            values[n]
            for values, n in zip(
                (first.values, second.values), divmod(code, _SHIFT // 2), strict=True
            )
        )
        cell = calls[2 * code + 1], calls[2 * code]
        if a is not None and b is not None and sum(cell) >= VALUE_CALLS_MIN:
            yield a, b, cell


def _compared(
    values: tuple[tuple[str, str], ...],
    cell: tuple[int, int],
    sides: tuple[int, int],
    among: Sequence[tuple[int, int]],
) -> Difference | None:
    """A value as a difference, if it is large enough to be named.

    It is tested within each of the groups `among`, whose calls of both sides are given.
    """
    inside, outside = cell
    if inside < VALUE_CALLS_MIN or inside / sides[0] < LIFT_MIN * outside / sides[1]:
        return None
    if any(_odds(cell, group)[0] < ODDS_MIN for group in (sides, *among)):
        return None
    return _difference(values, cell, sides, among)


def _difference(
    values: tuple[tuple[str, str], ...],
    cell: tuple[int, int],
    sides: tuple[int, int],
    among: Sequence[tuple[int, int]],
    effect: float = 1.0,
) -> Difference:
    odds, error = _odds(cell, sides)
    return Difference(
        values=values,
        selected=cell[0],
        rest=cell[1],
        sides=sides,
        among=tuple(among),
        p=max(_chance(cell, group, effect) for group in among),
        sure_odds=exp(log(odds) - _SURE * error * sqrt(effect)),
    )


def _chance(cell: tuple[int, int], group: tuple[int, int], effect: float) -> float:
    """The probability of so many selected calls with a value, all counts divided by `effect`."""
    hits, others = (round(count / effect) for count in cell)
    without = [round((calls - count) / effect) for count, calls in zip(cell, group, strict=True)]
    return chance_of_more(
        hits, hits + others, chosen=hits + without[0], of=hits + others + sum(without)
    )


def _odds(cell: tuple[int, int], group: tuple[int, int]) -> tuple[float, float]:
    """The ratio of odds of a value within a group, and the standard error of its logarithm.

    A half is added to each count (Haldane), as one of them may be 0.
    """
    a, c = (count + 0.5 for count in cell)
    b, d = (all_ - count + 0.5 for count, all_ in zip(cell, group, strict=True))
    return a * d / (b * c), sqrt(1 / a + 1 / b + 1 / c + 1 / d)


def _discoveries(large: Sequence[Difference], tested: int) -> Iterator[Difference]:
    """Those that Benjamini and Hochberg's rule names, of `tested` tests.

    Tests that are not in `large` count as not significant, which can only lower the limit.
    """
    ranked = sorted(large, key=lambda one: one.p)
    last = max(
        (rank for rank, one in enumerate(ranked, 1) if one.p <= Q * rank / tested), default=0
    )
    yield from ranked[:last]


def chance_of_more(hits: int, marked: int, *, chosen: int, of: int) -> float:
    """The probability of `hits` or more marked ones among `chosen` ones, drawn by chance.

    `marked` is the number of marked ones among all (`of`). This is the upper tail of the
    hypergeometric distribution: Fisher's exact test, one-sided. Raises ValueError if there can be
    no such draw.
    """
    low, high = max(0, chosen + marked - of), min(chosen, marked)
    if not (0 <= marked <= of and 0 <= chosen <= of and low <= hits <= high):
        raise ValueError("no such draw")
    if hits == low:
        return 1.0
    if hits * of < chosen * marked:  # below the mean: the other tail has fewer terms
        return 1 - _tail(hits - 1, low, marked, chosen, of, step=-1)
    return min(1.0, _tail(hits, high, marked, chosen, of, step=1))


def _tail(hits: int, end: int, marked: int, chosen: int, of: int, *, step: int) -> float:
    """The probability of all draws from `hits` on, away from the mean, to `end`."""
    first = exp(
        _log_choose(marked, hits)
        + _log_choose(of - marked, chosen - hits)
        - _log_choose(of, chosen)
    )
    total = term = 1.0
    for k in range(hits, end, step):
        if step > 0:
            term *= (marked - k) * (chosen - k) / ((k + 1) * (of - marked - chosen + k + 1))
        else:
            term *= k * (of - marked - chosen + k) / ((marked - k + 1) * (chosen - k + 1))
        total += term
        if term < total * _NEGLIGIBLE:
            break
    return first * total


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
