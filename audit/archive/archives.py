"""What operators and workers do with the archive of a tenant. Needs the tenant's scope."""

from uuid import UUID

from django.db import DEFAULT_DB_ALIAS
from django.utils import timezone

from audit.models import Archive
from audit.queries.archives import find_archive
from tenants.actions import Actor, name_of, record_action
from tenants.models import Tenant


def hold_archive(tenant_id: UUID, *, using: str = DEFAULT_DB_ALIAS) -> None:
    """Lock the archive until the scope ends; called again, make sure that it still is locked.

    Whoever destroys keys of archived segments holds it. Raises DatabaseError if the transaction was
    lost, and with it the lock.
    """
    Archive.objects.using(using).for_tenant(tenant_id).select_for_update().first()


def begin_archive(tenant: Tenant, actor: Actor, payload_days: int | None) -> Archive:
    """Archive the tenant's ledger from its first entry on, or go on where it stopped.

    `payload_days`: for how many days archived payloads can be read; None: for ever.
    """
    now = timezone.now()
    archive = find_archive()
    if archive is None:
        archive = Archive.objects.create(
            tenant_id=tenant.id,
            created_at=now,
            created_by=name_of(actor),
            payload_days=payload_days,
            next_index=0,
            failure="",
            attempt_count=0,
            next_attempt_at=now,
        )
    else:
        Archive.objects.for_tenant(tenant.id).update(
            stopped_at=None, stopped_by=None, payload_days=payload_days, next_attempt_at=now
        )
    record_action(
        tenant, actor, "archive.begin", tenant.name, rows=[archive], payload_days=payload_days
    )
    return archive


def stop_archive(tenant: Tenant, actor: Actor) -> bool:
    """Archive nothing more but what erasures declare. What is archived stays, and they reach it.

    Returns False if nothing is archived anyway.
    """
    archive = find_archive()
    if archive is None or archive.stopped_at is not None:
        return False
    Archive.objects.for_tenant(tenant.id).update(
        stopped_at=timezone.now(), stopped_by=name_of(actor), claim=None, claimed_until=None
    )
    record_action(
        tenant, actor, "archive.stop", tenant.name, rows=[archive], next_index=archive.next_index
    )
    return True
