"""The identity providers of a tenant: add, change, disable them. Needs the tenant's scope."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.utils import timezone

from config.boxes import close, open_box
from tenants.accounts.policy import PROVIDER
from tenants.actions import Actor, record_action
from tenants.models import IdentityProvider, ProviderKind, Role, Tenant, new_id
from tenants.scope import tenant_scope

PROVIDERS_MAX = 20
NAME_MAX = 40
TEXT_MAX = 500
GROUPS_MAX = 200
SUBJECT = "sub"
"""The claim that names a person, unless a provider has another."""
SUBJECT_MAX = 191
"""Characters of a person's name at a provider: as django-allauth stores it."""
# If somebody is in several groups, the first of these counts.
_STRONGEST = (Role.ADMIN, Role.EDITOR, Role.AUDITOR, Role.VIEWER)
_CHANGED = ("name", "settings", "role_by_group", "default_role")


class ProviderError(ValueError):
    """A value of a provider is invalid. `field` names it; the message is for people."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody entered about a provider."""

    name: str
    """On its button."""
    issuer: str
    """Its URL, as in its discovery document. It cannot change later: a subject is only known with
    its issuer."""
    client_id: str
    secret: str = ""
    """The client's; empty: the one that is stored."""
    groups_claim: str = "groups"
    """The claim with a person's groups."""
    role_by_group: Mapping[str, Role] = field(default_factory=dict[str, Role])
    default_role: Role | None = None
    """Of who is in none of these groups; None: no membership."""
    asks_second_factor: bool = False
    """Whether a sign-in with it counts as one with a second factor."""
    subject_claim: str = SUBJECT
    """The claim that names a person. It cannot change later."""
    scim: bool = False
    """Whether its directory decides who is a member (`tenants.identity.directory`)."""


def all_providers(tenant: Tenant) -> list[IdentityProvider]:
    """The tenant's providers by name."""
    return list(IdentityProvider.objects.filter(tenant_id=tenant.pk).order_by("name"))


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


def provider_key(tenant_id: UUID, pk: UUID) -> str:
    """The name of a provider in identities and sessions: it contains the tenant."""
    return f"{tenant_id}/{pk}"


def add_provider(tenant: Tenant, actor: Actor, wanted: Wanted) -> IdentityProvider:
    """Add a provider. Raises ProviderError and BoxError."""
    providers = all_providers(tenant)
    if len(providers) >= PROVIDERS_MAX:
        raise ProviderError("name", f"A tenant has at most {PROVIDERS_MAX} providers.")
    _check(wanted, {one.name for one in providers})
    pk = new_id()
    provider = IdentityProvider.objects.create(
        id=pk,
        tenant=tenant,
        kind=ProviderKind.OIDC,
        secret_box=_closed(tenant.pk, pk, wanted.secret),
        **_columns(wanted),
    )
    after = _shown(provider)
    record_action(tenant, actor, "provider.create", provider.name, after=after, rows=[provider])
    return provider


def change_provider(
    tenant: Tenant, actor: Actor, provider: IdentityProvider, wanted: Wanted
) -> bool:
    """Change a provider; False if nothing differs. Raises ProviderError and BoxError."""
    others = {one.name for one in all_providers(tenant) if one.pk != provider.pk}
    _check(wanted, others)
    if wanted.issuer != provider.settings["issuer"]:
        raise ProviderError("issuer", "The issuer cannot change. Add another provider.")
    if wanted.subject_claim != subject_claim(provider):
        raise ProviderError("subject_claim", "This claim cannot change. Add another provider.")
    before, columns = _shown(provider), _columns(wanted)
    is_new_secret = wanted.secret not in ("", secret_of(provider))
    if is_new_secret:
        columns["secret_box"] = _closed(tenant.pk, provider.pk, wanted.secret)
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


def end_sessions(provider: IdentityProvider, user_id: int | None = None) -> int:
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


def subject_claim(provider: IdentityProvider) -> str:
    """The claim that names a person."""
    return str(provider.settings.get("subject_claim", SUBJECT))


def has_directory(provider: IdentityProvider) -> bool:
    """Whether the provider's directory decides who is a member."""
    return bool(provider.settings.get("scim"))


def role_of_groups(
    provider: IdentityProvider, groups: Iterable[str], default: str | None
) -> Role | None:
    """The strongest role that these groups give; the default one if they give none."""
    known = provider.role_by_group
    roles = {known[group] for group in groups if group in known}
    otherwise = None if default is None else Role(default)
    return next((role for role in _STRONGEST if role in roles), otherwise)


def secret_of(provider: IdentityProvider) -> str:
    """The client's secret; '' without one. Raises BoxError."""
    if provider.secret_box is None:
        return ""
    place = _place(provider.tenant_id, provider.pk)
    return open_box(place, bytes(provider.secret_box)).decode()


def _columns(wanted: Wanted) -> dict[str, Any]:
    # Providers from before these settings do not have them.
    later: dict[str, Any] = {}
    if wanted.subject_claim != SUBJECT:
        later["subject_claim"] = wanted.subject_claim
    if wanted.scim:
        later["scim"] = True
    return {
        "name": wanted.name,
        "settings": {
            "issuer": wanted.issuer,
            "client_id": wanted.client_id,
            "groups_claim": wanted.groups_claim,
            "asks_second_factor": wanted.asks_second_factor,
            **later,
        },
        "role_by_group": {group: str(role) for group, role in wanted.role_by_group.items()},
        "default_role": None if wanted.default_role is None else str(wanted.default_role),
    }


def _shown(provider: IdentityProvider) -> dict[str, Any]:
    """All that may be shown, for the entries of the ledger."""
    shown = {name: getattr(provider, name) for name in _CHANGED}
    copied: dict[str, Any] = json.loads(json.dumps(shown))
    return copied


def _check(wanted: Wanted, taken: set[str]) -> None:
    for name in ("name", "issuer", "client_id", "groups_claim", "subject_claim"):
        value = getattr(wanted, name)
        longest = NAME_MAX if name == "name" else TEXT_MAX
        if not value or len(value) > longest or not value.isprintable():
            raise ProviderError(name, f"Enter one line of at most {longest} characters.")
    if wanted.name in taken:
        raise ProviderError("name", "Another provider has this name.")
    if len(wanted.secret) > TEXT_MAX or not wanted.secret.isprintable():
        raise ProviderError("secret", "Enter one line of text.")
    check_server_url("issuer", wanted.issuer)
    if len(wanted.role_by_group) > GROUPS_MAX:
        raise ProviderError("role_by_group", f"Enter at most {GROUPS_MAX} groups.")
    for group in wanted.role_by_group:
        if not group or len(group) > TEXT_MAX or not group.isprintable():
            raise ProviderError("role_by_group", "A group has a name of one line.")


def check_server_url(name: str, url: str) -> None:
    """Raise ProviderError unless a text is the URL of a server, without query and fragment."""
    try:
        parts = urlsplit(url)
        is_good = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if (
        not is_good
        or parts.scheme not in ("https", "http")
        or parts.username is not None
        or parts.query
        or parts.fragment
        or any(each.isspace() for each in url)
    ):
        raise ProviderError(name, "Enter a URL that begins with https://, without a query.")


def _closed(tenant_id: UUID, pk: UUID, secret: str) -> bytes | None:
    return close(_place(tenant_id, pk), secret.encode()) if secret else None


def _place(tenant_id: UUID, pk: UUID) -> bytes:
    return b"identity provider " + tenant_id.bytes + pk.bytes
