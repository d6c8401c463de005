"""Models of tenants, their members, API keys and actions.

Row-level security protects the rows of a tenant (`tenants.scope`). The primary key of those
tables is (tenant_id, id), so that they can be distributed by tenant; Django and its admin
know only `id`. `in_ledger` names the columns that the ledger proves (`tenants.row_digests`).
"""

import uuid
from typing import Any, ClassVar

import uuid_utils.compat
from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models


def new_id() -> uuid.UUID:
    """A UUIDv7: unique and ordered by time, which keeps the newest rows together."""
    return uuid_utils.compat.uuid7()


class User(AbstractUser):
    """A person's account. The memberships say what it may see."""

    time_zone = models.CharField(max_length=64, blank=True, default="")
    """The time zone in which the user reads times; '': the browser's."""
    theme = models.CharField(max_length=8, blank=True, default="")
    """`light` or `dark`; '': the system's."""
    default_range = models.CharField(max_length=8, blank=True, default="")
    """Default time range of pages with figures, as in a URL; '': the page's own."""
    last_tenant = models.ForeignKey(
        "Tenant", models.SET_NULL, null=True, blank=True, related_name="+"
    )
    """The tenant last chosen or joined: the next session opens there (`tenants.sessions`)."""
    has_initial_password = models.BooleanField(default=False, db_default=False)
    """Whether an admin knows the password: the account was made before invitations existed."""

    _CHANGED: ClassVar = (
        *("password", "last_login", "is_staff", "is_active", "has_initial_password", "email"),
        *("time_zone", "theme", "default_range", "last_tenant"),
    )
    """The columns of an existing account that the application may write (its grants)."""

    class Meta:
        db_table = "app_user"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store the account; of an existing one only `_CHANGED`, as the database refuses more."""
        if not self._state.adding:
            kwargs.setdefault("update_fields", self._CHANGED)
        super().save(*args, **kwargs)


class SignInFailure(models.Model):
    """A failed sign-in attempt (`tenants.sign_in`); deleted after 15 minutes."""

    digest = models.BinaryField()
    """SHA-256 of user name and address."""
    at = models.DateTimeField()

    class Meta:
        db_table = "sign_in_failure"
        indexes: ClassVar = [
            # For the count of recent failures, before every password check.
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


class Role(models.TextChoices):
    """What a member may do; `tenants.access` checks it."""

    VIEWER = "viewer", "Viewer"
    EDITOR = "editor", "Editor"
    AUDITOR = "auditor", "Auditor"
    ADMIN = "admin", "Admin"


class ProviderKind(models.TextChoices):
    """The protocol of an identity provider."""

    OIDC = "oidc", "OpenID Connect"
    SAML = "saml", "SAML 2.0"


OF_INSTALLATION = "installation"
"""Stands for the tenant in the key of a provider that has none."""


def provider_key(tenant_id: uuid.UUID | None, pk: uuid.UUID) -> str:
    """The name of a provider in identities and sessions: it contains the tenant.

    Without a tenant it is a provider of the installation.
    """
    return f"{tenant_id or OF_INSTALLATION}/{pk}"


class IdentityProvider(models.Model):
    """A company's sign-in: who signs in there becomes a member here (`tenants.identity`)."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+")
    name = models.CharField(max_length=40)
    kind = models.CharField(max_length=8, choices=ProviderKind)
    settings = models.JSONField()
    """Of the protocol; none is secret (`tenants.identity.wanted`)."""
    secret_box = models.BinaryField(null=True)
    """The client's secret, encrypted (`config.boxes`)."""
    role_by_group = models.JSONField(default=dict)
    """Roles by the name of a group there."""
    default_role = models.CharField(max_length=16, choices=Role, null=True)  # noqa: DJ001  # none
    """The role of who is in none of these groups; None: no membership."""
    created_at = models.DateTimeField(auto_now_add=True)
    disabled_at = models.DateTimeField(null=True)
    """From then on nobody signs in with it."""

    in_ledger: ClassVar = (
        *("name", "kind", "settings", "secret_box", "role_by_group", "default_role"),
        *("created_at", "disabled_at"),
    )

    class Meta:
        db_table = "identity_provider"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "name"], name="identity_provider_name_uniq")
        ]

    def __str__(self) -> str:
        return self.name


