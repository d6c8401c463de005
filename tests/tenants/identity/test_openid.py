"""OpenID Connect against a provider that lies: nonce, state, signature, issuer, audience, times."""

import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from django.conf import settings
from django.test import Client
from django.urls import reverse

from tenants.models import IdentityProvider, User
from tests.support.factories import Cast
from tests.support.identity.hostile_provider import HostileProvider
from tests.support.identity.visits import (
    come_back,
    last_refusal,
    leave,
    members_by,
    sign_in_with,
)

HOME = reverse("home")


def test_honest_provider_makes_a_member(
    acme: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    client = Client()
    address = leave(client, row, next="/calls/")
    assert address.startswith(f"{provider.issuer}/authorize?")
    answer = come_back(client, row, provider.authorize(address))
    assert (answer.status_code, answer["Location"]) == (302, "/calls/")
    assert client.get("/calls/").status_code == 200
    name = f"ada@{acme.tenant.slug}"
    assert members_by(row) == {name: "viewer"}
    user = User.objects.get(username=name)
    assert not user.has_usable_password()
    assert user.email == ""
    (sent,) = provider.exchanged
    assert sent["client_secret"] == ["the client's"]
    assert len(sent["code_verifier"][0]) == 128


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"nonce": "another"}, "another sign-in"),
        ({"nonce": None}, "another sign-in"),
        ({"iss": "https://id.evil.example"}, "issuer"),
        ({"aud": "another client"}, "udience"),
        ({"aud": ["tooltrail", "another"]}, "another client"),
        ({"aud": ["tooltrail", "another"], "azp": "another"}, "another client"),
        ({"azp": "another"}, "another client"),
        ({"exp": 1_000_000_000}, "expired"),
        ({"exp": None}, "exp"),
        ({"iat": None}, "iat"),
        ({"iat": 99_999_999_999}, "iat"),
        ({"nbf": 99_999_999_999}, "nbf"),
        ({"sub": None}, "sub"),
        ({"sub": ""}, "subject"),
        ({"sub": "x" * 192}, "subject"),
        ({"sub": "a\0b"}, "subject"),
        ({"sub": 7}, "ub"),
    ],
    ids=str,
)
def test_wrong_id_token_is_refused(
    row: IdentityProvider, provider: HostileProvider, claims: dict[str, Any], reason: str
) -> None:
    provider.claims = claims
    client = Client()
    answer = sign_in_with(client, row, provider)
    assert answer.status_code == 302
    assert answer["Location"] == reverse("tenant_sign_in", args=[row.tenant.slug])
    assert client.get(HOME).status_code == 302
    assert members_by(row) == {}
    assert reason in last_refusal(row)


def test_clock_may_be_off_a_minute(row: IdentityProvider, provider: HostileProvider) -> None:
    now = int(time.time())
    provider.claims = {"exp": now - 5, "iat": now + 5}
    assert sign_in_with(Client(), row, provider)["Location"] == HOME


def unsigned(claims: dict[str, Any], provider: HostileProvider) -> str:
    return jwt.encode(claims, "", "none", headers={"kid": provider.key_id})


def by_the_secret(claims: dict[str, Any], provider: HostileProvider) -> str:
    secret = "the client's".ljust(32)
    return jwt.encode(claims, secret, "HS256", headers={"kid": provider.key_id})


def by_another_key(claims: dict[str, Any], provider: HostileProvider) -> str:
    other = generate_private_key(SECP256R1())
    return jwt.encode(claims, other, "ES256", headers={"kid": provider.key_id})


def by_an_unknown_key(claims: dict[str, Any], provider: HostileProvider) -> str:
    return jwt.encode(claims, provider.key, "ES256", headers={"kid": "unknown"})


def altered(claims: dict[str, Any], provider: HostileProvider) -> str:
    right = jwt.encode(claims, provider.key, "ES256", headers={"kid": provider.key_id})
    other = jwt.encode(claims | {"sub": "eve"}, provider.key, "ES256")
    return ".".join([right.split(".")[0], other.split(".")[1], right.split(".")[2]])


@pytest.mark.parametrize(
    "sign",
    [unsigned, by_the_secret, by_another_key, by_an_unknown_key, altered, lambda *_: "no token"],
)
def test_wrong_signature_is_refused(
    row: IdentityProvider, provider: HostileProvider, sign: Any
) -> None:
    provider.sign = sign
    client = Client()
    sign_in_with(client, row, provider)
    assert client.get(HOME).status_code == 302
    assert members_by(row) == {}
    assert "id_token" in last_refusal(row) or "key" in last_refusal(row)


