"""Events stored as one batch, without HTTP."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from audit.events.batch_ids import BatchId
from audit.events.body import Line
from audit.intake.ingest import Answer, answer_of, read_request, record_batches


def record_batch(
    tenant_id: UUID, body: bytes, lines: Sequence[Line], batch_id: BatchId, now: datetime
) -> Answer:
    """Store one request that arrived at `now`. Raises as `record_batches`."""
    return answer_of(record_batches([read_request(tenant_id, body, lines, batch_id, now)])[0])
