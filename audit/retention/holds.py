"""Legal holds: set and release them, and check them before anything is erased.

Code that erases first takes `lock_record`, then checks the holds in the same transaction. Setting
a hold takes the same lock. So once a hold is set, nothing it covers can still be erased.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS
from tooltrail.ledger import Kind

from audit.events.instants import day_of
from audit.ledger.entries import append_entry
from audit.models import LegalHold
from audit.retention.hold_match import LoggedEvent, covers_call, covers_event
from audit.sql import arrays
from audit.sql.run import run
from tenants.actions import Actor, name_of, record_action
from tenants.models import Tenant, TenantSetting, new_id
from tenants.scope import current_tenant_id


@dataclass(frozen=True, slots=True)
class Covered:
    """Which calls a hold covers: a call must match every member that is not None."""

    trace_id: str | None = None
    case_id: str | None = None
    tool_name: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def set_hold(
    tenant: Tenant, actor: Actor, name: str, reason: str, covered: Covered, now: datetime
) -> LegalHold:
    """Protect these calls from erasure from now on. Needs the scope."""
    lock_record(tenant.id)
    hold = LegalHold.objects.create(
        tenant_id=tenant.id,
        id=new_id(),
        name=name,
        reason=reason,
        trace_id=covered.trace_id,
        case_id=covered.case_id,
        tool_name=covered.tool_name,
        since=covered.since,
        until=covered.until,
        set_at=now,
        set_by=name_of(actor),
    )
    details: dict[str, Any] = {"hold": str(hold.id), "covers": hold.covers, "reason": reason}
    record_action(tenant, actor, "hold.set", name, rows=[hold], **details)
    append_entry(
        tenant.id,
        Kind.HOLD,
        {"state": "set", "name": name, "actor": name_of(actor), **details},
        now,
    )
    return hold


def release_hold(
    tenant: Tenant, actor: Actor, pk: UUID, reason: str, now: datetime
) -> LegalHold | None:
    """Release a hold. Returns None if no such hold is in force. Needs the scope.

    Retention's next pass erases what it left because of the hold: it starts again at the first
    such batch. One query reads the tenant's batches up to there.
    """
    erased_to = lock_record(tenant.id)
    holds = LegalHold.objects.for_tenant(tenant.id).filter(id=pk, released_at=None)
    hold = holds.first()
    if hold is None:
        return None
    hold.released_at, hold.released_by, hold.release_reason = now, name_of(actor), reason
    holds.update(released_at=now, released_by=hold.released_by, release_reason=reason)
    left_behind = run("first_left_behind", erased_to=erased_to)
    if left_behind:
        TenantSetting.objects.filter(tenant_id=tenant.id).update(erased_to=left_behind[0][0])
    details = {"hold": str(hold.id), "reason": reason}
    record_action(tenant, actor, "hold.release", hold.name, rows=[hold], **details)
    append_entry(
        tenant.id,
        Kind.HOLD,
        {"state": "released", "name": hold.name, "actor": hold.released_by, **details},
        now,
    )
    return hold


def all_holds() -> list[LegalHold]:
    """The tenant's holds: those in force first, each group newest first."""
    holds = list(LegalHold.objects.for_tenant(current_tenant_id()).order_by("-id"))
    return sorted(holds, key=lambda hold: hold.released_at is not None)


def holds_of_call(
    holds: Sequence[LegalHold],
    trace_id: str,
    case_id: str | None,
    tool_name: str,
    started_at: datetime,
) -> list[LegalHold]:
    """The given holds that cover a call, by its row in the index."""
    return [hold for hold in holds if covers_call(hold, trace_id, case_id, tool_name, started_at)]


def holds_in_force(tenant_id: UUID, *, using: str = DEFAULT_DB_ALIAS) -> list[LegalHold]:
    """The tenant's holds that are not released. One query."""
    return list(
        LegalHold.objects.using(using).for_tenant(tenant_id).filter(released_at=None).order_by("id")
    )


def lock_record(tenant_id: UUID, *, using: str = DEFAULT_DB_ALIAS) -> int:
    """Lock out erasures and changes of holds until the scope ends. Returns `erased_to`.

    Waits for others that hold the lock. `erased_to` is how far retention has come. Creates the
    tenant's settings if there are none yet; only the application's role may do that.
    """
    rows = run("record_lock", using=using)
    if not rows:
        TenantSetting.objects.using(using).get_or_create(tenant_id=tenant_id)
        rows = run("record_lock", using=using)
    return int(rows[0][0])


def held_positions(
    tenant_id: UUID, holds: Sequence[LegalHold], events: Sequence[LoggedEvent], *, using: str
) -> set[int]:
    """Positions in a batch of the events that a hold covers, through their call or directly."""
    held = held_calls(tenant_id, holds, events, using=using)
    return {
        event.position
        for event in events
        if event.invocation_id in held or covers_event(holds, event.candidate)
    }


def held_calls(
    tenant_id: UUID, holds: Sequence[LegalHold], events: Collection[LoggedEvent], *, using: str
) -> set[UUID]:
    """Of the events' calls, those that a hold covers by the index. One query if there are holds."""
    days = [event.candidate.day for event in events if event.candidate is not None]
    ids = {event.invocation_id for event in events if event.invocation_id is not None}
    if not (holds and days and ids):
        return set()
    # An end event may put its call on another day than its start event does.
    first, last = (day_of(day) for day in (min(days) - 1, max(days) + 1))
    rows = run(
        "held_calls",
        tenant_id=tenant_id,
        using=using,
        first_day=first,
        last_day=last,
        invocation_ids=arrays.uuids(list(ids)),
    )
    return {row[0] for row in rows}
