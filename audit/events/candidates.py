"""The events that a request would add to the log, with their ids and times.

Pure. Turns lines into candidates, or into rejections for the inbox. `audit.intake.ingest` handles
all that depends on stored data: duplicates, conflicts, days without a partition.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID, uuid5

import msgspec
from tooltrail.events import ID_MAX_LENGTH, INTERIM_STATES, decided_call_id
from tooltrail.ledger import NO_INVOCATION, Kind
from tooltrail.mcp_results import TOOL_ERROR

from audit.events import wire
from audit.events.body import Line
from audit.events.decode import (
    RefusedLineError,
    TooDeepError,
    decode_line,
    event_id_in,
    without_unsafe_escapes,
)
from audit.events.definitions import Sighting
from audit.events.findings import Finding, FindingEvent, read_finding_event
from audit.events.instants import DAY_US, Instants, microseconds
from audit.events.limits import MAX_DEPTH, LimitExceededError
from audit.events.outputs import mcp_report
from audit.events.reported import is_beside
from audit.events.reported_context import NOTHING, ReportedContext, reported_context

SEEN_WITHIN_US = 35 * DAY_US  # definitions may arrive this late, as calls may
CLOCKS_DIFFER_US = DAY_US  # how far a time may be ahead of our clock, and an end before its start

# Namespace of the ids made for ADK events, which have none. Never change it.
_ADK_NAMESPACE = UUID("6a1f0a3c-3f0e-5d8b-9f57-6d1c1f3b7a52")


class Candidate(msgspec.Struct, eq=False, gc=False):
    """An event that may enter the log. Times are in microseconds, `day` in days, since 1970 in UTC.

    `line` is its line number in its request, which is stored as batch `batch_id`. `position` is its
    place among the events of that batch, set as soon as it is known. A gap has no invocation, times
    or day; a decision's time is `started_us`. `finding` is what the server finds wrong with the
    output of an end event.
    """

    batch_id: UUID
    line: int
    raw: bytes
    event: wire.WireEvent
    event_id: UUID
    kind: Kind
    invocation_id: UUID = NO_INVOCATION
    started_us: int = 0
    ended_us: int = 0
    day: int = 0
    position: int = -1
    finding: Finding | None = None
    server: str | None = None
    """The MCP server, as it names itself in its result."""
    context: ReportedContext = NOTHING
    """Of a start event or a decision."""
    interim_state: str | None = None
    """The state of the open call, if this is an interim event: waiting or working."""

    @property
    def is_beside(self) -> bool:
        """Whether it has the spans of a call that an executor itself reported."""
        otlp = getattr(self.event, "otlp", None)  # a gap has none
        return otlp is not None and otlp.of_executor and is_beside(self.raw)


@dataclass(frozen=True, slots=True)
class Rejection:
    """A line for the inbox, and the reason. `raw` is the part that may be kept."""

    line: int
    event_id: UUID | None
    code: str
    message: str
    raw: bytes
    raw_length: int


@dataclass(slots=True)
class Reading:
    """The result of reading a request's lines."""

    candidates: list[Candidate] = field(default_factory=list)
    findings: list[Candidate] = field(default_factory=list)
    """Finding events of a logged batch: what the server found in the outputs of its ends."""
    sightings: list[Sighting] = field(default_factory=list)
    """What servers said of their tools. Not part of the log (`audit.intake.definitions`)."""
    rejections: list[Rejection] = field(default_factory=list)


def read_logged(lines: Sequence[Line], batch_id: UUID, now: datetime) -> Reading:
    """Read a batch of the log: the events sent, and the findings that the server added.

    A line's number is its position plus one. Raises LimitExceededError as `read_lines` does.
    """
    findings = {line.number: event for line in lines if (event := read_finding_event(line.raw))}
    sent = [line for line in lines if line.number not in findings] if findings else lines
    reading = read_lines(sent, batch_id, now)
    if not findings:
        return reading
    raws = {line.number: line.raw for line in lines}
    ends = {each.line: each for each in reading.candidates if each.kind is Kind.END}
    for number, event in findings.items():
        end = ends.get(event.end_position + 1)
        if end is not None:
            end.finding = Finding(b"", event.violations)
            reading.findings.append(_as_of(end, number, raws[number], event))
    return reading


def read_lines(lines: Sequence[Line], batch_id: UUID, now: datetime) -> Reading:
    """Read a request's lines. Raises LimitExceededError for a line that is nested too deeply."""
    reading = Reading()
    instants = Instants()
    now_us = microseconds(now)
    seen: Counter[str] = Counter()
    for line in lines:
        try:
            event = decode_line(line.raw, instants)
        except RefusedLineError as refused:
            reading.rejections.append(
                Rejection(
                    line=line.number,
                    event_id=event_id_in(line.raw),
                    code=refused.code,
                    message=refused.message,
                    raw=refused.raw,
                    raw_length=len(line.raw),
                )
            )
            continue
        except TooDeepError:
            raise LimitExceededError(
                "too_deep", f"line {line.number} is nested deeper than {MAX_DEPTH}"
            ) from None
        if isinstance(event, Sighting):
            refusal = _unseen(event, now_us)
            if refusal is None:
                reading.sightings.append(event)
            else:
                reading.rejections.append(
                    Rejection(
                        line=line.number,
                        event_id=event_id_in(line.raw),
                        code=refusal[0],
                        message=refusal[1],
                        raw=line.raw,
                        raw_length=len(line.raw),
                    )
                )
            continue
        candidate = Candidate(
            batch_id=batch_id,
            line=line.number,
            raw=line.raw,
            event=event,
            event_id=event.event_id or uuid5(batch_id, str(line.number)),
            kind=event.kind,
        )
        if event.kind is not Kind.GAP:
            _place(candidate, event, instants, seen)
            refusal = _untimely(candidate, now_us)
            if refusal is not None:
                reading.rejections.append(reject(candidate, *refusal))
                continue
        reading.candidates.append(candidate)
    return reading


