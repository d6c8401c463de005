"""The identity providers of the installation: which there are, and the operator's acts on them.

Only an operator defines them (`manage.py apply`). They belong to no tenant, but open tenants, so
each act is an action in every tenant, with that tenant's part of the roles.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.utils import timezone

from tenants.actions import record_action
from tenants.identity.providers import closed_secret, end_sessions, secret_of
from tenants.identity.wanted import (
    GROUPS_MAX,
    TEXT_MAX,
    ProviderError,
    Wanted,
    checked,
    checked_change,
    columns_of,
)
from tenants.models import InstallationProvider, Role, Tenant, new_id
from tenants.scope import tenant_scope

PROVIDERS_MAX = 20


@dataclass(frozen=True, slots=True)
class GroupRole:
    """A group that gives its people a role in a tenant."""

    group: str
    tenant_id: UUID
    role: Role


@dataclass(frozen=True, slots=True)
class Change:
    """An act on a provider that is not done yet (`carry_out`). `provider` is as it will be."""

    verb: str
    provider: InstallationProvider
    before: dict[str, Any] = field(default_factory=dict[str, Any])
    after: dict[str, Any] = field(default_factory=dict[str, Any])
    is_new_secret: bool = False

    @property
    def is_new(self) -> bool:
        """Whether the provider is added."""
        return self.provider._state.adding


def installation_providers() -> list[InstallationProvider]:
    """All providers of the installation by name."""
    return list(InstallationProvider.objects.order_by("name"))


def enabled_providers() -> list[InstallationProvider]:
    """Those with which people can sign in."""
    return [one for one in installation_providers() if one.disabled_at is None]


def providers_leading_to(tenant_id: UUID) -> list[InstallationProvider]:
    """The enabled providers of which a group leads to a tenant."""
    named = str(tenant_id)
    return [one for one in enabled_providers() if any(x["tenant"] == named for x in one.roles)]


def find_installation_provider(pk: UUID) -> InstallationProvider | None:
    """A provider of the installation, or None."""
    return InstallationProvider.objects.filter(pk=pk).first()


def adding(wanted: Wanted, roles: Iterable[GroupRole]) -> Change:
    """A new provider. Raises ProviderError and BoxError."""
    stored = installation_providers()
    if len(stored) >= PROVIDERS_MAX:
        raise ProviderError("name", f"An installation has at most {PROVIDERS_MAX} providers.")
    wanted = checked(wanted, {one.name for one in stored})
    provider = InstallationProvider(id=new_id(), kind=wanted.kind)
    _assign(provider, wanted, roles)
    provider.secret_box = closed_secret(None, provider.pk, wanted.secret)
    return Change("installation-provider.create", provider, after=_shown(provider))


def changing(
    provider: InstallationProvider, wanted: Wanted, roles: Iterable[GroupRole]
) -> Change | None:
    """A change of a provider; None if nothing differs. Raises ProviderError and BoxError."""
    others = {one.name for one in installation_providers() if one.pk != provider.pk}
    wanted = checked_change(provider, wanted, others)
    before = _shown(provider)
    is_new_secret = wanted.secret not in ("", secret_of(provider))
    _assign(provider, wanted, roles)
    if is_new_secret:
        provider.secret_box = closed_secret(None, provider.pk, wanted.secret)
    after = _shown(provider)
    if before == after and not is_new_secret:
        return None
    verb = "installation-provider.change"
    return Change(verb, provider, before, after, is_new_secret)


def switching(provider: InstallationProvider, *, is_on: bool) -> Change | None:
    """The enabling or disabling of a provider; None if it is so already."""
    if (provider.disabled_at is None) == is_on:
        return None
    provider.disabled_at = None if is_on else timezone.now()
    verb = "installation-provider.enable" if is_on else "installation-provider.disable"
    return Change(verb, provider)


def carry_out(actor: str, change: Change) -> None:
    """Record a change in every tenant, then store it. Ends the sessions of a disabled provider.

    In this order, because a scope is a transaction of its own: what is stored is on record.
    Opens the scopes of all tenants, so none may be open.
    """
    provider = change.provider
    for tenant in Tenant.objects.order_by("id"):
        with tenant_scope(tenant.pk):
            record_action(tenant, actor, change.verb, provider.name, **_details(change, tenant.pk))
    if change.is_new:
        provider.save(force_insert=True)
    else:
        provider.save(update_fields=["name", "settings", "secret_box", "roles", "disabled_at"])
    if provider.disabled_at is not None:
        end_sessions(provider)


def _assign(provider: InstallationProvider, wanted: Wanted, roles: Iterable[GroupRole]) -> None:
    columns = columns_of(wanted)
    provider.name, provider.settings = columns["name"], columns["settings"]
    provider.roles = [
        {"group": one.group, "tenant": str(one.tenant_id), "role": str(one.role)}
        for one in sorted(roles, key=lambda one: (one.group, one.tenant_id))
    ]
    if len(provider.roles) > GROUPS_MAX:
        raise ProviderError("roles", f"Enter at most {GROUPS_MAX} roles.")
    for one in provider.roles:
        group = one["group"]
        if not group or len(group) > TEXT_MAX or not group.isprintable():
            raise ProviderError("roles", "A group has a name of one line.")


def _shown(provider: InstallationProvider) -> dict[str, Any]:
    shown = {"name": provider.name, "settings": provider.settings, "roles": provider.roles}
    copied: dict[str, Any] = json.loads(json.dumps(shown))
    return copied


def _details(change: Change, tenant_id: UUID) -> dict[str, Any]:
    """What a tenant learns: all but the roles in other tenants."""
    before, after = _of_tenant(change.before, tenant_id), _of_tenant(change.after, tenant_id)
    if change.is_new:
        return {"after": after}
    if not after:
        return {}
    changed = [name for name in after if before[name] != after[name]]
    return {
        "before": {name: before[name] for name in changed},
        "after": {name: after[name] for name in changed},
        "is_new_secret": change.is_new_secret,
    }


def _of_tenant(shown: dict[str, Any], tenant_id: UUID) -> dict[str, Any]:
    if not shown:
        return {}
    roles = [one for one in shown["roles"] if one["tenant"] == str(tenant_id)]
    return shown | {"roles": [{name: one[name] for name in ("group", "role")} for one in roles]}
