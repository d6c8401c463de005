"""The rule for which calls and events a hold covers. Pure.

A call is matched by its row in the index. SQL has the same rule (`call_is_held` in
`sql/holds.sql`); a test compares the two. An event is also matched by its own members: an end
event need not repeat the case of its start, and the index may no longer have the call. A rejected
line that cannot be read is matched by its text: to hold too much is better than too little.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from audit.events import wire
from audit.events.body import Line
from audit.events.candidates import Candidate, read_lines, read_logged
from audit.events.instants import instant_of
from audit.events.limits import LimitExceededError
from audit.ledger.recompute import StoredBatch, remake
from audit.models import LegalHold

_NAMED = ("trace_id", "case_id", "tool_name")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event of the log, for holds and erasures. `candidate` is None if it is unreadable."""

    position: int
    invocation_id: UUID | None
    """As in the ledger; None for a gap, or if it does not follow from the bytes."""
    size: int
    candidate: Candidate | None


def read_batch(batch: StoredBatch) -> list[LoggedEvent]:
    """The events of a batch that are not erased. Raises LogPayloadError if it is damaged."""
    remade = remake(batch)
    lines = [Line(position + 1, one.raw) for position, one in enumerate(remade) if one.raw]
    try:
        reading = read_logged(lines, batch.batch_id, batch.received_at)
        candidates = [*reading.candidates, *reading.findings]
    except LimitExceededError:  # intake would not have accepted it
        candidates = []
    by_position = {candidate.line - 1: candidate for candidate in candidates}
    events = []
    for position, one in enumerate(remade):
        if not one.raw:
            continue
        candidate = by_position.get(position)
        invocation_id = None
        if candidate is not None and isinstance(candidate.event, wire.CallEvent):
            # The event's own id, in case somebody altered bytes or leaf.
            invocation_id = candidate.invocation_id
            if one.entry is not None:
                invocation_id = one.entry.invocation_id
        events.append(LoggedEvent(position, invocation_id, len(one.raw), candidate))
    return events


def covers_call(
    hold: LegalHold,
    trace_id: str | None,
    case_id: str | None,
    tool_name: str,
    started_at: datetime,
) -> bool:
    """Whether a hold covers a call with these members."""
    own = {"trace_id": trace_id, "case_id": case_id, "tool_name": tool_name}
    return _covers(hold, lambda name, wanted: own[name] == wanted, [started_at])


def covers_event(holds: Sequence[LegalHold], candidate: Candidate | None) -> bool:
    """Whether one of the holds covers the event. Any hold covers an unreadable event."""
    if candidate is None:
        return bool(holds)
    event = candidate.event
    if not isinstance(event, wire.CallEvent):  # of a gap, only the time of arrival is known
        return any(not (hold.trace_id or hold.case_id or hold.tool_name) for hold in holds)
    started_at = instant_of(candidate.started_us)
    trace_id = event.trace_id or event.turn_id
    return any(
        covers_call(hold, trace_id, event.case_id, event.tool_name, started_at) for hold in holds
    )


def covers_line(holds: Sequence[LegalHold], raw: bytes, received_at: datetime) -> bool:
    """Whether one of the holds covers a rejected line: as an event, or by its text.

    The hold's values may occur anywhere in the line. Its arrival or its start must be in the
    hold's range.
    """
    moments = [received_at]
    if candidate := candidate_of(raw, received_at):
        if covers_event(holds, candidate):
            return True
        moments.append(instant_of(candidate.started_us))
    texts = _readings(raw) if holds else []
    return any(
        _covers(hold, lambda _, wanted: any(wanted in text for text in texts), moments)
        for hold in holds
    )


def candidate_of(raw: bytes, received_at: datetime) -> Candidate | None:
    """A line read as a call's event that arrived alone at that time; None if it is not one."""
    try:
        candidates = read_lines([Line(1, raw)], UUID(int=0), received_at).candidates
    except LimitExceededError:
        return None
    return candidates[0] if candidates and isinstance(candidates[0].event, wire.CallEvent) else None


def _covers(hold: LegalHold, has: Callable[[str, str], bool], moments: Iterable[datetime]) -> bool:
    """The rule: every value the hold names must match, and one of the moments be in its range.

    `has` says whether a member (its name) has the value that the hold names.
    """
    for name in _NAMED:
        wanted = getattr(hold, name)
        if wanted is not None and not has(name, wanted):
            return False
    return any(
        (hold.since is None or moment >= hold.since) and (hold.until is None or moment < hold.until)
        for moment in moments
    )


def _readings(raw: bytes) -> list[str]:
    """A line's text as it is, and with JSON escapes decoded once and twice.

    JSON within JSON is escaped twice.
    """
    texts = [raw.decode(errors="replace")]
    while "\\" in texts[-1] and len(texts) < 3:
        halves = _ESCAPE.sub(_meant, texts[-1]).encode("utf-16", "surrogatepass")
        texts.append(halves.decode("utf-16", "replace"))
    return texts


def _meant(escape: re.Match[str]) -> str:
    code, short = escape.groups()
    return chr(int(code, 16)) if code else _SHORT.get(short, short)