def test_published_secret_key_signs_nothing(
    row: IdentityProvider, provider: HostileProvider
) -> None:
    shared = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2U"
    key = {"kty": "oct", "k": shared, "kid": "one", "alg": "HS256"}
    provider.bodies["/jwks"] = json.dumps({"keys": [key]}).encode()
    provider.sign = lambda claims, _: jwt.encode(
        claims, jwt.PyJWK(key).key, "HS256", headers={"kid": "one"}
    )
    sign_in_with(Client(), row, provider)
    assert members_by(row) == {}


def test_key_rotation_needs_nothing(row: IdentityProvider, provider: HostileProvider) -> None:
    assert sign_in_with(Client(), row, provider)["Location"] == HOME
    provider.key, provider.key_id = generate_private_key(SECP256R1()), "two"
    assert sign_in_with(Client(), row, provider)["Location"] == HOME
    assert len(members_by(row)) == 1


def test_answer_counts_once_and_in_its_own_browser(
    row: IdentityProvider, provider: HostileProvider
) -> None:
    client = Client()
    brought = provider.authorize(leave(client, row))
    assert come_back(Client(), row, brought)["Location"] != HOME
    assert come_back(client, row, brought | {"state": "another"})["Location"] != HOME
    assert provider.exchanged == []
    assert come_back(client, row, brought)["Location"] == HOME
    client.post(reverse("account_logout"))
    assert come_back(client, row, brought)["Location"] != HOME
    assert client.get(HOME).status_code == 302
    assert len(provider.exchanged) == 1


def test_cancelled_sign_in_leads_back(row: IdentityProvider, provider: HostileProvider) -> None:
    client = Client()
    state = provider.authorize(leave(client, row))["state"]
    answer = come_back(client, row, {"state": state, "error": "access_denied"})
    assert "cancelled" in client.get(answer["Location"]).content.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "body"),
    [
        *(
            (path, body)
            for path in ("/.well-known/openid-configuration", "/jwks", "/token")
            for body in (
                b"",
                b"[]",
                b"null",
                b"{}",
                b'"x"',
                b"<html>",
                b"\xff" * 9,
                b"[1]" * 500_000,
            )
        ),
        ("/jwks", b'{"keys": [7, {}, {"kty": "EC"}]}'),
        ("/jwks", b'{"keys": 7}'),
        ("/token", b'{"access_token": 7, "id_token": 7}'),
        ("/token", b'{"access_token": "x", "id_token": "a.b.c", "expires_in": "soon"}'),
    ],
    ids=lambda value: str(value)[:40],
)
def test_strange_answer_is_explained(
    row: IdentityProvider, provider: HostileProvider, path: str, body: bytes
) -> None:
    client = Client()
    address = leave(client, row)
    provider.bodies[path] = body
    answer = come_back(client, row, provider.authorize(address))
    assert answer["Location"] == reverse("tenant_sign_in", args=[row.tenant.slug])
    page = client.get(answer["Location"])
    assert "failed" in page.content.decode() or "does not work" in page.content.decode()
    assert members_by(row) == {}
    assert last_refusal(row)


@pytest.mark.parametrize(
    "discovery",
    [
        {"issuer": "https://id.evil.example"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": None},
        {"token_endpoint": "https://user@id.example/"},
        {"jwks_uri": 7},
        {"userinfo_endpoint": "ftp://id.example/"},
    ],
    ids=str,
)
def test_strange_discovery_document_sends_nobody_away(
    row: IdentityProvider, provider: HostileProvider, discovery: dict[str, Any]
) -> None:
    provider.discovery = discovery
    client = Client()
    answer = client.post(reverse("provider_start", args=[row.tenant_id, row.pk]))
    assert answer["Location"] == reverse("tenant_sign_in", args=[row.tenant.slug])
    assert "discovery document" in last_refusal(row)


def test_groups_of_userinfo_count_only_of_the_same_person(
    row: IdentityProvider, provider: HostileProvider
) -> None:
    provider.claims = {"groups": None}
    provider.userinfo = {"sub": "ada", "groups": ["platform"]}
    assert sign_in_with(Client(), row, provider)["Location"] == HOME
    assert list(members_by(row).values()) == ["editor"]
    provider.userinfo = {"sub": "eve", "groups": ["platform"]}
    assert sign_in_with(Client(), row, provider)["Location"] != HOME
    assert "another person" in last_refusal(row)


def test_address_that_no_operator_opened_is_not_connected_to(
    row: IdentityProvider, provider: HostileProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client()
    brought = provider.authorize(leave(client, row))
    monkeypatch.setattr(settings, "IDENTITY_ALLOW", [])
    assert come_back(client, row, brought)["Location"] != HOME
    assert provider.exchanged == []
    answer = client.post(reverse("provider_start", args=[row.tenant_id, row.pk]))
    assert answer.status_code == 302
    assert "cannot be fetched" in last_refusal(row)
