"""The identity providers of a tenant: add, change, disable them. Needs the tenant's scope.

Those of the installation: `tenants.identity.installation`.
"""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple
from uuid import UUID

from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.urls import reverse
from django.utils import timezone

from config.boxes import close, open_box
from tenants.accounts.policy import PROVIDER
from tenants.actions import Actor, record_action
from tenants.identity.wanted import (
    ProviderError,
    Wanted,
    checked,
    checked_change,
    columns_of,
)
from tenants.models import (
    OF_INSTALLATION,
    AnyProvider,
    IdentityProvider,
    Role,
    Tenant,
    new_id,
    provider_key,
)
from tenants.scope import tenant_scope

PROVIDERS_MAX = 20
# If somebody is in several groups, the first of these counts.
_STRONGEST = (Role.ADMIN, Role.EDITOR, Role.AUDITOR, Role.VIEWER)
_CHANGED = ("name", "settings", "role_by_group", "default_role")


def all_providers(tenant: Tenant) -> list[IdentityProvider]:
    """The tenant's providers by name."""
    providers = list(IdentityProvider.objects.filter(tenant_id=tenant.pk).order_by("name"))
    for one in providers:
        one.tenant = tenant
    return providers


def providers_at(slug: str) -> list[IdentityProvider]:
    """The enabled providers of a tenant that is not suspended, by its slug; none if it is unknown.

    Opens the tenant's scope, so no scope may be open.
    """
    tenant = Tenant.objects.filter(slug=slug, suspended_at=None).first()
    if tenant is None:
        return []
    with tenant_scope(tenant.pk):
        return [one for one in all_providers(tenant) if one.disabled_at is None]


def find_provider(tenant_id: UUID, pk: UUID) -> IdentityProvider | None:
    """A provider with its tenant, or None."""
    rows = IdentityProvider.objects.filter(tenant_id=tenant_id, pk=pk)
    return rows.select_related("tenant").first()


def add_provider(tenant: Tenant, actor: Actor, wanted: Wanted) -> IdentityProvider:
    """Add a provider. Raises ProviderError and BoxError."""
    providers = all_providers(tenant)
    if len(providers) >= PROVIDERS_MAX:
        raise ProviderError("name", f"A tenant has at most {PROVIDERS_MAX} providers.")
    wanted = checked(wanted, {one.name for one in providers})
    _check_only_one(wanted, providers)
    pk = new_id()
    provider = IdentityProvider.objects.create(
        id=pk,
        tenant=tenant,
        kind=wanted.kind,
        secret_box=closed_secret(tenant.pk, pk, wanted.secret),
        **columns_of(wanted),
    )
    after = _shown(provider)
    record_action(tenant, actor, "provider.create", provider.name, after=after, rows=[provider])
    return provider


def change_provider(
    tenant: Tenant, actor: Actor, provider: IdentityProvider, wanted: Wanted
) -> bool:
    """Change a provider; False if nothing differs. Raises ProviderError and BoxError."""
    others = [one for one in all_providers(tenant) if one.pk != provider.pk]
    wanted = checked_change(provider, wanted, {one.name for one in others})
    _check_only_one(wanted, others)
    before, columns = _shown(provider), columns_of(wanted)
    is_new_secret = wanted.secret not in ("", secret_of(provider))
    if is_new_secret:
        columns["secret_box"] = closed_secret(tenant.pk, provider.pk, wanted.secret)
    for name, value in columns.items():
        setattr(provider, name, value)
    after = _shown(provider)
    if before == after and not is_new_secret:
        return False
    IdentityProvider.objects.filter(tenant_id=tenant.pk, pk=provider.pk).update(**columns)
    record_action(
        tenant,
        actor,
        "provider.change",
        provider.name,
        before={name: before[name] for name in before if before[name] != after[name]},
        after={name: after[name] for name in before if before[name] != after[name]},
        is_new_secret=is_new_secret,
        rows=[provider],
    )
    return True


