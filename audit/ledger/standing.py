"""How ledgers stand in the database: what is in the log, what is folded, what is signed."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS

from audit.models import Batch
from audit.sql.run import run
from tenants.models import Tenant
from tenants.scope import tenant_scope


@dataclass(frozen=True, slots=True)
class Standing:
    """How a tenant's ledger stands in the database."""

    size: int
    """Entries in the log."""
    folded: int
    """Of which so many are in tiles."""
    epoch: int | None
    """Of the last published checkpoint, as are the next three; None: there is none."""
    signed_size: int | None
    signed_root: bytes | None
    signed_at: datetime | None
    refusal: str | None
    """Why nothing is signed."""


def standing(tenant_id: UUID, *, using: str = DEFAULT_DB_ALIAS) -> Standing:
    """Read it, as of one moment. Needs the tenant's scope."""
    ((size, folded, epoch, signed_size, root, signed_at, refusal),) = run(
        "ledger_standing", tenant_id=tenant_id, using=using
    )
    return Standing(size, folded, epoch, signed_size, root, signed_at, refusal)


def unsigned_since(tenant_id: UUID, stands: Standing) -> datetime | None:
    """When the first entry came that is not signed; None if all are. Needs the scope."""
    unsigned = Batch.objects.for_tenant(tenant_id).filter(
        first_index__gte=stands.signed_size or 0, event_count__gt=0
    )
    return unsigned.order_by("first_index").values_list("received_at", flat=True).first()


@dataclass(frozen=True, slots=True)
class Everywhere:
    """What an installation's operator is to look after."""

    refused: int
    """Tenants whose log the signer refuses."""
    unsigned_s: float
    """How long the entry has waited that waits the longest to be signed, of all tenants."""


def everywhere(now: datetime) -> Everywhere:
    """Of all tenants. Two queries a tenant, each in its scope."""
    refused, unsigned_s = 0, 0.0
    for tenant_id in Tenant.objects.values_list("id", flat=True):
        with tenant_scope(tenant_id):
            stands = standing(tenant_id)
            since = None
            if stands.size != stands.signed_size:
                since = unsigned_since(tenant_id, stands)
        refused += stands.refusal is not None
        if since is not None:
            unsigned_s = max(unsigned_s, (now - since).total_seconds())
    return Everywhere(refused, unsigned_s)
