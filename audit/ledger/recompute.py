"""Recompute a batch's entries from the stored bytes, and compare them with its leaves.

Two ids may be missing from an event's raw bytes. Its event id is then made from its line number in
the request. An ADK event's invocation id includes a number among equal events. Both depend on other
lines: rejected and empty lines are not in the log, and erased ones cannot be read. So the ids are
searched for, within the number of lines that a request can have (`_Naming`).
"""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast
from uuid import UUID, uuid5

import msgspec
from tooltrail.ledger import HASH_LENGTH, NO_INVOCATION, Entry, Kind, commit_of, leaf_of

from audit.events import wire
from audit.events.body import Line
from audit.events.candidates import Candidate, adk_invocation_id, read_logged
from audit.events.instants import microseconds
from audit.events.limits import MAX_LINES, LimitExceededError
from audit.log.payload import LogPayloadError, unpack

_NUMBERS_MAX = 2 * MAX_LINES + 1
"""The highest line number: `audit.events.body` also counts empty lines."""
_TRIES_MAX = 3_000_000
"""Tries per batch before an event counts as altered. A sender cannot make more tries necessary:
rejected and empty lines are not in the log, so no ids are searched for them.
"""
_KINDS = {kind.name.lower(): kind for kind in Kind}


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


class Remade(msgspec.Struct, frozen=True, gc=False):
    """An entry recomputed from the stored bytes; None if they are erased or do not match."""

    entry: Entry | None
    leaf: bytes
    """The stored leaf."""
    salt: bytes
    raw: bytes
    """`salt` and `raw` are empty for an erased event."""
    candidate: Candidate | None = None
    """The event of an executor, as it was read."""


def remake(batch: StoredBatch) -> list[Remade]:
    """Recompute the batch's entries. Raises LogPayloadError if its payload is damaged."""
    leaves = [
        batch.leaves[at : at + HASH_LENGTH] for at in range(0, len(batch.leaves), HASH_LENGTH)
    ]
    if len(leaves) != batch.event_count:
        raise LogPayloadError(f"has {len(leaves):,} leaves and {batch.event_count:,} events")
    if batch.payload is None:
        return [Remade(None, leaf, b"", b"") for leaf in leaves]
    events = unpack(batch.payload)
    if len(events) != len(leaves):
        raise LogPayloadError(f"holds {len(events):,} events, not {len(leaves):,}")
    received_us = microseconds(batch.received_at)
    naming = None if batch.is_own else _Naming(batch, [raw for _, raw in events])
    remade = []
    for position, ((salt, raw), leaf) in enumerate(zip(events, leaves, strict=True)):
        entry = candidate = None
        if raw:
            made = _Made(leaf, received_us, len(raw), commit_of(salt, raw))
            entry = (
                _find_own(raw, made.entry) if naming is None else naming.find(position, made.entry)
            )
            candidate = None if naming is None else naming.candidate(position)
        remade.append(Remade(entry, leaf, salt, raw, candidate))
    return remade


class _Made(msgspec.Struct, frozen=True, gc=False):
    """An event's leaf and the members of its entry, without kind and ids."""

    leaf: bytes
    received_us: int
    length: int
    commit: bytes

    def entry(self, kind: Kind, event_id: UUID, invocation_id: UUID) -> Entry | None:
        """The entry with this kind and these ids; None if it does not hash to the leaf."""
        entry = Entry(
            kind=kind,
            event_id=event_id,
            invocation_id=invocation_id,
            received_us=self.received_us,
            raw_length=self.length,
            commit=self.commit,
        )
        return entry if leaf_of(entry.to_bytes()) == self.leaf else None


type _Fits = Callable[[Kind, UUID, UUID], Entry | None]
"""Takes a kind, an event id and an invocation id; returns the entry if they match the leaf."""
type _Name = tuple[int, UUID, int, UUID]
"""Ids that an event may have: number of absent lines before it in that case, event id, number
among equal events, invocation id.
"""
type _Equal = tuple[Kind, UUID]
"""Identifies ADK events that are counted together: kind, and invocation id of the first."""


def _find_own(raw: bytes, fits: _Fits) -> Entry | None:
    try:
        document = json.loads(raw)
        return fits(_KINDS[document["type"]], UUID(document["event_id"]), NO_INVOCATION)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


class _Naming:
    """Finds the ids of a batch's events, one after the other.

    The result for one event tells where to start with the next: lines absent before one event are
    absent before all later ones, and each of several equal calls has a higher number.
    """

    def __init__(self, batch: StoredBatch, raws: Sequence[bytes]) -> None:
        lines = [Line(position + 1, raw) for position, raw in enumerate(raws) if raw]
        try:
            reading = read_logged(lines, batch.batch_id, batch.received_at)
            read = [*reading.candidates, *reading.findings]
        except LimitExceededError:  # no accepted request exceeds the limits
            read = []
        self._by_position = {candidate.line - 1: candidate for candidate in read}
        self._batch_id = batch.batch_id
        self._erased = [position for position, raw in enumerate(raws) if not raw]
        self._absent = 0
        self._seen: Counter[_Equal] = Counter()
        self._next: Counter[_Equal] = Counter()
        self._tries = 0

    def candidate(self, position: int) -> Candidate | None:
        """The event at a position, as it was read."""
        return self._by_position.get(position)

    def find(self, position: int, fits: _Fits) -> Entry | None:
        """The entry of the event at a position. Call it with ascending positions."""
        candidate = self._by_position.get(position)
        if candidate is None:
            return None
        equal = _equal(candidate)
        if equal is None:
            names = self._numbered(candidate)
        else:
            names = self._counted(candidate, equal)
            self._seen[equal] += 1
        for absent, event_id, k, invocation_id in names:
            if entry := fits(candidate.kind, event_id, invocation_id):
                self._absent = absent
                if equal is not None:
                    self._next[equal] = k + 1
                return entry
            self._tries += 1
            if self._tries > _TRIES_MAX:
                break
        return None

    def _numbered(self, candidate: Candidate) -> Iterator[_Name]:
        if candidate.kind is Kind.FINDING or candidate.event.event_id is not None:
            yield self._absent, candidate.event_id, 0, candidate.invocation_id
            return
        if not self._absent:  # then it was read with its number in the request
            yield 0, candidate.event_id, 0, candidate.invocation_id
        for absent in range(self._absent or 1, _NUMBERS_MAX - candidate.line + 1):
            event_id = uuid5(self._batch_id, str(candidate.line + absent))
            yield absent, event_id, 0, candidate.invocation_id

    def _counted(self, candidate: Candidate, equal: _Equal) -> Iterator[_Name]:
        event = cast(wire.CallEvent, candidate.event)
        first = self._next[equal]
        known = self._seen[equal] + bisect_left(self._erased, candidate.line - 1)
        # Nearly always no equal event is absent since the last one, so try the next number first.
        for is_likely in (True, False):
            for absent, event_id, *_ in self._numbered(candidate):
                most = absent if event.event_id is None else _NUMBERS_MAX - candidate.line
                for k in (first,) if is_likely else range(first + 1, known + most):
                    yield absent, event_id, k, adk_invocation_id(candidate.started_us, event, k)


def _equal(candidate: Candidate) -> _Equal | None:
    event = candidate.event
    if candidate.kind not in (Kind.START, Kind.END) or not isinstance(event, wire.CallEvent):
        return None
    if event.invocation_id is not None:
        return None
    return candidate.kind, adk_invocation_id(candidate.started_us, event, 0)
