"""Schema violations of a range: their kinds and guard outcomes.

A kind is a side, a tool, its version, a path pattern and a code. The side is what breaks its
schema: the *arguments* that were rejected, or the *results* of calls that ran. For results, whole
UTC days come from `violation_day`, the rest from the violations themselves; rejected arguments are
counted from their decisions. So figures are exact for any range.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal, get_args

from audit.queries.decisions import newest_decision
from audit.queries.over_time import slot_parameters
from audit.queries.time_range import TimeRange
from audit.sql.run import Row, rows, rows_prepared
from tenants.actions import storable_text

_DAY = timedelta(days=1)
_BY_DAY_FROM = timedelta(days=2)
"""Ranges longer than this are shown by UTC day, from the sums of each day."""

_MAX_VALUE = 600
"""Maximum characters of a filter's value. No column holds that many."""

Side = Literal["arguments", "results"]
"""What breaks its schema: arguments that were rejected, or the result of a call."""
SIDES: tuple[Side, ...] = get_args(Side)

type Key = tuple[Side, str, str, str, str]
"""Side, tool, version, path pattern, code."""


@dataclass(frozen=True, slots=True)
class ViolationFilter:
    """Which violations. None means any; '' as version means calls that name none."""

    tool: str | None = None
    version: str | None = None
    code: str | None = None
    path: str | None = None
    outcome: str | None = None
    side: Side | None = None

    @classmethod
    def read(cls, params: Mapping[str, str]) -> "ViolationFilter":
        """The filter in an address. Values are exact; what no column can hold matches nothing."""

        def text(name: str) -> str | None:
            value = params.get(name)
            if value is None or (not value and name != "version"):
                return None
            return storable_text(value)[:_MAX_VALUE]

        return cls(
            tool=text("tool"),
            version=text("version"),
            code=text("code"),
            path=text("path"),
            outcome=text("outcome"),
            side=next((one for one in SIDES if one == params.get("side")), None),
        )


@dataclass(slots=True)
class ViolationKind:
    """A kind of violation in a range."""

    side: Side
    tool_name: str
    tool_version: str
    path_pattern: str
    code: str
    violations: int
    calls: int
    """Calls with such a violation."""
    of_calls: int
    """All calls of that version of the tool that started in the range; on the side of arguments,
    also those that were decided about in the range and did not start in it."""
    first_at: datetime
    last_at: datetime
    first_ever_at: datetime
    """First seen, as far back as the index goes."""
    course: list[float | None]
    """Violations by part of the range."""
    new_since: str | None = None
    """The version that introduced it; None if the first version already had it."""

    @property
    def share(self) -> float | None:
        """The share of `of_calls` that has such a violation."""
        return self.calls / self.of_calls if self.of_calls else None


@dataclass(frozen=True, slots=True)
class RejectedCalls:
    """What agents get wrong about one version of a tool: calls whose arguments were rejected."""

    tool_name: str
    tool_version: str
    calls: int
    of_calls: int
    """Calls of the version that started in the range, or have a decision in it."""

    @property
    def share(self) -> float:
        """The share of `of_calls` whose arguments were rejected."""
        return self.calls / self.of_calls


@dataclass(frozen=True, slots=True)
class Treatment:
    """What became of violations: a guard's strategy and its outcome, or the decision that rejected
    arguments; and the number of violations."""

    side: Side
    strategy: str
    outcome: str
    violations: int


@dataclass(slots=True)
class Violations:
    """All violations of a range, the most frequent kinds first."""

    of: TimeRange
    kinds: list[ViolationKind]
    cells: dict[tuple[str, str], int] = field(default_factory=dict)
    """Violations by tool and code."""
    treatments: list[Treatment] = field(default_factory=list)
    by_side: dict[Side, int] = field(default_factory=dict)
    """Violations by side."""
    rejected: list[RejectedCalls] = field(default_factory=list)
    """Calls with rejected arguments by version; those with such violations, most calls first."""
    bounds: list[datetime] = field(default_factory=list[datetime])
    """The ends of the parts that a kind's course has: of a long range UTC days."""
    before: Sequence[int] = ()
    """Violations of the range before by part, if they were asked for (`violations_before`)."""

    @property
    def total(self) -> int:
        """Violations of all kinds."""
        return sum(self.cells.values())


@dataclass(frozen=True, slots=True)
class NewViolation:
    """A violation that was never seen before the range, in any version."""

    side: Side
    tool_name: str
    path_pattern: str
    code: str
    violations: int
    first_at: datetime
    last_at: datetime


