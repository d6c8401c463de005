"""Streams to SIEMs, and how far each has been sent (`audit.stream`)."""

from typing import ClassVar

from django.db import models

from audit.models.base import TenantQuerySet


class StreamWay(models.TextChoices):
    """How records leave."""

    SYSLOG = "syslog", "Syslog over TLS"
    HTTPS = "https", "HTTPS, JSON lines"
    SPLUNK = "splunk", "Splunk HTTP Event Collector"
    S3 = "s3", "Files in S3-compatible storage"


class StreamOf(models.TextChoices):
    """Which entries of the ledger a stream has."""

    CALLS = "calls", "Calls"
    ACTIONS = "actions", "Actions"


class StreamFormat(models.TextChoices):
    """The format of records."""

    OCSF = "ocsf", "OCSF 1.8"
    ECS = "ecs", "Elastic Common Schema"


class Stream(models.Model):
    """A stream of records to one receiver. `secret_box` is what must not be shown, encrypted."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    name = models.TextField()
    of = models.TextField(choices=StreamOf)
    format = models.TextField(choices=StreamFormat)
    way = models.TextField(choices=StreamWay)
    settings = models.JSONField()
    secret_box = models.BinaryField(null=True)
    has_proofs = models.BooleanField()
    """Whether each record has its whole proof, or only names the checkpoint."""
    payloads_by = models.TextField(null=True)
    payloads_reason = models.TextField(null=True)
    created_at = models.DateTimeField()
    created_by = models.TextField()
    changed_at = models.DateTimeField()
    changed_by = models.TextField()
    paused_at = models.DateTimeField(null=True)
    paused_by = models.TextField(null=True)
    next_index = models.BigIntegerField()
    """The cursor: the receiver has acknowledged all entries before it."""
    sent_count = models.BigIntegerField()
    """Records that were acknowledged, each as often as it was sent."""
    sent_at = models.DateTimeField(null=True)
    failure = models.TextField()
    """Why the last attempt failed; '' if it did not."""
    failing_since = models.DateTimeField(null=True)
    attempt_count = models.IntegerField()
    """Failed attempts in a row."""
    next_attempt_at = models.DateTimeField()
    last_test = models.JSONField(null=True)
    """When a test was asked for, and how the receiver took it (`audit.stream.trying`)."""
    claim = models.UUIDField(null=True)
    """Of the worker that sends it now, until `claimed_until`."""
    claimed_until = models.DateTimeField(null=True)

    in_ledger: ClassVar = (
        *("name", "of", "format", "way", "settings", "secret_box", "has_proofs"),
        *("payloads_by", "payloads_reason", "created_at", "created_by"),
        *("changed_at", "changed_by", "paused_at", "paused_by"),
    )

    objects = TenantQuerySet["Stream"].as_manager()

    class Meta:
        managed = False
        db_table = "stream"

    def __str__(self) -> str:
        return self.name
