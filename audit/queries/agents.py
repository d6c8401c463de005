"""Agents: their calls in a range, by tool and by version."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from audit.index.histogram import BUCKET_COUNT, percentile
from audit.queries.among import Among
from audit.queries.call_filter import CallFilter, Text
from audit.queries.call_walk import QUERY_BUDGET, Budget, Walk
from audit.queries.decisions import newest_decision
from audit.queries.over_time import FORMULA
from audit.queries.time_range import TimeRange
from audit.sql.run import rows

CALLS_MAX: Final = 10_000
"""How many calls of a range are counted, the newest ones."""
SEARCHED_MAX: Final = 30_000
"""How many calls of a range are searched for those of one agent, the newest ones."""
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class AgentFigures:
    """Calls of an agent, of one of its versions, of it and one tool, or of an environment."""

    name: str
    """The agent, version, tool or environment; '' if it is not reported."""
    calls: int = 0
    failed: int = 0
    violating: int = 0
    tokens: int = 0
    last_at: datetime = _NEVER
    latency: Counter[int] = field(default_factory=Counter)
    """Completed calls by bucket of their duration."""
    refused: int = 0
    """Calls that were refused, which are in no other figure. Not counted by environment."""

    @property
    def p50_us(self) -> int | None:
        """The median duration, off by at most 5 %; None without a completed call."""
        return self._duration_us(0.5)

    @property
    def p95_us(self) -> int | None:
        """The same for the 95th percentile."""
        return self._duration_us(0.95)

    def _duration_us(self, share: float) -> int | None:
        counts = [self.latency[bucket] for bucket in range(BUCKET_COUNT)]
        duration_us = percentile(counts, share)
        return None if duration_us is None else round(duration_us)

    def add(self, other: "AgentFigures") -> None:
        """Add the calls of another one."""
        self.calls += other.calls
        self.failed += other.failed
        self.violating += other.violating
        self.tokens += other.tokens
        self.last_at = max(self.last_at, other.last_at)
        self.latency.update(other.latency)
        self.refused += other.refused


@dataclass(slots=True)
class Agent:
    """An agent with its tools and versions, most calls first."""

    total: AgentFigures
    tools: list[AgentFigures] = field(default_factory=list)
    versions: list[AgentFigures] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Agents:
    """The agents of a range, most calls first."""

    agents: Sequence[Agent]

    @property
    def calls(self) -> int:
        """The calls that were counted."""
        return sum(each.total.calls for each in self.agents)

    @property
    def is_cut(self) -> bool:
        """Whether the range may have older calls that were not counted."""
        return self.calls >= CALLS_MAX


def searched_part(of: TimeRange) -> TimeRange:
    """The part of a range in which one agent's calls are searched: its newest calls.

    There is no index by agent, so a rare one would take as long as all calls of the range.
    """
    parameters = bounds(of) | {"agent": None, "call_limit": SEARCHED_MAX}
    ((began, count),) = rows("start_of_newest", parameters)
    return of if count < SEARCHED_MAX else replace(of, start=began)


def agents_in(of: TimeRange, agent: str | None = None) -> Agents:
    """All agents in a range, or one. The calls of no agent are those of ''.

    Refused calls are of the same time as the calls. At most three statements.
    """
    counted, first_at = _Counted(), of.end
    parameters = bounds(of) | FORMULA | {"agent": agent, "call_limit": CALLS_MAX}
    for name, version, tool, *counts, group_at, last_at, buckets, in_buckets in rows(
        "agents_counted", parameters
    ):
        latency = Counter(dict(zip(buckets or (), in_buckets or (), strict=True)))
        calls, failed, violating, tokens = counts
        one = AgentFigures(name, calls, failed, violating, tokens, last_at, latency)
        counted.add(version, tool, one)
        first_at = min(first_at, group_at)
    is_cut = Agents(counted.agents).is_cut
    own = CallFilter(agent=None if agent is None else Text(agent))
    counted.add_refused(own, replace(of, start=first_at) if is_cut else of, of.end)
    return Agents(counted.agents)


def environments_in(of: TimeRange, agent: str | None = None) -> list[AgentFigures]:
    """The same calls by environment, without durations, most calls first. One statement."""
    counted = rows("environments_counted", bounds(of) | {"agent": agent, "call_limit": CALLS_MAX})
    return [AgentFigures(*row) for row in counted]


def agents_of_query(
    wanted: CallFilter, of: TimeRange, now: datetime, *, budget: Budget = QUERY_BUDGET
) -> tuple[Sequence[Agent], datetime | None]:
    """The agents of a range's calls that match, most calls first, and until when was searched.

    None: everything was. The filter is of the range, and has no payload terms.
    """
    walk, counted = Walk(wanted, now, budget), _Counted()
    for ran, name, version, tool, bucket, *sums in walk.summed("agents_summed_before", FORMULA):
        if ran:
            calls, failed, violating, tokens, last_at, *_ = sums
            latency = Counter({} if bucket is None else {bucket: calls})
            one = AgentFigures(name, calls, failed, violating, tokens, last_at, latency)
            counted.add(version, tool, one)
    until = walk.stopped.at if walk.stopped else None
    counted.add_refused(wanted, of if until is None else replace(of, start=until), now)
    return counted.agents, until


class _Counted:
    """Agents with their tools and versions, as they are counted."""

    def __init__(self) -> None:
        self._totals, self._tools, self._versions = _Groups(), _Groups(), _Groups()

    def add(self, version: str, tool: str, one: AgentFigures) -> None:
        self._totals.add("", one.name, one)
        self._tools.add(one.name, tool, one)
        self._versions.add(one.name, version, one)

    def add_refused(self, wanted: CallFilter, of: TimeRange, now: datetime) -> None:
        newest = newest_decision()
        if newest is None or newest < of.start:
            return
        among = Among.those_of(wanted, now)
        for name, version, tool, refused, last_at in rows(
            "refused_by_agent", bounds(of) | among.parameters, conditions=among.conditions
        ):
            self.add(version, tool, AgentFigures(name, last_at=last_at, refused=refused))

    @property
    def agents(self) -> list[Agent]:
        return [
            Agent(each, self._tools.of(each.name), self._versions.of(each.name))
            for each in self._totals.of("")
        ]


class _Groups:
    """Figures by what they belong to and by name."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, AgentFigures]] = {}

    def add(self, of: str, name: str, one: AgentFigures) -> None:
        self._groups.setdefault(of, {}).setdefault(name, AgentFigures(name)).add(one)

    def of(self, of: str) -> list[AgentFigures]:
        figures = self._groups.get(of, {}).values()
        return sorted(figures, key=lambda each: (-each.calls, each.name))


def bounds(of: TimeRange) -> dict[str, Any]:
    """A range as the parameters of statements."""
    return {
        "start": of.start,
        "end": of.end,
        "first_day": of.start.astimezone(UTC).date(),
        "last_day": of.end.astimezone(UTC).date(),
    }
