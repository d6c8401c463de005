"""Holds, and what was erased in spite of none: rows as Django reads them (`audit.models`)."""

from django.db import models

from audit.models import TenantQuerySet


class LegalHold(models.Model):
    """Calls nobody may erase until somebody releases them. What is not None must hold of a call."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    name = models.TextField()
    reason = models.TextField()
    trace_id = models.TextField(null=True)  # noqa: DJ001
    case_id = models.TextField(null=True)  # noqa: DJ001
    tool_name = models.TextField(null=True)  # noqa: DJ001
    since = models.DateTimeField(null=True)
    """Of the call's start; `until` is not in it."""
    until = models.DateTimeField(null=True)
    set_at = models.DateTimeField()
    set_by = models.TextField()
    released_at = models.DateTimeField(null=True)
    """None: it is in force."""
    released_by = models.TextField(null=True)  # noqa: DJ001
    release_reason = models.TextField(null=True)  # noqa: DJ001

    objects = TenantQuerySet["LegalHold"].as_manager()

    class Meta:
        managed = False
        db_table = "legal_hold"

    def __str__(self) -> str:
        return self.name


class LedgerErasure(models.Model):
    """An entry of the ledger that says that payloads are gone, by the events it spans."""

    pk = models.CompositePrimaryKey("tenant_id", "entry_index")
    tenant_id = models.UUIDField()
    entry_index = models.BigIntegerField()
    begin_index = models.BigIntegerField()
    end_index = models.BigIntegerField()
    erasure_id = models.UUIDField(null=True)
    """None: by retention."""

    objects = TenantQuerySet["LedgerErasure"].as_manager()

    class Meta:
        managed = False
        db_table = "ledger_erasure"

    def __str__(self) -> str:
        return str(self.entry_index)
