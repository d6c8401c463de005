"""The retention floor: a number of days below which no single admin can set retention.

The database refuses a shorter retention (`tenant_setting_floor_check`), whoever asks for it. One
admin raises the floor. To lower or remove it, one admin requests and another approves within
`OPEN_FOR`. Each step is an action, and messages about a request and its approval go to all
channels of alerts: no rule can be muted or deleted to prevent them. That the two accounts belong
to two people, nobody can know.

All functions need the tenant's scope. Those that change something lock the tenant's settings.
"""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import QuerySet

from audit.deliveries import outbox
from audit.deliveries.message import Fact, Message
from audit.models import AlertChannel, FloorRequest, FloorState
from audit.retention.holds import lock_record
from audit.retention.retention import DAYS_MAX, WARN_UNDER_DAYS
from tenants.actions import THE_SERVER, Actor, Person, account_of, name_of, record_action
from tenants.models import Tenant, TenantSetting, new_id
from tenants.scope import current_tenant_id

FLOOR_DAYS_MIN: Final = WARN_UNDER_DAYS
FLOOR_DAYS_MAX: Final = DAYS_MAX
OPEN_FOR: Final = timedelta(days=7)
"""A request that nobody approves for so long expires."""


class FloorError(Exception):
    """Nothing was changed. The message says why."""


def locked_setting(tenant: Tenant) -> TenantSetting:
    """The tenant's settings, locked until the scope ends: floor and retention stay as read."""
    lock_record(tenant.pk)
    return TenantSetting.objects.get(tenant=tenant)


def is_below(days: int | None, floor_days: int | None) -> bool:
    """Whether a retention (None: forever) is shorter than the floor (None: there is none)."""
    return days is not None and floor_days is not None and days < floor_days


def raise_floor(tenant: Tenant, actor: Actor, days: int, reason: str) -> None:
    """Set the floor, or a higher one. Raises FloorError."""
    setting = locked_setting(tenant)
    before = setting.floor_days
    if not FLOOR_DAYS_MIN <= days <= FLOOR_DAYS_MAX:
        raise FloorError(f"Enter {FLOOR_DAYS_MIN} to {FLOOR_DAYS_MAX:,} days.")
    if before is not None and days <= before:
        raise FloorError(f"The floor is {before:,} days. To lower it, two admins are needed.")
    for what, kept in (("Payloads", setting.payload_days), ("The index", setting.index_days)):
        if is_below(kept, days):
            raise FloorError(f"{what}: kept for {kept:,} days only. Make retention longer first.")
    _set_floor(tenant, days)
    record_action(
        tenant,
        actor,
        "floor.raise",
        f"{days:,} days",
        before=before,
        after=days,
        reason=reason,
        rows=[setting],
    )


def request_lower(
    tenant: Tenant, person: Person, to_days: int | None, reason: str, now: datetime
) -> FloorRequest:
    """Request a lower floor, or none, which another admin approves. Raises FloorError."""
    current = locked_setting(tenant).floor_days
    expire_request(now)
    if current is None:
        raise FloorError("There is no floor.")
    if to_days is not None and not FLOOR_DAYS_MIN <= to_days < current:
        raise FloorError(
            f"The floor is {current:,} days. A lower one has {FLOOR_DAYS_MIN} days or more, or"
            " remove it."
        )
    if waiting_request() is not None:
        raise FloorError("A request is waiting already. Approve or refuse that one first.")
    request = FloorRequest.objects.create(
        tenant_id=tenant.pk,
        id=new_id(),
        from_days=current,
        to_days=to_days,
        reason=reason,
        requested_at=now,
        requested_by=name_of(person.actor),
        requested_person=person.account.pk,
        expires_at=now + OPEN_FOR,
        state=FloorState.WAITING,
    )
    _record(tenant, person.actor, "floor.request", request, reason=reason)
    _notify(request, f"{request.requested_by} requests {_change(request)}", reason, now)
    return request


def approve(tenant: Tenant, person: Person, pk: UUID, reason: str, now: datetime) -> FloorRequest:
    """Lower the floor as requested, as another person than who requested it. Raises FloorError."""
    setting = locked_setting(tenant)
    request = _waiting(pk, now)
    if person.account.pk == request.requested_person:
        raise FloorError("Another admin must approve it: you have requested it.")
    if setting.floor_days != request.from_days:
        raise FloorError("The floor was raised since. Refuse the request and make another one.")
    _decide(request, FloorState.APPROVED, person, reason, now)
    _set_floor(tenant, request.to_days)
    _record(tenant, person.actor, "floor.approve", request, setting, reason=reason)
    title = f"{request.decided_by} approved {_change(request)}, as {request.requested_by} requested"
    _notify(request, title, reason, now)
    return request


