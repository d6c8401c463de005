"""Applies identity providers, and whether only they open the tenant."""

from audit.declared.document import DeclaredInstallationProvider, DeclaredProvider, SsoOnly
from audit.declared.work import Work, differences
from config.boxes import BoxError
from tenants.identity import sso_only
from tenants.identity.providers import add_provider, all_providers, change_provider, switch_provider
from tenants.identity.wanted import MCP_DETAILS, ProviderError, Wanted, subject_claim
from tenants.models import IdentityProvider, Role


def apply_providers(work: Work, wanted: list[DeclaredProvider]) -> None:
    """Add identity providers, and change, disable and enable those that differ.

    With `--prune` others are disabled, and not deleted: members and entries name them.
    """
    stored = {one.name: one for one in all_providers(work.tenant)}
    for index, one in enumerate(wanted):
        _apply_provider(work, f"identity_providers[{index}]", one, stored.pop(one.name, None))
    if work.options.prunes:
        for provider in stored.values():
            if switch_provider(work.tenant, work.actor, provider, is_on=False):
                work.did("change", "identity provider", provider.name, "is_disabled: false → true")


def apply_sso_only(work: Work, wanted: SsoOnly) -> None:
    """Open the tenant to its providers only, or to everybody. After members and providers."""
    before = sso_only.current(work.tenant)
    after = {"sso_only": wanted.is_on, "break_glass": wanted.break_glass}
    try:
        is_changed = sso_only.save(
            work.tenant, work.actor, sso_only=wanted.is_on, break_glass=wanted.break_glass
        )
    except sso_only.SsoOnlyError as error:
        member = {"sso_only": "is_on"}.get(error.field, error.field)
        work.refuse(f"sso_only.{member}", str(error))
        return
    if is_changed:
        work.did("change", "sso only", "", differences(before, after))


def wanted_of(one: DeclaredProvider | DeclaredInstallationProvider, secret: str) -> Wanted:
    """What a file says about a provider, as the acts take it."""
    given = one.model_dump(exclude={"secret", "is_disabled", "certificates", "roles"})
    return Wanted(**given, secret=secret, certificates=tuple(one.certificates))


def _apply_provider(
    work: Work, path: str, one: DeclaredProvider, stored: IdentityProvider | None
) -> None:
    problems = len(work.outcome.problems)
    is_needed = stored is None and one.secret is not None
    secret = work.secret(f"{path}.secret", one.secret, is_needed=is_needed)
    if len(work.outcome.problems) > problems:
        return
    wanted = wanted_of(one, secret)
    try:
        if stored is None:
            provider = add_provider(work.tenant, work.actor, wanted)
            work.did("create", "identity provider", one.name, provider.settings["issuer"])
        else:
            provider = stored
            before = _shown(stored)
            if change_provider(work.tenant, work.actor, stored, wanted):
                detail = differences(before, _shown(stored)) or "secret"
                work.did("change", "identity provider", one.name, detail)
    except ProviderError as error:
        work.refuse(f"{path}.{error.field}", str(error))
        return
    except BoxError as error:
        work.refuse(path, str(error))
        return
    if switch_provider(work.tenant, work.actor, provider, is_on=not one.is_disabled):
        after = {"is_disabled": one.is_disabled}
        detail = differences({"is_disabled": not one.is_disabled}, after)
        work.did("change", "identity provider", one.name, detail)


def _shown(provider: IdentityProvider) -> dict[str, object]:
    roles = [f"{group} = {Role(role)}" for group, role in sorted(provider.role_by_group.items())]
    default = {"role_by_group": roles, "default_role": provider.default_role}
    claim = {"subject_claim": subject_claim(provider)}
    absent = {"scim": False, "mcp": "off", **dict.fromkeys(MCP_DETAILS, "")}
    return {**absent, **provider.settings, **claim, **default}
