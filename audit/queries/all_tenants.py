"""Figures of all tenants together, for the operator of an installation."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from audit.ledger.status import ledger_status, unsigned_since
from audit.queries.archives import behind_of, find_archive
from audit.queries.inbox import first_id_of, inbox_open_count
from audit.sql.run import rows
from tenants.models import Tenant
from tenants.scope import tenant_scope

_DEAD_FOR = timedelta(hours=24)
_OLDEST = timedelta(days=8)
"""A delivery is given up 24 hours after it was made, or when a worker is back that was away."""
_COUNTED_MAX = 10_000


@dataclass(slots=True)
class AllTenants:
    """What waits, failed or is late, in all tenants together."""

    inbox_open: int = 0
    """Rejected events not handled yet; of a tenant at most `inbox.COUNT_LIMIT`."""
    refused_ledgers: int = 0
    """Tenants whose log the signer refuses."""
    unsigned_s: float = 0.0
    """Age in seconds of the oldest ledger entry that is not signed; 0: all are."""
    deliveries_waiting: int = 0
    """Messages of alerts that are not delivered yet; of a tenant at most `_COUNTED_MAX`."""
    deliveries_oldest_s: float = 0.0
    """Age in seconds of the oldest of them; 0: none waits."""
    deliveries_dead: int = 0
    """Those given up within the last 24 hours; of a tenant at most `_COUNTED_MAX`."""
    archives_failing: int = 0
    """Tenants whose archive failed when it was tried last."""
    archive_behind_s: float = 0.0
    """For how many seconds the oldest sealed day waits to be archived; 0: none does."""


def read_all_tenants(now: datetime) -> AllTenants:
    """Sum up all tenants. One scope and at most six statements for each, as rows of several
    tenants are never visible together.
    """
    total = AllTenants()
    for tenant_id in _tenant_ids():
        with tenant_scope(tenant_id):
            _add(total, tenant_id, now)
    return total


def _tenant_ids() -> list[UUID]:
    return list(Tenant.objects.values_list("id", flat=True))


def _add(total: AllTenants, tenant_id: UUID, now: datetime) -> None:
    total.inbox_open += inbox_open_count()
    status = ledger_status(tenant_id)
    total.refused_ledgers += status.refusal is not None
    if status.size != status.signed_size:
        since = unsigned_since(tenant_id, status)
        total.unsigned_s = max(total.unsigned_s, _age(now, since))
    parameters = {
        "since": now - _DEAD_FOR,
        "first_id": first_id_of(now - _OLDEST),
        "count_limit": _COUNTED_MAX,
    }
    ((waiting, oldest, dead),) = rows("undelivered", parameters)
    total.deliveries_waiting += waiting
    total.deliveries_dead += dead
    total.deliveries_oldest_s = max(total.deliveries_oldest_s, _age(now, oldest))
    archive = find_archive()
    if archive is not None and archive.stopped_at is None:
        total.archives_failing += bool(archive.failure)
        behind = behind_of(archive, status.size, now)
        total.archive_behind_s = max(total.archive_behind_s, behind.total_seconds())


def _age(now: datetime, since: datetime | None) -> float:
    return 0.0 if since is None else (now - since).total_seconds()
