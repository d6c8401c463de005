"""Reads calls of a selection and of others, to be compared by `audit.apart` and `audit.effect`.

At most `CALLS` calls are read, in short windows evenly over the time of each side.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from audit.queries.call_conditions import Conditions
from audit.queries.call_filter import AllOf, CallFilter, Not, Text
from audit.queries.call_walk import walk_parameters
from audit.queries.even_windows import even_windows
from audit.queries.over_time import day_of
from audit.queries.properties import DURATIONS_US, PROPERTIES, TIME
from audit.queries.time_range import TimeRange
from audit.sql.run import Row, rows

CALLS: Final = 60_000
"""The most calls that are read. Comparing them takes a second."""
_SELECTED: Final = 30_000
"""The most that are read of a selection that is read apart from the others."""
_FILLED: Final = 0.95
"""How many calls are planned for: how many are in the windows is only known when they are read."""
_KINDS: Final = ("only_open", "only_orphans", "only_failed", "only_violating")
_BY_QUARTER: Final = timedelta(days=2)
_COLUMNS: Final = len(PROPERTIES) + 4
"""Of a row: match, duration, tokens, the properties and the time."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The calls that were read: whether each is selected, and its values by property."""

    is_selected: Sequence[bool]
    durations_us: Sequence[int | None]
    tokens: Sequence[float]
    values: dict[str, Sequence[str | None]]
    population: int
    """About how many calls the others' time and tool have, selected or not."""
    selection_share: float
    """The share of the selection that was read; 1 or more: all of it."""
    rest_share: float
    """The same of the others."""

    @property
    def selection_is_whole(self) -> bool:
        """Whether all calls of the selection were read."""
        return self.selection_share >= 1

    @property
    def is_whole(self) -> bool:
        """Whether all calls were read."""
        return self.selection_is_whole and self.rest_share >= 1


def read_compared(wanted: CallFilter, others: CallFilter, of: TimeRange, now: datetime) -> Compared:
    """Read calls that match `wanted`, and calls that match `others` and not `wanted`.

    A filter without times is about `of`. Neither may mention payloads or calls that did not run.
    At most `CALLS` calls, in one statement or two, and two for how many calls there are.
    """
    selected, rest = _side(wanted, of, now), _side(others, of, now)
    if _is_read_with(selected, rest):
        share = rest_share = _share(selected, CALLS)
        read = _read(selected, CALLS, of, with_others=True)
    else:
        room = min(_SELECTED, selected.calls + selected.calls // 10 + 100)
        share, rest_share = _share(selected, room), _share(rest, CALLS - room)
        read = _read(selected, room, of)
        read += [(False, *row[1:]) for row in _read(_without(rest, selected), CALLS - room, of)]
    is_selected, durations_us, tokens, *columns = (
        zip(*read, strict=True) if read else [()] * _COLUMNS
    )
    names = [each.name for each in (*PROPERTIES, TIME)]
    return Compared(
        is_selected=is_selected,
        durations_us=durations_us,
        tokens=tokens,
        values=dict(zip(names, columns, strict=True)),
        population=rest.population,
        selection_share=share,
        rest_share=rest_share,
    )


class CallPlace(NamedTuple):
    """A call of one of both sides, and where its start event is in the log."""

    is_selected: bool
    trace_id: str
    started_on: date
    invocation_id: UUID
    batch_id: UUID
    position: int


def read_places(
    wanted: CallFilter, tool: str, of: TimeRange, now: datetime, most: int
) -> list[CallPlace]:
    """At most `most` calls that match `wanted`, and as many other calls of a tool, evenly chosen.

    Four statements.
    """
    selected, rest = _side(wanted, of, now), _side(CallFilter(tool=Text(tool)), of, now)
    both = []
    for side in (selected, _without(rest, selected)):
        read = _read(side, CALLS // 2, of, "apart_places")
        chosen = read[:: -(-len(read) // most) or 1]
        both += [CallPlace(side is selected, *row[1:]) for row in chosen]
    return both


@dataclass(frozen=True, slots=True)
class _Side:
    """The calls of one filter, whose times are instants."""

    wanted: CallFilter
    since: datetime
    until: datetime
    walk: dict[str, Any]
    population: int
    """About how many calls its time and tool have."""
    calls: int
    """About how many of these are read to find those that match."""


def _side(wanted: CallFilter, of: TimeRange, now: datetime) -> _Side:
    since = wanted.from_instant(now) or of.start
    until = wanted.to_instant(now) or of.end
    wanted = replace(wanted, since=since, until=until)
    walk = walk_parameters(wanted, now)
    started, failed, violating = _population(since, until, _tool(wanted))
    if _is_of_one(wanted) or walk["only_open"] or walk["only_orphans"]:
        calls = _SELECTED // 2  # how many there are is not stored: there is room for many
    elif walk["only_failed"]:
        calls = failed
    else:
        calls = violating if walk["only_violating"] else started
    return _Side(wanted, since, until, walk, started, calls)


def _is_read_with(selected: _Side, rest: _Side) -> bool:
    """Whether one reading finds both: the others are all other calls of the same time and tool.

    Not if an index serves the selection, perhaps with few others among its calls.
    """
    members = {each.member for each in rest.wanted.terms}
    is_plain = not rest.wanted.others and members <= {"since", "until", "tool"}
    is_served = _is_of_one(selected.wanted) or any(selected.walk[name] for name in _KINDS)
    places = [(one.since, one.until, one.wanted.tool) for one in (selected, rest)]
    return is_plain and places[0] == places[1] and not is_served


def _without(side: _Side, other: _Side) -> _Side:
    """The calls of a side that are not calls of the other one."""
    unlike = Not(AllOf((*other.wanted.terms, *other.wanted.others)))
    wanted = replace(
        side.wanted,
        others=(*side.wanted.others, unlike),
        sees_messages=other.wanted.sees_messages,
    )
    return replace(side, wanted=wanted)


def _share(side: _Side, room: int) -> float:
    """The share of a side's time that is read, so that its calls fit into `room`."""
    return 1.0 if side.calls <= room else _FILLED * room / side.calls


def _read(
    side: _Side,
    room: int,
    of: TimeRange,
    statement: str = "apart_sample",
    *,
    with_others: bool = False,
) -> list[Row]:
    """The calls of a side, at most `room`; with `with_others` also those that do not match."""
    conditions = Conditions(side.wanted)
    places = even_windows(side.since, side.until, _share(side, room))
    parameters: dict[str, Any] = {
        **side.walk,
        **conditions.parameters,
        "first_day": day_of(side.since),
        "last_day": day_of(side.until),
        "places": places.starts,
        "width": places.length,
        "call_limit": room,
        "with_others": with_others,
        "durations_us": list(DURATIONS_US),
        "bounds": list(of.bounds),
    }
    return rows(statement, parameters, conditions=conditions.text)


def _tool(wanted: CallFilter) -> str | None:
    tool: Text | None = wanted.tool
    return tool.value if tool is not None and not tool.is_prefix else None


def _is_of_one(wanted: CallFilter) -> bool:
    return any(one is not None for one in (wanted.trace, wanted.run, wanted.call))


def _population(start: datetime, end: datetime, tool: str | None) -> tuple[int, int, int]:
    """About how many calls of a range started, failed, and violate their schema."""
    parameters = {
        "start": start,
        "end": end,
        "first_day": day_of(start),
        "last_day": day_of(end),
        "by_quarter": end - start <= _BY_QUARTER,
        "tool": tool,
    }
    ((started, failed, violating),) = rows("apart_population", parameters)
    return started, failed, violating
