"""Replays of calls against a draft: rows as Django reads them (`audit.models`)."""

from django.db import models

from audit.models import TenantQuerySet


class ReplayState(models.TextChoices):
    """How a replay stands."""

    WAITING = "waiting", "Waiting"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    CANCELLED = "cancelled", "Cancelled"
    FAILED = "failed", "Failed"


class Replay(models.Model):
    """Stored calls of a tool judged again by a draft: which, how far, and what was found."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    tool_id = models.UUIDField()
    tool_name = models.TextField()
    created_at = models.DateTimeField()
    created_by = models.TextField()
    draft_revision = models.IntegerField()
    base_number = models.IntegerField(null=True)
    input_schema = models.TextField()
    output_schema = models.TextField(null=True)  # noqa: DJ001  None: outputs are not checked
    since = models.DateTimeField()
    until = models.DateTimeField()
    call_limit = models.IntegerField()
    state = models.TextField(choices=ReplayState)
    call_count = models.BigIntegerField(null=True)
    read_count = models.BigIntegerField()
    cursor_at = models.DateTimeField(null=True)
    cursor_id = models.UUIDField(null=True)
    newly_violating_count = models.BigIntegerField()
    findings = models.TextField()
    problem = models.TextField()
    finished_at = models.DateTimeField(null=True)

    objects = TenantQuerySet["Replay"].as_manager()

    class Meta:
        managed = False
        db_table = "tool_replay"

    def __str__(self) -> str:
        return f"{self.tool_name}, {self.created_at:%Y-%m-%d %H:%M}"
