"""Models of tenants, their members, API keys and actions.

Row-level security protects the rows of a tenant (`tenants.scope`). The primary key of those
tables is (tenant_id, id), so that they can be distributed by tenant; Django and its admin
know only `id`. `in_ledger` names the columns that the ledger proves (`tenants.row_digests`).
"""

from tenants.models.access import ApiKey, Invitation, Membership
from tenants.models.accounts import SignInFailure, User
from tenants.models.actions import Action
from tenants.models.identity import (
    OF_INSTALLATION,
    AnyProvider,
    DirectoryGroup,
    DirectoryUser,
    IdentityProvider,
    InstallationProvider,
    ProviderKind,
    provider_key,
)
from tenants.models.ids import new_id
from tenants.models.roles import Role, Scope
from tenants.models.tenant import Tenant, TenantSetting, Tombstone

__all__ = [
    "OF_INSTALLATION",
    "Action",
    "AnyProvider",
    "ApiKey",
    "DirectoryGroup",
    "DirectoryUser",
    "IdentityProvider",
    "InstallationProvider",
    "Invitation",
    "Membership",
    "ProviderKind",
    "Role",
    "Scope",
    "SignInFailure",
    "Tenant",
    "TenantSetting",
    "Tombstone",
    "User",
    "new_id",
    "provider_key",
]
