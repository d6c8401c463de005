"""SAML against a provider that lies in what it signs: audience, addresses, times, requests."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse

from tenants.models import IdentityProvider, User
from tests.support.factories import Cast
from tests.support.identity.saml_provider import SamlProvider
from tests.support.identity.visits import come_back_by_saml, last_refusal, leave, members_by

HOME = reverse("home")


def sign_in_with(client: Client, row: IdentityProvider, provider: SamlProvider) -> Any:
    return come_back_by_saml(client, row, provider.answer(leave(client, row)))


def refused(client: Client, row: IdentityProvider, answer: Any) -> str:
    """The reason of a refusal, which let nobody in."""
    assert answer.status_code == 302
    assert answer["Location"] == reverse("tenant_sign_in", args=[row.tenant.slug])
    assert client.get(HOME).status_code == 302
    assert members_by(row) == {}
    assert not User.objects.filter(username__endswith=f"@{row.tenant.slug}").exists()
    return last_refusal(row)


def test_honest_provider_makes_a_member(
    acme: Cast, row: IdentityProvider, provider: SamlProvider
) -> None:
    client = Client()
    brought = provider.answer(leave(client, row, next="/calls/"))
    answer = come_back_by_saml(client, row, brought)
    assert (answer.status_code, answer["Location"]) == (302, "/calls/")
    assert client.get("/calls/").status_code == 200
    name = f"ada@{acme.tenant.slug}"
    assert members_by(row) == {name: "viewer"}
    user = User.objects.get(username=name)
    assert not user.has_usable_password()
    assert user.email == ""


def test_groups_are_read_again_at_each_sign_in(
    row: IdentityProvider, provider: SamlProvider
) -> None:
    name = f"ada@{row.tenant.slug}"
    first = Client()
    sign_in_with(first, row, provider)
    provider.groups = ("platform", "staff")
    assert sign_in_with(Client(), row, provider)["Location"] == HOME
    assert members_by(row) == {name: "editor"}
    provider.groups = ("others",)
    sign_in_with(Client(), row, provider)
    assert members_by(row) == {}
    assert "None of your groups" in last_refusal(row)
    assert first.get(HOME)["Location"].startswith(reverse("account_login"))


def test_our_page_sends_a_response_of_another_site_once_more(
    row: IdentityProvider, provider: SamlProvider
) -> None:
    """A browser sends no cookie with a form of the provider's page."""
    client = Client(enforce_csrf_checks=True)
    other = Client(enforce_csrf_checks=True)
    brought = provider.answer(
        other.post(
            reverse("provider_start", args=[row.tenant_id, row.pk]),
            {"csrfmiddlewaretoken": _token(other, row)},
        ).context["address"]
    )
    address = reverse("provider_acs", args=[row.tenant_id, row.pk])
    page = client.post(address, brought)
    assert page.status_code == 200
    assert not page.cookies  # they would replace those of the sign-in
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page.content.decode()))
    assert fields == {**brought, "again": "1"}
    assert refused(client, row, client.post(address, fields)) == (
        "The response answers no sign-in that began in this browser."
    )
    assert other.post(address, fields)["Location"] == HOME


def _token(client: Client, row: IdentityProvider) -> str:
    page = client.get(reverse("tenant_sign_in", args=[row.tenant.slug])).content.decode()
    token = re.search(r'csrfmiddlewaretoken" value="(\w+)"', page)
    assert token is not None
    return token[1]


def test_hostile_text_stays_text_on_that_page(row: IdentityProvider) -> None:
    address = reverse("provider_acs", args=[row.tenant_id, row.pk])
    sent = {"SAMLResponse": '"><script>alert(1)</script>', "RelayState": '"><img src=x>'}
    page = Client().post(address, sent).content.decode()
    assert "<script>alert" not in page
    assert "<img" not in page


def test_response_counts_once(row: IdentityProvider, provider: SamlProvider) -> None:
    client = Client()
    brought = provider.answer(leave(client, row))
    assert come_back_by_saml(client, row, brought)["Location"] == HOME
    client.post(reverse("account_logout"))
    come_back_by_saml(client, row, brought)
    assert "answers no sign-in" in last_refusal(row)
    assert client.get(HOME).status_code == 302


def test_assertion_counts_once_even_if_the_request_is_open_again(
    row: IdentityProvider, provider: SamlProvider
) -> None:
    """As when two of the same responses arrive at once."""
    client = Client()
    brought = provider.answer(leave(client, row))
    stored = Session.objects.get(session_key=client.cookies["sessionid"].value)
    assert come_back_by_saml(client, row, brought)["Location"] == HOME
    again = Client()
    stored.save()
    again.cookies["sessionid"] = stored.session_key
    come_back_by_saml(again, row, brought)
    assert last_refusal(row) == "The assertion was used before."
    assert again.get(HOME).status_code == 302


def test_address_in_the_relay_state_leads_nowhere(
    row: IdentityProvider, provider: SamlProvider
) -> None:
    client = Client()
    brought = provider.answer(leave(client, row))
    brought["RelayState"] = "https://evil.example/"
    assert "answers no sign-in" in refused(client, row, come_back_by_saml(client, row, brought))
    leading = leave(client, row, next="https://evil.example/")
    assert come_back_by_saml(client, row, provider.answer(leading))["Location"] == HOME


