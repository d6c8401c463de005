"""Writes what is stored as files of configuration. They never contain a secret.

Where a secret belongs, the file names a path for it: `secrets/<slug>/<kind>-<name>`.
"""

import io
import json
import re
from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import RoundTripRepresenter

from audit.alerts.quiet import all_windows, maintenance_of, rule_names
from audit.alerts.stored import all_rules, channel_names, rule_of
from audit.deliveries.channels import all_channels
from audit.ledger.witnesses.states import policy_of
from audit.models import AlertChannel, PriceList, SavedView
from audit.pages.settings.acts import setting_of
from audit.queries.boards import boards_of, page_of
from audit.queries.polling import polling_tools
from audit.queries.price_lists import (
    all_lists,
    from_document,
    model_document,
    models_from_document,
    plain,
)
from audit.queries.saved_views import CALLS
from audit.reports.schedule import schedule
from config.instants import iso_exact
from tenants.accounts import settings as sign_in
from tenants.actions import record_action
from tenants.identity import sso_only
from tenants.identity.installation import installation_providers
from tenants.identity.providers import all_providers
from tenants.keys import working_keys
from tenants.models import (
    ApiKey,
    IdentityProvider,
    InstallationProvider,
    Membership,
    ProviderKind,
    Tenant,
)
from tenants.scope import tenant_scope
from tenants.service_accounts import name_in, service_accounts
from tools_registry.exchange.export import export_registry
from tools_registry.models import Tool

_DERIVED = {"digest", "published_at", "published_by"}
"""Members of a version in an export of the registry that no file needs to say."""


class _Representer(RoundTripRepresenter):
    """Writes texts that would not be read back as they are (U+0085) in double quotes."""

    def represent_text(self, text: str) -> ScalarNode:
        """A text as YAML."""
        style = None if text.isprintable() else '"'
        node: ScalarNode = self.represent_scalar("tag:yaml.org,2002:str", text, style=style)
        return node


_Representer.add_representer(str, _Representer.represent_text)


def export_tenant(tenant: Tenant, actor: str, now: datetime) -> dict[str, Any]:
    """A tenant as `apply` reads it. Recorded as an action."""
    with tenant_scope(tenant.pk):
        record_action(tenant, actor, "config.export", tenant.name)
        setting, decided = setting_of(tenant), schedule()
        names = channel_names()
        document: dict[str, Any] = {
            "slug": tenant.slug,
            "id": str(tenant.pk),
            "name": tenant.name,
            "time_zone": tenant.time_zone,
            "retention": {
                "payload_days": setting.payload_days,
                "index_days": setting.index_days,
                "floor_days": setting.floor_days,
            },
            "redaction": {
                "names": setting.redact_names,
                "patterns": setting.redact_patterns,
                "otlp": setting.redact_otlp,
                "clear_principals": setting.clear_principals,
            },
            "witnesses": policy_of(tenant.pk).stored(),
            "sign_in": sign_in.current(tenant),
            "identity_providers": [_provider(tenant, one) for one in all_providers(tenant)],
            "sso_only": _sso_only(tenant),
            "members": list(_members(tenant)),
            "service_accounts": [
                {"name": name_in(one), "is_disabled": one.disabled_at is not None}
                for one in service_accounts(tenant).order_by("user__username")
            ],
            "keys": list(_keys(tenant, now)),
            "channels": [_channel(tenant, one) for one in all_channels()],
            "alert_rules": [rule_of(one, names).model_dump(mode="json") for one in all_rules()],
            "maintenance_windows": list(_windows()),
            "polling_tools": polling_tools(),
            "saved_views": list(_views(tenant)),
            "boards": [page_of(one).model_dump(mode="json") for one in boards_of(None)],
            "reports": {
                "kinds": list(decided.kinds),
                "time_zone": decided.time_zone,
                "keep_days": decided.keep_days,
            },
            "price_lists": [_price_list(one) for one in all_lists()],
        }
        checked = Tool.objects.filter(tenant=tenant, is_checked_on_arrival=True)
        checks = list(checked.order_by("name").values_list("name", flat=True))
    return document | {"tools": list(_tools(tenant)), "checks_on_arrival": checks}


def export_installation() -> dict[str, Any]:
    """What belongs to no tenant, as `apply` reads it."""
    slugs = {str(one.pk): one.slug for one in Tenant.objects.only("slug")}
    providers = [_installation_provider(one, slugs) for one in installation_providers()]
    return {"identity_providers": providers}


def as_text(document: dict[str, Any], form: str) -> str:
    """A document as `yaml` or `json`."""
    if form == "json":
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    yaml = YAML()
    yaml.Representer = _Representer
    yaml.default_flow_style = False
    yaml.width = 100
    text = io.StringIO()
    yaml.dump(document, text)
    return text.getvalue()


def _members(tenant: Tenant) -> Iterator[dict[str, Any]]:
    """All but those whom an identity provider makes: they come back with their sign-in."""
    members = Membership.objects.filter(Membership.by_invitation, tenant=tenant, is_service=False)
    for one in members.select_related("user").order_by("user__username"):
        yield {"user": one.user.get_username(), "role": one.role}


