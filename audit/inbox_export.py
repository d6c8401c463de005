"""The inbox as a file: NDJSON or CSV, streamed in pages of one short transaction each."""

import base64
import csv
import io
import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from audit.models import RejectedEvent
from audit.queries.inbox import InboxFilter, inbox_lines
from tenants.scope import tenant_scope

_CHUNK = 100  # lines; 64 KiB each at most
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

COLUMNS = (
    "id",
    "received_at",
    "code",
    "message",
    "batch_id",
    "line",
    "event_id",
    "raw",
    "raw_base64",
    "raw_length",
    "resolution",
    "resolved_at",
    "resolved_by",
    "discard_reason",
    "redrive_batch_id",
    "redrive_edited",
)
"""Members and columns. Of `raw` and `raw_base64` one is there: the first for UTF-8."""


def ndjson(tenant_id: UUID, wanted: InboxFilter) -> Iterator[bytes]:
    """An object a line, newest first, and `{"count": n}` as the last: without it, it was cut."""
    count = 0
    for lines in _chunks(tenant_id, wanted):
        count += len(lines)
        yield b"".join(json.dumps(_document(line)).encode() + b"\n" for line in lines)
    yield json.dumps({"count": count}).encode() + b"\n"


def csv_rows(tenant_id: UUID, wanted: InboxFilter) -> Iterator[bytes]:
    """A header and a row a line; texts that a spreadsheet would calculate begin with `'`."""
    yield _csv([COLUMNS])
    for lines in _chunks(tenant_id, wanted):
        yield _csv([tuple(map(_cell, _document(line).values())) for line in lines])


def _chunks(tenant_id: UUID, wanted: InboxFilter) -> Iterator[list[RejectedEvent]]:
    before: UUID | None = None
    while True:
        with tenant_scope(tenant_id):
            lines = inbox_lines(wanted, before=before, size=_CHUNK)
        if lines:
            yield lines
        if len(lines) < _CHUNK:
            return
        before = lines[-1].id


def _document(line: RejectedEvent) -> dict[str, Any]:
    raw = bytes(line.raw)
    try:
        text, encoded = raw.decode(), None
    except UnicodeDecodeError:
        text, encoded = None, base64.b64encode(raw).decode()
    values = (
        str(line.id),
        line.received_at.isoformat(),
        line.code,
        line.message,
        str(line.batch_id),
        line.line,
        line.event_id and str(line.event_id),
        text,
        encoded,
        line.raw_length,
        line.resolution,
        line.resolved_at and line.resolved_at.isoformat(),
        line.resolved_by_name,
        line.discard_reason,
        line.redrive_batch_id and str(line.redrive_batch_id),
        line.redrive_edited,
    )
    return dict(zip(COLUMNS, values, strict=True))


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def _csv(rows: list[tuple[Any, ...]]) -> bytes:
    written = io.StringIO()
    csv.writer(written).writerows(rows)
    return written.getvalue().encode()