class InstallationProvider(models.Model):
    """A sign-in for all tenants, which only the operator defines (`tenants.identity`)."""

    tenant_id: ClassVar[None] = None
    """As of an `IdentityProvider`: it is of no tenant."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=40, unique=True)
    kind = models.CharField(max_length=8, choices=ProviderKind)
    settings = models.JSONField()
    """As of an `IdentityProvider`."""
    secret_box = models.BinaryField(null=True)
    roles = models.JSONField(default=list)
    """Which group gives which role where: `group`, `tenant` (its id) and `role` of each."""
    created_at = models.DateTimeField(auto_now_add=True)
    disabled_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "installation_provider"

    def __str__(self) -> str:
        return self.name


type AnyProvider = IdentityProvider | InstallationProvider


class DirectoryUser(models.Model):
    """A person whom a provider's directory lists (`tenants.identity.directory`)."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+")
    identity_provider_id = models.UUIDField()
    external_id = models.CharField(max_length=191, null=True)  # noqa: DJ001  # none
    """The subject with which this person signs in; None: the directory has not said it."""
    user_name = models.CharField(max_length=200)
    display_name = models.CharField(max_length=200)
    is_active = models.BooleanField(null=True)
    """False: this person is out. None: the directory does not say it, and they may get in."""
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    in_ledger: ClassVar = (
        *("identity_provider_id", "external_id", "user_name", "display_name"),
        *("is_active", "created_at"),
    )

    class Meta:
        db_table = "directory_user"

    def __str__(self) -> str:
        return self.user_name


class DirectoryGroup(models.Model):
    """A group of a provider's directory; its name may give a role."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+")
    identity_provider_id = models.UUIDField()
    external_id = models.CharField(max_length=191, null=True)  # noqa: DJ001  # none
    display_name = models.CharField(max_length=200)
    members = ArrayField(models.UUIDField(), default=list)
    """Ids of the directory's people."""
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    in_ledger: ClassVar = (
        *("identity_provider_id", "external_id", "display_name", "members"),
        "created_at",
    )

    class Meta:
        db_table = "directory_group"

    def __str__(self) -> str:
        return self.display_name


class Membership(models.Model):
    """A user's role in a tenant."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    role = models.CharField(max_length=16, choices=Role)
    created_at = models.DateTimeField(auto_now_add=True)
    is_service = models.BooleanField(default=False, db_default=False)
    """Whether the user is a program (`tenants.service_accounts`)."""
    disabled_at = models.DateTimeField(null=True, blank=True)
    """Since when the keys of a service account are refused; NULL: they are not."""
    identity_provider_id = models.UUIDField(null=True, blank=True)
    """The provider that made the membership and decides its role; only its sessions open it."""
    breaks_glass = models.BooleanField(default=False, db_default=False)
    """Whether this admin gets in without a provider although the tenant is `sso_only`."""
    installation_provider_id = models.UUIDField(null=True, blank=True)
    """The same as `identity_provider_id`, of a provider of the installation."""

    by_invitation: ClassVar = models.Q(identity_provider_id=None, installation_provider_id=None)
    """Memberships that no provider made."""
    in_ledger: ClassVar = (
        *("user_id", "role", "created_at", "is_service", "disabled_at"),
        *("identity_provider_id", "breaks_glass"),
        "installation_provider_id",
    )
    in_ledger_later: ClassVar[tuple[dict[str, Any], ...]] = (
        {"is_service": False, "disabled_at": None},
        {"identity_provider_id": None, "breaks_glass": False},
        {"installation_provider_id": None},
    )

    class Meta:
        db_table = "membership"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "user"], name="membership_tenant_user_uniq")
        ]

    def __str__(self) -> str:
        return f"{self.user} ({self.role})"

    @property
    def made_by(self) -> str:
        """The key of the provider that made it; "" if none did."""
        if self.identity_provider_id is not None:
            return provider_key(self.tenant_id, self.identity_provider_id)
        if self.installation_provider_id is not None:
            return provider_key(None, self.installation_provider_id)
        return ""

    @property
    def sees_payloads(self) -> bool:
        """Whether this member sees payloads and texts that quote them (docs/adr/0011)."""
        return self.role in {Role.EDITOR, Role.ADMIN}

    @property
    def may_reveal(self) -> bool:
        """Whether this member can reveal a payload by giving a reason, which is recorded."""
        return self.role == Role.AUDITOR

    @property
    def may_hold(self) -> bool:
        """Whether this member sets legal holds and exports evidence: auditors and admins."""
        return self.role in {Role.AUDITOR, Role.ADMIN}

    @property
    def reaches_payloads(self) -> bool:
        """Whether this member can see payloads, with or without giving a reason."""
        return self.sees_payloads or self.may_reveal


class Invitation(models.Model):
    """A link by which a person becomes a member (`tenants.invitations`)."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+")
    label = models.CharField(max_length=150)
    """The admin's description of the invited person; not a user name."""
    role = models.CharField(max_length=16, choices=Role)
    email = models.CharField(max_length=254, blank=True, default="", db_default="")
    """Where the link was mailed; empty: an admin handed it over."""
    token_sha256 = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    in_ledger: ClassVar = (
        *("label", "role", "token_sha256", "created_at"),
        *("expires_at", "accepted_at", "revoked_at"),
        "email",
    )
    in_ledger_later: ClassVar[dict[str, Any]] = {"email": ""}

    class Meta:
        db_table = "invitation"

    def __str__(self) -> str:
        return f"{self.label} ({self.role})"


