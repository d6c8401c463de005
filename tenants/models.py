"""Tenants, who belongs to them, and the keys their executors use.

Rows of a tenant are guarded by row-level security (`tenants.scope`); the database's key
of those tables is (tenant_id, id), so that they can be distributed by tenant, while
Django and its admin know `id` alone.
"""

import uuid
from typing import Any, ClassVar

import uuid_utils.compat
from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models


def new_id() -> uuid.UUID:
    """A UUIDv7: unique, and in order of time, which keeps the newest rows together."""
    return uuid_utils.compat.uuid7()


class User(AbstractUser):
    """Somebody who signs in. What they may see is in their memberships."""

    time_zone = models.CharField(max_length=64, blank=True, default="")
    """In which they read times; '': the browser's."""
    theme = models.CharField(max_length=8, blank=True, default="")
    """`light` or `dark`; '': the system's."""
    default_range = models.CharField(max_length=8, blank=True, default="")
    """What pages of figures show unasked, as in an address; '': theirs."""
    last_tenant = models.ForeignKey(
        "Tenant", models.SET_NULL, null=True, blank=True, related_name="+"
    )
    """Chosen last in the switcher, or joined: where the next session opens (`tenants.sessions`)."""
    has_initial_password = models.BooleanField(default=False, db_default=False)
    """Whether an admin knows the password: they made the account before there were invitations."""

    _CHANGED: ClassVar = (
        *("password", "last_login", "is_staff", "is_active", "has_initial_password"),
        *("time_zone", "theme", "default_range", "last_tenant"),
    )
    """What the application may write of an account that is there (its grants)."""

    class Meta:
        db_table = "app_user"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store it; of an account that is there only what may change, as not to be refused."""
        if not self._state.adding:
            kwargs.setdefault("update_fields", self._CHANGED)
        super().save(*args, **kwargs)


class SignInFailure(models.Model):
    """A failed attempt to sign in (`tenants.sign_in`); gone after a quarter of an hour."""

    digest = models.BinaryField()
    """SHA-256 of name and address."""
    at = models.DateTimeField()

    class Meta:
        db_table = "sign_in_failure"
        indexes: ClassVar = [
            # "How many lately?", asked before every password is checked.
            models.Index(fields=["digest", "at"], name="sign_in_failure_digest_at_idx")
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S}"


class Tenant(models.Model):
    """The isolation boundary: every other row of ours belongs to exactly one."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField(unique=True, max_length=63)
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)
    time_zone = models.CharField(max_length=64, blank=True, default="")
    """In which times are read where neither the viewer nor the browser has one; '': UTC."""
    suspended_at = models.DateTimeField(null=True, blank=True)
    """From when on nobody gets in and nothing is taken in; NULL: it is not suspended."""

    class Meta:
        db_table = "tenant"

    def __str__(self) -> str:
        return self.name


class TenantSetting(models.Model):
    """What a tenant's admin decides about its record. No row: nothing was decided."""

    tenant = models.OneToOneField(Tenant, models.CASCADE, primary_key=True, related_name="+")
    payload_days = models.IntegerField(null=True, blank=True)
    """How long payloads are kept after they came; None: for ever."""
    index_days = models.IntegerField(null=True, blank=True)
    """How long calls can be looked up; None: for ever."""
    redact_names = ArrayField(models.TextField(), default=list)
    redact_patterns = ArrayField(models.TextField(), default=list)
    redact_otlp = models.BooleanField(default=True, db_default=True)
    """Whether the SDK's default rules apply to OTLP, which no SDK of ours redacted."""
    erased_to = models.BigIntegerField(default=0)
    """Retention has erased the payloads of the events below this ledger index."""
    index_from = models.DateField(null=True, blank=True)
    """Retention has emptied the index before this UTC day."""

    class Meta:
        db_table = "tenant_setting"

    def __str__(self) -> str:
        return f"settings of {self.tenant_id}"


class Tombstone(models.Model):
    """What is left of a tenant that was deleted. `id` is the tenant's."""

    id = models.UUIDField(primary_key=True, editable=False)
    slug = models.CharField(max_length=63)
    name = models.CharField(max_length=200)
    begun_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)
    """None: deleting was interrupted, and can go on."""
    operator = models.CharField(max_length=150)
    """The account of the machine that ran the command."""
    ledger_size = models.BigIntegerField()
    ledger_root = models.BinaryField()

    class Meta:
        db_table = "tombstone"

    def __str__(self) -> str:
        return f"{self.name} ({self.slug})"


class Role(models.TextChoices):
    """What a member may do; which role opens which page is `tenants.access`'."""

    VIEWER = "viewer", "Viewer"
    EDITOR = "editor", "Editor"
    AUDITOR = "auditor", "Auditor"
    ADMIN = "admin", "Admin"


class Membership(models.Model):
    """A user's role in a tenant."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    role = models.CharField(max_length=16, choices=Role)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "membership"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "user"], name="membership_tenant_user_uniq")
        ]

    def __str__(self) -> str:
        return f"{self.user} ({self.role})"

    @property
    def sees_payloads(self) -> bool:
        """Whether this member is shown payloads and texts that quote them (docs/adr/0011)."""
        return self.role in {Role.EDITOR, Role.ADMIN}

    @property
    def may_reveal(self) -> bool:
        """Whether this member is shown a payload for a reason that goes on record."""
        return self.role == Role.AUDITOR

    @property
    def reaches_payloads(self) -> bool:
        """Whether this member is shown payloads, unasked or for a reason."""
        return self.sees_payloads or self.may_reveal


class Invitation(models.Model):
    """A link with which somebody becomes a member (`tenants.invitations`)."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+")
    label = models.CharField(max_length=150)
    """Who it is for, in the admin's words; no account's name."""
    role = models.CharField(max_length=16, choices=Role)
    token_sha256 = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "invitation"

    def __str__(self) -> str:
        return f"{self.label} ({self.role})"


class Scope(models.TextChoices):
    """What an API key opens."""

    INGEST = "ingest", "Send events"
    READ = "read", "Read figures and calls"
    PAYLOADS = "payloads", "Read payloads, too: arguments, outputs, error messages"
    REGISTRY = "registry", "Register tools"


class ApiKey(models.Model):
    """A key of an executor. Only the SHA-256 of its secret is stored."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+")
    key_id = models.CharField(max_length=16)
    name = models.CharField(max_length=100)
    secret_sha256 = models.BinaryField()
    scopes = ArrayField(models.CharField(max_length=16, choices=Scope))
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    replaced_by_id = models.UUIDField(null=True, blank=True)
    """The key that takes its place; it works on until `expires_at`."""

    class Meta:
        db_table = "api_key"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "key_id"], name="api_key_tenant_key_id_uniq")
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.key_id})"


class Action(models.Model):
    """Something a person did in a tenant. Survives its subjects: names are copied in."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+")
    at = models.DateTimeField(auto_now_add=True)
    user_id = models.BigIntegerField(null=True)
    user_name = models.CharField(max_length=150)
    verb = models.CharField(max_length=64)
    subject = models.CharField(max_length=300)
    details = models.JSONField(default=dict)
    ledger_index = models.BigIntegerField(null=True)
    """The entry of the ledger it became; None until the worker has entered it."""

    class Meta:
        db_table = "action"

    def __str__(self) -> str:
        return f"{self.user_name} {self.verb} {self.subject}"
