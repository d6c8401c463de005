"""Auditors' samples of calls (`audit.sampling`)."""

from typing import ClassVar

from django.db import models

from audit.models.base import TenantQuerySet


class SampleState(models.TextChoices):
    """How far a sample is."""

    WAITING = "waiting", "Waiting"
    RUNNING = "running", "Listing the population"
    FIXED = "fixed", "Ready to draw"
    DRAWN = "drawn", "In work"
    PREPARED = "prepared", "To review"
    SIGNED = "signed", "Signed"
    CANCELLED = "cancelled", "Stopped"
    FAILED = "failed", "Failed"


class Conclusion(models.TextChoices):
    """What an auditor concludes about a drawn call."""

    PASS = "pass", "Pass"
    EXCEPTION = "exception", "Exception"
    UNJUDGED = "unjudged", "Cannot be judged"


class Sample(models.Model):
    """A sample: its population, its draw, and who signed it. '' and None: not there yet."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    name = models.TextField()
    query = models.TextField()
    wanted_size = models.IntegerField(null=True)
    confidence = models.IntegerField(null=True)
    tolerable = models.IntegerField(null=True)
    expected = models.IntegerField(null=True)
    salt = models.TextField()
    commitment = models.TextField()
    created_at = models.DateTimeField()
    created_by = models.TextField()
    state = models.TextField(choices=SampleState)
    problem = models.TextField(default="")
    cursor_at = models.DateTimeField(null=True)
    cursor_id = models.UUIDField(null=True)
    found_count = models.BigIntegerField(default=0)
    ledger_size = models.BigIntegerField(null=True)
    call_count = models.BigIntegerField(null=True)
    population = models.TextField(default="")
    size = models.IntegerField(null=True)
    fixed_at = models.DateTimeField(null=True)
    nonce = models.TextField(default="")
    checkpoint_size = models.BigIntegerField(null=True)
    checkpoint_root = models.TextField(default="")
    seed = models.TextField(default="")
    drawn_at = models.DateTimeField(null=True)
    drawn_by = models.TextField(default="")
    prepared_at = models.DateTimeField(null=True)
    prepared_by = models.TextField(default="")
    prepared_person = models.BigIntegerField(null=True)
    reviewed_at = models.DateTimeField(null=True)
    reviewed_by = models.TextField(default="")
    reviewed_person = models.BigIntegerField(null=True)
    finished_at = models.DateTimeField(null=True)

    in_ledger: ClassVar = (
        *("name", "query", "wanted_size", "confidence", "tolerable", "expected", "salt"),
        *("commitment", "created_at", "created_by", "call_count", "population", "size"),
        *("nonce", "checkpoint_size", "checkpoint_root", "seed", "drawn_at", "drawn_by"),
        *("prepared_at", "prepared_by", "prepared_person"),
        *("reviewed_at", "reviewed_by", "reviewed_person"),
    )

    objects = TenantQuerySet["Sample"].as_manager()

    class Meta:
        managed = False
        db_table = "audit_sample"

    def __str__(self) -> str:
        return self.name


class SamplePart(models.Model):
    """Some calls of a sample's population."""

    pk = models.CompositePrimaryKey("tenant_id", "sample_id", "number")
    tenant_id = models.UUIDField()
    sample_id = models.UUIDField()
    number = models.IntegerField()
    records = models.BinaryField()

    objects = TenantQuerySet["SamplePart"].as_manager()

    class Meta:
        managed = False
        db_table = "audit_sample_part"

    def __str__(self) -> str:
        return f"part {self.number}"


class SampledCall(models.Model):
    """A drawn call and the conclusion about it."""

    pk = models.CompositePrimaryKey("tenant_id", "sample_id", "position")
    tenant_id = models.UUIDField()
    sample_id = models.UUIDField()
    position = models.IntegerField()
    ledger_index = models.BigIntegerField()
    started_on = models.DateField()
    invocation_id = models.UUIDField()
    conclusion = models.TextField(default="")
    note = models.TextField(default="")
    exception = models.TextField(default="")
    salt = models.TextField(default="")
    texts = models.TextField(default="")
    concluded_at = models.DateTimeField(null=True)
    concluded_by = models.TextField(default="")
    is_erased = models.BooleanField(default=False)

    in_ledger: ClassVar = (
        *("ledger_index", "started_on", "invocation_id", "conclusion", "note", "exception"),
        *("salt", "texts", "concluded_at", "concluded_by", "is_erased"),
    )
    ledger_id: ClassVar = ("sample_id", "position")

    objects = TenantQuerySet["SampledCall"].as_manager()

    class Meta:
        managed = False
        db_table = "audit_sample_call"

    def __str__(self) -> str:
        return f"call {self.position}"
