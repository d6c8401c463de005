"""Spans of one call that come in different requests: found, and told as one call.

An MCP server exports its spans itself, and an exporter may send a span before the one around
it. So what is stored of a trace's tool spans (`otlp_span`) is looked up before a request is
stored, one request at a time for each trace. A call keeps the id and the start it was first
stored with; a new span of it makes a fuller account of the same call, of all its spans.

Needs the tenant's open scope; what is looked up holds until its transaction ends.
"""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from audit import pg_arrays
from audit.candidates import DAY_US
from audit.index_writer import IndexWriter, microseconds
from audit.log import read_events
from audit.otlp.mapping import Identity, Mapped, ToolCall, identity_of, is_same_call, map_spans
from audit.otlp.spans import Span, span_uuid
from tenants.scope import current_tenant_id

_LOCKS = 64
"""Per tenant: traces share them, so that a request of many traces does not take many."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A stored tool span and its call."""

    span_uuid: UUID
    parent_uuid: UUID | None
    invocation_id: UUID
    identity: Identity
    started_us: int
    end_place: tuple[UUID, int] | None


class _Source(msgspec.Struct):
    span: Span
    merged: list[Span] = []


class _Event(msgspec.Struct):
    otlp: _Source | None = None


_EVENT = msgspec.json.Decoder(_Event)


def join(writer: IndexWriter, spans: Sequence[Span], mapped: Mapped) -> Mapped:
    """The calls of a request, `mapped` from its spans, as parts of what is stored already.

    Those with nothing new of a stored call have that call's id, so that they are duplicates.
    """
    if not mapped.calls:
        return mapped
    _lock(writer, {call.outermost.trace_id for call in mapped.calls})
    known = _look_up(writer, mapped.calls)
    if not known:
        return mapped
    stored = _spans_to_add(mapped.calls, known)
    if stored:
        calls = map_spans([*spans, *stored]).calls
        ours = {span.key for span in spans}
        mapped = Mapped(
            [call for call in calls if any(each.span.key in ours for each in call.facts)],
            mapped.others,
        )
    _name_as_stored(mapped.calls, known)
    return mapped


def _lock(writer: IndexWriter, trace_ids: Iterable[str]) -> None:
    numbers = {zlib.crc32(trace_id.encode()) % _LOCKS for trace_id in trace_ids}
    writer.run("lock_traces", numbers=pg_arrays.bigints(sorted(numbers)))


def _look_up(writer: IndexWriter, calls: Sequence[ToolCall]) -> list[_Known]:
    own: set[UUID] = set()
    above: set[UUID] = set()
    days: set[int] = set()
    for call in calls:
        for facts in call.facts:
            own.add(_uuid(facts.span))
            days.add(day_of(facts.span))
        if (parent := _parent_uuid(call.outermost)) is not None:
            above.add(parent)
    return [
        _Known(
            row[0],
            row[1],
            row[2],
            Identity(row[5], row[3], row[4], row[6]),
            microseconds(row[7]),
            None if row[8] is None else (row[8], row[9]),
        )
        for row in writer.run(
            "known_spans",
            own=pg_arrays.uuids(sorted(own)),
            own_and_above=pg_arrays.uuids(sorted(own | above)),
            days=pg_arrays.days(sorted({day + away for day in days for away in (-1, 0, 1)})),
        )
    ]


