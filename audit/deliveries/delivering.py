"""Deliver what is due: claim deliveries, send them, record the answers.

At least once: a claim ends after `LEASE`, so the deliveries of a killed worker are tried again,
with the same message id. No transaction is open while messages are sent.
"""

import logging
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone

from audit.deliveries import process
from audit.deliveries.channels import secrets_of
from audit.deliveries.sender.job import Answer, Job
from audit.models import AlertChannel, AlertDelivery, DeliveryState, TenantQuerySet
from config.boxes import BoxError
from config.http.origin import own_url
from tenants.actions import THE_SERVER, record_action, storable_text
from tenants.models import Tenant
from tenants.scope import tenant_scope

_log = logging.getLogger(__name__)

AT_ONCE = 8
"""Deliveries of one run of the sending process, each in a thread."""
LEASE = timedelta(minutes=1)
"""How long a claim holds: longer than the sending process may take."""
FIRST_DELAY = timedelta(minutes=1)
"""Before the second attempt. It doubles with each attempt, up to `DELAY_MAX`."""
DELAY_MAX = timedelta(hours=4)
GIVE_UP_AFTER = timedelta(hours=24)
KEPT_FOR = timedelta(days=90)
_NO_ANSWER = "The process that sends gave no answer."


def run_slice(tenant_id: UUID) -> bool:
    """Deliver what is due, at most `AT_ONCE` messages. Returns whether more is due."""
    with tenant_scope(tenant_id):
        claimed, jobs, answers = _claim(tenant_id, timezone.now())
    answers |= process.send(jobs)
    with tenant_scope(tenant_id):
        now = timezone.now()
        for delivery in claimed:
            answer = answers.get(str(delivery.id))
            _record(delivery, answer or _unsent(delivery, _NO_ANSWER), now)
        return is_due(tenant_id, now)


def is_due(tenant_id: UUID, now: datetime) -> bool:
    """Whether a delivery of the tenant is due. Needs the scope."""
    return _due(tenant_id, now).exists()


def forget_old(tenant_id: UUID, now: datetime) -> None:
    """Delete deliveries that are older than `KEPT_FOR`. Needs the scope."""
    AlertDelivery.objects.for_tenant(tenant_id).filter(created_at__lt=now - KEPT_FOR).delete()


def delay_after(attempts: int) -> timedelta:
    """How long to wait after so many failed attempts."""
    return min(DELAY_MAX, FIRST_DELAY * (1 << min(attempts - 1, 20)))


def _due(tenant_id: UUID, now: datetime) -> TenantQuerySet[AlertDelivery]:
    return (
        AlertDelivery.objects.for_tenant(tenant_id)
        .filter(state=DeliveryState.WAITING, next_attempt_at__lte=now)
        .order_by("next_attempt_at", "id")
    )


def _claim(
    tenant_id: UUID, now: datetime
) -> tuple[list[AlertDelivery], list[Job], dict[str, Answer]]:
    """Take what is due, the jobs to send it, and answers for what cannot be sent."""
    claimed = list(_due(tenant_id, now).select_for_update(skip_locked=True)[:AT_ONCE])
    channels = {
        channel.id: channel
        for channel in AlertChannel.objects.for_tenant(tenant_id).filter(
            id__in=[delivery.channel_id for delivery in claimed]
        )
    }
    jobs: list[Job] = []
    answers: dict[str, Answer] = {}
    tenant = Tenant.objects.get(pk=tenant_id)
    for delivery in claimed:
        delivery.attempt_count += 1
        row = AlertDelivery.objects.for_tenant(tenant_id).filter(id=delivery.id)
        row.update(attempt_count=delivery.attempt_count, next_attempt_at=now + LEASE)
        channel = channels.get(delivery.channel_id)
        if channel is None:  # deleted while the message was stored
            row.update(state=DeliveryState.CANCELLED, finished_at=now)
            continue
        try:
            jobs.append(_job(delivery, channel, tenant))
        except BoxError as error:
            _log.error("channel %s of tenant %s: %s", delivery.channel_id, tenant_id, error)
            answers[str(delivery.id)] = _unsent(delivery, str(error))
    return claimed, jobs, answers


def _job(delivery: AlertDelivery, channel: AlertChannel, tenant: Tenant) -> Job:
    return Job(
        id=str(delivery.id),
        kind=channel.kind,
        channel_id=str(channel.id),
        settings=channel.settings,
        secrets=secrets_of(channel),
        message=delivery.message
        | {"url": own_url() + delivery.message["link"], "source": f"{own_url()}/#{tenant.slug}"},
    )


def _unsent(delivery: AlertDelivery, text: str) -> Answer:
    return Answer(str(delivery.id), is_delivered=False, text=text)


def _record(delivery: AlertDelivery, answer: Answer, now: datetime) -> None:
    tenant_id, text = delivery.tenant_id, storable_text(answer.text)
    if answer.is_refused:
        _log.warning("channel %s of tenant %s: %s", delivery.channel_id, tenant_id, text)
    attempt = {"at": now.isoformat(), "answer": text, "status": answer.status}
    delivery.attempts = [*delivery.attempts, attempt]
    delivery.next_attempt_at = now + delay_after(delivery.attempt_count)
    is_last = delivery.next_attempt_at > delivery.created_at + GIVE_UP_AFTER
    if answer.is_delivered:
        delivery.state = DeliveryState.DELIVERED
    elif is_last:
        delivery.state = DeliveryState.FAILED
    if delivery.state != DeliveryState.WAITING:
        delivery.finished_at = now
    changed = (
        AlertDelivery.objects.for_tenant(tenant_id)
        .filter(id=delivery.id, state=DeliveryState.WAITING)
        .update(
            attempts=delivery.attempts,
            next_attempt_at=delivery.next_attempt_at,
            state=delivery.state,
            finished_at=delivery.finished_at,
        )
    )
    if changed and delivery.state != DeliveryState.WAITING:
        verb = "deliver" if delivery.state == DeliveryState.DELIVERED else "undelivered"
        record_action(
            Tenant(id=tenant_id),
            THE_SERVER,
            f"alert.{verb}",
            delivery.message["rule"],
            message=str(delivery.message_id),
            kind=delivery.message["kind"],
            channel=delivery.channel_name,
            attempts=delivery.attempt_count,
            status=answer.status,
        )