def _provider(tenant: Tenant, one: IdentityProvider) -> dict[str, Any]:
    secret = (
        {} if one.secret_box is None else {"secret": _secret(tenant.slug, "identity", one.name)}
    )
    default = {} if one.default_role is None else {"default_role": one.default_role}
    return {
        "name": one.name,
        **({} if one.kind == ProviderKind.OIDC else {"kind": str(one.kind)}),
        **one.settings,
        **secret,
        "role_by_group": one.role_by_group,
        **default,
        "is_disabled": one.disabled_at is not None,
    }


def _installation_provider(one: InstallationProvider, slugs: dict[str, str]) -> dict[str, Any]:
    known = [each for each in one.roles if each["tenant"] in slugs]
    return {
        "name": one.name,
        **({} if one.kind == ProviderKind.OIDC else {"kind": str(one.kind)}),
        **one.settings,
        **({} if one.secret_box is None else {"secret": _secret("", "identity", one.name)}),
        "roles": [{**each, "tenant": slugs[each["tenant"]]} for each in known],
        "is_disabled": one.disabled_at is not None,
    }


def _sso_only(tenant: Tenant) -> dict[str, Any]:
    setting = sso_only.current(tenant)
    named = setting["break_glass"]
    return {"is_on": setting["sso_only"]} | ({"break_glass": named} if named else {})


def _own_ids(tenant: Tenant) -> set[int]:
    """Accounts of the members whom no identity provider made, and of service accounts."""
    members = Membership.objects.filter(Membership.by_invitation, tenant=tenant)
    return set(members.values_list("user_id", flat=True))


def _price_list(one: PriceList) -> dict[str, Any]:
    prices = [
        {"tool": price.tool, "amount": plain(price.amount)}
        | ({"path": price.path} if price.path else {})
        for price in from_document(one.prices)
    ]
    models = [
        {name: value for name, value in model_document(each).items() if value is not None}
        for each in models_from_document(one.prices)
    ]
    named = {"models": models} if models else {}
    return {"holds_from": str(one.holds_from), "currency": one.currency, "prices": prices, **named}


def _keys(tenant: Tenant, now: datetime) -> Iterator[dict[str, Any]]:
    """Keys that work. Of several with a name, the newest: the name would not tell them apart."""
    newest: dict[str, ApiKey] = {key.name: key for key in working_keys(tenant, now)}
    own = _own_ids(tenant)
    for name, key in sorted(newest.items()):
        members: dict[str, Any] = {
            "purpose": key.purpose,
            "owner": key.owner and key.owner_id in own and key.owner.get_username(),
            "expires_at": key.expires_at and iso_exact(key.expires_at),
            "allowed_addresses": key.allowed_addresses,
        }
        yield {
            "name": name,
            "scopes": key.scopes,
            "secret": _secret(tenant.slug, "key", name),
            **{member: value for member, value in members.items() if value},
        }


def _channel(tenant: Tenant, one: AlertChannel) -> dict[str, Any]:
    document: dict[str, Any] = {"name": one.name, "kind": str(one.kind)}
    reference = _secret(tenant.slug, "channel", one.name)
    match one.kind:
        case "email":
            secret = {"password": reference} if one.secret_box is not None else {}
            return {**document, **one.settings, **secret}
        case "webhook":
            return {**document, **one.settings, "secret": reference}
        case _:
            return {**document, "url": reference}


def _windows() -> Iterator[dict[str, Any]]:
    """The maintenance windows, without rules that were deleted."""
    names = rule_names()
    for one in all_windows():
        rules = [names[each] for each in one.rule_ids if each in names]
        if rules or not one.rule_ids:  # a window of deleted rules only quiets none
            yield maintenance_of(one, names).model_dump(mode="json") | {"rules": sorted(rules)}


def _views(tenant: Tenant) -> Iterator[dict[str, Any]]:
    members = Membership.objects.filter(Membership.by_invitation, tenant=tenant)
    members = members.select_related("user")
    names = {one.user_id: one.user.get_username() for one in members}
    for view in SavedView.objects.for_tenant(tenant.pk).order_by("user_id", "name"):
        if view.user_id in names:
            exported = {"owner": names[view.user_id], "name": view.name, "q": view.query}
            if view.page != CALLS:
                exported["page"] = view.page
            yield exported | ({"shared": True} if view.is_shared else {})


def _tools(tenant: Tenant) -> Iterator[dict[str, Any]]:
    for tool in json.loads(b"".join(export_registry(tenant.pk)))["tools"]:
        versions = [
            {name: value for name, value in one.items() if name not in _DERIVED}
            for one in tool["versions"]
        ]
        yield {**tool, "versions": versions}


def _secret(folder: str, kind: str, name: str) -> dict[str, str]:
    plain = re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-.")
    if plain != name:  # another name may be as plain
        plain = f"{plain}-{sha256(name.encode()).hexdigest()[:8]}".lstrip("-")
    return {"file": f"secrets/{folder}/{kind}-{plain}".replace("//", "/")}
