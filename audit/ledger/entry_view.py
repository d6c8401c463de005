"""One entry of the ledger: what the log has at an index, and whether it matches its hash."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tooltrail.ledger import Entry

from audit.ledger.recompute import StoredBatch, remake
from audit.log.payload import LogPayloadError
from audit.models import Batch
from tenants.scope import current_tenant_id


@dataclass(frozen=True, slots=True)
class EntryView:
    """An entry with its event. `fault` says how the stored bytes differ; empty if they match."""

    index: int
    batch_id: UUID
    position: int
    received_at: datetime
    is_own: bool
    leaf: bytes
    entry: Entry | None
    salt: bytes
    raw: bytes
    """`salt` and `raw` are empty if the event was erased."""
    fault: str


def entry_at(index: int) -> EntryView | None:
    """The entry at an index of the scope's tenant; None beyond the end of the log. One query."""
    row = (
        Batch.objects.for_tenant(current_tenant_id())
        .filter(first_index__lte=index, event_count__gt=0)
        .order_by("-first_index")
        .first()
    )
    if row is None or index >= row.first_index + row.event_count:
        return None
    batch = stored_batch(row)
    position, fault = index - row.first_index, ""
    leaf, entry, salt, raw = batch.leaves[position * 32 :][:32], None, b"", b""
    try:
        one = remake(batch)[position]
        leaf, entry, salt, raw = one.leaf, one.entry, one.salt, one.raw
        if raw and entry is None:
            fault = "the stored bytes do not match the hash computed on arrival"
    except LogPayloadError as error:
        fault = f"its batch {error}"
    return EntryView(
        index=index,
        batch_id=row.batch_id,
        position=position,
        received_at=row.received_at,
        is_own=row.is_own,
        leaf=leaf,
        entry=entry,
        salt=salt,
        raw=raw,
        fault=fault,
    )


def stored_batch(row: Batch) -> StoredBatch:
    """A row of the log in the form that `recompute` reads."""
    return StoredBatch(
        batch_id=row.batch_id,
        received_at=row.received_at,
        first_index=row.first_index,
        event_count=row.event_count,
        leaves=bytes(row.leaves),
        payload=None if row.payload is None else bytes(row.payload),
        is_own=row.is_own,
    )
