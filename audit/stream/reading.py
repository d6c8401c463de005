"""Reads the log for streams, in the order of the ledger. Needs the tenant's scope."""

from datetime import datetime
from uuid import UUID

from audit.ledger.recompute import StoredBatch
from audit.sql.run import run

EVENTS = 1_000
"""Entries that are read at once, unless a single batch has more."""


def batches_from(tenant_id: UUID, of: str, index: int, end: int) -> list[StoredBatch]:
    """The next batches with an entry from `index` on, and before `end`. One query.

    `of`: those of executors (`calls`), or the server's own (`actions`).
    """
    rows = run(
        "stream_batches",
        tenant_id=tenant_id,
        is_own=of == "actions",
        first_index=index,
        end_index=end,
        event_limit=EVENTS,
    )
    return [StoredBatch(*row) for row in rows]


def oldest_from(tenant_id: UUID, of: str, index: int) -> datetime | None:
    """When the first entry from `index` on was received; None without one. One query."""
    rows = run("stream_oldest", tenant_id=tenant_id, is_own=of == "actions", first_index=index)
    return rows[0][0] if rows else None
