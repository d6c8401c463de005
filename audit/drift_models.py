"""What a look for drift is stored as."""

from django.db import models

from audit.models import TenantQuerySet
from audit.replay_models import ReplayState


class DriftLook(models.Model):
    """A look at stored calls of a tool for drift: which, how far, and what was observed."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    tool_id = models.UUIDField()
    tool_name = models.TextField()
    created_at = models.DateTimeField()
    created_by = models.TextField()
    base_number = models.IntegerField(null=True)
    since = models.DateTimeField()
    until = models.DateTimeField()
    call_limit = models.IntegerField()
    state = models.TextField(choices=ReplayState)
    call_count = models.BigIntegerField()
    read_count = models.BigIntegerField()
    cursor_at = models.DateTimeField(null=True)
    cursor_id = models.UUIDField(null=True)
    found = models.TextField()
    problem = models.TextField()
    finished_at = models.DateTimeField(null=True)

    objects = TenantQuerySet["DriftLook"].as_manager()

    class Meta:
        managed = False
        db_table = "tool_drift"

    def __str__(self) -> str:
        return f"{self.tool_name}, {self.created_at:%Y-%m-%d %H:%M}"
