"""Legal holds and erasures: rows as Django reads them (`audit.models`)."""

from typing import Any, ClassVar

from django.db import models

from audit.models.base import TenantQuerySet
from config.instants import iso


class LegalHold(models.Model):
    """A legal hold: matching calls cannot be erased. All fields that are not None must match."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    name = models.TextField()
    reason = models.TextField()
    trace_id = models.TextField(null=True)
    case_id = models.TextField(null=True)
    tool_name = models.TextField(null=True)
    since = models.DateTimeField(null=True)
    """First start time of a call; `until` is exclusive."""
    until = models.DateTimeField(null=True)
    set_at = models.DateTimeField()
    set_by = models.TextField()
    released_at = models.DateTimeField(null=True)
    """None while the hold is in force."""
    released_by = models.TextField(null=True)
    release_reason = models.TextField(null=True)

    in_ledger: ClassVar = (
        *("name", "reason", "trace_id", "case_id", "tool_name", "since", "until"),
        *("set_at", "set_by", "released_at", "released_by", "release_reason"),
    )

    objects = TenantQuerySet["LegalHold"].as_manager()

    class Meta:
        managed = False
        db_table = "legal_hold"

    def __str__(self) -> str:
        return self.name

    @property
    def covers(self) -> dict[str, Any]:
        """Which calls it covers: the fields that are not None, as in ledger entries and actions."""
        filters = {
            "trace_id": self.trace_id,
            "case_id": self.case_id,
            "tool_name": self.tool_name,
            "since": self.since and iso(self.since),
            "until": self.until and iso(self.until),
        }
        return {name: value for name, value in filters.items() if value is not None}


class FloorState(models.TextChoices):
    """The state of a request to lower the retention floor."""

    WAITING = "waiting", "Waiting"
    APPROVED = "approved", "Approved"
    REFUSED = "refused", "Refused"
    EXPIRED = "expired", "Expired"


class FloorRequest(models.Model):
    """A request to lower the retention floor, or to remove it (`audit.retention.floor`)."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    from_days = models.IntegerField()
    """The floor when it was requested."""
    to_days = models.IntegerField(null=True)
    """The lower one; None: none."""
    reason = models.TextField()
    requested_at = models.DateTimeField()
    requested_by = models.TextField()
    requested_person = models.BigIntegerField()
    """The account of whoever requested it."""
    expires_at = models.DateTimeField()
    state = models.TextField(choices=FloorState)
    decided_at = models.DateTimeField(null=True)
    decided_by = models.TextField(null=True)
    decided_person = models.BigIntegerField(null=True)
    """None: nobody has decided, or it expired."""
    decision_reason = models.TextField(null=True)

    in_ledger: ClassVar = (
        *("from_days", "to_days", "reason", "requested_at", "requested_by", "requested_person"),
        *("expires_at", "state", "decided_at", "decided_by", "decided_person", "decision_reason"),
    )

    objects = TenantQuerySet["FloorRequest"].as_manager()

    class Meta:
        managed = False
        db_table = "floor_request"

    def __str__(self) -> str:
        return f"{self.state}: {self.from_days} to {self.to_days}"


class LedgerErasure(models.Model):
    """An entry of the ledger that declares payloads erased, with the span of events it covers."""

    pk = models.CompositePrimaryKey("tenant_id", "entry_index")
    tenant_id = models.UUIDField()
    entry_index = models.BigIntegerField()
    begin_index = models.BigIntegerField()
    end_index = models.BigIntegerField()
    erasure_id = models.UUIDField(null=True)
    """None if retention erased them."""

    objects = TenantQuerySet["LedgerErasure"].as_manager()

    class Meta:
        managed = False
        db_table = "ledger_erasure"

    def __str__(self) -> str:
        return str(self.entry_index)


class ErasureState(models.TextChoices):
    """The state of an erasure: first its dry run, then, after confirmation, the erasure itself."""

    WAITING = "waiting", "Waiting"
    COUNTING = "counting", "Counting"
    COUNTED = "counted", "Counted"
    CONFIRMED = "confirmed", "Confirmed"
    ERASING = "erasing", "Erasing"
    DONE = "done", "Done"
    CANCELLED = "cancelled", "Stopped"
    FAILED = "failed", "Failed"


class Erasure(models.Model):
    """An erasure by filter, including its dry run (`audit.retention.erasure`)."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    query = models.TextField()
    created_at = models.DateTimeField()
    created_by = models.TextField()
    state = models.TextField(choices=ErasureState)
    step = models.TextField()
    cursor_at = models.DateTimeField(null=True)
    cursor_id = models.UUIDField(null=True)
    next_index = models.BigIntegerField(default=0)
    end_index = models.BigIntegerField(default=0)
    first_started_at = models.DateTimeField(null=True)
    call_count = models.BigIntegerField(default=0)
    held_count = models.BigIntegerField(default=0)
    event_count = models.BigIntegerField(default=0)
    byte_count = models.BigIntegerField(default=0)
    line_count = models.BigIntegerField(default=0)
    reason = models.TextField(null=True)
    confirmed_at = models.DateTimeField(null=True)
    confirmed_by = models.TextField(null=True)
    erased_calls = models.BigIntegerField(default=0)
    erased_events = models.BigIntegerField(default=0)
    erased_bytes = models.BigIntegerField(default=0)
    erased_lines = models.BigIntegerField(default=0)
    finished_at = models.DateTimeField(null=True)
    problem = models.TextField()
    created_person = models.BigIntegerField(null=True)
    """The account of whoever previewed it; None: a program did."""

    in_ledger: ClassVar = (
        *("query", "created_at", "created_by", "reason", "confirmed_at", "confirmed_by"),
        "created_person",
    )
    in_ledger_later: ClassVar = {"created_person": None}

    objects = TenantQuerySet["Erasure"].as_manager()

    class Meta:
        managed = False
        db_table = "erasure"

    def __str__(self) -> str:
        return f"{self.state}: {self.query}"


class ErasureCall(models.Model):
    """A call that an erasure's dry run matched."""

    pk = models.CompositePrimaryKey("tenant_id", "erasure_id", "started_at", "invocation_id")
    tenant_id = models.UUIDField()
    erasure_id = models.UUIDField()
    started_at = models.DateTimeField()
    invocation_id = models.UUIDField()

    objects = TenantQuerySet["ErasureCall"].as_manager()

    class Meta:
        managed = False
        db_table = "erasure_call"

    def __str__(self) -> str:
        return str(self.invocation_id)
