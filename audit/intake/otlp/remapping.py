"""Read kept spans again, with the mapping of today: new events beside the old ones.

An event made of spans keeps them as they were sent, with the version of the mapping that made it.
A later version may read more in them. Where that changes a call, this writes a new account of it:
the same spans, under the same id and start. It replaces the earlier account in the index as a
fuller one does (`audit.events.reported`); the log keeps both. What the spans above a call said of
it stays as it was, because only calls keep their spans.

A chunk is one transaction, and a call is read only once. So an interrupted run continues
where it stopped.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from django.utils import timezone

from audit.events.batch_ids import BatchId
from audit.events.body import Line
from audit.events.instants import days_since_epoch, microseconds
from audit.events.redaction import redacted
from audit.events.spans import Span
from audit.intake.ingest import record_in_scope
from audit.intake.otlp.accounts import to_events
from audit.intake.otlp.conventions import MAPPING_VERSION
from audit.intake.otlp.joining import lock_traces
from audit.intake.otlp.mapping import ToolCall, map_spans
from audit.intake.retries import with_retries
from audit.log.payload import StoredEvent, read_events
from audit.sql import arrays
from audit.sql.run import Statements
from tenants.models import new_id
from tenants.scope import tenant_scope

_CALLS_AT_ONCE = 200
_BEGINNING = days_since_epoch(date.min), UUID(int=0)
_NOT_COMPARED = {"event_id", "otlp"}
_DECIDE_CALL_ID = {"tool_name", "args"}

type _Place = tuple[int, UUID]
"""A call's day since 1970, and its id."""


class _Source(msgspec.Struct):
    span: Span
    mapping_version: int = 1
    merged: list[Span] = []
    above: int = 0


class _Event(msgspec.Struct):
    otlp: _Source | None = None
    parent_invocation_id: UUID | None = None
    call_id: str | None = None
    context: dict[str, str] = {}


_EVENT = msgspec.json.Decoder(_Event)


@dataclass(slots=True)
class Remapped:
    """What reading a tenant's spans again changes, or did change. Counts of calls."""

    calls: int = 0
    """Made of spans."""
    older: int = 0
    """Those of them that an older mapping made."""
    changed: int = 0
    left: int = 0
    """Of the older ones, those whose spans are not exactly one call any more. They stay."""
    erased: int = 0
    """Those whose events were erased. They stay."""
    members: Counter[str] = field(default_factory=Counter)
    """How many calls change in which member of their events."""

    def add(self, other: "Remapped") -> None:
        """Add the counts of a chunk."""
        self.calls += other.calls
        self.older += other.older
        self.changed += other.changed
        self.left += other.left
        self.erased += other.erased
        self.members += other.members


class _Stored(NamedTuple):
    invocation_id: UUID
    started_us: int
    start: bytes
    end: bytes


def remap(tenant_id: UUID, *, is_dry: bool, progress: Callable[[int, int], None]) -> Remapped:
    """Read the kept spans of a tenant's calls again. Unless `is_dry`, write what changes.

    Executors may keep sending. Raises LogPayloadError if a payload of the log is damaged.
    """
    with tenant_scope(tenant_id):
        ((size,),) = Statements(timezone.now()).run("count_calls_of_spans")
    total = Remapped()
    after: _Place | None = _BEGINNING
    while after is not None:
        chunk = _Chunk(tenant_id, after, is_dry=is_dry)
        with_retries(chunk.run)
        total.add(chunk.counts)
        after = chunk.last
        progress(total.calls, max(size, total.calls))
    return total


