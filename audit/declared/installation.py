"""Applies what a file says about the installation: identity providers of all tenants.

Each act is an action in every tenant, so it is planned, and then carried out, outside of any scope.
"""

from collections.abc import Collection
from datetime import datetime

from audit.declared.document import DeclaredInstallationProvider
from audit.declared.files import InstallationSource, Secrets
from audit.declared.identity import wanted_of
from audit.declared.work import Options, Outcome, Part, differences
from config.boxes import BoxError
from config.http.origin import own_url
from tenants.identity.installation import (
    Change,
    GroupRole,
    adding,
    carry_out,
    changing,
    installation_providers,
    switching,
)
from tenants.identity.providers import path_of
from tenants.identity.wanted import ProviderError
from tenants.models import InstallationProvider, ProviderKind, Tenant, new_id


def apply_installation(
    source: InstallationSource,
    options: Options,
    actor: str,
    now: datetime,
    new_slugs: Collection[str] = (),
) -> Outcome:
    """Make the installation what the file says: all of it, or nothing if there is a problem.

    A dry run also knows the tenants of `new_slugs`, which the files would make.
    """
    outcome = Outcome(None)
    place = f"{source.file}: installation"
    part = Part(actor, now, place, source.file, Secrets(source.folder), options, outcome)
    tenants = dict.fromkeys(new_slugs, new_id()) if options.is_dry else {}
    tenants |= {one.slug: one.pk for one in Tenant.objects.only("slug")}
    stored = {one.name: one for one in installation_providers()}
    todo: list[Change] = []
    wanted = source.wanted.identity_providers
    for index, one in enumerate(wanted or ()):
        path = f"identity_providers[{index}]"
        roles = []
        for number, each in enumerate(one.roles):
            if each.tenant in tenants:
                roles.append(GroupRole(each.group, tenants[each.tenant], each.role))
            else:
                part.refuse(f"{path}.roles[{number}].tenant", f"there is no tenant {each.tenant!r}")
        todo += _plan(part, path, one, stored.pop(one.name, None), roles)
    if wanted is not None and options.prunes:
        for provider in stored.values():
            todo += _switch(part, provider, is_disabled=True)
    if outcome.problems:
        outcome.changes.clear()
    elif not options.is_dry:
        for change in todo:
            if change.is_new:
                part.note(_addresses(change.provider))
            carry_out(actor, change)
    return outcome


def _addresses(provider: InstallationProvider) -> str:
    """What the operator enters at the provider."""

    def at(view: str) -> str:
        return f"{own_url()}{path_of(provider, view)}"

    if provider.kind == ProviderKind.SAML:
        entity, responses = at("provider_metadata"), at("provider_acs")
        return f"{provider.name}: entity ID {entity}, responses to {responses}"
    return f"{provider.name}: redirect URI {at('provider_callback')}"


def _plan(
    part: Part,
    path: str,
    one: DeclaredInstallationProvider,
    stored: InstallationProvider | None,
    roles: list[GroupRole],
) -> list[Change]:
    problems = len(part.outcome.problems)
    is_needed = stored is None and one.secret is not None
    secret = part.secret(f"{path}.secret", one.secret, is_needed=is_needed)
    if len(part.outcome.problems) > problems:
        return []
    todo: list[Change] = []
    try:
        change: Change | None
        if stored is None:
            change = adding(wanted_of(one, secret), roles)
            provider = change.provider
            part.did("create", "identity provider", one.name, provider.settings["issuer"])
        else:
            provider = stored
            change = changing(stored, wanted_of(one, secret), roles)
            if change is not None:
                detail = differences(_flat(change.before), _flat(change.after)) or "secret"
                part.did("change", "identity provider", one.name, detail)
    except ProviderError as error:
        part.refuse(f"{path}.{error.field}", str(error))
        return []
    except BoxError as error:
        part.refuse(path, str(error))
        return []
    todo += [change] if change is not None else []
    return todo + _switch(part, provider, is_disabled=one.is_disabled)


def _switch(part: Part, provider: InstallationProvider, *, is_disabled: bool) -> list[Change]:
    change = switching(provider, is_on=not is_disabled)
    if change is None:
        return []
    before, after = {"is_disabled": not is_disabled}, {"is_disabled": is_disabled}
    part.did("change", "identity provider", provider.name, differences(before, after))
    return [change]


def _flat(shown: dict[str, object]) -> dict[str, object]:
    settings, roles = shown["settings"], shown["roles"]
    assert isinstance(settings, dict)
    assert isinstance(roles, list)
    named = [f"{one['group']} = {one['role']} in {one['tenant']}" for one in roles]
    defaults: dict[str, object] = dict.fromkeys(
        ("client_id", "metadata_url", "sso_url", "certificates", "subject_claim"), ""
    )
    return defaults | settings | {"roles": named}