def violations(of: TimeRange, wanted: ViolationFilter) -> Violations:
    """The violations of a range. At most five statements."""
    parameters = range_parameters(of, wanted)
    return summed_up(of, parameters, rows("violation_kinds", parameters))


def violations_before(of: TimeRange, wanted: ViolationFilter) -> list[int]:
    """The violations of the range before, by parts each of which is one length before a part.

    Empty if it does not have the same parts. At most two statements.
    """
    has_parts = not of.length % _DAY if of.length > _BY_DAY_FROM else of.has_parts_before
    if not has_parts:
        return []
    bounds = [at - of.length for at in _parameters(of, wanted)["bounds"]]
    parameters = range_parameters(of.previous, wanted) | {"bounds": bounds}
    by_part = [0] * (len(bounds) - 1)
    for *_, outcome, part, count, _, _, _ in rows("violation_kinds", parameters):
        if outcome is None:
            by_part[part] += count
    return by_part


def range_parameters(of: TimeRange, wanted: ViolationFilter) -> dict[str, Any]:
    """The parameters of `violation_kinds`. At most one statement."""
    return _without_decisions(_parameters(of, wanted))


def summed_up(of: TimeRange, parameters: Mapping[str, Any], summed: Iterable[Row]) -> Violations:
    """The violations of a range from the rows of `violation_kinds`. At most three statements."""
    kinds: dict[Key, ViolationKind] = {}
    result = Violations(of, [], bounds=list(parameters["bounds"]))
    treatments: dict[tuple[Side, str, str], int] = {}
    part_count = len(parameters["bounds"]) - 1
    for side, tool, version, path, code, strategy, outcome, part, *sums in summed:
        count, calls, first_at, last_at = sums
        if outcome is not None:
            result.cells[tool, code] = result.cells.get((tool, code), 0) + count
            treated = (side, strategy, outcome)
            treatments[treated] = treatments.get(treated, 0) + count
            result.by_side[side] = result.by_side.get(side, 0) + count
            continue
        kind = kinds.get((side, tool, version, path, code))
        if kind is None:
            course: list[float | None] = [0] * part_count
            kind = kinds[side, tool, version, path, code] = ViolationKind(
                side=side,
                tool_name=tool,
                tool_version=version,
                path_pattern=path,
                code=code,
                violations=0,
                calls=0,
                of_calls=0,
                first_at=first_at,
                last_at=last_at,
                first_ever_at=first_at,
                course=course,
            )
        kind.violations += count
        kind.calls += calls
        kind.first_at, kind.last_at = min(kind.first_at, first_at), max(kind.last_at, last_at)
        kind.course[part] = (kind.course[part] or 0) + count
    if kinds:
        result.rejected = _add_history(kinds, of, parameters)
    result.kinds = sorted(
        kinds.values(),
        key=lambda kind: (
            *(-kind.violations, kind.tool_name, kind.path_pattern),
            *(kind.code, kind.side, kind.tool_version),
        ),
    )
    result.treatments = [
        Treatment(*key, count)
        for key, count in sorted(treatments.items(), key=lambda item: (-item[1], item[0]))
    ]
    return result


def calls_of_tool(tool: str, start: datetime, end: datetime) -> int:
    """The calls of a tool that started in a range. One statement."""
    parameters = slot_parameters((start, end)) | {"tool": tool}
    return sum(calls for _, _, calls, _ in rows("version_calls", parameters))


def new_violations(of: TimeRange, *, limit: int, has_decisions: bool) -> list[NewViolation]:
    """The violations first seen within the range, the newest first. One statement.

    `has_decisions` is whether the tenant has any.
    """
    parameters = {
        "start": of.start,
        "end": of.end,
        "last_day": _day(of.end),
        "arguments_from": date.min if has_decisions else date.max,
        "limit": limit,
    }
    return [NewViolation(*row) for row in rows_prepared("new_violations", parameters)]


def new_since(versions: Mapping[str, datetime], having: set[str]) -> str | None:
    """The version that introduced a kind: the earliest that has it; None if it is the first one.

    `versions` are all versions of a tool and when each was first seen. `having` are those that have
    the kind. Registry numbers are sorted by number, other names by when they were first seen.
    """
    if all(version.isascii() and version.isdigit() for version in versions):
        ordered = sorted(versions, key=lambda version: (int(version), version))
    else:
        ordered = sorted(versions, key=lambda version: (versions[version], version))
    first = next((version for version in ordered if version in having), None)
    return None if first is None or first == ordered[0] else first


