"""Read the entries that the server itself made: actions, erasures, holds, keys and others."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS
from tooltrail.ledger import Kind

from audit.ledger.recompute import StoredBatch, remake
from audit.log.payload import LogPayloadError
from audit.sql.run import run

_BATCHES = 200
_FIRST_ID = UUID(int=0)


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
    after_index, after_id = -1, _FIRST_ID
    while True:
        rows = run(
            "evidence_own_batches",
            tenant_id=tenant_id,
            first_index=first_index,
            end_index=2**62,
            after_index=after_index,
            after_id=after_id,
            batch_limit=_BATCHES,
            using=using,
        )
        for row in rows:
            batch = StoredBatch(*row)
            with suppress(LogPayloadError):
                for index, one in enumerate(remake(batch), batch.first_index):
                    if one.entry is not None and one.entry.kind in kinds:
                        yield OwnEntry(index, one.entry.kind, batch.received_at, one.raw)
        if len(rows) < _BATCHES:
            return
        after_id, _, after_index, *_ = rows[-1]
