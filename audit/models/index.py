"""The log and its index, as Django reads them.

The tables are created in SQL (`migrations/schema/*.sql`), and only `audit.intake.ingest` writes
them. These models are unmanaged and only for reading. Every row belongs to one tenant: read it in
the tenant's `tenant_scope`, and begin every query with `for_tenant`, so that the statement also
names the tenant. Distribution and indexes need this; row-level security alone does not provide it.
`rollup`, `quarter_rollup` and `error_rollup` have no model, as they are only aggregated (`sql/`).
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from audit.models.base import TenantQuerySet


class State(models.TextChoices):
    """The state of a call. A violation is not a state: a call may be ok and violate its schema."""

    OPEN = "open", "Open"
    OK = "ok", "OK"
    FAILED = "failed", "Failed"
    WAITING = "waiting", "Waiting for input"
    WORKING = "working", "Working"
    CANCELLED = "cancelled", "Cancelled"


class Batch(models.Model):
    """One accepted request. Everything else is derived from these rows."""

    pk = models.CompositePrimaryKey("tenant_id", "batch_on", "batch_id")
    tenant_id = models.UUIDField()
    batch_on = models.DateField()
    batch_id = models.UUIDField()
    received_at = models.DateTimeField()
    first_index = models.BigIntegerField()
    event_count = models.IntegerField()
    body_sha256 = models.BinaryField()
    answer = models.TextField()
    leaves = models.BinaryField()
    payload = models.BinaryField(null=True)
    is_own = models.BooleanField(default=False)
    """Whether the server itself added the batch (`audit.ledger.entries`), not an executor."""

    objects = TenantQuerySet["Batch"].as_manager()

    class Meta:
        managed = False
        db_table = "batch"

    def __str__(self) -> str:
        return str(self.batch_id)


class Resolution(models.TextChoices):
    """How a line in the inbox was resolved: retried with this result, or discarded."""

    ACCEPTED = "accepted", "Stored"
    DUPLICATE = "duplicate", "Already stored"
    REFUSED = "refused", "Rejected again"
    DISCARDED = "discarded", "Discarded"


class RejectedEvent(models.Model):
    """A line of the inbox, which was rejected or conflicts with a stored event; and the reason."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    received_at = models.DateTimeField()
    batch_id = models.UUIDField()
    line = models.IntegerField()
    event_id = models.UUIDField(null=True)
    code = models.TextField()
    message = models.TextField()
    raw = models.BinaryField()
    raw_length = models.IntegerField()
    resolution = models.TextField(null=True, choices=Resolution)  # None: open
    resolved_at = models.DateTimeField(null=True)
    resolved_by_id = models.BigIntegerField(null=True)
    resolved_by_name = models.TextField(null=True)
    discard_reason = models.TextField(null=True)
    redrive_batch_id = models.UUIDField(null=True)
    redrive_edited = models.BooleanField(null=True)

    objects = TenantQuerySet["RejectedEvent"].as_manager()

    class Meta:
        managed = False
        db_table = "rejected_event"

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class Producer(models.Model):
    """A producer and the sequence numbers that have arrived. `Gap` has those that never will."""

    pk = models.CompositePrimaryKey("tenant_id", "producer_id")
    tenant_id = models.UUIDField()
    producer_id = models.TextField()
    first_seq = models.BigIntegerField(null=True)
    last_seq = models.BigIntegerField(null=True)
    event_count = models.BigIntegerField()
    last_heard_at = models.DateTimeField()

    objects = TenantQuerySet["Producer"].as_manager()

    class Meta:
        managed = False
        db_table = "producer"

    def __str__(self) -> str:
        return self.producer_id


class Gap(models.Model):
    """Sequence numbers whose events the producer dropped. Ranges may overlap."""

    pk = models.CompositePrimaryKey("tenant_id", "producer_id", "from_seq", "to_seq")
    tenant_id = models.UUIDField()
    producer_id = models.TextField()
    from_seq = models.BigIntegerField()
    to_seq = models.BigIntegerField()
    reason = models.TextField()
    lost_count = models.BigIntegerField()
    heard_at = models.DateTimeField()

    objects = TenantQuerySet["Gap"].as_manager()

    class Meta:
        managed = False
        db_table = "gap"

    def __str__(self) -> str:
        return f"{self.producer_id} {self.from_seq}–{self.to_seq}: {self.reason}"


