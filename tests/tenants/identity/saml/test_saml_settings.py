"""Admins enter a SAML provider: by its metadata, an address of it, or single values."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from lxml import etree

from tenants.identity import wanted
from tenants.identity.providers import all_providers
from tenants.identity.saml import MISSING
from tenants.identity.saml import provider as saml_provider
from tenants.models import Action, IdentityProvider, Scope
from tenants.scope import tenant_scope
from tests.support.api_client import program
from tests.support.declared import changes_of, export, write_config
from tests.support.factories import Cast
from tests.support.identity.hostile_provider import HostileProvider, opened_provider
from tests.support.identity.saml_provider import (
    ENTITY_ID,
    SSO_URL,
    SamlProvider,
    keys,
    provider_metadata,
)
from tests.support.identity.visits import come_back_by_saml, last_refusal, leave
from tests.support.pages import signed_in

FORM = {"name": "Acme ID", "groups_claim": "groups", "roles": "staff = viewer"}
BODY: dict[str, Any] = {"kind": "saml", "name": "Acme ID", "role_by_group": {"staff": "viewer"}}
SINGLE = {"issuer": ENTITY_ID, "sso_url": SSO_URL}
METADATA = "/metadata"


def new_page() -> str:
    return f"{reverse('provider_new')}?kind=saml"


def stored(cast: Cast) -> list[IdentityProvider]:
    with tenant_scope(cast.tenant.id):
        return all_providers(cast.tenant)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[HostileProvider]:
    """A server that publishes metadata, at an address that the operator opened."""
    with opened_provider(monkeypatch) as one:
        one.bodies[METADATA] = provider_metadata(keys()).encode()
        yield one


def test_metadata_says_all_that_is_needed(acme: Cast) -> None:
    client = signed_in(acme.admin)
    answer = client.post(new_page(), FORM | {"metadata": provider_metadata(keys())})
    (row,) = stored(acme)
    assert answer["Location"] == reverse("provider_detail", args=[row.pk])
    assert row.kind == "saml"
    assert row.settings["issuer"] == ENTITY_ID
    assert row.settings["sso_url"] == SSO_URL
    assert row.settings["certificates"] == [keys().certificate.strip()]
    page = client.get(answer["Location"]).content.decode()
    base = f"http://testserver/sign-in/with/{acme.tenant.pk}/{row.pk}"
    assert f"{base}/acs" in page
    assert f"{base}/metadata" in page
    with tenant_scope(acme.tenant.id):
        action = Action.objects.get(tenant=acme.tenant, verb="provider.create")
    assert action.details["after"]["settings"]["issuer"] == ENTITY_ID
    assert "SAML 2.0" in client.get(reverse("sign_in_settings")).content.decode()


def test_new_metadata_brings_new_certificates(acme: Cast) -> None:
    client = signed_in(acme.admin)
    client.post(new_page(), FORM | {"metadata": provider_metadata(keys())})
    address = reverse("provider_detail", args=[stored(acme)[0].pk])
    same = client.get(address).context["form"].initial
    client.post(address, same | {"metadata": provider_metadata(keys("two"))})
    assert stored(acme)[0].settings["certificates"] == [keys("two").certificate.strip()]
    same = client.get(address).context["form"].initial
    other = provider_metadata(keys(), "https://other.example")
    page = client.post(address, same | {"metadata": other}).content.decode()
    assert "another entity ID: https://other.example" in page


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "Enter the address of the metadata"),
        ({"metadata": "<x/>"}, "an EntityDescriptor"),
        ({"metadata": "no XML"}, "not XML"),
        ({"metadata": "<!DOCTYPE x [<!ENTITY y 'z'>]><x>&y;</x>"}, "document type"),
        (
            {"metadata": provider_metadata(keys(), sso_url="javascript:alert(1)")},
            "must begin with https://",
        ),
        ({"metadata": provider_metadata(keys("short", 1024))}, "2048"),
        ({"metadata": provider_metadata(keys(), entity_id="x" * 501)}, "at most 500"),
        ({"metadata_url": "https://id.acme.example/metadata"}, "Enter one line"),
        ({"metadata_url": "file:///etc/passwd", "issuer": ENTITY_ID}, "must begin with https://"),
        (SINGLE, "certificate"),
        (SINGLE | {"certificates": "no certificate"}, "as PEM"),
        (SINGLE | {"certificates": keys().private.decode()}, "as PEM"),
        (SINGLE | {"certificates": keys().certificate, "metadata_url": SSO_URL}, "or the metadata"),
        (
            SINGLE | {"certificates": keys().certificate, "sso_url": "//id.example"},
            "must begin with https://",
        ),
    ],
    ids=lambda value: str(value)[-24:],
)
def test_wrong_value_is_explained(acme: Cast, given: dict[str, str], text: str) -> None:
    page = signed_in(acme.admin).post(new_page(), FORM | given)
    assert page.status_code == 200
    assert text in page.content.decode().replace(",", "")
    assert stored(acme) == []


def test_unknown_protocol_is_not_found(acme: Cast) -> None:
    assert signed_in(acme.admin).get(f"{reverse('provider_new')}?kind=ldap").status_code == 404


def test_metadata_is_read_at_each_sign_in(acme: Cast, host: HostileProvider) -> None:
    given = {"metadata_url": f"{host.issuer}{METADATA}", "issuer": ENTITY_ID}
    signed_in(acme.admin).post(new_page(), FORM | given)
    (row,) = stored(acme)
    provider = SamlProvider()
    for name in ("one", "two"):
        host.bodies[METADATA] = provider_metadata(keys(name)).encode()
        provider.keys = keys(name)
        client = Client()
        brought = provider.answer(leave(client, row))
        assert come_back_by_saml(client, row, brought)["Location"] == reverse("home")
    provider.keys = keys("one")
    client = Client()
    come_back_by_saml(client, row, provider.answer(leave(client, row)))
    assert "Signature validation failed" in last_refusal(row)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (provider_metadata(keys(), "https://evil.example").encode(), "another entity ID"),
        (provider_metadata(keys(), sso_url="ftp://id.example").encode(), "no usable"),
        (b"<x/>", "EntityDescriptor"),
        (b"", "not XML"),
        (b"<a>" * 300_000, "not XML"),
        (b" " * 2_000_000, "cannot be fetched"),
    ],
    ids=lambda value: str(value)[-24:],
)
def test_strange_metadata_sends_nobody_away(
    acme: Cast, host: HostileProvider, body: bytes, reason: str
) -> None:
    given = {"metadata_url": f"{host.issuer}{METADATA}", "issuer": ENTITY_ID}
    signed_in(acme.admin).post(new_page(), FORM | given)
    (row,) = stored(acme)
    host.bodies[METADATA] = body
    answer = Client().post(reverse("provider_start", args=[row.tenant_id, row.pk]))
    assert answer["Location"] == reverse("tenant_sign_in", args=[acme.tenant.slug])
    assert reason in last_refusal(row)


def test_metadata_is_not_fetched_from_where_no_operator_allows_it(
    acme: Cast, host: HostileProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "IDENTITY_ALLOW", [])
    given = {"metadata_url": f"{host.issuer}{METADATA}", "issuer": ENTITY_ID}
    signed_in(acme.admin).post(new_page(), FORM | given)
    (row,) = stored(acme)
    Client().post(reverse("provider_start", args=[row.tenant_id, row.pk]))
    assert "cannot be fetched" in last_refusal(row)


def test_own_metadata_names_this_server(row: IdentityProvider) -> None:
    address = reverse("provider_metadata", args=[row.tenant_id, row.pk])
    answer = Client().get(address)
    assert answer["Content-Type"] == "application/samlmetadata+xml"
    document = etree.fromstring(answer.content)
    assert document.get("entityID") == f"http://testserver{address}"
    names = {"md": "urn:oasis:names:tc:SAML:2.0:metadata"}
    (service,) = document.xpath("//md:AssertionConsumerService/@Location", namespaces=names)
    assert service == f"http://testserver{reverse('provider_acs', args=[row.tenant_id, row.pk])}"
    assert "true" in document.xpath("//md:SPSSODescriptor/@WantAssertionsSigned", namespaces=names)
    assert document.get("validUntil") is None


def test_routes_of_the_other_protocol_are_not_found(acme: Cast, row: IdentityProvider) -> None:
    ids = [row.tenant_id, row.pk]
    assert Client().get(reverse("provider_callback", args=ids)).status_code == 404
    made = program(acme.tenant, Scope.ADMIN).do(
        "identity-providers",
        {"name": "Other", "issuer": "https://id.example", "client_id": "tooltrail"},
    )
    ids = [row.tenant_id, made["id"]]
    assert Client().get(reverse("provider_metadata", args=ids)).status_code == 404
    assert Client().post(reverse("provider_acs", args=ids)).status_code == 404


def test_programs_manage_saml_providers(acme: Cast) -> None:
    api = program(acme.tenant, Scope.ADMIN)
    made = api.do("identity-providers", BODY | {"metadata": provider_metadata(keys())})
    assert (made["kind"], made["issuer"], made["sso_url"]) == ("saml", ENTITY_ID, SSO_URL)
    assert made["entity_id"].endswith(f"/{made['id']}/metadata")
    assert made["redirect_uri"].endswith(f"/{made['id']}/acs")
    assert (made["subject_claim"], made["client_id"]) == ("NameID", "")
    address = f"identity-providers/{made['id']}"
    same = BODY | {name: made[name] for name in ("issuer", "sso_url", "certificates")}
    api.do(address, same, "PUT")
    changed = api.do(address, {**same, "default_role": "viewer"}, "PUT")
    assert changed["default_role"] == "viewer"
    with tenant_scope(acme.tenant.id):
        verbs = Action.objects.filter(tenant=acme.tenant, verb__startswith="provider.")
        assert [one.verb for one in verbs.order_by("at", "id")] == [
            "provider.create",
            "provider.change",
        ]


def test_file_of_configuration_makes_the_same_provider_again(acme: Cast, tmp_path: Path) -> None:
    metadata = provider_metadata(keys())
    wanted_provider = {**BODY, "metadata": metadata, "subject_claim": "uid"}

    def apply(provider: dict[str, Any]) -> list[str]:
        sections = {"slug": acme.tenant.slug, "identity_providers": [provider]}
        return changes_of(write_config(tmp_path, sections))

    assert apply(wanted_provider) == ["create identity provider Acme ID"]
    assert apply(wanted_provider) == []
    (exported,) = export(acme.tenant.slug)["identity_providers"]
    assert (exported["kind"], exported["subject_claim"]) == ("saml", "uid")
    assert apply(exported) == []


def test_without_the_extra_the_page_names_it(
    acme: Cast, row: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tenants.identity import pages

    for module in (wanted, saml_provider, pages):
        monkeypatch.setattr(module, "is_installed", lambda: False)
    client = signed_in(acme.admin)
    assert MISSING in client.get(new_page()).content.decode()
    page = client.post(new_page(), FORM | {"metadata": provider_metadata(keys())})
    assert MISSING in page.content.decode()
    Client().post(reverse("provider_start", args=[row.tenant_id, row.pk]))
    assert last_refusal(row) == MISSING
