"""The outbox: messages are stored with what caused them, and delivered by the worker."""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from django.utils import timezone
from procrastinate.contrib.django import app

from audit.deliveries.message import Message, to_document
from audit.models import AlertChannel, AlertDelivery, DeliveryState
from tenants.actions import storable
from tenants.models import new_id

SOON: Final = 10
"""The priority of the tasks of alerts. The worker's other tasks have 0: they wait their turn."""


def enqueue(tenant_id: UUID, message: Message, channel_ids: Iterable[UUID]) -> None:
    """Store a message for these channels; the worker delivers it in seconds. Needs the scope.

    It is stored and delivered only if the caller's transaction is committed. Unknown channels are
    left out. A message that a channel has already (by its id) is not stored again.
    """
    now = timezone.now()
    channels = AlertChannel.objects.for_tenant(tenant_id).filter(id__in=set(channel_ids))
    document = storable(to_document(message))
    stored = [
        AlertDelivery(
            tenant_id=tenant_id,
            id=new_id(),
            channel_id=channel.id,
            channel_name=channel.name,
            message_id=message.id,
            message=document,
            created_at=now,
            state=DeliveryState.WAITING,
            attempt_count=0,
            attempts=[],
            next_attempt_at=now,
        )
        for channel in channels.only("id", "name")
    ]
    if stored:
        AlertDelivery.objects.bulk_create(stored, ignore_conflicts=True)
        deliver_soon(tenant_id)


def deliver_soon(tenant_id: UUID) -> None:
    """Let the worker deliver what is due, once this transaction is committed."""
    # By name, because tasks are above this module. The sweep of each minute finds what is left.
    task = app.configure_task("audit.tasks.deliver", queue="deliveries", priority=SOON)
    task.defer(tenant_id=str(tenant_id))
