"""Long jobs of the worker with their state: payload searches, replays, drift analyses."""

from django.db import models

from audit.models.base import TenantQuerySet
from tenants.slices import JobState


class PayloadSearch(models.Model):
    """A search of the log's payloads by the worker: text, progress and number of matches."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    user_id = models.BigIntegerField()
    created_at = models.DateTimeField()
    needle = models.TextField()
    query = models.TextField()
    since = models.DateTimeField()
    until = models.DateTimeField()
    state = models.TextField(choices=JobState)
    cursor_at = models.DateTimeField(null=True)
    cursor_id = models.UUIDField(null=True)
    searched_count = models.BigIntegerField()
    erased_count = models.BigIntegerField()
    found_count = models.BigIntegerField()
    finished_at = models.DateTimeField(null=True)

    objects = TenantQuerySet["PayloadSearch"].as_manager()

    class Meta:
        managed = False
        db_table = "payload_search"

    def __str__(self) -> str:
        return self.needle


class PayloadHit(models.Model):
    """An event whose payload matches a search."""

    pk = models.CompositePrimaryKey("tenant_id", "search_id", "started_at", "invocation_id", "kind")
    tenant_id = models.UUIDField()
    search_id = models.UUIDField()
    started_at = models.DateTimeField()
    invocation_id = models.UUIDField()
    kind = models.TextField()

    objects = TenantQuerySet["PayloadHit"].as_manager()

    class Meta:
        managed = False
        db_table = "payload_search_hit"

    def __str__(self) -> str:
        return f"{self.kind} of {self.invocation_id}"


class Replay(models.Model):
    """A replay: a tool's stored calls validated against a draft. Calls, progress and findings."""

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
    output_schema = models.TextField(null=True)  # None: outputs are not checked
    since = models.DateTimeField()
    until = models.DateTimeField()
    call_limit = models.IntegerField()
    state = models.TextField(choices=JobState)
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


class DriftAnalysis(models.Model):
    """A drift analysis of a tool's stored calls: calls, progress and observations."""

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
    state = models.TextField(choices=JobState)
    call_count = models.BigIntegerField()
    read_count = models.BigIntegerField()
    cursor_at = models.DateTimeField(null=True)
    cursor_id = models.UUIDField(null=True)
    found = models.TextField()
    problem = models.TextField()
    finished_at = models.DateTimeField(null=True)

    objects = TenantQuerySet["DriftAnalysis"].as_manager()

    class Meta:
        managed = False
        db_table = "tool_drift"

    def __str__(self) -> str:
        return f"{self.tool_name}, {self.created_at:%Y-%m-%d %H:%M}"