def _add_history(
    kinds: Mapping[Key, ViolationKind], of: TimeRange, parameters: Mapping[str, Any]
) -> list[RejectedCalls]:
    """Fill in the calls, when each kind was first seen, and the version that introduced it.

    Returns the calls whose arguments were rejected.
    """
    # For all versions and outcomes: whether a kind is new does not depend on the filter.
    anything = {**parameters, "version": None, "outcome": None}
    versions = _Versions()
    having: dict[tuple[Side, str, str, str], set[str]] = {}
    for side, tool, version, path, code, first_at, _ in rows_prepared(
        "violation_history", anything
    ):
        having.setdefault((side, tool, path, code), set()).add(version)
        versions.see(side, tool, version, first_at)
        if (kind := kinds.get((side, tool, version, path, code))) is not None:
            kind.first_ever_at = min(first_at, kind.first_at)
    tool = {"tool": parameters["tool"]}
    for name, version, calls, first_at in rows(
        "version_calls", slot_parameters((of.start, of.end)) | tool
    ):
        versions.calls[name, version] = calls
        for side in SIDES:
            versions.see(side, name, version, first_at)
    if any(side == "arguments" for side, *_ in kinds):
        for name, version, calls, rejected, first_at in rows("version_decided", parameters):
            versions.decided[name, version] = calls
            versions.rejected[name, version] = rejected
            versions.see("arguments", name, version, first_at)
    for (side, name, version, path, code), kind in kinds.items():
        kind.of_calls = versions.of_calls(side, name, version)
        kind.new_since = new_since(
            versions.seen[side, name], having[side, name, path, code] | {version}
        )
    rejecting = {(name, version) for side, name, version, *_ in kinds if side == "arguments"}
    return sorted(
        (
            RejectedCalls(*key, versions.rejected[key], versions.of_calls("arguments", *key))
            for key in rejecting
        ),
        key=lambda one: (-one.calls, one.tool_name, one.tool_version),
    )


@dataclass(slots=True)
class _Versions:
    """The versions of tools: calls that started in a range, calls that were only decided about,
    calls whose arguments were rejected, and when each version was first seen."""

    calls: dict[tuple[str, str], int] = field(default_factory=dict)
    decided: dict[tuple[str, str], int] = field(default_factory=dict)
    rejected: dict[tuple[str, str], int] = field(default_factory=dict)
    seen: dict[tuple[Side, str], dict[str, datetime]] = field(default_factory=dict)

    def see(self, side: Side, tool: str, version: str, first_at: datetime | None) -> None:
        if first_at is not None:
            known = self.seen.setdefault((side, tool), {})
            known[version] = min(first_at, known.get(version, first_at))

    def of_calls(self, side: Side, tool: str, version: str) -> int:
        started = self.calls.get((tool, version), 0)
        return started + (self.decided.get((tool, version), 0) if side == "arguments" else 0)


def _parameters(of: TimeRange, wanted: ViolationFilter) -> dict[str, Any]:
    start, end = of.start.astimezone(UTC), of.end.astimezone(UTC)
    first_whole = (start - timedelta(microseconds=1)).date() + _DAY
    end_whole = end.date()
    bounds = list(of.bounds)
    if of.length > _BY_DAY_FROM:
        days = [first_whole + n * _DAY for n in range((end_whole - first_whole).days + 1)]
        bounds = sorted({start, *(_midnight(day) for day in days), end})
    else:
        first_whole = end_whole = _day(start)
    return {
        "tool": wanted.tool,
        "version": wanted.version,
        "code": wanted.code,
        "path": wanted.path,
        "outcome": wanted.outcome,
        "arguments_from": date.max if wanted.side == "results" else date.min,
        "with_results": wanted.side != "arguments",
        "start": start,
        "end": end,
        "first_day": start.date(),
        "last_day": end.date(),
        "whole_from": _midnight(first_whole) if first_whole < end_whole else end,
        "whole_to": _midnight(end_whole) if first_whole < end_whole else end,
        "first_whole_day": first_whole,
        "end_whole_day": end_whole,
        "bounds": bounds,
    }


def _without_decisions(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters, without the side of arguments if the tenant has no decisions at all."""
    if parameters["arguments_from"] == date.max or newest_decision() is not None:
        return parameters
    return parameters | {"arguments_from": date.max}


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _day(instant: datetime) -> date:
    return instant.astimezone(UTC).date()
