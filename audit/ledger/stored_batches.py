"""Reads the log's batches of a part of the ledger, in its order."""

from collections.abc import Iterator
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS

from audit.ledger.recompute import StoredBatch
from audit.sql.run import run
from tenants.scope import tenant_scope

_AT_ONCE = 10
"""Up to 200 MB, commonly 2 MB."""
_OWN_AT_ONCE = 200
"""The server's own batches have few entries."""


def stored_batches(
    tenant_id: UUID,
    first_index: int,
    end_index: int,
    *,
    is_own: bool = False,
    using: str = DEFAULT_DB_ALIAS,
) -> Iterator[StoredBatch]:
    """The batches with an entry from `first_index` up to, but without, `end_index`.

    `is_own`: only those of the server's own entries. Without the tenant's open scope, it opens one
    for each query, so no transaction is open while the caller works.
    """
    name = "evidence_own_batches" if is_own else "evidence_batches"
    at_once = _OWN_AT_ONCE if is_own else _AT_ONCE
    after_index, after_id = -1, UUID(int=0)
    while True:
        with tenant_scope(tenant_id, using=using):
            rows = run(
                name,
                using=using,
                first_index=first_index,
                end_index=end_index,
                after_index=after_index,
                after_id=after_id,
                batch_limit=at_once,
            )
        for row in rows:
            yield StoredBatch(*row)
        if len(rows) < at_once:
            return
        after_id, _, after_index, *_ = rows[-1]
