"""Channels of alerts, and the deliveries to them (`audit.deliveries`)."""

from typing import ClassVar

from django.db import models

from audit.models.base import TenantQuerySet


class ChannelKind(models.TextChoices):
    """How a channel is reached."""

    EMAIL = "email", "E-mail"
    WEBHOOK = "webhook", "Webhook"
    SLACK = "slack", "Slack"
    SERVICE = "service", "Other service"


class DeliveryState(models.TextChoices):
    """How far a delivery is."""

    WAITING = "waiting", "Waiting"
    DELIVERED = "delivered", "Delivered"
    FAILED = "failed", "Not delivered"
    CANCELLED = "cancelled", "Cancelled"


class AlertChannel(models.Model):
    """Where alerts are sent. `secret_box` is what must not be shown, encrypted."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    name = models.TextField()
    kind = models.TextField(choices=ChannelKind)
    settings = models.JSONField()
    secret_box = models.BinaryField(null=True)
    created_at = models.DateTimeField()
    created_by = models.TextField()
    changed_at = models.DateTimeField()
    changed_by = models.TextField()

    in_ledger: ClassVar = (
        *("name", "kind", "settings", "secret_box"),
        *("created_at", "created_by", "changed_at", "changed_by"),
    )

    objects = TenantQuerySet["AlertChannel"].as_manager()

    class Meta:
        managed = False
        db_table = "alert_channel"

    def __str__(self) -> str:
        return self.name


class AlertDelivery(models.Model):
    """A message for one channel, its state, and what each attempt was answered."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    channel_id = models.UUIDField()
    channel_name = models.TextField()
    message_id = models.UUIDField()
    message = models.JSONField()
    created_at = models.DateTimeField()
    state = models.TextField(choices=DeliveryState)
    attempt_count = models.IntegerField()
    attempts = models.JSONField()
    next_attempt_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    objects = TenantQuerySet["AlertDelivery"].as_manager()

    class Meta:
        managed = False
        db_table = "alert_delivery"

    def __str__(self) -> str:
        return f"{self.message_id} to {self.channel_name}"
