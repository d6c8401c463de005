"""Rows of `otlp_span`: the tool spans that are stored, and the calls they belong to."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from audit.events.instants import DAY_US
from audit.events.spans import Span, span_uuid
from audit.index.indexing import MissingDays
from audit.intake.otlp.inheriting import packed
from audit.intake.otlp.mapping import Identity, Mapped, ToolCall, identity_of
from audit.sql import arrays
from audit.sql.run import Statements


def move_spans(writer: Statements, rows: Sequence["Row"]) -> None:
    """Assign stored spans to the calls named in these rows."""
    if not rows:
        return
    writer.send(
        "move_spans",
        started_on=arrays.days([row.day for row in rows]),
        span_uuid=arrays.uuids([row.span_uuid for row in rows]),
        invocation_id=arrays.uuids([row.invocation_id for row in rows]),
        call_started_at=arrays.instants([row.call_started_us for row in rows]),
    )


def store_spans(
    writer: Statements, mapped: Mapped, is_stored: set[UUID], missing_days: MissingDays
) -> None:
    """Store the call of each tool span, and the parent of each other span.

    Skips the spans of rejected calls, and days the index does not have.
    """
    rows: list[Row] = []
    for call in mapped.calls:
        if call.invocation_id in is_stored and not call.is_late:
            rows += [
                row_of(
                    facts.span,
                    call,
                    identity_of(facts),
                    packed(mapped.context_of(facts.span)),
                )
                for facts in call.facts
            ]
    for span in mapped.others:
        if not span.span_id:  # a log record
            continue
        context = packed(mapped.context_of(span))
        if span.parent_span_id or context:
            rows.append(row_of(span, context=context))
    insert_rows(writer, rows, missing_days)


def insert_rows(writer: Statements, rows: Sequence["Row"], missing_days: MissingDays) -> None:
    """Write rows of `otlp_span`, except for days the index does not have. Stored rows stay."""
    missing = missing_days({row.day for row in rows})
    rows = sorted(
        (row for row in rows if row.day not in missing),
        key=lambda row: (row.day, row.span_uuid.int),
    )
    if not rows:
        return
    columns = list(zip(*rows, strict=True))
    writer.send(
        "insert_spans",
        started_on=arrays.days(columns[0]),
        span_uuid=arrays.uuids(columns[1]),
        parent_uuid=arrays.uuids(columns[2]),
        invocation_id=arrays.uuids(columns[3]),
        call_started_at=arrays.instants(columns[4]),
        tool_name=arrays.texts(columns[5]),
        tool_call_id=arrays.texts(columns[6]),
        scope=arrays.texts(columns[7]),
        kind=arrays.ints(columns[8]),
        context=arrays.texts(columns[9]),
    )


class Row(NamedTuple):
    """A row of `otlp_span`."""

    day: int
    span_uuid: UUID
    parent_uuid: UUID | None
    invocation_id: UUID | None
    call_started_us: int | None
    tool_name: str | None
    tool_call_id: str | None
    scope: str
    kind: int
    context: str | None = None


def row_of(
    span: Span,
    call: ToolCall | None = None,
    identity: Identity | None = None,
    context: str | None = None,
) -> Row:
    day = span.start_time_unix_nano // 1000 // DAY_US
    place = day, uuid_of(span), parent_uuid_of(span)
    # By position, for each span: by name, a tuple takes twice as long.
    if call is None or identity is None:
        return Row(*place, None, None, None, None, "", span.kind, context)
    return Row(
        *place,
        call.invocation_id,
        call.started_us,
        identity.tool_name,
        identity.tool_call_id,
        identity.scope,
        identity.kind,
        context,
    )


def uuid_of(span: Span) -> UUID:
    return span_uuid(span.trace_id, span.span_id)


def parent_uuid_of(span: Span) -> UUID | None:
    return span_uuid(span.trace_id, span.parent_span_id) if span.parent_span_id else None
