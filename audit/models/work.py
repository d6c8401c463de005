"""Long jobs of the worker with their state: payload searches, replays, drift analyses; reports."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
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


class ArgumentComparison(models.Model):
    """A comparison of the arguments of a query's calls with those of others, by the worker."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    created_at = models.DateTimeField()
    created_by = models.TextField()
    query = models.TextField()
    tool_name = models.TextField()
    since = models.DateTimeField()
    until = models.DateTimeField()
    state = models.TextField(choices=JobState)
    call_count = models.BigIntegerField()
    read_count = models.BigIntegerField()
    erased_count = models.BigIntegerField()
    tested_count = models.BigIntegerField()
    observed = models.TextField()
    differences = models.TextField()
    problem = models.TextField()
    finished_at = models.DateTimeField(null=True)

    objects = TenantQuerySet["ArgumentComparison"].as_manager()

    class Meta:
        managed = False
        db_table = "argument_comparison"

    def __str__(self) -> str:
        return self.query


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
    draft_revision = models.IntegerField()  # 0: of a definition that the registry does not have
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
    query = models.TextField(default="")
    call_limit = models.IntegerField()
    state = models.TextField(choices=JobState)
    call_count = models.BigIntegerField()
    read_count = models.BigIntegerField()
    cursor_at = models.DateTimeField(null=True)
    cursor_id = models.UUIDField(null=True)
    shape = models.TextField()
    problem = models.TextField()
    finished_at = models.DateTimeField(null=True)

    objects = TenantQuerySet["DriftAnalysis"].as_manager()

    class Meta:
        managed = False
        db_table = "tool_drift"

    def __str__(self) -> str:
        return f"{self.tool_name}, {self.created_at:%Y-%m-%d %H:%M}"


class StoredReport(models.Model):
    """A report as it was made (`audit.reports.queries` reads and writes it)."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    created_at = models.DateTimeField()
    made_by = models.TextField()
    made_as = models.TextField()
    kind = models.TextField()
    start_at = models.DateTimeField()
    end_at = models.DateTimeField()
    time_zone = models.TextField()
    period = models.TextField(null=True)
    ledger_size = models.BigIntegerField()
    query = models.TextField()
    again_of = models.UUIDField(null=True)
    figures = models.JSONField()

    in_ledger: ClassVar = (
        *("created_at", "made_by", "made_as", "kind", "start_at", "end_at", "time_zone"),
        *("period", "ledger_size", "query", "again_of", "figures"),
    )

    objects = TenantQuerySet["StoredReport"].as_manager()

    class Meta:
        managed = False
        db_table = "report"

    def __str__(self) -> str:
        return self.query


class StoredReportSchedule(models.Model):
    """Which reports the worker makes, and how long reports are kept."""

    tenant_id = models.UUIDField(primary_key=True)
    kinds = ArrayField(models.TextField())
    time_zone = models.TextField()
    keep_days = models.IntegerField()

    in_ledger: ClassVar = ("kinds", "time_zone", "keep_days")
    ledger_id: ClassVar = "tenant_id"

    objects = TenantQuerySet["StoredReportSchedule"].as_manager()

    class Meta:
        managed = False
        db_table = "report_schedule"

    def __str__(self) -> str:
        return ", ".join(self.kinds)


class McpUse(models.Model):
    """How often a caller used a tool of `/mcp` in a minute, until the worker records it."""

    pk = models.CompositePrimaryKey("tenant_id", "key_id", "tool", "minute")
    tenant_id = models.UUIDField()
    key_id = models.TextField()
    """Of the key; of a person with an access token as `PersonIdentity.caller`."""
    tool = models.TextField()
    minute = models.DateTimeField()
    use_count = models.BigIntegerField()
    digest = models.TextField()
    clients = ArrayField(models.TextField())

    objects = TenantQuerySet["McpUse"].as_manager()

    class Meta:
        managed = False
        db_table = "mcp_use"

    def __str__(self) -> str:
        return f"{self.tool} by {self.key_id}"
