"""Access tokens of a provider on loopback, and the members whom they name."""

import json
import time
from typing import TYPE_CHECKING, Any

import jwt

from tests.support.identity.hostile_provider import CLIENT, HostileProvider
from tests.support.mcp_agent import Agent

if TYPE_CHECKING:
    from tenants.models import IdentityProvider, Role, Tenant, User


def let_clients_in(
    tenant: "Tenant", provider: HostileProvider, *, mcp: str = "payloads", **more: Any
) -> "IdentityProvider":
    """A provider of a tenant that lets MCP clients in."""
    from tenants.identity.providers import add_provider
    from tenants.identity.wanted import Wanted
    from tenants.scope import tenant_scope

    wanted: dict[str, Any] = {
        "name": "Acme ID",
        "issuer": provider.issuer,
        "client_id": CLIENT,
        "mcp": mcp,
    }
    with tenant_scope(tenant.pk):
        return add_provider(tenant, "operator", Wanted(**{**wanted, **more}))


def make_member(row: "IdentityProvider", subject: str, role: "Role") -> "User":
    """A member whom the provider made at the first sign-in."""
    from tenants.identity.admission import Identity, admit
    from tenants.models import IdentityProvider, Membership, provider_key
    from tenants.scope import tenant_scope

    with tenant_scope(row.tenant_id):
        IdentityProvider.objects.filter(tenant_id=row.tenant_id, pk=row.pk).update(
            role_by_group={**row.role_by_group, "any": "viewer"}
        )
        row = IdentityProvider.objects.select_related("tenant").get(
            tenant_id=row.tenant_id, pk=row.pk
        )
    identity = Identity(provider_key(row.tenant_id, row.pk), subject, {"groups": ["any"]})
    user = admit(row, identity, None)
    with tenant_scope(row.tenant_id):
        members = Membership.objects.filter(tenant_id=row.tenant_id, user=user)
        members.update(role=role)
    return user


def resource_of(tenant: "Tenant") -> str:
    """The resource of a tenant, as the test client reaches it."""
    return f"http://testserver/mcp/{tenant.slug}"


def access_token(
    provider: HostileProvider,
    tenant: "Tenant",
    *,
    kind: str | None = "at+jwt",
    header: dict[str, Any] | None = None,
    **claims: Any,
) -> str:
    """A token of now, with what a test replaced; None leaves a claim out."""
    headers = {"kid": provider.key_id, "typ": kind, **(header or {})}
    body = json.dumps(claims_of(provider, tenant, **claims)).encode()
    # Not `jwt.encode`, which refuses what a hostile provider may write.
    return jwt.PyJWS().encode(body, provider.key, "ES256", headers=headers)


def claims_of(provider: HostileProvider, tenant: "Tenant", **claims: Any) -> dict[str, Any]:
    """The claims of an honest token, with what a test replaced."""
    now = int(time.time())
    honest = {
        "iss": provider.issuer,
        "aud": resource_of(tenant),
        "sub": "ada",
        "client_id": "claude-code",
        "iat": now,
        "exp": now + 300,
        "scope": "read payloads",
    }
    return {name: value for name, value in (honest | claims).items() if value is not None}


def agent_with(token: str, tenant: "Tenant") -> Agent:
    """An MCP client with an access token."""
    return Agent(tenant, key=token, path=f"/mcp/{tenant.slug}")
