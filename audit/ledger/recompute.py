"""A batch's entries made again of what is stored, and whether they are those of its leaves.

Two ids are not in an event that came without: its own, which is made of its line's number in the
request, and an ADK event's invocation, which counts equal ones. Lines that were refused are not in
the log, so that both are looked for, among as many as a request can have.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid5

from tooltrail.ledger import NO_INVOCATION, Entry, Kind, commit_of, leaf_of

from audit import wire
from audit.body import Line
from audit.candidates import Candidate, adk_invocation_id, read_logged
from audit.instants import microseconds
from audit.limits import MAX_LINES, LimitExceededError
from audit.log import LogPayloadError, unpack

_EQUAL_CALLS_MAX = 32
_KINDS = {kind.name.lower(): kind for kind in Kind}
_LEAF = 32


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A row of the log."""

    batch_id: UUID
    received_at: datetime
    first_index: int
    event_count: int
    leaves: bytes
    payload: bytes | None
    is_own: bool


@dataclass(frozen=True, slots=True)
class Remade:
    """An entry as it follows from the stored bytes; None where they are erased, or others."""

    entry: Entry | None
    leaf: bytes
    """As stored."""
    salt: bytes
    raw: bytes
    """Both empty for an erased event."""


def remake(batch: StoredBatch) -> list[Remade]:
    """The batch's entries. Raises LogPayloadError where its payload is damaged."""
    leaves = [batch.leaves[at : at + _LEAF] for at in range(0, len(batch.leaves), _LEAF)]
    if len(leaves) != batch.event_count:
        raise LogPayloadError(f"has {len(leaves):,} leaves and {batch.event_count:,} events")
    if batch.payload is None:
        return [Remade(None, leaf, b"", b"") for leaf in leaves]
    events = unpack(batch.payload)
    if len(events) != len(leaves):
        raise LogPayloadError(f"holds {len(events):,} events, not {len(leaves):,}")
    possible = _own if batch.is_own else _of_executors
    received_us = microseconds(batch.received_at)
    remade = []
    for (salt, raw), leaf, ids in zip(
        events, leaves, possible(batch, [raw for _, raw in events]), strict=True
    ):
        found = None
        if raw:
            commit = commit_of(salt, raw)
            for kind, event_id, invocation_id in ids:
                entry = Entry(kind, event_id, invocation_id, received_us, len(raw), commit)
                if leaf_of(entry.to_bytes()) == leaf:
                    found = entry
                    break
        remade.append(Remade(found, leaf, salt, raw))
    return remade


type _Ids = Iterator[tuple[Kind, UUID, UUID]]
"""Kind, event id and invocation id an event may have entered the ledger with."""


def _own(batch: StoredBatch, raws: Sequence[bytes]) -> Iterator[_Ids]:
    for raw in raws:
        yield _own_ids(raw)


def _own_ids(raw: bytes) -> _Ids:
    try:
        document = json.loads(raw)
        yield _KINDS[document["type"]], UUID(document["event_id"]), NO_INVOCATION
    except (ValueError, KeyError, TypeError, AttributeError):
        return


def _of_executors(batch: StoredBatch, raws: Sequence[bytes]) -> Iterator[_Ids]:
    lines = [Line(position + 1, raw) for position, raw in enumerate(raws) if raw]
    try:
        reading = read_logged(lines, batch.batch_id, batch.received_at)
        read = [*reading.candidates, *reading.findings]
    except LimitExceededError:  # nothing that was let in
        read = []
    by_position = {candidate.line - 1: candidate for candidate in read}
    for position in range(len(raws)):
        yield _ids_of(by_position.get(position), batch.batch_id)


def _ids_of(candidate: Candidate | None, batch_id: UUID) -> _Ids:
    if candidate is None:
        return
    if candidate.kind is Kind.FINDING:
        yield candidate.kind, candidate.event_id, candidate.invocation_id
        return
    event = candidate.event
    event_ids: Iterator[UUID] = iter([candidate.event_id])
    if event.event_id is None:
        event_ids = (uuid5(batch_id, str(n)) for n in range(candidate.line, MAX_LINES + 1))
    equal_calls = 0
    if isinstance(event, wire.CallEvent) and event.invocation_id is None:
        equal_calls = _EQUAL_CALLS_MAX
    for event_id in event_ids:
        yield candidate.kind, event_id, candidate.invocation_id
        for k in range(equal_calls):
            assert isinstance(event, wire.CallEvent)
            yield candidate.kind, event_id, adk_invocation_id(candidate.started_us, event, k)