class _Chunk:
    """The next calls, in one transaction."""

    def __init__(self, tenant_id: UUID, after: _Place, *, is_dry: bool) -> None:
        self._tenant_id = tenant_id
        self._after = after
        self._is_dry = is_dry
        self.counts = Remapped()
        self.last: _Place | None = None
        """The last of them; None if there are no more."""

    def run(self) -> None:
        self.counts = Remapped()
        now = timezone.now()
        with tenant_scope(self._tenant_id):
            writer = Statements(now)
            day, invocation_id = self._after
            calls = writer.run(
                "calls_of_spans", day=day, invocation_id=invocation_id, row_limit=_CALLS_AT_ONCE
            )
            self.last = calls[-1][:2] if len(calls) == _CALLS_AT_ONCE else None
            self.counts.calls = len(calls)
            if not self._is_dry:
                lock_traces(writer, {trace_id for *_, trace_id in calls})
            events = [raw for one in self._stored(writer, calls) for raw in self._again(one)]
            if events and not self._is_dry:
                lines = [Line(number, raw) for number, raw in enumerate(events, 1)]
                digest = hashlib.sha256(b"\n".join(events)).digest()
                batch_id = BatchId(new_id())
                record_in_scope(
                    self._tenant_id, digest, lines, batch_id, now, is_otlp=True, is_late=True
                )

    def _stored(self, writer: Statements, calls: Sequence[tuple[Any, ...]]) -> list[_Stored]:
        """The events of these calls, without those that were erased."""
        started = {(day, pk): microseconds(at) for day, pk, at, _ in calls}
        slots = writer.run(
            "taken_slots",
            invocation_ids=arrays.uuids([pk for _, pk in started]),
            days=arrays.days([day for day, _ in started]),
        )
        whole = [slot for slot in slots if None not in slot]
        places = [place for slot in whole for place in (slot[2:4], slot[4:6])]
        events = read_events(self._tenant_id, places) if places else {}
        stored = []
        for day, pk, *slot in sorted(whole):
            start, end = _raw(events, slot[:2]), _raw(events, slot[2:])
            if start is None or end is None:
                self.counts.erased += 1
            else:
                stored.append(_Stored(pk, started[day, pk], start, end))
        return stored

    def _again(self, stored: _Stored) -> tuple[bytes, ...]:
        """The new events of a call; none if nothing changes."""
        try:
            start, end = _EVENT.decode(stored.start), _EVENT.decode(stored.end)
        except (msgspec.MsgspecError, RecursionError):
            return ()  # an executor's events, under the id of a span
        if end.otlp is None or end.otlp.mapping_version >= MAPPING_VERSION:
            return ()
        self.counts.older += 1
        call = _read_again(stored, start, end.otlp)
        if call is None:
            self.counts.left += 1
            return ()
        members = self._changes(stored, call)
        if members.isdisjoint(_DECIDE_CALL_ID):
            # It is of the arguments before they were redacted, which the kept span no longer has.
            call.call_id = start.call_id
            members = self._changes(stored, call)
        if not members:
            return ()
        self.counts.changed += 1
        self.counts.members.update(members)
        return to_events(call)

    def _changes(self, stored: _Stored, call: ToolCall) -> set[str]:
        """The members of a call's events that differ now, with the tenant's rules applied."""
        lines = [Line(number, raw) for number, raw in enumerate(to_events(call), 1)]
        start, end = (line.raw for line in redacted(self._tenant_id, lines, is_otlp=True))
        return _differing(stored.start, start) | _differing(stored.end, end)


def _read_again(stored: _Stored, start: _Event, source: _Source) -> ToolCall | None:
    """The call that its spans are today; None if they are not exactly one."""
    mapped = map_spans([source.span, *source.merged])
    if len(mapped.calls) != 1 or mapped.others:
        return None
    (call,) = mapped.calls
    call.invocation_id = stored.invocation_id
    call.started_ns = stored.started_us * 1000
    call.parent_id = start.parent_invocation_id
    call.context = start.context | call.own_context
    call.above = source.above
    call.is_remapped = True
    return call


def _differing(old: bytes, new: bytes) -> set[str]:
    """The members in which two events differ, apart from ids and spans."""
    before, after = msgspec.json.decode(old), msgspec.json.decode(new)
    names = (before.keys() | after.keys()) - _NOT_COMPARED
    return {name for name in names if before.get(name) != after.get(name)}


def _raw(events: dict[tuple[UUID, int], StoredEvent], place: Sequence[Any]) -> bytes | None:
    stored = events.get((place[0], place[1]))
    return None if stored is None else stored.raw
