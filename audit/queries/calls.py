"""The calls of a trace, and one call with its violations and related calls."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID

from audit.queries.call_filter import UNRUN
from audit.queries.decisions import Decision, latest_decisions
from audit.queries.traces import MERGE_DAYS, TraceDay, merge_days
from audit.sql.run import rows, rows_prepared

TIMELINE_LIMIT = 5_000
"""Maximum calls of one trace that are drawn."""


State = Literal[
    "open", "waiting", "working", "ok", "failed", "cancelled", "refused", "awaiting", "approved"
]
"""The first three are of calls without an end, the last three of calls that were decided about and
have not run."""
Tone = Literal[State, "violation"]


def tone_of(state: State, violation_count: int) -> Tone:
    """Colour and shape of a call: failed takes precedence over a violation, that over the rest."""
    return "violation" if violation_count and state != "failed" else state


# `Call` and `CallDetail` are not frozen: creating a frozen object takes ten times as long, 45 ms
# for a long trace.
@dataclass(slots=True)
class Call:
    """A call as its row in the timeline shows it."""

    started_on: date
    invocation_id: UUID
    started_at: datetime
    ended_at: datetime | None
    duration_us: int | None
    state: State
    tool_name: str
    tool_version: str
    trace_id: str
    parent_invocation_id: UUID | None
    call_id: str
    error_type: str
    error_code: str | None
    error_message: str | None
    upstream_status: int | None
    retry_after_ms: int | None
    attempt: int | None
    guard_strategy: str | None
    guard_outcome: str | None
    violation_count: int
    prompt_tokens: int
    completion_tokens: int
    cache_hit: bool | None
    timeouts_ms: int | None
    run_id: str | None

    @property
    def tone(self) -> Tone:
        """Its colour and shape."""
        return tone_of(self.state, self.violation_count)


@dataclass(slots=True)
class CallDetail(Call):
    """A call with its context, and the places of its two events in the log."""

    tool_call_id: str | None
    turn_id: str | None
    ingestion_run_id: str | None
    workflow_id: str | None
    collection_id: str | None
    document_id: str | None
    document_version_id: str | None
    case_id: str | None
    idempotency_key: str | None
    budget_tokens: int | None
    locale: str | None
    safety_mode: str | None
    producer_id: str | None
    start_batch_id: UUID | None
    start_pos: int | None
    end_batch_id: UUID | None
    end_pos: int | None
    pair_conflict: bool
    interim_state: str | None
    interim_at: datetime | None
    interim_batch_id: UUID | None
    interim_pos: int | None
    mcp_server: str | None
    mcp_client: str | None
    mcp_protocol: str | None
    agent: str | None
    agent_version: str | None
    model: str | None
    provider: str | None
    principal: str | None
    environment: str | None
    service: str | None


@dataclass(frozen=True, slots=True)
class FirstViolation:
    """The first violation of a call, as its row shows it."""

    path: str
    code: str


@dataclass(frozen=True, slots=True)
class CallViolation:
    """A violation of one call."""

    ordinal: int
    path: str
    code: str
    severity: str
    expected: str
    received: str
    strategy: str
    outcome: str
    found_by: str


@dataclass(frozen=True, slots=True)
class AlikeCall:
    """Another call of the same tool with the same arguments."""

    started_on: date
    invocation_id: UUID
    started_at: datetime
    state: State
    violation_count: int
    trace_id: str

    @property
    def tone(self) -> Tone:
        """Its colour and shape."""
        return tone_of(self.state, self.violation_count)


@dataclass(frozen=True, slots=True)
class TraceDetail:
    """A trace and its calls; `is_cut` if it has more calls than are drawn."""

    summary: TraceDay
    calls: list[Call]
    violations: dict[UUID, FirstViolation]
    is_cut: bool
    decisions: Mapping[UUID, Decision] = field(default_factory=dict)
    """The latest decision about each call that did not run."""


def trace_detail(trace_id: str, *, limit: int = TIMELINE_LIMIT) -> TraceDetail | None:
    """A trace with its first `limit` calls by start, or None. Three or four statements.

    Two more for a trace with decisions: calls that did not run are among its calls, at the time of
    their latest decision.
    """
    parameters: dict[str, Any] = {"trace_id": trace_id, "limit": limit + 1}
    calls = [Call(*row) for row in rows_prepared("trace_calls", parameters)]
    if not calls:
        calls = _unrun_calls(trace_id, limit=limit + 1)
    if not calls:
        return None
    is_cut = len(calls) > limit
    calls = _under_calls_above(calls[:limit])
    days = sorted({call.started_on for call in calls})
    if is_cut:  # calls that were not read may have started later
        days += [days[-1] + timedelta(days=n) for n in range(1, MERGE_DAYS + 1)]
    parts = [
        TraceDay(*row) for row in rows("trace_days_of", {"days": days, "trace_ids": [trace_id]})
    ]
    if any(part.decision_count for part in parts) and calls[0].state not in UNRUN:
        unrun = _unrun_calls(trace_id, limit=limit + 1 - len(calls))
        calls = sorted([*calls, *unrun], key=lambda call: (call.started_at, call.invocation_id))
        is_cut, calls = is_cut or len(calls) > limit, calls[:limit]
    broken = [call for call in calls if call.violation_count]
    violations: dict[UUID, FirstViolation] = {}
    if broken:
        parameters = {
            "days": sorted({call.started_on for call in broken}),
            "invocation_ids": [call.invocation_id for call in broken],
        }
        violations = {
            row[0]: FirstViolation(*row[1:]) for row in rows("first_violations", parameters)
        }
    return TraceDetail(merge_days(parts), calls, violations, is_cut, latest_decisions(calls))


def _unrun_calls(trace_id: str, *, limit: int) -> list[Call]:
    """The first calls of a trace that have decisions and did not run."""
    parameters = {
        "trace_id": trace_id,
        "limit": max(0, limit),
        "first_day": date.min,
        "last_day": date.max - timedelta(days=7),
    }
    return [Call(*row) for row in rows("trace_unrun_calls", parameters)]


def call_detail(started_on: date, invocation_id: UUID) -> CallDetail | None:
    """One call by its day and id, or None. A call that did not run has its latest decision's day.

    At most three statements if the call ran.
    """
    return next(iter(_under_calls_above(_details(started_on, invocation_id))), None)


def detail_of(call: Call) -> CallDetail | None:
    """All about a call that was read with its trace, which knows the call above it.

    None if it was erased since. One statement if the call ran.
    """
    matches = _details(call.started_on, call.invocation_id)
    above = call.parent_invocation_id
    return replace(matches[0], parent_invocation_id=above) if matches else None


def _details(started_on: date, invocation_id: UUID) -> list[CallDetail]:
    """The call, with the parent that was reported; an empty list if there is no such call."""
    parameters = {"started_on": started_on, "invocation_id": invocation_id}
    matches = [CallDetail(*row) for row in rows("call", parameters)]
    if not matches:
        days = {"first_day": started_on, "last_day": started_on}
        matches = [CallDetail(*row) for row in rows("unrun_call_detail", parameters | days)]
    return matches


def call_of_span(started_on: date, span_uuid: UUID) -> tuple[date, UUID] | None:
    """The day and id of the call that a span was merged into, or None."""
    parameters = {"started_on": started_on, "span_uuid": span_uuid}
    matches = rows("call_of_span", parameters)
    return (matches[0][0], matches[0][1]) if matches else None


def _under_calls_above[C: Call](calls: list[C]) -> list[C]:
    """The calls, with a parent call wherever OpenTelemetry spans lead to one.

    This is looked up in two cases: the parent that OTLP named is a span that is not a call or only
    a part of one; or an executor named no parent, and its call ran in a span. At most two
    statements, none if there are no such calls.
    """
    # By their numbers: Python hashes UUIDs in Python code, which is slow for a long trace.
    parents = {
        parent.int: parent for call in calls if (parent := call.parent_invocation_id) is not None
    }
    own = {call.invocation_id.int for call in calls} if parents else set()
    unknown = [parent for number, parent in parents.items() if number not in own]
    outermost = [call for call in calls if call.parent_invocation_id is None]
    if not unknown and not outermost:
        return calls
    own_days = {call.started_on for call in calls}
    days = {day + timedelta(days=away) for day in own_days for away in (-1, 0, 1)}
    if not unknown and not rows("any_span", {"days": sorted(days)})[0][0]:
        return calls
    parameters: dict[str, Any] = {
        "span_uuids": unknown,
        "call_ids": [call.invocation_id for call in outermost],
        "call_days": [call.started_on for call in outermost],
        "days": sorted(days),
    }
    above: dict[UUID, UUID] = dict(rows("calls_above", parameters))
    return [
        replace(call, parent_invocation_id=caller_id)
        if (caller_id := above.get(call.parent_invocation_id or call.invocation_id)) is not None
        else call
        for call in calls
    ]


def call_violations(call: Call) -> list[CallViolation]:
    """The violations of a call, in the order in which they were found."""
    parameters = {"started_on": call.started_on, "invocation_id": call.invocation_id}
    return [CallViolation(*row) for row in rows("call_violations", parameters)]


def calls_alike(call: Call, *, limit: int = 20) -> list[AlikeCall]:
    """The newest other calls of the same tool with the same arguments."""
    parameters = {
        "call_id": call.call_id,
        "started_on": call.started_on,
        "invocation_id": call.invocation_id,
        "limit": limit,
    }
    return [AlikeCall(*row) for row in rows_prepared("calls_alike", parameters)]


class CallKey(NamedTuple):
    """A call's day (UTC) and id, which identify it."""

    started_on: date
    invocation_id: UUID


@dataclass(frozen=True, slots=True)
class Beside:
    """The previous and the next failed or violating call."""

    previous: CallKey | None
    next: CallKey | None


def failures_beside(call: Call) -> Beside:
    """The previous and the next failed or violating call in the trace of a call."""
    parameters = {
        "trace_id": call.trace_id,
        "started_on": call.started_on,
        "started_at": call.started_at,
        "invocation_id": call.invocation_id,
    }
    nearest = {row[0]: CallKey(row[1], row[2]) for row in rows("failures_beside", parameters)}
    return Beside(nearest.get("previous"), nearest.get("next"))


def failures_beside_in(detail: TraceDetail, call: Call) -> Beside:
    """The same for a trace that was read already. Queries only if that trace is cut."""
    if detail.is_cut:
        return failures_beside(call)
    here = (call.started_at, call.invocation_id)
    broken = [
        ((one.started_at, one.invocation_id), CallKey(one.started_on, one.invocation_id))
        for one in detail.calls
        if one.state == "failed" or one.violation_count
    ]
    return Beside(
        previous=next((key for at, key in reversed(broken) if at < here), None),
        next=next((key for at, key in broken if at > here), None),
    )
