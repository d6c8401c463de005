"""Join a call that an executor reported from inside an OpenTelemetry span with the span's call.

The start event of such a call names the span (`traceparent`). The executor's call then counts as
one more layer, right below that span: a row of `otlp_span` of the kind `EXECUTOR`. Spans that
arrive later find the call by this row (`audit.intake.otlp.joining`). This module handles spans that
arrived first. `is_same_call` decides whether both are the same call, as for two spans;
`shared_place` decides for the other spans right below that span. If they are, the executor's
account stays, and the call that was made of the spans is withdrawn. The log gets an event that
names those spans (`audit.events.reported`).

Needs the tenant's open scope. What is looked up stays valid until the transaction ends.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from tooltrail.tracing import TraceParent, parse_traceparent

from audit.events import wire
from audit.events.body import Line
from audit.events.candidates import Candidate, read_lines
from audit.events.instants import DAY_US
from audit.events.reported import spans_in
from audit.events.spans import EXECUTOR, event_uuid, span_uuid
from audit.index.indexing import MissingDays
from audit.intake.otlp.conventions import MAPPING_VERSION
from audit.intake.otlp.joining import (
    Known,
    OfDay,
    Wanted,
    days_around,
    executors_among,
    find_calls,
    lock_traces,
)
from audit.intake.otlp.mapping import Identity, is_same_call, shared_place
from audit.intake.otlp.span_rows import Row, insert_rows, move_spans
from audit.log.payload import read_events
from audit.sql import arrays
from audit.sql.run import Statements
from tenants.scope import current_tenant_id


@dataclass(frozen=True, slots=True)
class _Layer:
    """An executor's call and the span it ran in."""

    start: Candidate
    event: wire.StartEvent
    span_uuid: UUID
    identity: Identity

    @property
    def row(self) -> Row:
        return Row(
            day=self.start.day,
            span_uuid=self.start.invocation_id,
            parent_uuid=self.span_uuid,
            invocation_id=self.start.invocation_id,
            call_started_us=self.start.started_us,
            tool_name=self.identity.tool_name,
            tool_call_id=self.identity.tool_call_id,
            scope=self.identity.scope,
            kind=self.identity.kind,
        )


def lock_traces_of(writer: Statements, candidates: Iterable[Candidate]) -> None:
    """Lock the traces of the spans these events name (`lock_traces`). Call before any write."""
    trace_ids = {span.trace_id for each in candidates if (span := _span_of(each.event)) is not None}
    if trace_ids:
        lock_traces(writer, trace_ids)


def join_executors(
    writer: Statements, starts: Iterable[Candidate], missing_days: MissingDays, now: datetime
) -> list[Candidate]:
    """Store in which spans new calls ran, and assign the spans of the same calls to them.

    Returns the events that record this. `Indexing.absorb` withdraws the calls they replace.
    """
    layers = [layer for start in starts if (layer := _layer(start)) is not None]
    if not layers:
        return []
    layers.sort(key=lambda layer: (layer.start.started_us, layer.start.invocation_id.int))
    insert_rows(writer, [layer.row for layer in layers], missing_days)
    owners = _owners(writer, layers)
    spans = _spans_of(writer, [known for known, _ in owners.values()])
    accounts: list[Candidate] = []
    rows: list[Row] = []
    for invocation_id, (_, layer) in owners.items():
        known_spans = spans.get(invocation_id)
        if not known_spans:  # erased: its spans are no longer known
            continue
        line = Line(1, _account(layer, known_spans))
        accounts += read_lines([line], layer.start.batch_id, now).candidates
        rows += [
            Row(
                day=started_ns // 1000 // DAY_US,
                span_uuid=span_uuid(trace_id, span_id),
                parent_uuid=None,
                invocation_id=layer.start.invocation_id,
                call_started_us=layer.start.started_us,
                tool_name=None,
                tool_call_id=None,
                scope="",
                kind=0,
            )
            for trace_id, span_id, started_ns in known_spans
        ]
    rows.sort(key=lambda row: (row.day, row.span_uuid.int))
    move_spans(writer, rows)
    return accounts


