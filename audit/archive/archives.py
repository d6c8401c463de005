"""Which tenants are archived, and how far: for operators and pages. Needs the tenant's scope."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Sum
from django.utils import timezone

from audit.ledger.status import ledger_status
from audit.models import Archive, ArchiveSegment
from audit.sql.run import run
from tenants.actions import Actor, name_of, record_action
from tenants.models import Tenant
from tenants.scope import current_tenant_id, tenant_scope

SEALED_AFTER = timedelta(hours=1)
"""How long after its end a day is archived: entries of the last minute are signed by then."""
LATE_AFTER = timedelta(hours=6)
"""From then on the archive is behind."""

type State = Literal["off", "stopped", "failing", "behind", "current"]


@dataclass(frozen=True, slots=True)
class ArchiveStatus:
    """How the archive of a tenant stands."""

    state: State
    archive: Archive | None
    size: int
    """Entries of the ledger; `archive.next_index` of them are archived."""
    segments: int
    payloads: int
    byte_count: int
    archived_at: datetime | None
    """When the last segment was archived."""
    behind: timedelta
    """For how long the oldest entry that is not archived could have been."""


def find_archive() -> Archive | None:
    """The tenant's archive, or None."""
    return Archive.objects.for_tenant(current_tenant_id()).first()


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


def archive_status(now: datetime) -> ArchiveStatus:
    """How the archive stands. At most five queries."""
    tenant_id = current_tenant_id()
    archive = find_archive()
    size = ledger_status(tenant_id).size
    if archive is None:
        return ArchiveStatus("off", None, size, 0, 0, 0, None, timedelta())
    segments = ArchiveSegment.objects.for_tenant(tenant_id)
    sums = segments.aggregate(payloads=Sum("payload_count"), byte_count=Sum("byte_count"))
    last = segments.order_by("-first_index").first()
    behind = _behind(archive, size, now)
    state: State = "current"
    if archive.stopped_at is not None:
        state = "stopped"
    elif archive.failure:
        state = "failing"
    elif behind > LATE_AFTER:
        state = "behind"
    return ArchiveStatus(
        state=state,
        archive=archive,
        size=size,
        segments=segments.count(),
        payloads=sums["payloads"] or 0,
        byte_count=sums["byte_count"] or 0,
        archived_at=None if last is None else last.archived_at,
        behind=behind,
    )


def sealed_at(received_at: datetime) -> datetime:
    """When the day on which an entry was received is archived."""
    return midnight_after(received_at) + SEALED_AFTER


def midnight_after(at: datetime) -> datetime:
    """The end of the UTC day of an instant."""
    day = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return day + timedelta(days=1)


def _behind(archive: Archive, size: int, now: datetime) -> timedelta:
    if archive.next_index >= size:
        return timedelta()
    rows = run("archive_begin", index=archive.next_index)
    return max(timedelta(), now - sealed_at(rows[0][0])) if rows else timedelta()


@dataclass(frozen=True, slots=True)
class AllArchives:
    """The archives of all tenants, for an installation's operator."""

    failing: int
    behind_s: float
    """Of the archive that is most behind."""


def all_archives(now: datetime) -> AllArchives:
    """The archives of all tenants. Some queries per tenant, in its scope."""
    failing, behind_s = 0, 0.0
    for tenant_id in Tenant.objects.values_list("id", flat=True):
        with tenant_scope(tenant_id):
            archive = find_archive()
            if archive is None or archive.stopped_at is not None:
                continue
            failing += bool(archive.failure)
            behind = _behind(archive, ledger_status(tenant_id).size, now)
        behind_s = max(behind_s, behind.total_seconds())
    return AllArchives(failing, behind_s)


def of_tenant(tenant_id: UUID) -> bool:
    """Whether something of the tenant is archived. Opens its own scope."""
    with tenant_scope(tenant_id):
        return find_archive() is not None
