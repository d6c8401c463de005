"""Who has access to a tenant: members, invitations and API keys."""

from typing import Any, ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from tenants.models.identity import provider_key
from tenants.models.ids import new_id
from tenants.models.roles import Role, Scope
from tenants.models.tenant import Tenant


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
