"""What a request wants to add to the log: its events with their ids and places in time.

Pure. From lines to candidates, or to refusals for the inbox. What depends on what is stored
already (duplicates, conflicts, days without a partition) is `audit.intake.ingest`'s.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID, uuid5

import msgspec
from tooltrail.ledger import NO_INVOCATION, Kind

from audit.events import wire
from audit.events.body import Line
from audit.events.decode import (
    RefusedLineError,
    TooDeepError,
    decode_line,
    event_id_in,
)
from audit.events.findings import Finding, FindingEvent, read_finding_event
from audit.events.instants import DAY_US, Instants, microseconds
from audit.events.limits import MAX_DEPTH, LimitExceededError

CLOCKS_DIFFER_US = DAY_US  # how far a time may lie ahead of ours, or an end before its start

# Namespace of the ids given to ADK events, which have none. Never to be changed.
_ADK_NAMESPACE = UUID("6a1f0a3c-3f0e-5d8b-9f57-6d1c1f3b7a52")


class Candidate(msgspec.Struct, eq=False, gc=False):
    """An event that may enter the log. Times are microseconds, days days since 1970 in UTC.

    `line` is its number in its request, whose batch is `batch_id`; `position` is its place among
    that batch's events, set once that is known. A gap has no invocation, times or day. `finding`
    is what the server finds wrong with an end's output.
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


@dataclass(frozen=True, slots=True)
class Rejection:
    """A line for the inbox, and why. `raw` is what may be kept of it."""

    line: int
    event_id: UUID | None
    code: str
    message: str
    raw: bytes
    raw_length: int


@dataclass(slots=True)
class Reading:
    """A request's lines, read."""

    candidates: list[Candidate] = field(default_factory=list)
    findings: list[Candidate] = field(default_factory=list)
    """Of a logged batch, the events that say what was found in its ends."""
    rejections: list[Rejection] = field(default_factory=list)


def read_logged(lines: Sequence[Line], batch_id: UUID, now: datetime) -> Reading:
    """Read a batch of the log: what was sent, and what the server found in it.

    A line's number is its position and one. Raises LimitExceededError, as `read_lines`.
    """
    found = {line.number: event for line in lines if (event := read_finding_event(line.raw))}
    sent = [line for line in lines if line.number not in found] if found else lines
    reading = read_lines(sent, batch_id, now)
    if not found:
        return reading
    raws = {line.number: line.raw for line in lines}
    ends = {each.line: each for each in reading.candidates if each.kind is Kind.END}
    for number, event in found.items():
        end = ends.get(event.end_position + 1)
        if end is not None:
            end.finding = Finding(b"", event.violations)
            reading.findings.append(_as_of(end, number, raws[number], event))
    return reading


def read_lines(lines: Sequence[Line], batch_id: UUID, now: datetime) -> Reading:
    """Read a request's lines. Raises LimitExceededError for one nested too deep."""
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
                    line.number,
                    event_id_in(line.raw),
                    refused.code,
                    refused.message,
                    refused.raw,
                    len(line.raw),
                )
            )
            continue
        except TooDeepError:
            raise LimitExceededError(
                "too_deep", f"line {line.number} is nested deeper than {MAX_DEPTH}"
            ) from None
        candidate = Candidate(
            batch_id,
            line.number,
            line.raw,
            event,
            event.event_id or uuid5(batch_id, str(line.number)),
            _kind(event),
        )
        if isinstance(event, wire.CallEvent):
            _place(candidate, event, instants, seen)
            refusal = _untimely(candidate, now_us)
            if refusal is not None:
                reading.rejections.append(reject(candidate, *refusal))
                continue
        reading.candidates.append(candidate)
    return reading


def _as_of(end: Candidate, line: int, raw: bytes, finding: FindingEvent) -> Candidate:
    """A finding as an event of the end's call: what is asked of the one is asked of the other."""
    return Candidate(
        end.batch_id,
        line,
        raw,
        end.event,
        finding.event_id,
        Kind.FINDING,
        finding.invocation_id,
        end.started_us,
        end.ended_us,
        end.day,
    )


def reject(candidate: Candidate, code: str, message: str) -> Rejection:
    """The rejection of a candidate."""
    raw = candidate.raw
    return Rejection(candidate.line, candidate.event_id, code, message, raw, len(raw))


def _kind(event: wire.WireEvent) -> Kind:
    if isinstance(event, wire.StartEvent):
        return Kind.START
    return Kind.END if isinstance(event, wire.EndEvent) else Kind.GAP


def _place(
    candidate: Candidate, event: wire.CallEvent, instants: Instants, seen: Counter[str]
) -> None:
    candidate.started_us = instants.read(event.started_at)
    candidate.day = candidate.started_us // DAY_US
    if isinstance(event, wire.EndEvent):
        candidate.ended_us = instants.read(event.ended_at)
    candidate.invocation_id = event.invocation_id or _adk_id(candidate, event, seen)


def adk_invocation_id(started_us: int, event: wire.CallEvent, k: int) -> UUID:
    """An ADK event's invocation: turn, call id, start, and which of the equal ones it is."""
    return uuid5(_ADK_NAMESPACE, f"{_what(started_us, event)}\x1f{k}")


def _adk_id(candidate: Candidate, event: wire.CallEvent, seen: Counter[str]) -> UUID:
    """Identical parallel calls of one millisecond stay two; their starts and their ends must
    each come in one request, which is where equal ones are counted.
    """
    kind_and_what = f"{candidate.kind}\x1f{_what(candidate.started_us, event)}"
    k = seen[kind_and_what]
    seen[kind_and_what] = k + 1
    return adk_invocation_id(candidate.started_us, event, k)


def _what(started_us: int, event: wire.CallEvent) -> str:
    return f"{event.turn_id or ''}\x1f{event.call_id}\x1f{started_us}"


def _untimely(candidate: Candidate, now_us: int) -> tuple[str, str] | None:
    if candidate.started_us > now_us + CLOCKS_DIFFER_US:
        return "in_future", "started_at lies more than a day ahead of the server's clock"
    if candidate.kind is not Kind.END:
        return None
    if candidate.ended_us > now_us + CLOCKS_DIFFER_US:
        return "in_future", "ended_at lies more than a day ahead of the server's clock"
    if candidate.ended_us < candidate.started_us - CLOCKS_DIFFER_US:
        return "ended_before_started", "ended_at lies more than a day before started_at"
    return None
