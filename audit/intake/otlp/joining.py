"""Join the spans of one call that arrive in different requests.

An MCP server exports its spans itself, and an exporter may send a span before the one around it. So
a request first looks up the stored tool spans of its traces (`otlp_span`), one request at a time
for each trace. A call keeps the id and the start it was first stored with. A new span of it leads
to a fuller account of the same call, made of all its spans.

A call that an executor reported itself (`audit.intake.otlp.executors`) also has a row, right below
the span it ran in, or beside its own span (`shared_place`). Its own account stays. The account of
the spans is logged beside it.

Needs the tenant's open scope. What is looked up stays valid until the transaction ends.
"""

import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any
from uuid import UUID

import msgspec

from audit.events.instants import DAY_US, microseconds
from audit.events.spans import EXECUTOR, Span
from audit.intake.otlp.inheriting import inherit, rows_below
from audit.intake.otlp.mapping import (
    Identity,
    Mapped,
    ToolCall,
    identity_of,
    is_same_call,
    map_spans,
    shared_place,
)
from audit.intake.otlp.span_rows import move_spans, parent_uuid_of, row_of, uuid_of
from audit.log.payload import read_events
from audit.sql import arrays
from audit.sql.run import Statements
from tenants.scope import current_tenant_id

_LOCKS = 64
"""Locks per tenant. Traces share them, so that a request with many traces takes few locks."""
_APART_US = 3_600_000_000
"""How far apart the spans of one call may start and still be found across midnight: one hour."""


@dataclass(frozen=True, slots=True)
class Known:
    """A stored tool span, or an executor's call inside one, and the call it belongs to."""

    span_uuid: UUID
    parent_uuid: UUID | None
    invocation_id: UUID
    started_us: int
    identity: Identity

    @property
    def is_executor(self) -> bool:
        """Whether it is a call that an executor reported, not a span."""
        return self.identity.kind == EXECUTOR


class _Source(msgspec.Struct):
    span: Span
    merged: list[Span] = []


class _Event(msgspec.Struct):
    otlp: _Source | None = None


_EVENT = msgspec.json.Decoder(_Event)
_number = attrgetter("int")  # sorting UUIDs compares them in Python, ten times as slowly


def join(writer: Statements, spans: Sequence[Span], mapped: Mapped) -> Mapped:
    """Join the calls of a request, `mapped` from its spans, with the calls already stored.

    A call that adds nothing to a stored one gets its id, and so becomes a duplicate.
    """
    lock_traces(writer, {span.trace_id for span in spans})
    known = find_calls(writer, _wanted(mapped.calls)) if mapped.calls else []
    below = [_known(row) for row in rows_below(writer, spans, mapped)]
    known = list({each.span_uuid: each for each in (*known, *below)}.values())
    executors = executors_among(writer, known) if known else set()
    stored = _spans_to_add(writer, mapped.calls, known, executors, below) if known else []
    if stored:
        ours = {span.key for span in spans}
        again = map_spans([*spans, *stored])
        for call in again.calls:
            call.is_late = all(each.span.key not in ours for each in call.facts)
        mapped = replace(
            again, others=mapped.others, decisions=mapped.decisions, answered=mapped.answered
        )
    inherit(writer, spans, mapped)
    if known:
        _name_as_stored(mapped.calls, known, executors)
        _move_spans(writer, mapped.calls, known)
    return mapped


def lock_traces(writer: Statements, trace_ids: Iterable[str]) -> None:
    """Wait for other requests with spans of these traces, and keep later ones waiting."""
    numbers = {zlib.crc32(trace_id.encode()) % _LOCKS for trace_id in trace_ids}
    writer.run("lock_traces", numbers=arrays.bigints(sorted(numbers)))


@dataclass(slots=True)
class OfDay:
    """The stored tool spans of one day that are wanted."""

    spans: set[UUID] = field(default_factory=set)
    parents: set[UUID] = field(default_factory=set)
    """Spans whose children are wanted."""
    beside: set[tuple[UUID, str]] = field(default_factory=set)
    """Spans of which those children are wanted that have this id of a call."""


