"""Incidents, with the timelines of their traces (`audit.incidents`)."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from audit.models.base import TenantQuerySet
from tenants.slices import JobState


class Incident(models.Model):
    """An incident: its calls, their holds, and the timeline as it was made."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    title = models.TextField()
    reason = models.TextField()
    query = models.TextField()
    created_at = models.DateTimeField()
    created_by = models.TextField()
    state = models.TextField(choices=JobState)
    problem = models.TextField(default="")
    cursor_at = models.DateTimeField(null=True)
    cursor_id = models.UUIDField(null=True)
    trace_ids = ArrayField(models.TextField(), default=list)
    hold_ids = ArrayField(models.UUIDField(), default=list)
    read_count = models.IntegerField(default=0)
    call_count = models.BigIntegerField(default=0)
    since = models.DateTimeField(null=True)
    until = models.DateTimeField(null=True)
    timeline = models.TextField(default="")
    page = models.TextField(default="")
    sha256 = models.TextField(default="")
    page_sha256 = models.TextField(default="")
    is_erased = models.BooleanField(default=False)
    finished_at = models.DateTimeField(null=True)

    in_ledger: ClassVar = (
        *("title", "reason", "query", "created_at", "created_by"),
        *("sha256", "page_sha256", "is_erased"),
    )

    objects = TenantQuerySet["Incident"].as_manager()

    class Meta:
        managed = False
        db_table = "incident"

    def __str__(self) -> str:
        return self.title
