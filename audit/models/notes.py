"""Notes that people write about calls, traces, kinds of violations and versions of tools."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from audit.models.base import TenantQuerySet


class About(models.TextChoices):
    """What a note is about."""

    CALL = "call", "Call"
    TRACE = "trace", "Trace"
    VIOLATION = "violation", "Kind of violation"
    VERSION = "version", "Version of a tool"


class NoteState(models.TextChoices):
    """What people know about it."""

    OPEN = "open", "Open"
    KNOWN = "known", "Known"
    FIXED = "fixed", "Fixed"


class Note(models.Model):
    """A text, a label, an assignee and a state (`audit.queries.notes` reads the subject)."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    about = models.TextField(choices=About)
    started_on = models.DateField(null=True)
    invocation_id = models.UUIDField(null=True)
    trace_id = models.TextField()
    tool_name = models.TextField()
    tool_versions = ArrayField(models.TextField())
    code = models.TextField()
    path = models.TextField()
    text = models.TextField()
    label = models.TextField()
    assignee = models.TextField()
    state = models.TextField(choices=NoteState)
    fixed_in = models.TextField()
    is_erased = models.BooleanField()
    salt = models.UUIDField()
    created_at = models.DateTimeField()
    created_by = models.TextField()
    changed_at = models.DateTimeField()
    changed_by = models.TextField()

    in_ledger: ClassVar = (
        *("about", "started_on", "invocation_id", "trace_id", "tool_name", "tool_versions"),
        *("code", "path", "text", "label", "assignee", "state", "fixed_in", "is_erased", "salt"),
        *("created_at", "created_by", "changed_at", "changed_by"),
    )

    objects = TenantQuerySet["Note"].as_manager()

    class Meta:
        managed = False
        db_table = "note"

    def __str__(self) -> str:
        return self.label or self.text[:60]
