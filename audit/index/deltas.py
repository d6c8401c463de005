"""Derive what a request adds to traces and rollups from the rows it changed.

Pure. Only written rows count, and of each row only what this request added. A call is new if no
event of it was stored before. It is completed now if its end event is this batch's and it was not
cancelled. Counting the events of requests instead would count an event twice if several writers
send it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

import msgspec

from audit.events.instants import HOUR_US, QUARTER_US
from audit.index.decisions import Decided
from audit.index.histogram import bucket_of

BIGINT_MAX = 2**63 - 1


class Changed(msgspec.Struct, frozen=True, gc=False):
    """A row of `invocation` after the upsert, and which parts of it this batch wrote.

    Days and microseconds are since 1970.
    """

    day: int
    invocation_id: UUID
    started_us: int
    ended_us: int | None
    duration_us: int | None
    state: str
    tool_name: str
    tool_version: str
    trace_id: str
    run_id: str | None
    error_type: str
    violation_count: int
    prompt_tokens: int
    completion_tokens: int
    cache_hit: bool | None
    took_start: bool
    took_end: bool
    is_new: bool

    @property
    def is_completed(self) -> bool:
        """Whether it succeeded or failed now."""
        return self.took_end and self.state != "cancelled"


@dataclass(slots=True)
class TraceDelta:
    """What is added to a trace's row of one day."""

    first_started_us: int
    first_tool_name: str
    last_us: int
    run: tuple[int, str] | None = None
    """Start and run id of the first call that has a run id."""
    started: int = 0
    completed: int = 0
    failed: int = 0
    violations: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    decisions: int = 0
    cancelled: int = 0

    def add_run(self, started_us: int, run_id: str | None) -> None:
        """Take the run of the first call: calls of a sub-agent, inside it, may have another one.

        Of calls that start at once the smallest, as the order of events must not matter.
        """
        if run_id is not None:
            run = started_us, run_id
            self.run = run if self.run is None else min(self.run, run)


@dataclass(slots=True)
class RollupDelta:
    """What is added to a rollup row of a quarter of an hour or of an hour."""

    started: int = 0
    completed: int = 0
    failed: int = 0
    violating_calls: int = 0
    violations: int = 0
    duration_us: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cache_hits: int = 0
    buckets: dict[int, int] = field(default_factory=dict)
    """Calls added to each bucket of the histogram."""

    def __add__(self, other: "RollupDelta") -> "RollupDelta":
        buckets = dict(self.buckets)
        for bucket, calls in other.buckets.items():
            buckets[bucket] = buckets.get(bucket, 0) + calls
        # By position, for each call of a batch: by name, it takes one and a half times as long.
        return RollupDelta(
            self.started + other.started,
            self.completed + other.completed,
            self.failed + other.failed,
            self.violating_calls + other.violating_calls,
            self.violations + other.violations,
            self.duration_us + other.duration_us,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cache_hits + other.cache_hits,
            buckets,
        )


type TraceKey = tuple[int, str]
type RollupKey = tuple[int, int, str, str]
"""Day, start of the hour or quarter in microseconds, tool and version."""
type ErrorKey = tuple[int, int, str, str, str]
"""The same for an hour, and the type of the error."""


@dataclass(slots=True)
class Deltas:
    """All additions of a request, by the key of their row."""

    traces: dict[TraceKey, TraceDelta] = field(default_factory=dict)
    quarters: dict[RollupKey, RollupDelta] = field(default_factory=dict)
    errors: dict[ErrorKey, int] = field(default_factory=dict)
    """Failed calls."""

    @property
    def hours(self) -> dict[RollupKey, RollupDelta]:
        """The sums of the quarters by hour. Most requests have a single quarter."""
        by_hour: dict[RollupKey, RollupDelta] = {}
        for (day, at_us, tool, version), delta in self.quarters.items():
            key = (day, at_us - at_us % HOUR_US, tool, version)
            by_hour[key] = by_hour[key] + delta if key in by_hour else delta
        return by_hour


def derive(
    rows: Iterable[Changed],
    *,
    withdrawn: Iterable[Changed] = (),
    decided: Iterable[Decided] = (),
) -> Deltas:
    """Sum up what `rows` add, and subtract `withdrawn`: rows that no longer count, as they were.

    Decisions count in their traces only: a call that did not run is in no figure of calls.
    """
    deltas = Deltas()
    for row in rows:
        _add(deltas, row, 1)
    for row in withdrawn:
        _add(deltas, row, -1)
    for each in decided:
        trace = _trace(deltas, each.day, each.trace_id, each.decided_us, each.tool_name)
        trace.last_us = max(trace.last_us, each.decided_us)
        trace.add_run(each.decided_us, each.run_id)
        trace.decisions += 1
    return deltas


def _add(deltas: Deltas, row: Changed, sign: int) -> None:
    is_completed = row.is_completed
    _add_to_trace(deltas, row, is_completed, sign)
    if not (row.is_new or is_completed):
        return
    started_us = row.started_us
    key = (row.day, started_us - started_us % QUARTER_US, row.tool_name, row.tool_version)
    rollup = deltas.quarters.get(key)
    if rollup is None:
        rollup = deltas.quarters[key] = RollupDelta()
    if row.is_new:
        rollup.started += sign
    if is_completed:
        _add_completion(rollup, row, sign)
        if row.state == "failed":
            hour_us = started_us - started_us % HOUR_US
            of_error = (row.day, hour_us, row.tool_name, row.tool_version, row.error_type)
            deltas.errors[of_error] = deltas.errors.get(of_error, 0) + sign


def _trace(deltas: Deltas, day: int, trace_id: str, at_us: int, tool_name: str) -> TraceDelta:
    """The delta of a trace with a call of this tool, or a decision about one, at this time."""
    trace = deltas.traces.get((day, trace_id))
    if trace is None:
        trace = deltas.traces[day, trace_id] = TraceDelta(at_us, tool_name, at_us)
    elif (at_us, tool_name) < (trace.first_started_us, trace.first_tool_name):
        trace.first_started_us, trace.first_tool_name = at_us, tool_name
    return trace


def _add_to_trace(deltas: Deltas, row: Changed, is_completed: bool, sign: int) -> None:
    started_us = row.started_us
    last_us = started_us if row.ended_us is None else max(started_us, row.ended_us)
    trace = _trace(deltas, row.day, row.trace_id, started_us, row.tool_name)
    trace.last_us = max(trace.last_us, last_us)
    trace.add_run(started_us, row.run_id)
    trace.started += sign * row.is_new
    if is_completed:
        trace.completed += sign
        trace.failed += sign * (row.state == "failed")
        trace.violations += sign * row.violation_count
        trace.prompt_tokens += sign * row.prompt_tokens
        trace.completion_tokens += sign * row.completion_tokens
    elif row.took_end:
        trace.cancelled += sign


def _add_completion(rollup: RollupDelta, row: Changed, sign: int) -> None:
    duration_us = row.duration_us or 0
    rollup.completed += sign
    rollup.failed += sign * (row.state == "failed")
    rollup.violating_calls += sign * (row.violation_count > 0)
    rollup.violations += sign * row.violation_count
    rollup.duration_us += sign * duration_us
    rollup.prompt_tokens += sign * row.prompt_tokens
    rollup.completion_tokens += sign * row.completion_tokens
    rollup.cache_hits += sign * (row.cache_hit is True)
    bucket = bucket_of(duration_us)
    rollup.buckets[bucket] = rollup.buckets.get(bucket, 0) + sign
