"""The status of ledgers in the database: entries in the log, folded entries, signed entries."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS

from audit.models import Batch
from audit.sql.run import run


@dataclass(frozen=True, slots=True)
class LedgerStatus:
    """The status of a tenant's ledger in the database."""

    size: int
    """Entries in the log."""
    folded: int
    """Entries that are in tiles."""
    epoch: int | None
    """Epoch of the last published checkpoint, as the next three; None without a checkpoint."""
    signed_size: int | None
    signed_root: bytes | None
    signed_at: datetime | None
    refusal: str | None
    """Why a signer refuses the log; None if none does."""
    refused_at: tuple[int, int] | None
    """Epoch and size of the last checkpoint that the signer which refuses remembers."""


def ledger_status(tenant_id: UUID, *, using: str = DEFAULT_DB_ALIAS) -> LedgerStatus:
    """Read the status of a tenant's ledger at one moment. Needs the tenant's scope."""
    ((size, folded, epoch, signed_size, root, signed_at, refusal, *refused_at),) = run(
        "ledger_status", tenant_id=tenant_id, using=using
    )
    return LedgerStatus(
        size=size,
        folded=folded,
        epoch=epoch,
        signed_size=signed_size,
        signed_root=root,
        signed_at=signed_at,
        refusal=refusal,
        refused_at=None if refusal is None else (refused_at[0], refused_at[1]),
    )


def unsigned_since(tenant_id: UUID, status: LedgerStatus) -> datetime | None:
    """When the first unsigned entry arrived; None if all are signed. Needs the scope."""
    unsigned = Batch.objects.for_tenant(tenant_id).filter(
        first_index__gte=status.signed_size or 0, event_count__gt=0
    )
    return unsigned.order_by("first_index").values_list("received_at", flat=True).first()