class Invocation(models.Model):
    """One execution of a tool, made from its two events. On pages it is a call.

    Arguments and output are in the log, at `start_batch_id`/`start_pos` and
    `end_batch_id`/`end_pos` (`audit.log.payload.read_events`).
    """

    pk = models.CompositePrimaryKey("tenant_id", "started_on", "invocation_id")
    tenant_id = models.UUIDField()
    started_on = models.DateField()
    invocation_id = models.UUIDField()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    duration_us = models.BigIntegerField(null=True)
    state = models.TextField(choices=State)
    tool_name = models.TextField()
    tool_version = models.TextField()
    trace_id = models.TextField()
    parent_invocation_id = models.UUIDField(null=True)
    call_id = models.TextField()
    tool_call_id = models.TextField(null=True)  # absent is not empty
    error_type = models.TextField()
    error_code = models.TextField(null=True)
    error_message = models.TextField(null=True)
    upstream_status = models.IntegerField(null=True)
    retry_after_ms = models.BigIntegerField(null=True)
    attempt = models.IntegerField(null=True)
    guard_strategy = models.TextField(null=True)
    guard_outcome = models.TextField(null=True)
    violation_count = models.IntegerField()
    prompt_tokens = models.BigIntegerField()
    completion_tokens = models.BigIntegerField()
    cache_hit = models.BooleanField(null=True)
    turn_id = models.TextField(null=True)
    run_id = models.TextField(null=True)
    ingestion_run_id = models.TextField(null=True)
    workflow_id = models.TextField(null=True)
    collection_id = models.TextField(null=True)
    document_id = models.TextField(null=True)
    document_version_id = models.TextField(null=True)
    case_id = models.TextField(null=True)
    idempotency_key = models.TextField(null=True)
    timeouts_ms = models.BigIntegerField(null=True)
    budget_tokens = models.BigIntegerField(null=True)
    locale = models.TextField(null=True)
    safety_mode = models.TextField(null=True)
    producer_id = models.TextField(null=True)
    start_batch_id = models.UUIDField(null=True)
    start_pos = models.IntegerField(null=True)
    end_batch_id = models.UUIDField(null=True)
    end_pos = models.IntegerField(null=True)
    pair_conflict = models.BooleanField()
    interim_state = models.TextField(null=True)
    interim_at = models.DateTimeField(null=True)
    interim_us = ArrayField(models.BigIntegerField(), null=True)
    interim_batch_id = models.UUIDField(null=True)
    interim_pos = models.IntegerField(null=True)
    mcp_server = models.TextField(null=True)
    mcp_client = models.TextField(null=True)
    mcp_protocol = models.TextField(null=True)
    agent = models.TextField(null=True)
    agent_version = models.TextField(null=True)
    model = models.TextField(null=True)
    provider = models.TextField(null=True)
    principal = models.TextField(null=True)
    environment = models.TextField(null=True)
    service = models.TextField(null=True)
    absorbed = models.BooleanField(null=True)

    objects = TenantQuerySet["Invocation"].as_manager()

    class Meta:
        managed = False
        db_table = "invocation"

    def __str__(self) -> str:
        return f"{self.tool_name} {self.invocation_id}"


class Violation(models.Model):
    """One violation: a place where a call's output violates its schema."""

    pk = models.CompositePrimaryKey("tenant_id", "started_on", "invocation_id", "ordinal")
    tenant_id = models.UUIDField()
    started_on = models.DateField()
    invocation_id = models.UUIDField()
    ordinal = models.IntegerField()
    started_at = models.DateTimeField()
    tool_name = models.TextField()
    tool_version = models.TextField()
    path = models.TextField()
    path_pattern = models.TextField()
    code = models.TextField()
    severity = models.TextField()
    expected = models.TextField()
    received = models.TextField()
    strategy = models.TextField()
    outcome = models.TextField()
    found_by = models.TextField()

    objects = TenantQuerySet["Violation"].as_manager()

    class Meta:
        managed = False
        db_table = "violation"

    def __str__(self) -> str:
        return f"{self.code} at {self.path}"


class Trace(models.Model):
    """A trace's summary for one UTC day. A trace over midnight has several, merged when read."""

    pk = models.CompositePrimaryKey("tenant_id", "started_on", "trace_id")
    tenant_id = models.UUIDField()
    started_on = models.DateField()
    trace_id = models.TextField()
    first_started_at = models.DateTimeField()
    last_at = models.DateTimeField()
    first_tool_name = models.TextField()
    run_id = models.TextField(null=True)
    run_at = models.DateTimeField(null=True)
    started_count = models.BigIntegerField()
    completed_count = models.BigIntegerField()
    failed_count = models.BigIntegerField()
    violation_count = models.BigIntegerField()
    prompt_tokens = models.BigIntegerField()
    completion_tokens = models.BigIntegerField()
    decision_count = models.BigIntegerField(default=0)
    cancelled_count = models.BigIntegerField(default=0)

    objects = TenantQuerySet["Trace"].as_manager()

    class Meta:
        managed = False
        db_table = "trace"

    def __str__(self) -> str:
        return self.trace_id