def _owners(writer: Statements, layers: Sequence[_Layer]) -> dict[UUID, tuple[Known, _Layer]]:
    """Stored span and matching executor's call, by the id of the call that the spans made."""
    wanted: Wanted = defaultdict(OfDay)
    for layer in layers:
        for day in days_around(layer.start.started_us):
            of_day = wanted[day]
            of_day.spans.add(layer.span_uuid)
            if layer.identity.tool_call_id:
                of_day.beside.add((layer.span_uuid, layer.identity.tool_call_id))
    known = {each.span_uuid: each for each in find_calls(writer, wanted) if not each.is_executor}
    executors = executors_among(writer, list(known.values()))
    beside = defaultdict(list)
    for each in known.values():
        beside[shared_place(each.identity, each.parent_uuid)].append(each)
    owners: dict[UUID, tuple[Known, _Layer]] = {}
    for layer in layers:
        around = known.get(layer.span_uuid)
        at = shared_place(layer.identity, layer.span_uuid)
        same = [] if at is None else beside.pop(at, [])
        if around is not None and is_same_call(around.identity, layer.identity):
            same.append(around)
        for each in same:
            if each.invocation_id not in executors:
                owners.setdefault(each.invocation_id, (each, layer))
    return owners


def _spans_of(writer: Statements, calls: Sequence[Known]) -> dict[UUID, list[tuple[str, str, int]]]:
    """The spans in the stored account of each call, by the call's id."""
    if not calls:
        return {}
    slots = writer.run(
        "taken_slots",
        invocation_ids=arrays.uuids([each.invocation_id for each in calls]),
        days=arrays.days([each.started_us // DAY_US for each in calls]),
    )
    places = {row[1]: (row[4], row[5]) for row in slots if None not in row}
    stored = read_events(current_tenant_id(), list(places.values()))
    return {
        invocation_id: spans_in(raw)
        for invocation_id, place in places.items()
        if (raw := stored[place].raw) is not None
    }


def _account(layer: _Layer, spans: Sequence[tuple[str, str, int]]) -> bytes:
    """The event that names the spans of an executor's call. Their own account is in the log."""
    event, invocation_id = layer.event, str(layer.start.invocation_id)
    named = [
        {"trace_id": trace_id, "span_id": span_id, "start_time_unix_nano": started_ns}
        for trace_id, span_id, started_ns in spans
    ]
    account: dict[str, Any] = {
        "type": "toolExecutionStart",
        "event_id": event_uuid(invocation_id, "joined", [span_id for _, span_id, _ in spans]),
        "invocation_id": invocation_id,
        "trace_id": event.trace_id,
        "tool_name": event.tool_name,
        "call_id": event.call_id,
        "started_at": event.started_at,
        "args": None,
        "otlp": {
            "mapping_version": MAPPING_VERSION,
            "span": named[0],
            "merged": named[1:],
            "of_executor": True,
        },
    }
    if event.case_id is not None:  # a legal hold may select by it
        account["case_id"] = event.case_id
    return msgspec.json.encode(account)


def _layer(start: Candidate) -> _Layer | None:
    span = _span_of(start.event)
    if span is None:
        return None
    assert isinstance(start.event, wire.StartEvent)
    identity = Identity(start.event.tool_name, "", EXECUTOR, start.event.tool_call_id)
    return _Layer(start, start.event, span_uuid(span.trace_id, span.span_id), identity)


def _span_of(event: wire.WireEvent) -> TraceParent | None:
    """The span a call ran in; None if it names none, or its `traceparent` is malformed."""
    if not isinstance(event, wire.StartEvent) or event.traceparent is None:
        return None
    return parse_traceparent(event.traceparent)
