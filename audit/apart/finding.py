"""Finds what sets the calls of a query apart from others: of a range, or of a second query."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from audit.apart.rules import Column, Difference, Verdict, set_apart
from audit.queries.apart import Compared, read_compared
from audit.queries.call_filter import CallFilter, Text
from audit.queries.call_query import Query
from audit.queries.properties import (
    DURATIONS_US,
    NONE,
    PROPERTIES,
    TIME,
    Property,
    free_properties,
)
from audit.queries.time_range import MAX_LENGTH, TimeRange
from audit.show.charts import range_query, time_slots
from audit.show.figures import duration

_BY_NAME: Final = {each.name: each for each in (*PROPERTIES, TIME)}
_ID_SHARE_MIN: Final = 0.05
"""The least share of the selection in a trace or run that is named: its calls have so much in
common that most traces of an agent's calls would be."""
_UNRUN: Final = (
    "Calls that did not run cannot be compared: they have no version, model or duration."
)
_PAYLOADS: Final = (
    "args. and output. terms cannot be used here: payloads are not in the index. Leave them out."
)
_NO_TOOL: Final = (
    "Arguments are compared among the calls of one tool. Add tool: and what sets its calls apart."
)
_NO_TIME: Final = "The time of a query is empty: it ends before the range begins, or the reverse."
_TOO_LONG: Final = f"Both times together cannot be longer than {MAX_LENGTH.days} days."


class CannotCompareError(ValueError):
    """The query is about something that this comparison does not read. The message says what."""


@dataclass(frozen=True, slots=True)
class Named:
    """A difference with the names of its properties, and the query of its calls."""

    parts: tuple[tuple[str, str], ...]
    """Title of the property, and the value as text."""
    also: tuple[tuple[tuple[str, str], ...], ...]
    """The same for other values that exactly the same calls have."""
    difference: Difference
    query: str
    """The calls of the selection that have the value."""
    query_rest: str
    """All calls of the range that have the value."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What sets a selection apart, and how much was read for it."""

    verdict: Verdict
    named: list[Named]
    read: Compared
    properties: tuple[Property, ...]
    """What was compared."""
    query: str
    """The query of the selection, with its time."""
    query_rest: str
    """The query of the others, with theirs; it may also find the selection."""
    times: tuple[tuple[datetime, datetime], tuple[datetime, datetime]]
    """From and to of both."""

    @property
    def calls_read(self) -> int:
        """The calls of both sides."""
        return self.verdict.selected + self.verdict.rest


@dataclass(frozen=True, slots=True)
class _Side:
    """Calls to compare: their filter with times, and its query in parts."""

    wanted: CallFilter
    terms: list[str]
    bounds: tuple[datetime, datetime]

    @property
    def query(self) -> str:
        return " ".join([range_query(*self.bounds), *self.terms])


def find_apart(query: Query, of: TimeRange, now: datetime, *, beside_all: bool) -> Finding:
    """Compare the calls of a query with the other calls of a range.

    If the query names a tool and has other terms, the others are calls of that tool, unless
    `beside_all`. Raises InvalidQueryError, CannotCompareError.
    """
    wanted = query.wanted
    selected = within(wanted, of, now)
    start, end = selected.from_instant(now) or of.start, selected.to_instant(now) or of.end
    beside_tool = None if beside_all else tool_beside(query)
    others = CallFilter(tool=Text(beside_tool) if beside_tool else None)
    terms = [each.text for each in query.terms if each.name == "tool"] if beside_tool else []
    return _find(
        _Side(selected, _terms(query), (start, end)),
        _Side(others, terms, (of.start, of.end)),
        of,
        now,
        has_own_time=wanted.since is not None or wanted.until is not None,
    )


def within(wanted: CallFilter, of: TimeRange, now: datetime) -> CallFilter:
    """The filter with its times as instants within a range."""
    start = max(wanted.from_instant(now) or of.start, of.start)
    return replace(wanted, since=start, until=min(wanted.to_instant(now) or of.end, of.end))


def find_between(first: Query, second: Query, of: TimeRange, now: datetime) -> Finding:
    """Compare the calls of a query with those of another one, each in its own time or in `of`.

    Calls of both are calls of the first. Raises InvalidQueryError, CannotCompareError.
    """
    selected, rest = (_own_side(query, of, now) for query in (first, second))
    bounds = (*selected.bounds, *rest.bounds)
    whole = TimeRange(min(bounds), max(bounds), of.zone)
    if whole.length > MAX_LENGTH:
        raise CannotCompareError(_TOO_LONG)
    return _find(selected, rest, whole, now, has_own_time=selected.bounds != rest.bounds)


