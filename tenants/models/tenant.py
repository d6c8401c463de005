"""Tenants, their settings, and what is left of a deleted one."""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from tenants.models.ids import new_id


class Tenant(models.Model):
    """The isolation boundary: every other row of ours belongs to exactly one."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField(unique=True, max_length=63)
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)
    time_zone = models.CharField(max_length=64, blank=True, default="")
    """Time zone of viewers who chose none and whose browser sent none; '': UTC."""
    suspended_at = models.DateTimeField(null=True, blank=True)
    """From then on no member gets in and no event is accepted; NULL: not suspended."""
    second_factor_roles = ArrayField(models.CharField(max_length=8), default=list, blank=True)
    """Roles whose members get in only with a second factor."""
    step_up = models.BooleanField(default=False, db_default=False)
    """Whether a reveal, an erasure and the release of a hold need a fresh second factor."""
    session_idle_minutes = models.IntegerField(null=True, blank=True)
    """A session ends after this time without a page; None: only by the absolute length."""
    session_max_hours = models.IntegerField(null=True, blank=True)
    """A session ends this long after the sign-in; None: after Django's two weeks."""
    sso_only = models.BooleanField(default=False, db_default=False)
    """Whether only sessions of its identity providers open it, and one admin's (break glass)."""
    anonymous_links = models.BooleanField(default=False, db_default=False)
    """Whether share links may open without a sign-in."""

    in_ledger: ClassVar = (
        *("slug", "name", "time_zone", "suspended_at"),
        *("second_factor_roles", "step_up", "session_idle_minutes", "session_max_hours"),
        *("sso_only", "anonymous_links"),
    )
    in_ledger_later: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "second_factor_roles": [],
            "step_up": False,
            "session_idle_minutes": None,
            "session_max_hours": None,
        },
        {"sso_only": False},
        {"anonymous_links": False},
    )

    class Meta:
        db_table = "tenant"

    def __str__(self) -> str:
        return self.name


class TenantSetting(models.Model):
    """An admin's settings for the tenant's data. No row: defaults apply."""

    tenant = models.OneToOneField(Tenant, models.CASCADE, primary_key=True, related_name="+")
    payload_days = models.IntegerField(null=True, blank=True)
    """How many days payloads are kept after they arrived; None: forever."""
    index_days = models.IntegerField(null=True, blank=True)
    """How many days calls are kept in the index; None: forever."""
    floor_days = models.IntegerField(null=True, blank=True)
    """The retention floor: neither of the two may be shorter (`audit.retention.floor`)."""
    redact_names = ArrayField(models.TextField(), default=list)
    redact_patterns = ArrayField(models.TextField(), default=list)
    redact_otlp = models.BooleanField(default=True, db_default=True)
    """Whether the SDK's default redaction rules apply to OTLP data, which no SDK has redacted."""
    clear_principals = models.BooleanField(default=False, db_default=False)
    """Whether principals are stored in clear text instead of as pseudonyms."""
    witnesses = models.JSONField(default=list)
    """Witnesses of the ledger: `url` and `key` of each (`audit.ledger.witnesses`)."""
    witnesses_needed = models.IntegerField(default=0, db_default=0)
    """How many of them must sign a checkpoint."""
    timestamp_url = models.TextField(default="", db_default="")
    """A time authority (RFC 3161), asked once a day about the ledger; empty: none."""
    erased_to = models.BigIntegerField(default=0)
    """Retention has erased the payloads of the events below this ledger index."""
    index_from = models.DateField(null=True, blank=True)
    """Retention has emptied the index before this UTC day."""

    in_ledger: ClassVar = (
        *("payload_days", "index_days", "index_from"),
        *("redact_names", "redact_patterns", "redact_otlp"),
        "clear_principals",
        *("witnesses", "witnesses_needed", "timestamp_url"),
        "floor_days",
    )
    in_ledger_later: ClassVar[tuple[dict[str, Any], ...]] = (
        {"clear_principals": False},
        {"witnesses": [], "witnesses_needed": 0, "timestamp_url": ""},
        {"floor_days": None},
    )
    ledger_id: ClassVar = "tenant_id"
    ledger_exempt: ClassVar = models.Q(
        payload_days=None,
        index_days=None,
        index_from=None,
        redact_names=[],
        redact_patterns=[],
        redact_otlp=True,
        clear_principals=False,
        witnesses=[],
        witnesses_needed=0,
        timestamp_url="",
        floor_days=None,
    )
    """The defaults. No action names such a row: it is made by code that only locks it."""

    class Meta:
        db_table = "tenant_setting"

    def __str__(self) -> str:
        return f"settings of {self.tenant_id}"


class Tombstone(models.Model):
    """The record that remains of a deleted tenant. `id` is the tenant's."""

    id = models.UUIDField(primary_key=True, editable=False)
    slug = models.CharField(max_length=63)
    name = models.CharField(max_length=200)
    begun_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)
    """None: the deletion is running or was interrupted and can be continued."""
    operator = models.CharField(max_length=150)
    """The machine account that ran the command."""
    ledger_size = models.BigIntegerField()
    ledger_root = models.BinaryField()

    class Meta:
        db_table = "tombstone"

    def __str__(self) -> str:
        return f"{self.name} ({self.slug})"