class Scope(models.TextChoices):
    """What an API key gives access to."""

    INGEST = "ingest", "Send events"
    READ = "read", "Read figures and calls"
    PAYLOADS = "payloads", "Read payloads as well: arguments, outputs, error messages"
    REVEAL = "reveal", "Read the payload of one call or event at a time, each with a reason"
    REGISTRY = "registry", "Register and change tools: drafts, versions, replays, definitions"
    OPERATE = "operate", "Work as an editor: rejected events, polling tools, saved views, checks"
    HOLDS = "holds", "Set and release legal holds"
    SAMPLES = "samples", "Draw samples of calls, and conclude about them, as an auditor"
    ERASE = "erase", "Count and erase calls that a query selects"
    ADMIN = "admin", "Manage members, keys and settings, as an admin"
    SCIM = "scim", "Send people and groups of an identity provider's directory (SCIM)"


class ApiKey(models.Model):
    """A program's API key. Only the SHA-256 of its secret is stored."""

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
    """The key that replaces this one; this one still works until `expires_at`."""
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    """The member who answers for it. Over the API it acts on the owner's personal objects."""
    purpose = models.CharField(max_length=300, blank=True, default="", db_default="")
    allowed_addresses = ArrayField(models.CharField(max_length=43), default=list)
    """Networks (CIDR) from which it is accepted; none: from everywhere."""

    in_ledger: ClassVar = (
        *("key_id", "name", "secret_sha256", "scopes", "created_at"),
        *("expires_at", "revoked_at", "replaced_by_id"),
        *("owner_id", "purpose", "allowed_addresses"),
    )
    in_ledger_later: ClassVar[dict[str, Any]] = {
        "owner_id": None,
        "purpose": "",
        "allowed_addresses": [],
    }

    class Meta:
        db_table = "api_key"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "key_id"], name="api_key_tenant_key_id_uniq")
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.key_id})"


class Action(models.Model):
    """An entry of the audit log. Names are copied, so it outlives its subjects."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+")
    at = models.DateTimeField(auto_now_add=True)
    user_id = models.BigIntegerField(null=True)
    user_name = models.CharField(max_length=150)
    verb = models.CharField(max_length=64)
    subject = models.CharField(max_length=300)
    details = models.JSONField(default=dict)
    rows = models.JSONField(default=dict)
    """Digests of the rows it changed, by `table/id` (`tenants.row_digests`)."""
    ledger_index = models.BigIntegerField(null=True)
    """Index of its entry in the ledger; None until the worker has entered it."""

    class Meta:
        db_table = "action"

    def __str__(self) -> str:
        return f"{self.user_name} {self.verb} {self.subject}"
