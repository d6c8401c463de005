"""Signing in with a provider without a browser, and what it left."""

from collections.abc import Mapping
from typing import Any

from django.test import Client

from tenants.identity.providers import path_of
from tenants.models import Action, AnyProvider, IdentityProvider, Membership
from tenants.scope import tenant_scope
from tests.support.identity.hostile_provider import HostileProvider


def leave(client: Client, row: AnyProvider, **data: str) -> str:
    """Press the provider's button; returns the address that the page goes on to."""
    answer = client.post(path_of(row, "provider_start"), data)
    assert answer.status_code == 200, answer
    return str(answer.context["address"])


def come_back(client: Client, row: AnyProvider, brought: Mapping[str, str]) -> Any:
    """The answer to what the browser brings back."""
    return client.get(path_of(row, "provider_callback"), brought)


def sign_in_with(client: Client, row: AnyProvider, provider: HostileProvider) -> Any:
    """The answer at the end of a whole sign-in."""
    return come_back(client, row, provider.authorize(leave(client, row)))


def come_back_by_saml(client: Client, row: AnyProvider, brought: Mapping[str, str]) -> Any:
    """The answer to a response that this server's own page sends once more."""
    return client.post(path_of(row, "provider_acs"), {**brought, "again": "1"})


def members_by(row: IdentityProvider) -> dict[str, str]:
    """Role by user name of the members that a provider made."""
    with tenant_scope(row.tenant_id):
        made = Membership.objects.filter(tenant_id=row.tenant_id, identity_provider_id=row.pk)
        return {one.user.username: one.role for one in made.select_related("user")}


def last_refusal(row: IdentityProvider) -> str:
    """The reason of the newest refusal of the tenant."""
    with tenant_scope(row.tenant_id):
        refusals = Action.objects.filter(tenant_id=row.tenant_id, verb="session.refuse")
        action = refusals.order_by("-at", "-id")[0]
    return str(action.details["reason"])
