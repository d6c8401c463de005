"""Read the entries that the server itself made: actions, erasures, holds, keys and others."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS
from tooltrail.ledger import Kind

from audit.ledger.recompute import remake
from audit.ledger.stored_batches import stored_batches
from audit.log.payload import LogPayloadError


@dataclass(frozen=True, slots=True)
class OwnEntry:
    """An entry whose bytes match its leaf."""

    index: int
    kind: Kind
    received_at: datetime
    raw: bytes


def own_entries(
    tenant_id: UUID,
    kinds: Collection[Kind],
    *,
    first_index: int = 0,
    using: str = DEFAULT_DB_ALIAS,
) -> Iterator[OwnEntry]:
    """The server's entries of these kinds from `first_index` on, in order of the ledger.

    Entries that do not match their leaves are left out: the check of the leaves reports them.
    Needs the tenant's scope. One query for 200 batches.
    """
    for batch in stored_batches(tenant_id, first_index, 2**62, is_own=True, using=using):
        with suppress(LogPayloadError):
            for index, one in enumerate(remake(batch), batch.first_index):
                if one.entry is not None and one.entry.kind in kinds:
                    yield OwnEntry(index, one.entry.kind, batch.received_at, one.raw)
