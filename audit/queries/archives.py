"""Which tenants are archived, and how far. Needs the tenant's scope."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from django.db.models import Sum

from audit.ledger.status import ledger_status
from audit.models import Archive, ArchiveSegment
from audit.sql.run import run
from tenants.scope import current_tenant_id

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
    behind = behind_of(archive, size, now)
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


def behind_of(archive: Archive, size: int, now: datetime) -> timedelta:
    """For how long the oldest entry that is not archived could have been. At most one query."""
    if archive.next_index >= size:
        return timedelta()
    rows = run("archive_begin", index=archive.next_index)
    return max(timedelta(), now - sealed_at(rows[0][0])) if rows else timedelta()
