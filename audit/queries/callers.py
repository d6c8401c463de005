"""Which executors call which version of a tool, compared with what is registered."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from audit.queries.replays import ReplayRange
from audit.sql.run import rows
from tools_registry.models import ChangeKind, Tool, ToolChange, ToolVersion

CALLS_MAX = 50_000
"""How many calls are analyzed, the newest ones."""
ROWS_MAX = 500
EXECUTORS_SHOWN = 20
ATTEMPTS_MAX = 50
FLAGS = ("trusted", "ephemeral", "on_collision")


@dataclass(slots=True)
class Executor:
    """A process that called a version."""

    producer_id: str
    """'' if its calls name none."""
    calls: int
    last_at: datetime


@dataclass(slots=True)
class NamedVersion:
    """A version as calls name it, and what the registry knows about it."""

    name: str
    """A number, a digest or any text; '' for calls that named none."""
    number: int | None
    """The number of the registered version; None if no registered version has this name."""
    is_current: bool
    calls: int = 0
    failed: int = 0
    last_at: datetime | None = None
    executors: list[Executor] = field(default_factory=list)
    """The most recently heard first."""

    @property
    def is_old(self) -> bool:
        """Whether it is a registered version other than the current one."""
        return self.number is not None and not self.is_current


@dataclass(frozen=True, slots=True)
class DifferingFlag:
    """A flag whose value at an executor differs from the registered one."""

    flag: str
    registered: str
    observed: str
    number: int | None
    """The number of the version that its calls name; None for a contract not accepted."""
    change: ToolChange | None = None
    """The registration attempt that shows the difference, if there is one."""


@dataclass(frozen=True, slots=True)
class Callers:
    """The callers of a tool in a range."""

    versions: list[NamedVersion]
    flags: list[DifferingFlag]
    calls: int
    """Calls that were analyzed: the newest."""

    @property
    def is_cut(self) -> bool:
        """Whether there may be older calls that were not analyzed."""
        return self.calls >= CALLS_MAX

    @property
    def old(self) -> list[NamedVersion]:
        """Registered versions that are called but not current."""
        return [one for one in self.versions if one.is_old]


def callers(tool: Tool, of: ReplayRange) -> Callers:
    """The versions of a tool that calls name, most calls first. Four statements."""
    versions = {
        one.number: one
        for one in ToolVersion.objects.filter(tenant=tool.tenant_id, tool=tool).defer(
            "description", "input_schema", "output_schema", "meta"
        )
    }
    by_name = {one.digest: one.number for one in versions.values()}
    by_name |= {str(number): number for number in versions}
    called: dict[str, NamedVersion] = {}
    parameters: dict[str, Any] = {
        "tool": tool.name,
        "since": of.since,
        "until": of.until,
        "first_day": of.since.astimezone(UTC).date(),
        "last_day": of.until.astimezone(UTC).date(),
        "call_limit": CALLS_MAX,
        "limit": ROWS_MAX,
    } | of.among.parameters
    call_count = 0
    for name, producer_id, calls, failed, last_at, total in rows(
        "callers_of_tool", parameters, conditions=of.among.conditions
    ):
        number = by_name.get(name)
        is_current = number is not None and number == tool.current_number
        one = called.setdefault(name, NamedVersion(name, number, is_current))
        one.calls += calls
        one.failed += failed
        one.last_at = max(last_at, one.last_at or last_at)
        one.executors.append(Executor(producer_id, calls, last_at))
        call_count = total
    ordered = sorted(called.values(), key=lambda one: (-one.calls, one.name))
    flags = list(_differing(tool, ordered, versions, of)) if tool.current_number else []
    return Callers(ordered, flags, call_count)


def _differing(
    tool: Tool,
    called: list[NamedVersion],
    versions: Mapping[int, ToolVersion],
    of: ReplayRange,
) -> Iterator[DifferingFlag]:
    current = versions[tool.current_number]
    registered = {flag: getattr(current, flag) for flag in FLAGS}
    for number in sorted({one.number for one in called if one.number is not None}, reverse=True):
        for flag in FLAGS:
            value = getattr(versions[number], flag)
            if value != registered[flag]:
                yield DifferingFlag(flag, _as_text(registered[flag]), _as_text(value), number)
    attempts = ToolChange.objects.filter(
        tenant=tool.tenant_id,
        tool=tool,
        kind__in=(ChangeKind.KEPT, ChangeKind.REFUSED),
        at__gte=of.since,
        at__lt=of.until,
    ).order_by("-ordinal")[:ATTEMPTS_MAX]
    listed: set[tuple[str, str, str]] = set()
    for change in attempts:
        for flag in FLAGS:
            value = (change.contract or {}).get(flag, registered[flag])
            if value != registered[flag] and (flag, _as_text(value), change.key_id) not in listed:
                listed.add((flag, _as_text(value), change.key_id))
                yield DifferingFlag(flag, _as_text(registered[flag]), _as_text(value), None, change)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
