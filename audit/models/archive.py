"""The archive of a tenant in storage outside the database (`audit.archive`)."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from audit.models.base import TenantQuerySet


class Archive(models.Model):
    """That a tenant is archived, and how far."""

    tenant_id = models.UUIDField(primary_key=True)
    created_at = models.DateTimeField()
    created_by = models.TextField()
    stopped_at = models.DateTimeField(null=True)
    """Nothing more is archived since then; None while it goes on."""
    stopped_by = models.TextField(null=True)
    payload_days = models.IntegerField(null=True)
    """For how many days archived payloads can be read; None: for ever."""
    next_index = models.BigIntegerField()
    """All entries of the ledger before it are archived."""
    end_index = models.BigIntegerField(null=True)
    """The end of the segment that is archived now. A worker that takes over keeps to it."""
    at_once_to = models.BigIntegerField(null=True)
    """Up to this index the ledger is archived without waiting for the end of a day."""
    failure = models.TextField()
    """Why the last attempt failed; '' if it did not."""
    failing_since = models.DateTimeField(null=True)
    attempt_count = models.IntegerField()
    """Failed attempts in a row."""
    next_attempt_at = models.DateTimeField()
    claim = models.UUIDField(null=True)
    """Of the worker that archives now, until `claimed_until`."""
    claimed_until = models.DateTimeField(null=True)

    ledger_id: ClassVar = "tenant_id"
    in_ledger: ClassVar = ("created_at", "created_by", "stopped_at", "stopped_by", "payload_days")

    objects = TenantQuerySet["Archive"].as_manager()

    class Meta:
        managed = False
        db_table = "archive"

    def __str__(self) -> str:
        return str(self.tenant_id)

    @property
    def has_objects(self) -> bool:
        """Whether something of the tenant may be in the storage."""
        return self.next_index > 0 or self.end_index is not None


class ArchiveSegment(models.Model):
    """A range of the ledger that is archived: a UTC day, or a part of one."""

    pk = models.CompositePrimaryKey("tenant_id", "first_index")
    tenant_id = models.UUIDField()
    first_index = models.BigIntegerField()
    end_index = models.BigIntegerField()
    """The index after its last entry."""
    day = models.DateField()
    """On which its first entry was received."""
    last_received_at = models.DateTimeField()
    epoch = models.IntegerField()
    """Of the checkpoint that covers it."""
    size = models.BigIntegerField()
    packs = ArrayField(models.BigIntegerField())
    """The indexes at which its packs of payloads begin."""
    payload_count = models.IntegerField()
    byte_count = models.BigIntegerField()
    record_sha256 = models.BinaryField()
    archived_at = models.DateTimeField()
    keys_gone_at = models.DateTimeField(null=True)
    """When the keys of all its payloads were destroyed."""

    objects = TenantQuerySet["ArchiveSegment"].as_manager()

    class Meta:
        managed = False
        db_table = "archive_segment"

    def __str__(self) -> str:
        return f"{self.day}: {self.first_index}"

    @property
    def place(self) -> tuple[int, int]:
        """The index of its first entry, and the one after its last."""
        return self.first_index, self.end_index
