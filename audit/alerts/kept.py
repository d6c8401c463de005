"""Sums by minute that the worker keeps between two evaluations, so that it reads only what changed.

Minutes are read again when the sums that pages have of their quarter of an hour are others than
before. What these sums do not show, such as an agent that only a late event names, is found when
instants are judged again: then all minutes are read. What is kept can be lost at any time; it is
never newer than the sums it is compared with.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from audit.alerts.cells import (
    ToolCells,
    Totals,
    is_shared,
    joined,
    of_tools,
    read_calls,
    read_tools,
    read_totals,
)
from audit.alerts.judging import Cell
from audit.alerts.rules import SHARES_OF_CALLS, Measure, WindowCondition
from audit.events.instants import EPOCH

MINUTES_MAX: Final = 300_000
"""Minutes with calls, of all queries and tenants, that a worker keeps; about 300 bytes each."""
_QUARTER: Final = timedelta(minutes=15)
_QUARTER_MINUTES: Final = 15
_READ_TOGETHER: Final = 8
"""Quarters of an hour that are read at once for rules of all tools, the newest ones first."""
_NO_CALLS: Totals = ()

type Key = tuple[str, bool]
"""A query, and whether its durations are summed or all other measures."""
type _TotalsNow = Mapping[int, Totals]


@dataclass(frozen=True, slots=True)
class Reading:
    """The sums that a rule needs."""

    condition: WindowCondition
    spans: Sequence[tuple[datetime, datetime]]
    is_again: bool
    """Whether all are read, also those that are kept."""


@dataclass(slots=True)
class _Kept:
    """The sums of a query."""

    condition: WindowCondition
    """One of those that have this query."""
    seen: dict[int, Totals] = field(default_factory=dict)
    """By quarter of an hour whose minutes are kept: what the sums of pages were before."""
    cells: dict[int, Cell] = field(default_factory=dict)
    """By minute. Minutes without calls have none."""

    def forget(self, quarters: Iterable[int]) -> None:
        for quarter in quarters:
            self.seen.pop(quarter, None)
            for minute in _minutes(quarter):
                self.cells.pop(minute, None)

    def keep(self, quarters: Iterable[int], cells: Mapping[int, Cell], now: _TotalsNow) -> None:
        for quarter in quarters:
            self.seen[quarter] = now.get(quarter, _NO_CALLS)
            for minute in _minutes(quarter):
                if minute in cells:
                    self.cells[minute] = cells[minute]


class KeptSums:
    """The sums that are kept of one tenant."""

    def __init__(self) -> None:
        self._kept: dict[Key, _Kept] = {}

    @property
    def size(self) -> int:
        """Minutes with calls."""
        return sum(len(each.cells) for each in self._kept.values())

    def read(self, readings: Sequence[Reading], timeout_ms: int) -> list[Mapping[int, Cell] | None]:
        """The sums of each rule by minute; None if they could not be read in time.

        Other sums are not kept any longer. Needs the scope.
        """
        needed: dict[Key, set[int]] = {}
        again: set[Key] = set()
        kept = {}
        for each in readings:
            key = _key(each.condition)
            kept[key] = self._kept.get(key) or _Kept(each.condition)
            needed.setdefault(key, set()).update(_quarters(each.spans))
            if each.is_again:
                again.add(key)
        self._kept = kept
        try:
            now = _totals(set().union(*needed.values()), timeout_ms)
        except TimeoutError:
            self._kept = {}
            return [None for _ in readings]
        stale: dict[Key, set[int]] = {}
        for key, quarters in needed.items():
            one = kept[key]
            changed = {
                quarter
                for quarter in one.seen
                if key in again or one.seen[quarter] != now.get(quarter, _NO_CALLS)
            }
            one.forget(changed | (one.seen.keys() - quarters))
            one.keep((quarters - one.seen.keys()) - now.keys(), {}, now)
            stale[key] = quarters - one.seen.keys()
        for durations in (False, True):
            shared = {
                key: quarters
                for key, quarters in stale.items()
                if quarters and key[1] is durations and is_shared(kept[key].condition)
            }
            self._read_tools(shared, now, timeout_ms, durations=durations)
        for key, quarters in stale.items():
            if quarters and not is_shared(kept[key].condition):
                self._read_calls(kept[key], quarters, now, timeout_ms)
        return [
            one.cells if one.seen.keys() >= _quarters(each.spans) else None
            for each in readings
            for one in (kept[_key(each.condition)],)
        ]

    def _read_tools(
        self, stale: Mapping[Key, set[int]], now: _TotalsNow, timeout_ms: int, *, durations: bool
    ) -> None:
        """Read minutes of all tools for these queries, the newest first, until it takes too long.

        What was read stays, so that the next evaluation goes on.
        """
        ordered = sorted(set().union(*stale.values()), reverse=True)
        for n in range(0, len(ordered), _READ_TOGETHER):
            some = set(ordered[n : n + _READ_TOGETHER])
            tools: ToolCells = {}
            try:
                for since, until in _times(some):
                    for tool, cells in read_tools(
                        since, until, timeout_ms, durations=durations
                    ).items():
                        tools.setdefault(tool, {}).update(cells)
            except TimeoutError:
                return
            for key, quarters in stale.items():
                if read := quarters & some:
                    one = self._kept[key]
                    one.keep(read, of_tools(one.condition, tools), now)

    def _read_calls(
        self, one: _Kept, stale: Collection[int], now: _TotalsNow, timeout_ms: int
    ) -> None:
        cells: dict[int, Cell] = {}
        try:
            for since, until in _times(stale):
                cells |= read_calls(one.condition, since, until, timeout_ms)
        except TimeoutError:
            return
        one.keep(stale, cells, now)


_OF_TENANTS: OrderedDict[UUID, KeptSums] = OrderedDict()


@contextmanager
def kept_sums(tenant_id: UUID) -> Iterator[KeptSums]:
    """What this process keeps of a tenant. Nothing is kept any longer if the use fails.

    The tenants that were judged longest ago lose theirs if it is too much.
    """
    kept = _OF_TENANTS.pop(tenant_id, None) or KeptSums()
    yield kept
    _OF_TENANTS[tenant_id] = kept
    size = sum(each.size for each in _OF_TENANTS.values())
    while size > MINUTES_MAX:
        _, lost = _OF_TENANTS.popitem(last=False)
        size -= lost.size


def is_kept(condition: WindowCondition) -> bool:
    """Whether sums by minute are kept for a rule: not of long windows, open calls and loops, and
    not of costs, as prices and units change without them.
    """
    measure = condition.measure
    return condition.step_minutes == 1 and measure.is_summed and measure is not Measure.COST


def _key(condition: WindowCondition) -> Key:
    return condition.query, condition.measure in SHARES_OF_CALLS


def _minutes(quarter: int) -> range:
    return range(quarter * _QUARTER_MINUTES, (quarter + 1) * _QUARTER_MINUTES)


def _quarters(spans: Iterable[tuple[datetime, datetime]]) -> set[int]:
    """The quarters of an hour that these times touch, counted since 1970."""
    return {
        quarter
        for since, until in spans
        for quarter in range((since - EPOCH) // _QUARTER, -((EPOCH - until) // _QUARTER))
    }


def _times(quarters: Collection[int]) -> list[tuple[datetime, datetime]]:
    return joined((EPOCH + each * _QUARTER, EPOCH + (each + 1) * _QUARTER) for each in quarters)


def _totals(quarters: Collection[int], timeout_ms: int) -> dict[int, Totals]:
    totals: dict[int, Totals] = {}
    for since, until in _times(quarters):
        totals |= read_totals(since, until, timeout_ms)
    return totals
