"""Stores events as one batch, without HTTP. Import it after Django is set up."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from audit.events.batch_ids import BatchId
from audit.events.body import split_lines
from audit.intake.ingest import answer_of, read_request, record_batches
from tenants.models import new_id


def record_batch(tenant_id: UUID, body: bytes) -> dict[str, Any]:
    """Store the events of a body that arrives now, and return the response's members."""
    request = read_request(tenant_id, body, split_lines(body), BatchId(new_id()), datetime.now(UTC))
    return answer_of(record_batches([request])[0])
