"""The ledger's checkpoints, keys and checks: rows as Django reads them (`audit.models`)."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from audit.models.base import TenantQuerySet
from tenants.slices import JobState


class LedgerCheckpoint(models.Model):
    """A signed checkpoint: size and root of a tenant's ledger at one moment."""

    pk = models.CompositePrimaryKey("tenant_id", "epoch", "size")
    tenant_id = models.UUIDField()
    epoch = models.IntegerField()
    size = models.BigIntegerField()
    origin = models.TextField()
    root = models.BinaryField()
    note = models.TextField()
    signed_at = models.DateTimeField()
    receipts = ArrayField(models.BinaryField(), default=list)
    """The root signed for COSE by each key of the log (`audit.ledger.cose`)."""

    objects = TenantQuerySet["LedgerCheckpoint"].as_manager()

    class Meta:
        managed = False
        db_table = "ledger_checkpoint"

    def __str__(self) -> str:
        return f"{self.origin} at {self.size}"


class LedgerKey(models.Model):
    """A public key of this installation. It is used for all tenants' logs."""

    public_key = models.BinaryField(primary_key=True)
    created_at = models.DateTimeField()
    signs_until = models.DateTimeField(null=True)

    class Meta:
        managed = False
        db_table = "ledger_key"

    def __str__(self) -> str:
        return bytes(self.public_key).hex()


class WitnessOutcome(models.TextChoices):
    """How a witness answered."""

    SIGNED = "signed", "Signed"
    REFUSED = "refused", "Refused"
    SILENT = "silent", "Silent"


class WitnessAnswer(models.Model):
    """What a witness answered when it was asked to sign a checkpoint."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    witness = models.TextField()
    """Its public key, as a vkey."""
    epoch = models.IntegerField()
    size = models.BigIntegerField()
    at = models.DateTimeField()
    outcome = models.TextField(choices=WitnessOutcome)
    line = models.TextField()
    """Its signature, a line of a note; '' unless it signed."""
    problem = models.TextField()

    objects = TenantQuerySet["WitnessAnswer"].as_manager()

    class Meta:
        managed = False
        db_table = "witness_answer"

    def __str__(self) -> str:
        return f"{self.outcome} at {self.size}"


class LedgerCheck(models.Model):
    """A check of a tenant's whole ledger by the worker: its progress and its findings."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    created_by = models.TextField()
    created_at = models.DateTimeField()
    state = models.TextField(choices=JobState)
    size = models.BigIntegerField()
    next_index = models.BigIntegerField()
    erased_count = models.BigIntegerField()
    checkpoint_count = models.BigIntegerField()
    finding_count = models.BigIntegerField()
    findings = ArrayField(models.TextField())
    missing = ArrayField(models.BigIntegerField(), default=list)
    """Runs of entries without payload that no entry read so far explains."""
    finished_at = models.DateTimeField(null=True)

    objects = TenantQuerySet["LedgerCheck"].as_manager()

    class Meta:
        managed = False
        db_table = "ledger_check"

    def __str__(self) -> str:
        return f"{self.state} at {self.next_index}"
