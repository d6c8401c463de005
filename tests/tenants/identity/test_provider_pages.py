"""Admins add, change and disable providers, by pages and API; no secret is shown."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tenants.identity.providers import all_providers, secret_of
from tenants.models import Action, IdentityProvider, Scope, Tenant
from tenants.scope import tenant_scope
from tests.support.api_client import program
from tests.support.factories import Cast
from tests.support.pages import signed_in

SECRET = "very secret indeed"
FORM = {
    "name": "Acme ID",
    "issuer": "https://id.acme.example/realms/a",
    "client_id": "tooltrail",
    "secret": SECRET,
    "groups_claim": "roles",
    "roles": "cn=ops, ou=groups = editor\n\nowners=admin\n",
    "default_role": "viewer",
    "asks_second_factor": "on",
}
BODY: dict[str, Any] = {
    "name": "Acme ID",
    "issuer": "https://id.acme.example/realms/a",
    "client_id": "tooltrail",
    "secret": SECRET,
}


def the_provider(tenant: Tenant) -> IdentityProvider:
    with tenant_scope(tenant.id):
        (provider,) = all_providers(tenant)
    return provider


def actions(cast: Cast) -> list[tuple[str, Any]]:
    with tenant_scope(cast.tenant.id):
        found = Action.objects.filter(tenant=cast.tenant, verb__startswith="provider.")
        return [(one.verb, one.details) for one in found.order_by("at", "id")]


def test_admin_adds_a_provider_and_its_secret_is_not_shown(acme: Cast) -> None:
    client = signed_in(acme.admin)
    answer = client.post(reverse("provider_new"), FORM)
    provider = the_provider(acme.tenant)
    assert answer["Location"] == reverse("provider_detail", args=[provider.pk])
    assert provider.role_by_group == {"cn=ops, ou=groups": "editor", "owners": "admin"}
    assert provider.settings["asks_second_factor"] is True
    assert (provider.default_role, secret_of(provider)) == ("viewer", SECRET)
    assert SECRET.encode() not in bytes(provider.secret_box or b"")
    page = client.get(answer["Location"]).content.decode()
    assert SECRET not in page
    assert f"/sign-in/with/{acme.tenant.pk}/{provider.pk}/callback" in page
    assert "Acme ID" in client.get(reverse("sign_in_settings")).content.decode()
    assert (
        "Acme ID"
        in Client().get(reverse("tenant_sign_in", args=[acme.tenant.slug])).content.decode()
    )
    ((verb, details),) = actions(acme)
    assert verb == "provider.create"
    assert SECRET not in str(details)


def test_change_keeps_the_secret_and_the_issuer(acme: Cast) -> None:
    client = signed_in(acme.admin)
    client.post(reverse("provider_new"), FORM)
    address = reverse("provider_detail", args=[the_provider(acme.tenant).pk])
    same = client.get(address).context["form"].initial | {"secret": ""}
    client.post(address, same)
    assert len(actions(acme)) == 1
    client.post(address, same | {"roles": "ops = auditor"})
    assert secret_of(the_provider(acme.tenant)) == SECRET
    client.post(address, same | {"roles": "ops = auditor", "secret": "another"})
    assert secret_of(the_provider(acme.tenant)) == "another"
    other = client.post(address, same | {"issuer": "https://id.evil.example"})
    assert "cannot change" in other.content.decode()
    changes = [details for verb, details in actions(acme) if verb == "provider.change"]
    assert [one["is_new_secret"] for one in changes] == [False, True]
    assert changes[0]["after"] == {"role_by_group": {"ops": "auditor"}}


def test_wrong_value_is_explained_at_its_field(acme: Cast) -> None:
    client = signed_in(acme.admin)
    for change, text in (
        ({"issuer": "id.acme.example"}, "must begin with https://"),
        ({"issuer": "https://a:b@id.acme.example"}, "must not contain a user"),
        ({"issuer": "https://id.acme.example/?a=b"}, "must not contain a query"),
        ({"issuer": "https://id.acme.example:99999"}, "This is not a URL"),
        ({"issuer": "file:///etc/passwd"}, "must begin with https://"),
        ({"roles": "ops = king"}, "Line 1"),
        ({"roles": "a = admin\nops"}, "Line 2"),
        ({"name": "x" * 41}, "at most 40"),
        ({"client_id": ""}, "required"),
    ):
        page = client.post(reverse("provider_new"), FORM | change)
        assert page.status_code == 200, change
        assert text in page.content.decode(), change
    client.post(reverse("provider_new"), FORM)
    page = client.post(reverse("provider_new"), FORM)
    assert "has this name" in page.content.decode()


@pytest.mark.slow
def test_admin_lets_mcp_clients_in_and_the_change_is_an_action(acme: Cast) -> None:
    client = signed_in(acme.admin)
    client.post(reverse("provider_new"), FORM)
    provider = the_provider(acme.tenant)
    assert "mcp" not in provider.settings
    address = reverse("provider_detail", args=[provider.pk])
    shown = client.get(address)
    assert "Address for MCP clients" not in shown.content.decode()
    same = shown.context["form"].initial | {"secret": ""}
    client.post(address, same | {"mcp": "read", "mcp_scope_prefix": "api://x/"})
    page = client.get(address).content.decode()
    assert f"http://testserver/mcp/{acme.tenant.slug}" in page
    assert "api://x/read" in page
    assert "api://x/payloads" not in page
    ((_, change),) = [one for one in actions(acme) if one[0] == "provider.change"]
    assert change["after"]["settings"]["mcp"] == "read"
    for wrong, text in (
        ({"mcp": "write"}, "Select a valid choice"),
        ({"mcp_audience": "tooltrail"}, "client ID of the sign-in"),
        ({"mcp_audience": "a b"}, "Enter one word"),
        ({"mcp_scope_prefix": 'a"b'}, "without quotes"),
        ({"mcp_person_claim": "\u00e4"}, "Enter ASCII"),
        ({"mcp_person_claim": "x" * 501}, "at most 500"),
    ):
        answer = client.post(address, same | wrong)
        assert (answer.status_code, text in answer.content.decode()) == (200, True), wrong
    client.post(address, same)
    assert "mcp" not in the_provider(acme.tenant).settings
    assert signed_in(acme.editor).get(address).status_code == 403


def test_programs_let_mcp_clients_in(acme: Cast) -> None:
    api = program(acme.tenant, Scope.ADMIN)
    made = api.do("identity-providers", BODY)
    assert (made["mcp"], made["mcp_audience"]) == ("off", "")
    assert made["mcp_url"] == f"http://testserver/mcp/{acme.tenant.slug}"
    given = {**BODY, "mcp": "payloads", "mcp_audience": "7c1f"}
    changed = api.do(f"identity-providers/{made['id']}", given, "PUT")
    assert (changed["mcp"], changed["mcp_audience"]) == ("payloads", "7c1f")
    saml = {
        "name": "S",
        "kind": "saml",
        "issuer": "x",
        "metadata_url": "https://id.example/metadata",
        "mcp": "read",
    }
    for body in ({**BODY, "name": "Other", "mcp": "read"}, saml):
        refused = api.send("POST", "identity-providers", body)
        assert (refused.status_code, refused.json()["parameter"]) == (422, "mcp")


def test_programs_manage_providers(acme: Cast) -> None:
    api = program(acme.tenant, Scope.ADMIN)
    made = api.do("identity-providers", BODY | {"role_by_group": {"ops": "editor"}})
    assert made["redirect_uri"].endswith(f"/{made['id']}/callback")
    assert (made["has_secret"], made["groups_claim"], made["default_role"]) == (
        True,
        "groups",
        None,
    )
    assert SECRET not in str(made)
    address = f"identity-providers/{made['id']}"
    changed = api.do(address, {**BODY, "secret": "", "default_role": "viewer"}, "PUT")
    assert (changed["default_role"], changed["role_by_group"]) == ("viewer", {})
    assert secret_of(the_provider(acme.tenant)) == SECRET
    api.do(address, {**BODY, "default_role": "viewer"}, "PUT")
    assert len(actions(acme)) == 2
    assert api.do(f"{address}/disable")["disabled_at"]
    assert api.do(f"{address}/enable")["disabled_at"] is None
    assert [verb for verb, _ in actions(acme)][2:] == ["provider.disable", "provider.enable"]
