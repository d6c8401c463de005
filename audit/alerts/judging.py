"""When a rule holds: from sums of calls to values, from values to episodes. Pure.

Time is counted in steps of the rule since 1970: instant n ends step n - 1. The value at an instant
is of the window that ends there, so of the calls that started in the steps before it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from audit.alerts.rules import SHARES_OF_CALLS, Measure, NoData, Severity, WindowCondition
from audit.index import histogram

_NOTHING = Decimal(0)


@dataclass(slots=True)
class Cell:
    """What the calls add that started in one step."""

    started: int = 0
    completed: int = 0
    failed: int = 0
    violating: int = 0
    violations: int = 0
    tokens: int = 0
    looped: int = 0
    """Calls that are at least the third identical one of their trace."""
    level: int = 0
    """By how many calls more than at the instant before are open or overdue at this instant."""
    latency: dict[int, int] = field(default_factory=dict)
    """Completed calls by bucket of their durations."""
    priced: int = 0
    """Completed calls with a price."""
    cost: Decimal = _NOTHING
    """What these cost."""

    def add(self, other: "Cell", sign: int = 1) -> None:
        """Add the sums of another one, or subtract them."""
        self.started += sign * other.started
        self.completed += sign * other.completed
        self.failed += sign * other.failed
        self.violating += sign * other.violating
        self.violations += sign * other.violations
        self.tokens += sign * other.tokens
        self.looped += sign * other.looped
        self.level += sign * other.level
        for bucket, calls in other.latency.items():
            self.latency[bucket] = self.latency.get(bucket, 0) + sign * calls
        if other.priced:
            self.priced += sign * other.priced
            self.cost += sign * other.cost

    def value(self, measure: Measure) -> float | None:
        """The measure of these calls; None if there are no calls of which it could be."""
        match measure:
            case Measure.CALLS:
                return self.started
            case Measure.FAILED:
                return self.failed
            case Measure.VIOLATIONS:
                return self.violations
            case Measure.TOKENS:
                return self.tokens
            case Measure.LOOPED:
                return self.looped
            case Measure.OPEN | Measure.OVERDUE:
                return self.level
            case Measure.COST:
                return None if self.completed and not self.priced else float(self.cost)
            case Measure.FAILED_SHARE:
                return 100 * self.failed / self.completed if self.completed else None
            case Measure.VIOLATING_SHARE:
                return 100 * self.violating / self.completed if self.completed else None
        buckets = [0] * histogram.BUCKET_COUNT
        for bucket, calls in self.latency.items():
            buckets[bucket] = calls
        duration_us = histogram.percentile(buckets, SHARES_OF_CALLS[measure])
        return None if duration_us is None else duration_us / 1000


type Cells = Mapping[int, Cell]
"""Cells by their step."""


@dataclass(frozen=True, slots=True)
class Value:
    """The measure at an instant, and what it is compared with, if the rule compares."""

    at: int
    value: float | None
    before: float | None = None
    unpriced: int = 0
    """Calls without a price, which are in no cost."""


@dataclass(slots=True)
class Episode:
    """A time during which a rule fires, in instants."""

    start: int
    severity: Severity
    """The worst so far."""
    value: Value
    """At the start, or when it became worse."""
    end: int | None = None
    """The first instant at which it holds no longer; None: it still holds."""


@dataclass(frozen=True, slots=True)
class Burning:
    """That a rule fires already at the first instant, and how grave it is."""

    severity: Severity


def values(condition: WindowCondition, cells: Cells, first: int, last: int) -> list[Value]:
    """The measure at all instants from `first` to `last`, both included.

    `cells` must have all steps of the windows, and of the windows that they are compared with.
    """
    now = _slide(condition, cells, first, last)
    back = condition.compare_with.minutes // condition.step_minutes
    if not back:
        return [Value(at, value, None, unpriced) for at, (value, unpriced) in enumerate(now, first)]
    before = _slide(condition, cells, first - back, last - back)
    return [
        Value(first + n, value, earlier, unpriced)
        for n, ((value, unpriced), (earlier, _)) in enumerate(zip(now, before, strict=True))
    ]


def _slide(
    condition: WindowCondition, cells: Cells, first: int, last: int
) -> list[tuple[float | None, int]]:
    """The measure at each instant, and of how many calls a cost does not tell."""
    measure, width = condition.measure, condition.steps(condition.window_minutes)
    window = Cell()
    if measure.is_level:  # a call leaves the window by itself: see `audit.alerts.cells`
        for at, cell in cells.items():
            if at < first:
                window.add(cell)
    else:
        for at in range(first - width, first - 1):
            if at in cells:
                window.add(cells[at])
    listed: list[tuple[float | None, int]] = []
    value: tuple[float | None, int] = None, 0
    is_changed = True
    for at in range(first, last + 1):
        entering = cells.get(at if measure.is_level else at - 1)
        if entering is not None:
            window.add(entering)
            is_changed = True
        if is_changed:
            unpriced = window.completed - window.priced if measure is Measure.COST else 0
            value, is_changed = (window.value(measure), unpriced), False
        listed.append(value)
        leaving = None if measure.is_level else cells.get(at - width)
        if leaving is not None:
            window.add(leaving, -1)
            is_changed = True
    return listed


def reached(condition: WindowCondition, value: Value) -> Severity | NoData | None:
    """The threshold that a value is beyond, or what it means that there is no value."""
    if value.value is None:
        return condition.no_data
    if not condition.compare_with.minutes:
        return condition.reached(value.value)
    if value.before is None:
        return condition.no_data
    return condition.reached(change(value.value, value.before))


def change(value: float, before: float) -> float:
    """The change in percent; infinite if there was nothing before."""
    if before:
        return 100 * (value / before - 1)
    return float("inf") if value else 0.0


def episodes(
    condition: WindowCondition,
    judged: Sequence[Value],
    first: int,
    burning: Burning | None = None,
) -> list[Episode]:
    """The episodes from the instant `first` on, in order.

    The values before `first` say for how long the condition has held at `first`. With `burning`,
    the first episode is the one that was firing then.
    """
    wait = condition.steps(condition.for_minutes)
    listed: list[Episode] = []
    current: Episode | None = None
    level: Severity | None = burning.severity if burning else None
    held_since: dict[Severity, int] = {}
    for value in judged:
        answer = reached(condition, value)
        match answer:
            case NoData.NOTHING:
                level = None
            case NoData.FIRES:
                level = Severity.WARNING if condition.alert is None else Severity.ALERT
            case NoData.KEEPS:
                pass
            case _:
                level = answer
        _note(held_since, level, value.at)
        if value.at < first:
            continue
        if burning is not None and current is None and not listed:
            current = Episode(value.at, burning.severity, value)
            listed.append(current)
        if level is None:
            if current is not None:
                current.end = value.at
                current = None
            burning = None
            continue
        firing = _worst(each for each, since in held_since.items() if value.at - since >= wait)
        if firing is None:
            continue
        if current is None:
            current = Episode(value.at, firing, value)
            listed.append(current)
        elif firing is Severity.ALERT and current.severity is Severity.WARNING:
            current.severity, current.value = firing, value
    return listed


def _note(held_since: dict[Severity, int], level: Severity | None, at: int) -> None:
    """Note since when at least this severity has held."""
    if level is None:
        held_since.clear()
        return
    held_since.setdefault(Severity.WARNING, at)
    if level is Severity.ALERT:
        held_since.setdefault(Severity.ALERT, at)
    else:
        held_since.pop(Severity.ALERT, None)


def _worst(severities: Iterable[Severity]) -> Severity | None:
    listed = set(severities)
    if not listed:
        return None
    return Severity.ALERT if Severity.ALERT in listed else Severity.WARNING