def refuse(tenant: Tenant, person: Person, pk: UUID, reason: str, now: datetime) -> FloorRequest:
    """Refuse a request, or withdraw one's own. The floor stays. Raises FloorError."""
    locked_setting(tenant)
    request = _waiting(pk, now)
    _decide(request, FloorState.REFUSED, person, reason, now)
    _record(tenant, person.actor, "floor.refuse", request, reason=reason)
    return request


def expire_request(now: datetime) -> bool:
    """Put on record that the waiting request has expired. Returns whether there was one."""
    overdue = _requests().filter(state=FloorState.WAITING, expires_at__lte=now)
    request = overdue.first()
    if request is None:
        return False
    try:
        _decide(request, FloorState.EXPIRED, None, "Nobody approved it in time.", now)
    except FloorError:  # somebody just refused it
        return False
    _record(Tenant(id=request.tenant_id), THE_SERVER, "floor.expire", request)
    return True


def waiting_request() -> FloorRequest | None:
    """The request that waits for an approval; it may have expired since."""
    return _requests().filter(state=FloorState.WAITING).first()


def all_requests() -> QuerySet[FloorRequest]:
    """All requests, the newest first."""
    return _requests().order_by("-id")


def find_request(pk: UUID) -> FloorRequest | None:
    """The tenant's request with this id, or None."""
    return _requests().filter(id=pk).first()


def erasure_refusal(floor_days: int | None, previewed_by: int | None, actor: Actor) -> str:
    """Why this actor cannot confirm an erasure that an account has previewed; '' if they can.

    While there is a floor, an erasure takes two people. Otherwise one admin could erase all calls,
    a query at a time. A program is nobody's second person.
    """
    if floor_days is None:
        return ""
    if previewed_by is None or account_of(actor) is None:
        return (
            "This tenant has a retention floor: one person previews an erasure on its page, and"
            " another one confirms it there."
        )
    if account_of(actor) == previewed_by:
        return (
            "This tenant has a retention floor: another admin must confirm this erasure, as you"
            " have previewed it."
        )
    return ""


def _requests() -> QuerySet[FloorRequest]:
    return FloorRequest.objects.for_tenant(current_tenant_id())


def _waiting(pk: UUID, now: datetime) -> FloorRequest:
    request = find_request(pk)
    if request is None or request.state != FloorState.WAITING:
        raise FloorError("This request no longer waits.")
    if request.expires_at <= now:
        raise FloorError("This request has expired. Make another one.")
    return request


def _decide(
    request: FloorRequest, state: FloorState, person: Person | None, reason: str, now: datetime
) -> None:
    request.state, request.decided_at, request.decision_reason = state, now, reason
    request.decided_by = name_of(person.actor if person else THE_SERVER)
    request.decided_person = person.account.pk if person else None
    written = ("state", "decided_at", "decided_by", "decided_person", "decision_reason")
    waiting = _requests().filter(id=request.id, state=FloorState.WAITING)
    if not waiting.update(**{name: getattr(request, name) for name in written}):
        raise FloorError("This request no longer waits.")


def _set_floor(tenant: Tenant, days: int | None) -> None:
    TenantSetting.objects.filter(tenant=tenant).update(floor_days=days)


def _record(
    tenant: Tenant,
    actor: Actor,
    verb: str,
    request: FloorRequest,
    *changed: TenantSetting,
    **details: str,
) -> None:
    record_action(
        tenant,
        actor,
        verb,
        str(request.id),
        rows=[request, *changed],
        before=request.from_days,
        after=request.to_days,
        **details,
    )


def _change(request: FloorRequest) -> str:
    if request.to_days is None:
        return f"to remove the retention floor of {request.from_days:,} days"
    return f"to lower the retention floor from {request.from_days:,} to {request.to_days:,} days"


def _notify(request: FloorRequest, title: str, reason: str, now: datetime) -> None:
    """Send a message to all channels, whatever the rules are."""
    facts: dict[str, Fact] = {
        "request": str(request.id),
        "floor": request.from_days,
        "lower floor": request.to_days,
        "expires": request.expires_at.isoformat(),
    }
    message = Message(
        id=new_id(),
        kind="fired",
        rule="Retention floor",
        severity="alert",
        title=title,
        text=reason,
        link="/settings/floor",
        facts=facts,
        at=now,
    )
    channels = AlertChannel.objects.for_tenant(request.tenant_id)
    outbox.enqueue(request.tenant_id, message, channels.values_list("id", flat=True))