def switch_provider(
    tenant: Tenant, actor: Actor, provider: IdentityProvider, *, is_on: bool
) -> bool:
    """Enable a provider, or disable it and end its sessions; False if it is so already."""
    if (provider.disabled_at is None) == is_on:
        return False
    provider.disabled_at = None if is_on else timezone.now()
    IdentityProvider.objects.filter(tenant_id=tenant.pk, pk=provider.pk).update(
        disabled_at=provider.disabled_at
    )
    details: dict[str, Any] = {} if is_on else {"ended_sessions": end_sessions(provider)}
    record_action(
        tenant,
        actor,
        "provider.enable" if is_on else "provider.disable",
        provider.name,
        rows=[provider],
        **details,
    )
    return True


def path_of(provider: AnyProvider, view: str) -> str:
    """The address of a provider's view, with the tenant if it has one."""
    whose = [] if provider.tenant_id is None else [provider.tenant_id]
    return reverse(view, args=[*whose, provider.pk])


class LinkedProvider(NamedTuple):
    """A provider and the address of one of its views."""

    provider: AnyProvider
    address: str


def with_paths(providers: Iterable[AnyProvider], view: str) -> list[LinkedProvider]:
    """Providers, each with the address of this view."""
    return [LinkedProvider(one, path_of(one, view)) for one in providers]


def end_sessions(provider: AnyProvider, user_id: int | None = None) -> int:
    """End the sessions that a provider opened, of all or of one user. Returns how many."""
    key = provider_key(provider.tenant_id, provider.pk)
    if user_id is None:
        users = list(SocialAccount.objects.filter(provider=key).values_list("user_id", flat=True))
    else:
        users = [user_id]
    listed = UserSession.objects.filter(user_id__in=users)
    stored = Session.objects.filter(session_key__in=listed.values("session_key"))
    keys = {one.session_key for one in stored if one.get_decoded().get(PROVIDER) == key}
    for session in listed.filter(session_key__in=keys):
        session.end()
    return len(keys)


def has_directory(provider: IdentityProvider) -> bool:
    """Whether the provider's directory decides who is a member."""
    return bool(provider.settings.get("scim"))


def role_of_groups(
    provider: IdentityProvider, groups: Iterable[str], default: str | None
) -> Role | None:
    """The strongest role that these groups give; the default one if they give none."""
    known = provider.role_by_group
    strongest = strongest_of(known[group] for group in groups if group in known)
    otherwise = None if default is None else Role(default)
    return strongest or otherwise


def strongest_of(roles: Iterable[str]) -> Role | None:
    """The role that counts of several; None of none."""
    given = set(roles)
    return next((role for role in _STRONGEST if role in given), None)


def secret_of(provider: AnyProvider) -> str:
    """The client's secret; '' without one. Raises BoxError."""
    if provider.secret_box is None:
        return ""
    place = _place(provider.tenant_id, provider.pk)
    return open_box(place, bytes(provider.secret_box)).decode()


def _check_only_one(wanted: Wanted, others: Iterable[IdentityProvider]) -> None:
    """Raise ProviderError if a token's issuer would not tell which provider it is of."""
    if wanted.mcp != "off" and any(
        one.settings.get("mcp") and one.settings["issuer"] == wanted.issuer for one in others
    ):
        raise ProviderError("mcp", "Another provider with this issuer lets MCP clients read.")


def _shown(provider: IdentityProvider) -> dict[str, Any]:
    """All that may be shown, for the entries of the ledger."""
    shown = {name: getattr(provider, name) for name in _CHANGED}
    copied: dict[str, Any] = json.loads(json.dumps(shown))
    return copied


def closed_secret(tenant_id: UUID | None, pk: UUID, secret: str) -> bytes | None:
    """The secret of a provider as it is stored. Raises BoxError."""
    return close(_place(tenant_id, pk), secret.encode()) if secret else None


def _place(tenant_id: UUID | None, pk: UUID) -> bytes:
    owner = OF_INSTALLATION.encode() if tenant_id is None else tenant_id.bytes
    return b"identity provider " + owner + pk.bytes