type Wanted = defaultdict[int, OfDay]
"""By day since 1970."""


def days_around(started_us: int) -> set[int]:
    """The days on which the spans of a call may have started, by the start of one of them."""
    return {(started_us + away) // DAY_US for away in (-_APART_US, _APART_US)}


def find_calls(writer: Statements, wanted: Wanted) -> list[Known]:
    """The stored ones of the wanted spans. One statement per day."""
    by_span: dict[UUID, Known] = {}
    for day, of_day in sorted(wanted.items()):
        beside = sorted(of_day.beside, key=lambda each: (each[0].int, each[1]))
        for row in writer.look_up(
            "known_spans",
            day=day,
            parents=arrays.uuids(sorted(of_day.parents, key=_number)),
            spans=arrays.uuids(sorted(of_day.spans, key=_number)),
            parents_beside=arrays.uuids([parent for parent, _ in beside]),
            ids_beside=arrays.texts([tool_call_id for _, tool_call_id in beside]),
        ):
            one = _known(row)
            by_span[one.span_uuid] = one
    return list(by_span.values())


def _known(row: tuple[Any, ...]) -> Known:
    span_uuid, parent_uuid, invocation_id, started_at, name, call_id, scope, kind = row
    identity = Identity(name, scope, kind, call_id)
    return Known(span_uuid, parent_uuid, invocation_id, microseconds(started_at), identity)


def _wanted(calls: Sequence[ToolCall]) -> Wanted:
    """The spans of calls, those directly above and below, and those beside of the same call id."""
    wanted: Wanted = defaultdict(OfDay)
    for call in calls:
        around = parent_uuid_of(call.outermost)
        for facts in call.facts:
            span, parent = uuid_of(facts.span), parent_uuid_of(facts.span)
            tool_call_id = identity_of(facts).tool_call_id
            for day in days_around(facts.span.start_time_unix_nano // 1000):
                of_day = wanted[day]
                of_day.parents.add(span)
                of_day.spans.add(span)
                if around is not None:
                    of_day.spans.add(around)
                if parent is not None and tool_call_id is not None:
                    of_day.beside.add((parent, tool_call_id))
    return wanted


def executors_among(writer: Statements, known: Sequence[Known]) -> set[UUID]:
    """The ids of those calls of `known` that executors reported themselves.

    Looks up the calls of which neither the first span nor the executor's row is in `known`.
    """
    executors = {each.invocation_id for each in known if each.is_executor}
    settled = executors | {each.span_uuid for each in known}
    wanted: Wanted = defaultdict(OfDay)
    for each in known:
        if each.invocation_id not in settled:
            wanted[each.started_us // DAY_US].spans.add(each.invocation_id)
    return executors | {
        each.invocation_id for each in find_calls(writer, wanted) if each.is_executor
    }


def _spans_to_add(
    writer: Statements,
    calls: Sequence[ToolCall],
    known: Sequence[Known],
    executors: Collection[UUID],
    late: Sequence[Known],
) -> list[Span]:
    """The stored spans of calls that have new spans in this request, or new ones above them.

    Calls of executors are skipped: their new spans are logged as an account of their own.
    """
    by_uuid = {each.span_uuid: each for each in known}
    below = _by_parent(known)
    wanted = {
        each.invocation_id: each.started_us // DAY_US
        for each in late
        if each.invocation_id not in executors
    }
    for call in calls:
        if all(uuid_of(facts.span) in by_uuid for facts in call.facts):
            continue
        touched = [by_uuid.get(uuid_of(facts.span)) for facts in call.facts]
        around = by_uuid.get(parent_uuid_of(call.outermost) or uuid_of(call.outermost))
        if around and is_same_call(around.identity, identity_of(call.facts[0])):
            touched.append(around)
        for facts in call.facts:
            touched += [
                each
                for each in below.get(uuid_of(facts.span), ())
                if is_same_call(identity_of(facts), each.identity)
            ]
        wanted |= {
            each.invocation_id: each.started_us // DAY_US
            for each in touched
            if each and each.invocation_id not in executors
        }
    if not wanted:
        return []
    slots = writer.run(
        "taken_slots",
        invocation_ids=arrays.uuids(list(wanted)),
        days=arrays.days(list(wanted.values())),
    )
    places = [(end_batch_id, end_pos) for *_, end_batch_id, end_pos in slots]
    spans: dict[tuple[str, str], Span] = {}
    for event in read_events(current_tenant_id(), places).values():
        source = _EVENT.decode(event.raw).otlp if event.raw is not None else None
        if source is not None:
            spans |= {span.key: span for span in (source.span, *source.merged)}
    return list(spans.values())


def _name_as_stored(
    calls: Sequence[ToolCall], known: Sequence[Known], executors: Collection[UUID]
) -> None:
    """Give calls the ids they are stored under, and update the parent ids of their children.

    The children of an executor's call keep a span as parent: that span may get another call.
    """
    by_uuid = {each.span_uuid: each for each in known}
    below = _by_parent(known)
    beside = _executors_by_place(known)
    renamed = {
        each.span_uuid: each.invocation_id for each in known if each.invocation_id not in executors
    }
    for call in calls:
        executor = _executor_of(call, by_uuid, below, beside, executors) if executors else None
        stored = (by_uuid.get(uuid_of(facts.span)) for facts in call.facts)
        first = executor or next(filter(None, stored), None)
        if first is None:
            continue
        call.invocation_id = first.invocation_id
        call.started_ns = first.started_us * 1000
        call.of_executor = executor is not None
        if executor is None:
            renamed |= {uuid_of(facts.span): first.invocation_id for facts in call.facts}
    for call in calls:
        if call.parent_id is not None:
            call.parent_id = renamed.get(call.parent_id, call.parent_id)


def _executor_of(
    call: ToolCall,
    by_uuid: Mapping[UUID, Known],
    below: Mapping[UUID, Sequence[Known]],
    beside: Mapping[tuple[UUID, str, str], Known],
    executors: Collection[UUID],
) -> Known | None:
    """The row of the executor that reported this call itself; of several, the first to start."""
    related: list[Known] = []
    around = by_uuid.get(parent_uuid_of(call.outermost) or uuid_of(call.outermost))
    if around and is_same_call(around.identity, identity_of(call.facts[0])):
        related.append(around)
    for facts in call.facts:
        span, identity = uuid_of(facts.span), identity_of(facts)
        at = shared_place(identity, parent_uuid_of(facts.span))
        if at is not None and at in beside:
            related.append(beside[at])
        related += [each for each in below.get(span, ()) if is_same_call(identity, each.identity)]
        if span in by_uuid:
            related.append(by_uuid[span])
    return min(
        (each for each in related if each.invocation_id in executors),
        key=_order,
        default=None,
    )


def _executors_by_place(known: Sequence[Known]) -> dict[tuple[UUID, str, str], Known]:
    """The calls that executors reported, by what their own spans share with them.

    Of several, such as attempts under one id, the first to start.
    """
    return {
        at: each
        for each in sorted(known, key=_order, reverse=True)
        if each.is_executor and (at := shared_place(each.identity, each.parent_uuid)) is not None
    }


def _order(known: Known) -> tuple[int, int]:
    return known.started_us, known.invocation_id.int


def _by_parent(known: Sequence[Known]) -> dict[UUID, list[Known]]:
    below: dict[UUID, list[Known]] = {}
    for each in known:
        if each.parent_uuid is not None:
            below.setdefault(each.parent_uuid, []).append(each)
    return below


def _move_spans(writer: Statements, calls: Sequence[ToolCall], known: Sequence[Known]) -> None:
    """For calls that were stored as several calls: assign all their spans to the joined call."""
    owners = {each.span_uuid: each.invocation_id for each in known}
    move_spans(
        writer,
        [
            row_of(facts.span, call, identity_of(facts))
            for call in calls
            if {owners.get(uuid_of(facts.span), call.invocation_id) for facts in call.facts}
            != {call.invocation_id}
            for facts in call.facts
        ],
    )