def _own_side(query: Query, of: TimeRange, now: datetime) -> _Side:
    wanted = query.wanted
    start, end = wanted.from_instant(now) or of.start, wanted.to_instant(now) or of.end
    if end <= start:
        raise CannotCompareError(_NO_TIME)
    return _Side(replace(wanted, since=start, until=end), _terms(query), (start, end))


def _terms(query: Query) -> list[str]:
    return [each.closed for each in query.terms if each.name not in ("since", "until")]


def _find(
    selected: _Side, rest: _Side, of: TimeRange, now: datetime, *, has_own_time: bool
) -> Finding:
    for side in (selected, rest):
        if side.wanted.payload:
            raise CannotCompareError(_PAYLOADS)
        if side.wanted.is_about_unrun:
            raise CannotCompareError(_UNRUN)
    read = read_compared(selected.wanted, rest.wanted, of, now)
    filters = selected.wanted, rest.wanted
    free = free_properties(*filters, has_own_time=has_own_time)
    columns = [
        Column(
            each.name,
            each.of(list(read.values[each.name])),
            each.is_paired,
            share_min=_ID_SHARE_MIN if each.is_id else 0,
        )
        for each in free
    ]
    # Calls of one trace or run are asked for: they are alike by that.
    has_groups = all(each.trace is None and each.run is None for each in filters)
    verdict = set_apart(
        _telling(columns), read.is_selected, read.values["trace"] if has_groups else None
    )
    return Finding(
        verdict=verdict,
        named=[
            Named(
                parts=_parts(one.values, of),
                also=tuple(_parts(values, of) for values in one.also),
                difference=one,
                query=_narrowed(one, selected, of),
                query_rest=_narrowed(one, rest, of),
            )
            for one in verdict.differences
        ],
        read=read,
        properties=free,
        query=selected.query,
        query_rest=rest.query,
        times=(selected.bounds, rest.bounds),
    )


def tool_beside(query: Query) -> str | None:
    """The tool whose other calls are the most telling ones to compare with; None: all are."""
    tool = query.wanted.tool
    others = [each for each in query.terms if each.name not in ("since", "until", "tool")]
    return tool.value if tool is not None and not tool.is_prefix and others else None


def tool_of_arguments(query: Query) -> str:
    """The tool whose calls are compared in their arguments.

    Raises InvalidQueryError, CannotCompareError.
    """
    for_all = query.wanted
    if for_all.payload:
        raise CannotCompareError(_PAYLOADS)
    if for_all.is_about_unrun:
        raise CannotCompareError(_UNRUN)
    tool = tool_beside(query)
    if tool is None:
        raise CannotCompareError(_NO_TOOL)
    return tool


def _telling(columns: Sequence[Column]) -> list[Column]:
    """The columns in which calls differ at all."""
    return [column for column in columns if len(set(column.values)) > 1]


def _parts(values: Iterable[tuple[str, str]], of: TimeRange) -> tuple[tuple[str, str], ...]:
    return tuple((_BY_NAME[name].title, _text(name, value, of)) for name, value in values)


def _text(name: str, value: str, of: TimeRange) -> str:
    if name == TIME.name:
        return time_slots(of)[int(value)].name.replace("\N{WORD JOINER}", "")
    if name == "duration":
        return _band(int(value))
    if name == "violation":
        return "any"
    return "none" if value == NONE else value


def _band(number: int) -> str:
    low, high = (None, *DURATIONS_US, None)[number : number + 2]
    if low is None:
        return f"less than {duration(high)}"
    return f"{duration(low)} or more" if high is None else f"{duration(low)} to {duration(high)}"


def _narrowed(one: Difference, side: _Side, of: TimeRange) -> str:
    """The query of a side narrowed down to the calls that have the values."""
    bounds = side.bounds
    for name, value in one.values:
        if name == TIME.name:
            bounds = of.parts[int(value)]
    own = (_BY_NAME[name].term_of(value) for name, value in one.values)
    return " ".join(filter(None, [range_query(*bounds), *side.terms, *own]))