def instant(seconds: int) -> str:
    """So many seconds from now."""
    return f"{datetime.now(UTC) + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def with_attribute(element: str, name: str, value: str | int | None) -> Callable[[str], str]:
    """Replaces an attribute of all elements with this name, or removes it. A number: an instant."""

    def change(xml: str) -> str:
        given = instant(value) if isinstance(value, int) else value
        text = "" if given is None else f' {name}="{given}"'
        changed, count = re.subn(rf'(<{element}\b[^>]*?) {name}="[^"]*"', rf"\1{text}", xml)
        assert count, element
        return changed

    return change


def replaced(pattern: str, by: str) -> Callable[[str], str]:
    """Replaces what a pattern finds."""

    def change(xml: str) -> str:
        changed, count = re.subn(pattern, by, xml, flags=re.DOTALL)
        assert count, pattern
        return changed

    return change


_ROOT, _DATA, _WHEN = "samlp:Response", "saml:SubjectConfirmationData", "saml:Conditions"
_AUDIENCE = "<saml:AudienceRestriction>.*</saml:AudienceRestriction>"
_OTHER = (
    "<saml:AudienceRestriction><saml:Audience>urn:other</saml:Audience></saml:AudienceRestriction>"
)
_MADE = "saml:AuthnStatement"
_EVIL = "https://evil.example/"
WRONG: dict[str, tuple[Callable[[str], str], str]] = {
    "other request": (with_attribute(_DATA, "InResponseTo", "_b"), "valid SubjectConfirmation"),
    "no request": (with_attribute(_DATA, "InResponseTo", None), "confirms nobody"),
    "response to another": (with_attribute(_ROOT, "InResponseTo", "_b"), "does not match the ID"),
    "unsolicited": (with_attribute(_ROOT, "InResponseTo", None), "InResponseTo"),
    "other recipient": (with_attribute(_DATA, "Recipient", _EVIL), "SubjectConfirmation"),
    "longer recipient": (replaced(r'(Recipient="[^"]*)"', r'\1/more"'), "confirms nobody"),
    "no recipient": (with_attribute(_DATA, "Recipient", None), "confirms nobody"),
    "no end": (with_attribute(_DATA, "NotOnOrAfter", None), "confirms nobody"),
    "other destination": (with_attribute(_ROOT, "Destination", _EVIL), "instead of"),
    "longer destination": (replaced(r'(Destination="[^"]*)"', r'\1/more"'), "Destination"),
    "other audience": (replaced("<saml:Audience>[^<]*", f"<saml:Audience>{_EVIL}"), "audience"),
    "no audience": (replaced(_AUDIENCE, ""), "names no audience"),
    "two audiences": (replaced(f"({_AUDIENCE})", rf"\1{_OTHER}"), "another audience"),
    "other issuer": (replaced("<saml:Issuer>[^<]*", f"<saml:Issuer>{_EVIL}"), "issuer"),
    "expired": (with_attribute(_WHEN, "NotOnOrAfter", -120), "expired"),
    "confirmed before": (with_attribute(_DATA, "NotOnOrAfter", -120), "SubjectConfirmation"),
    "too early": (with_attribute(_WHEN, "NotBefore", 120), "not valid yet"),
    "of tomorrow": (with_attribute(_MADE, "AuthnInstant", 86_400), "not valid yet"),
    "session over": (
        replaced(f"(<{_MADE}) ", r'\1 SessionNotOnOrAfter="2026-01-01T00:00:00Z" '),
        "expired",
    ),
    "strange year": (with_attribute(_WHEN, "NotOnOrAfter", "9999999-01-01T00:00:00Z"), "refused"),
    "no instant": (with_attribute(_WHEN, "NotOnOrAfter", "soon"), "refused"),
    "other confirmation": (replaced("cm:bearer", "cm:holder-of-key"), "SubjectConfirmation"),
    "transient name": (replaced("format:persistent", "format:transient"), "transient"),
    "no name": (replaced("<saml:NameID.*</saml:NameID>", ""), "refused"),
    "empty name": (replaced(">ada<", "><"), "refused"),
    "long name": (replaced(">ada<", f">{'x' * 192}<"), "cannot be stored"),
    "no sign-in": (replaced(f"<{_MADE}.*</{_MADE}>", ""), "AuthnStatement"),
    "failure": (replaced("status:Success", "status:Responder"), "The provider refuses"),
    "not by the schema": (replaced("saml:Attribute ", "saml:Attribute Odd='1' "), "schema"),
}


@pytest.mark.slow
@pytest.mark.generated(6, kind="case")
@pytest.mark.parametrize("case", WRONG)
def test_wrong_assertion_is_refused(
    row: IdentityProvider, provider: SamlProvider, case: str
) -> None:
    provider.before, reason = WRONG[case]
    client = Client()
    assert reason in refused(client, row, sign_in_with(client, row, provider))


def test_clock_may_be_off_a_minute(row: IdentityProvider, provider: SamlProvider) -> None:
    def change(xml: str) -> str:
        late = with_attribute(_WHEN, "NotOnOrAfter", -20)
        early = with_attribute(_MADE, "AuthnInstant", 20)
        return early(late(xml))

    provider.before = change
    assert sign_in_with(Client(), row, provider)["Location"] == HOME