def _spans_to_add(calls: Sequence[ToolCall], known: Sequence[_Known]) -> list[Span]:
    """The stored spans of calls that the request has new spans of."""
    by_uuid = {each.span_uuid: each for each in known}
    below: dict[UUID, list[_Known]] = {}
    for each in known:
        if each.parent_uuid is not None:
            below.setdefault(each.parent_uuid, []).append(each)
    places: set[tuple[UUID, int]] = set()
    for call in calls:
        if all(_uuid(facts.span) in by_uuid for facts in call.facts):
            continue
        touched = [by_uuid.get(_uuid(facts.span)) for facts in call.facts]
        around = by_uuid.get(_parent_uuid(call.outermost) or _uuid(call.outermost))
        if around and is_same_call(around.identity, identity_of(call.facts[0])):
            touched.append(around)
        for facts in call.facts:
            touched += [
                each
                for each in below.get(_uuid(facts.span), ())
                if is_same_call(identity_of(facts), each.identity)
            ]
        places |= {each.end_place for each in touched if each and each.end_place}
    if not places:
        return []
    found: dict[tuple[str, str], Span] = {}
    for event in read_events(current_tenant_id(), places).values():
        source = _EVENT.decode(event.raw).otlp if event.raw is not None else None
        if source is not None:
            found |= {span.key: span for span in (source.span, *source.merged)}
    return list(found.values())


def _name_as_stored(calls: Sequence[ToolCall], known: Sequence[_Known]) -> None:
    """Give calls the ids they are stored under, and their children those as parents."""
    by_uuid = {each.span_uuid: each for each in known}
    renamed = {each.span_uuid: each.invocation_id for each in known}
    for call in calls:
        found = (by_uuid.get(_uuid(facts.span)) for facts in call.facts)
        first = next(filter(None, found), None)
        if first is not None:
            renamed[call.invocation_id] = first.invocation_id
            call.invocation_id = first.invocation_id
            call.started_ns = first.started_us * 1000
    for call in calls:
        if call.parent_id is not None:
            call.parent_id = renamed.get(call.parent_id, call.parent_id)


def store_spans(
    writer: IndexWriter, mapped: Mapped, is_stored: set[UUID], missing_days: Any
) -> None:
    """Note which call each span is of, and for the others what they lie in.

    Left out are the spans of calls that were refused, and days the index does not have.
    """
    rows: list[tuple[int, UUID, UUID | None, UUID | None, int | None, str, int]] = []
    for call in mapped.calls:
        if call.invocation_id not in is_stored:
            continue
        call_on = started_us(call) // DAY_US
        rows += [_row(facts.span, call.invocation_id, call_on) for facts in call.facts]
    rows += [_row(span, None, None) for span in mapped.others if span.parent_span_id]
    missing = missing_days({row[0] for row in rows})
    rows = sorted((row for row in rows if row[0] not in missing), key=lambda row: row[:2])
    if not rows:
        return
    columns = list(zip(*rows, strict=True))
    writer.send(
        "insert_spans",
        started_on=pg_arrays.days(columns[0]),
        span_uuid=pg_arrays.uuids(columns[1]),
        parent_uuid=pg_arrays.uuids(columns[2]),
        invocation_id=pg_arrays.uuids(columns[3]),
        call_on=pg_arrays.days(columns[4]),
        scope=pg_arrays.texts(columns[5]),
        kind=pg_arrays.ints(columns[6]),
    )


def started_us(call: ToolCall) -> int:
    """A call's start in microseconds since 1970, as its events tell it."""
    ns = call.outermost.start_time_unix_nano if call.started_ns is None else call.started_ns
    return ns // 1000


def day_of(span: Span) -> int:
    """Days since 1970 of a span's start."""
    return span.start_time_unix_nano // 1000 // DAY_US


def _row(
    span: Span, invocation_id: UUID | None, call_on: int | None
) -> tuple[int, UUID, UUID | None, UUID | None, int | None, str, int]:
    scope = span.scope.name[:256].replace("\x00", "")
    return (
        day_of(span),
        _uuid(span),
        _parent_uuid(span),
        invocation_id,
        call_on,
        scope,
        span.kind,
    )


def _uuid(span: Span) -> UUID:
    return span_uuid(span.trace_id, span.span_id)


def _parent_uuid(span: Span) -> UUID | None:
    return span_uuid(span.trace_id, span.parent_span_id) if span.parent_span_id else None
