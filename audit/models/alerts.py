"""Rules of alerts, alerts, and maintenance windows."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from audit.models.base import TenantQuerySet
from tenants.slices import JobState


class AlertState(models.TextChoices):
    """What people have done about an alert."""

    OPEN = "open", "Open"
    ACKNOWLEDGED = "acknowledged", "Acknowledged"
    RESOLVED = "resolved", "Resolved"


class AlertRule(models.Model):
    """A rule, and how far the worker has judged it (`audit.alerts.rules` reads the condition)."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    name = models.TextField()
    condition = models.JSONField()
    is_enabled = models.BooleanField()
    channel_ids = ArrayField(models.UUIDField())
    repeat_minutes = models.IntegerField()
    created_at = models.DateTimeField()
    created_by = models.TextField()
    changed_at = models.DateTimeField()
    changed_by = models.TextField()
    muted_until = models.DateTimeField(null=True)
    muted_by = models.TextField(null=True)
    mute_reason = models.TextField(null=True)
    judged_to = models.DateTimeField()
    problem = models.TextField()

    in_ledger: ClassVar = (
        *("name", "condition", "is_enabled", "channel_ids", "repeat_minutes"),
        *("created_at", "created_by"),
        *("changed_at", "changed_by", "muted_until", "muted_by", "mute_reason"),
    )

    objects = TenantQuerySet["AlertRule"].as_manager()

    class Meta:
        managed = False
        db_table = "alert_rule"

    def __str__(self) -> str:
        return self.name


class Alert(models.Model):
    """A time during which a rule fired, and what people did about it."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    rule_id = models.UUIDField()
    rule_name = models.TextField()
    occasion = models.TextField()
    severity = models.TextField()
    state = models.TextField(choices=AlertState)
    held_from = models.DateTimeField()
    held_to = models.DateTimeField(null=True)
    opened_at = models.DateTimeField()
    is_late = models.BooleanField()
    is_muted = models.BooleanField()
    notified_at = models.DateTimeField(null=True)
    title = models.TextField()
    query = models.TextField()
    value = models.FloatField(null=True)
    compared_with = models.FloatField(null=True)
    threshold = models.FloatField(null=True)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.TextField(null=True)
    acknowledge_note = models.TextField(null=True)
    resolved_at = models.DateTimeField(null=True)
    resolved_by = models.TextField(null=True)
    resolve_note = models.TextField(null=True)
    uncounted = models.BigIntegerField()

    in_ledger: ClassVar = (
        *("rule_id", "rule_name", "occasion", "severity", "state", "held_from", "opened_at"),
        *("title", "query", "value", "compared_with", "threshold", "is_late", "is_muted"),
        *("acknowledged_at", "acknowledged_by", "acknowledge_note"),
        *("resolved_at", "resolved_by", "resolve_note"),
    )

    objects = TenantQuerySet["Alert"].as_manager()

    class Meta:
        managed = False
        db_table = "alert"

    def __str__(self) -> str:
        return self.title


class MaintenanceWindow(models.Model):
    """A planned time, or one that repeats, in which nobody is notified of alerts."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    name = models.TextField()
    reason = models.TextField()
    starts_at = models.DateTimeField()
    minutes = models.IntegerField()
    repeats = models.TextField()
    time_zone = models.TextField()
    rule_ids = ArrayField(models.UUIDField())
    changed_at = models.DateTimeField()
    changed_by = models.TextField()

    in_ledger: ClassVar = (
        *("name", "reason", "starts_at", "minutes", "repeats", "time_zone", "rule_ids"),
        *("changed_at", "changed_by"),
    )

    objects = TenantQuerySet["MaintenanceWindow"].as_manager()

    class Meta:
        managed = False
        db_table = "maintenance_window"

    def __str__(self) -> str:
        return self.name


class AlertTrial(models.Model):
    """A rule that is tried on the past by the worker, and what it has read."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    created_at = models.DateTimeField()
    created_by = models.TextField()
    rule = models.JSONField()
    rule_id = models.UUIDField(null=True)
    until = models.DateTimeField()
    read_from = models.DateTimeField()
    sums = models.TextField()
    state = models.TextField(choices=JobState)
    problem = models.TextField()
    finished_at = models.DateTimeField(null=True)

    objects = TenantQuerySet["AlertTrial"].as_manager()

    class Meta:
        managed = False
        db_table = "alert_trial"

    def __str__(self) -> str:
        return str(self.rule["name"])