def _as_of(end: Candidate, line: int, raw: bytes, finding: FindingEvent) -> Candidate:
    """A finding as a candidate. It belongs to the end's call and shares its times and day."""
    return Candidate(
        batch_id=end.batch_id,
        line=line,
        raw=raw,
        event=end.event,
        event_id=finding.event_id,
        kind=Kind.FINDING,
        invocation_id=finding.invocation_id,
        started_us=end.started_us,
        ended_us=end.ended_us,
        day=end.day,
    )


def reject(candidate: Candidate, code: str, message: str) -> Rejection:
    """Make the rejection of a candidate."""
    raw = candidate.raw
    return Rejection(
        line=candidate.line,
        event_id=candidate.event_id,
        code=code,
        message=message,
        raw=raw,
        raw_length=len(raw),
    )


def _take_result(event: wire.EndEvent, raw: bytes) -> str | None:
    """If an MCP result reports an error, give the event the envelope of a failed call.

    Returns the server that it names.
    """
    message, server = mcp_report(without_unsafe_escapes(raw))
    if message is not None and (event.output is None or event.output.status != "error"):
        failure = wire.EnvelopeError(type=TOOL_ERROR, message=message)
        meta = None if event.output is None else event.output.meta
        event.output = wire.Envelope(status="error", error=failure, meta=meta)
    return server


def _place(
    candidate: Candidate,
    event: wire.StartEvent | wire.EndEvent | wire.DecisionEvent,
    instants: Instants,
    seen: Counter[str],
) -> None:
    """Set what is known of the event of a call: its times, its call, what it reports."""
    candidate.started_us = instants.read(event.started_at)
    candidate.day = candidate.started_us // DAY_US
    if event.kind is not Kind.END:
        candidate.context, conversation = reported_context(event.context)
        if conversation and event.run_id is None and event.ingestion_run_id is None:
            event.run_id = conversation[:ID_MAX_LENGTH]
    if event.kind is Kind.DECISION:
        candidate.invocation_id = event.invocation_id or _decided_call_id(candidate, event)
        return
    if event.kind is Kind.END:
        candidate.ended_us = instants.read(event.ended_at)
        if event.call_state in INTERIM_STATES:
            candidate.interim_state = event.call_state
        if event.output_type is not None:
            candidate.server = _take_result(event, candidate.raw)
    candidate.invocation_id = event.invocation_id or _adk_id(candidate, event, seen)


def _decided_call_id(candidate: Candidate, event: wire.DecisionEvent) -> UUID:
    """The invocation id for a decision without one: the same for each decision about its call.

    Without a `tool_call_id` its call is not known, so the decision gets an id of its own. The id is
    not made from the line's number, because the log does not have it.
    """
    which = event.tool_call_id
    if which is None:
        which = str(event.event_id or f"{event.tool_name}\x1f{candidate.started_us}")
    return decided_call_id(event.trace_id, which)


def adk_invocation_id(started_us: int, event: wire.CallEvent, k: int) -> UUID:
    """The invocation id of an ADK event, from turn, call id, start and its number among equals."""
    return uuid5(_ADK_NAMESPACE, f"{_what(started_us, event)}\x1f{k}")


def _adk_id(candidate: Candidate, event: wire.CallEvent, seen: Counter[str]) -> UUID:
    """Make an invocation id that keeps identical calls in the same millisecond apart.

    Equal events are counted within one request. So all starts of such calls must come in one
    request, and all ends in one request.
    """
    kind_and_what = f"{candidate.kind}\x1f{_what(candidate.started_us, event)}"
    k = seen[kind_and_what]
    seen[kind_and_what] = k + 1
    return adk_invocation_id(candidate.started_us, event, k)


def _what(started_us: int, event: wire.CallEvent) -> str:
    return f"{event.turn_id or ''}\x1f{event.call_id}\x1f{started_us}"


def _unseen(sighting: Sighting, now_us: int) -> tuple[str, str] | None:
    if sighting.seen_us > now_us + CLOCKS_DIFFER_US:
        return "in_future", "seen_at is more than a day ahead of the server's clock"
    if sighting.seen_us < now_us - SEEN_WITHIN_US:
        return "out_of_range", "seen_at is more than 35 days ago"
    return None


def _untimely(candidate: Candidate, now_us: int) -> tuple[str, str] | None:
    if candidate.started_us > now_us + CLOCKS_DIFFER_US:
        name = "decided_at" if candidate.kind is Kind.DECISION else "started_at"
        return "in_future", f"{name} is more than a day ahead of the server's clock"
    if candidate.kind is not Kind.END:
        return None
    if candidate.ended_us > now_us + CLOCKS_DIFFER_US:
        return "in_future", "ended_at is more than a day ahead of the server's clock"
    if candidate.ended_us < candidate.started_us - CLOCKS_DIFFER_US:
        return "ended_before_started", "ended_at is more than a day before started_at"
    return None
