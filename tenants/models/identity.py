"""Identity providers and directories of companies."""

import uuid
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from tenants.models.ids import new_id
from tenants.models.roles import Role
from tenants.models.tenant import Tenant


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
