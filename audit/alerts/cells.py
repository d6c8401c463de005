"""The sums of calls that rules are judged by, read from the index.

Rules with a long window are judged by the quarters of an hour that are stored for pages. For the
others calls are summed up by minute: one read for all rules that only name tools and versions, and
one for each other rule. Nothing is counted at arrival, so a call that arrives late, or twice,
counts once, in the minute in which it started. `audit.alerts.kept` reads only what has changed.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from audit.alerts.judging import Cell
from audit.alerts.rules import SHARES_OF_CALLS, Measure, WindowCondition, is_summed
from audit.events.instants import EPOCH
from audit.index import histogram
from audit.queries.call_conditions import Conditions
from audit.queries.call_filter import Text
from audit.queries.call_walk import walk_parameters
from audit.queries.over_time import FORMULA, day_of
from audit.queries.polling import polling_tools
from audit.queries.price_lists import prices_held
from audit.queries.repetition import LOOP
from audit.sql.run import rows

LOOPED_WITHIN = timedelta(hours=1)
"""Identical calls that are further apart are no loop. It bounds what is read for an instant."""
_NO_PRICES: dict[str, Any] = {
    name: []
    for name in (
        *("list_starts", "price_tools", "price_lists"),
        *("per_call", "per_unit", "unit_path_ids"),
    )
}

type Tool = tuple[str, str]
"""Name and version."""
type Totals = tuple[object, ...]
"""Sums of a quarter of an hour that are only compared."""
type ToolCells = dict[Tool, dict[int, Cell]]


def instant(condition: WindowCondition, at: int) -> datetime:
    """The time of an instant of a rule."""
    return EPOCH + at * condition.step


def instant_before(condition: WindowCondition, at: datetime) -> int:
    """The last instant of a rule that is not after a time."""
    return (at - EPOCH) // condition.step


def spans(condition: WindowCondition, first: int, last: int) -> list[tuple[datetime, datetime]]:
    """The times whose calls decide about the instants from `first` to `last`; apart, in order."""
    since, until = instant(condition, first) - condition.window, instant(condition, last)
    back = timedelta(minutes=condition.compare_with.minutes)
    if until - back >= since:
        return [(since - back, until)]
    return [(since - back, until - back), (since, until)]


def starts(condition: WindowCondition, first: int, last: int) -> set[int]:
    """The steps at which the windows of the instants from `first` to `last` begin and end.

    Steps between two of them are in the same windows, so their sums need not be told apart.
    """
    width = condition.steps(condition.window_minutes)
    back = condition.compare_with.minutes // condition.step_minutes
    return {
        at - before for at in range(first, last + 1) for before in (0, width, back, back + width)
    }


def joined(reads: Iterable[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    """The same times without an overlap, in order."""
    apart: list[tuple[datetime, datetime]] = []
    for since, until in sorted(reads):
        if apart and since <= apart[-1][1]:
            apart[-1] = apart[-1][0], max(apart[-1][1], until)
        else:
            apart.append((since, until))
    return apart


def is_shared(condition: WindowCondition) -> bool:
    """Whether its sums are part of those of all tools and versions."""
    return condition.measure.is_summed and is_summed(condition.filter)


def read_tools(since: datetime, until: datetime, timeout_ms: int, *, durations: bool) -> ToolCells:
    """The sums of a time by tool, version and minute; only durations, or all others. One statement.

    Raises TimeoutError.
    """
    tools: ToolCells = {}
    if durations:
        parameters = _span(since, until) | FORMULA
        for tool, version, at, bucket, calls in rows(
            "alert_tool_durations", parameters, timeout_ms=timeout_ms
        ):
            cell = tools.setdefault((tool, version), {}).setdefault(at, Cell())
            cell.latency[bucket] = calls
        return tools
    for tool, version, at, *sums in rows(
        "alert_tool_cells", _span(since, until), timeout_ms=timeout_ms
    ):
        tools.setdefault((tool, version), {})[at] = _cell(sums)
    return tools


def read_tool_quarters(
    since: datetime, until: datetime, parts: Iterable[int], timeout_ms: int, *, durations: bool
) -> ToolCells:
    """The sums of a time by tool and version, for rules of long windows. One statement.

    `parts` are quarters of an hour: all from one to before the next are one cell. Raises
    TimeoutError.
    """
    tools: ToolCells = {}
    parameters = _span(since, until) | {"starts": sorted(parts), "with_durations": durations}
    for tool, version, at, *sums, number in rows(
        "alert_quarters", parameters, timeout_ms=timeout_ms
    ):
        tools.setdefault((tool, version), {})[at] = _quarter_cell(sums, number)
    return tools


def read_tool_costs(since: datetime, until: datetime, timeout_ms: int) -> ToolCells:
    """What the calls of a time cost, by tool, version and minute. Two statements.

    Raises TimeoutError.
    """
    parameters = _span(since, until) | _prices(since, until)
    return _tool_costs(rows("alert_tool_costs", parameters, timeout_ms=timeout_ms))


def read_quarter_costs(
    since: datetime, until: datetime, parts: Iterable[int], timeout_ms: int
) -> ToolCells:
    """The same by part, as `read_tool_quarters`."""
    parameters = _span(since, until) | _prices(since, until) | {"starts": sorted(parts)}
    return _tool_costs(rows("alert_quarter_costs", parameters, timeout_ms=timeout_ms))


def read_totals(since: datetime, until: datetime, timeout_ms: int) -> dict[int, Totals]:
    """What pages have as the sums of all calls, by quarter of an hour. One statement.

    Raises TimeoutError.
    """
    listed = rows("alert_quarter_totals", _span(since, until), timeout_ms=timeout_ms)
    return {at: tuple(sums) for at, *sums in listed}


def of_tools(condition: WindowCondition, tools: ToolCells) -> dict[int, Cell]:
    """The sums of a rule, from those of all tools."""
    wanted = condition.filter
    matching = [
        cells
        for (name, version), cells in tools.items()
        if _is(wanted.tool, name) and _is(wanted.version, version)
    ]
    if len(matching) == 1:
        return matching[0]
    merged: dict[int, Cell] = {}
    for cells in matching:
        for at, cell in cells.items():
            merged.setdefault(at, Cell()).add(cell)
    return merged


def read_quarters(
    condition: WindowCondition, since: datetime, until: datetime, timeout_ms: int
) -> dict[int, Cell]:
    """The sums by quarter of the calls that match a rule of a long window. One statement.

    Raises TimeoutError.
    """
    if condition.measure is Measure.COST:
        quarters = range(instant_before(condition, since), instant_before(condition, until))
        return of_tools(condition, read_quarter_costs(since, until, quarters, timeout_ms))
    parameters: dict[str, Any] = _span(since, until)
    parameters["with_durations"] = condition.measure in SHARES_OF_CALLS
    for name in ("tool", "version"):
        text: Text | None = getattr(condition.filter, name)
        parameters[name] = text.value if text and not text.is_prefix else None
        parameters[f"{name}_prefix"] = text.value if text and text.is_prefix else None
    listed = rows("alert_quarters_of", parameters, timeout_ms=timeout_ms)
    return {at: _quarter_cell(sums, number) for at, *sums, number in listed}


def read_calls(
    condition: WindowCondition, since: datetime, until: datetime, timeout_ms: int
) -> dict[int, Cell]:
    """The sums by minute of the calls that match a rule. One statement. Raises TimeoutError."""
    wanted = condition.filter
    conditions = Conditions(wanted)
    parameters = walk_parameters(wanted, until) | conditions.parameters | _span(since, until)

    def read(name: str, **more: Any) -> Iterator[tuple[Any, ...]]:
        yield from rows(name, parameters | more, conditions=conditions.text, timeout_ms=timeout_ms)

    if condition.measure.is_level:
        levels = read(
            "alert_levels",
            only_overdue=condition.measure is Measure.OVERDUE,
            window=condition.window,
            window_ms=condition.window // timedelta(milliseconds=1),
        )
        return {at: Cell(level=level) for at, level in levels}
    if condition.measure is Measure.LOOPED:
        earlier = _span(since - LOOPED_WITHIN, until)
        polling = {"polling": polling_tools(), "loop_calls": LOOP, "within": LOOPED_WITHIN}
        looped = read("alert_loops", **earlier, **polling, counted_since=since)
        return {at: Cell(looped=calls) for at, calls in looped}
    if condition.measure is Measure.COST:
        priced = read("alert_costs", **_prices(since, until))
        return {at: Cell(completed=calls, priced=n, cost=cost) for at, calls, n, cost in priced}
    if condition.measure in SHARES_OF_CALLS:
        cells: dict[int, Cell] = {}
        for at, bucket, calls in read("alert_durations", **FORMULA):
            cells.setdefault(at, Cell()).latency[bucket] = calls
        return cells
    return {at: _cell(sums) for at, *sums in read("alert_cells")}


def _span(since: datetime, until: datetime) -> dict[str, Any]:
    last = until - timedelta(microseconds=1)
    return {
        "since": since,
        "until": until,
        "first_day": day_of(since),
        "last_day": day_of(last),
    }


def _prices(since: datetime, until: datetime) -> dict[str, Any]:
    held = prices_held(since, until)
    return _NO_PRICES if held is None else held.parameters()


def _tool_costs(listed: Iterable[Sequence[Any]]) -> ToolCells:
    tools: ToolCells = {}
    for tool, version, at, calls, priced, cost in listed:
        cells = tools.setdefault((tool, version), {})
        cells[at] = Cell(completed=calls, priced=priced, cost=cost)
    return tools


def _cell(sums: Sequence[Any]) -> Cell:
    started, completed, failed, violating, violations, tokens = map(int, sums)
    return Cell(started, completed, failed, violating, violations, tokens)


def _quarter_cell(sums: Sequence[Any], number: str | None) -> Cell:
    cell = _cell(sums)
    if number is not None:
        counts = histogram.from_number(number)
        cell.latency = {bucket: calls for bucket, calls in enumerate(counts) if calls}
    return cell


def _is(wanted: Text | None, value: str) -> bool:
    if wanted is None:
        return True
    if wanted.is_prefix:
        return value != "" and value.startswith(wanted.value)
    return value == wanted.value
