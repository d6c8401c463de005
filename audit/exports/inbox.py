"""The inbox as a file: NDJSON or CSV, streamed in pages of one short transaction each."""

import base64
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from audit.exports.forms import text_forms
from audit.models import RejectedEvent
from audit.queries.inbox import InboxFilter, inbox_lines
from config.instants import iso_exact
from tenants.scope import tenant_scope

_CHUNK = 100  # lines; 64 KiB each at most

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
"""Members and columns, in order. `raw` is set if the line is UTF-8, otherwise `raw_base64`."""


FORMS = text_forms(COLUMNS)
"""The forms of the file, by file extension."""


def chunks(tenant_id: UUID, wanted: InboxFilter) -> Iterator[list[dict[str, Any]]]:
    """The lines that match, newest first, as documents. One scope for each chunk."""
    before: UUID | None = None
    while True:
        with tenant_scope(tenant_id):
            lines = inbox_lines(wanted, before=before, size=_CHUNK)
        if lines:
            yield [_document(line) for line in lines]
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
        iso_exact(line.received_at),
        line.code,
        line.message,
        str(line.batch_id),
        line.line,
        line.event_id and str(line.event_id),
        text,
        encoded,
        line.raw_length,
        line.resolution,
        line.resolved_at and iso_exact(line.resolved_at),
        line.resolved_by_name,
        line.discard_reason,
        line.redrive_batch_id and str(line.redrive_batch_id),
        line.redrive_edited,
    )
    return dict(zip(COLUMNS, values, strict=True))
