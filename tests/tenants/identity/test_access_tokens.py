"""Access tokens that are not accepted at `/mcp/<tenant>`, and those of providers that are."""

import base64
import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from django.test import Client

from tenants.identity.access_tokens import TOKEN_MAX
from tenants.identity.published import KEPT_KEYS
from tenants.models import IdentityProvider, Role
from tests.support.factories import Cast
from tests.support.identity.access_tokens import (
    access_token,
    agent_with,
    claims_of,
    let_clients_in,
    make_member,
    resource_of,
)
from tests.support.identity.hostile_provider import CLIENT, HostileProvider
from tests.support.mcp_agent import problem_of


@pytest.fixture(autouse=True)
def _without_kept_keys() -> None:
    KEPT_KEYS.forget()


@pytest.fixture
def row(acme: Cast, provider: HostileProvider) -> IdentityProvider:
    """Acme's provider, with the member `ada`."""
    one = let_clients_in(acme.tenant, provider)
    make_member(one, "ada", Role.EDITOR)
    return one


def answer_to(token: str, cast: Cast) -> Any:
    return agent_with(token, cast.tenant).send("tools/list")


def test_honest_token_is_accepted(
    acme: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    agent = agent_with(access_token(provider, acme.tenant), acme.tenant)
    assert len(agent.ask("tools/list")["tools"]) > 10
    assert agent.use("search_calls")["untrusted"]["items"] == []


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"aud": "http://testserver/mcp"}, "not for the audience"),
        ({"aud": "http://testserver/mcp/another"}, "not for the audience"),
        ({"aud": CLIENT}, "not for the audience"),
        ({"aud": []}, "aud"),
        ({"aud": None}, "aud"),
        ({"iss": "https://id.evil.example"}, "another issuer"),
        ({"iss": 7}, "issuer"),
        ({"iss": None}, "issuer"),
        ({"exp": 1_000_000_000}, "expired"),
        ({"exp": None}, "exp"),
        ({"iat": None}, "iat"),
        ({"iat": 99_999_999_999}, "iat"),
        ({"nbf": 99_999_999_999}, "nbf"),
        ({"sub": None}, "sub"),
        ({"sub": 7}, "ub"),
        ({"sub": ""}, "sub"),
        ({"sub": "a\0b"}, "sub"),
        ({"sub": "x" * 192}, "sub"),
        ({"auth_time": "yesterday"}, "auth_time"),
        ({"auth_time": True}, "auth_time"),
        ({"cnf": {"jkt": "x"}}, "proof"),
    ],
    ids=str,
)
def test_wrong_claim_is_refused(
    acme: Cast,
    row: IdentityProvider,
    provider: HostileProvider,
    claims: dict[str, Any],
    reason: str,
) -> None:
    refused = answer_to(access_token(provider, acme.tenant, **claims), acme)
    assert refused.status_code == 401
    assert problem_of(refused)["code"] == "invalid_token"
    assert reason in problem_of(refused)["detail"]
    challenge = refused["WWW-Authenticate"]
    assert 'error="invalid_token"' in challenge
    assert challenge.isascii()
    assert challenge.count('"') == 2 * challenge.count('="')


@pytest.mark.parametrize(
    ("typ", "claims", "is_accepted"),
    [
        ("at+jwt", {}, True),
        ("application/AT+JWT", {}, True),
        ("JWT", {}, True),
        (None, {}, True),
        ("JWT", {"typ": "Bearer"}, True),
        ("JWT", {"typ": "ID"}, False),
        ("JWT", {"typ": "Refresh"}, False),
        ("JWT", {"nonce": "x"}, False),
        ("JWT", {"at_hash": "x"}, False),
        ("logout+jwt", {}, False),
        ("dpop+jwt", {}, False),
        ("secevent+jwt", {}, False),
        ("id_token+jwt", {}, False),
    ],
)
def test_only_access_tokens_are_accepted(
    acme: Cast,
    row: IdentityProvider,
    provider: HostileProvider,
    typ: str | None,
    claims: dict[str, Any],
    is_accepted: bool,
) -> None:
    answer = answer_to(access_token(provider, acme.tenant, kind=typ, **claims), acme)
    assert answer.status_code == (200 if is_accepted else 401), answer.content


def unsigned(provider: HostileProvider, cast: Cast) -> str:
    return jwt.encode(claims_of(provider, cast.tenant), "", "none", headers={"typ": "at+jwt"})


def without_signature(provider: HostileProvider, cast: Cast) -> str:
    return access_token(provider, cast.tenant).rpartition(".")[0] + "."


def hs256_with_the_public_key(provider: HostileProvider, cast: Cast) -> str:
    """What a library that takes the algorithm from the token would accept."""
    public = provider.key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    header = {"alg": "HS256", "typ": "at+jwt", "kid": provider.key_id}
    parts = [header, claims_of(provider, cast.tenant)]
    signed = b".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts
    )
    import hmac

    mac = hmac.digest(public, signed, "sha256")
    return (signed + b"." + base64.urlsafe_b64encode(mac).rstrip(b"=")).decode()


def by_another_key(provider: HostileProvider, cast: Cast) -> str:
    headers = {"kid": provider.key_id, "typ": "at+jwt"}
    other = generate_private_key(SECP256R1())
    return jwt.encode(claims_of(provider, cast.tenant), other, "ES256", headers=headers)


def by_an_unknown_key(provider: HostileProvider, cast: Cast) -> str:
    return access_token(provider, cast.tenant, header={"kid": "unknown"})


def with_its_own_key(provider: HostileProvider, cast: Cast) -> str:
    """The header brings a key, and says where to fetch one."""
    other = generate_private_key(SECP256R1())
    published = jwt.algorithms.ECAlgorithm.to_jwk(other.public_key(), as_dict=True)
    headers = {"jwk": published, "jku": "https://id.evil.example/jwks", "typ": "at+jwt"}
    return jwt.encode(claims_of(provider, cast.tenant), other, "ES256", headers=headers)


def altered(provider: HostileProvider, cast: Cast) -> str:
    right = access_token(provider, cast.tenant).split(".")
    other = access_token(provider, cast.tenant, sub="eve").split(".")
    return ".".join([right[0], other[1], right[2]])


def critical(provider: HostileProvider, cast: Cast) -> str:
    return access_token(provider, cast.tenant, header={"crit": ["x"], "x": 1})


def id_token(provider: HostileProvider, cast: Cast) -> str:
    provider.nonces["code"] = "x"
    return provider.id_token("code")


def long(provider: HostileProvider, cast: Cast) -> str:
    return access_token(provider, cast.tenant, more="x" * TOKEN_MAX)


def nested(provider: HostileProvider, cast: Cast) -> str:
    claims = base64.urlsafe_b64encode(b"[" * 5_000).rstrip(b"=").decode()
    return access_token(provider, cast.tenant).split(".")[0] + f".{claims}.x"


@pytest.mark.parametrize(
    "make",
    [
        *(unsigned, without_signature, hs256_with_the_public_key, by_another_key),
        *(by_an_unknown_key, with_its_own_key, altered, critical, id_token, long, nested),
        *(lambda *_: "x", lambda *_: "a.b.c", lambda *_: "\u00e9", lambda *_: "e30.e30.e30"),
    ],
)
def test_wrong_signature_is_refused(
    acme: Cast, row: IdentityProvider, provider: HostileProvider, make: Any
) -> None:
    answer_to(access_token(provider, acme.tenant), acme)  # the keys are kept from now on
    refused = answer_to(make(provider, acme), acme)
    assert refused.status_code == 401, refused.content
    assert problem_of(refused)["code"] == "invalid_token"


def test_token_of_another_tenant_is_refused(
    acme: Cast, globex: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    """Both tenants have the same company's provider, and ada is a member of both."""
    other = let_clients_in(globex.tenant, provider)
    make_member(other, "ada", Role.VIEWER)
    for cast, foreign in ((acme, globex), (globex, acme)):
        token = access_token(provider, cast.tenant)
        assert answer_to(token, cast).status_code == 200
        assert answer_to(token, foreign).status_code == 401


def test_clock_may_be_off_a_minute(
    acme: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    now = int(time.time())
    cases: list[tuple[dict[str, Any], int]] = [
        ({"exp": now - 30, "iat": now - 300}, 200),
        ({"exp": now - 90, "iat": now - 300}, 401),
        ({"iat": now + 30}, 200),
        ({"iat": now + 90}, 401),
    ]
    for claims, status in cases:
        token = access_token(provider, acme.tenant, **claims)
        assert answer_to(token, acme).status_code == status, claims


def test_keys_and_tokens_are_not_taken_for_each_other(
    acme: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    token = access_token(provider, acme.tenant)
    agent = agent_with(token, acme.tenant)
    agent.path = "/mcp"
    assert agent.send("tools/list").status_code == 401
    api = Client().get("/api/v1/calls", headers={"Authorization": f"Bearer {token}"})
    assert api.status_code == 401
    with_key = agent_with("", acme.tenant)
    refused = with_key.send("tools/list")
    assert refused.status_code == 401
    assert "This is an API key" in problem_of(refused)["detail"]
    by_header = Client().post(
        f"/mcp/{acme.tenant.slug}",
        "{}",
        content_type="application/json",
        headers={"X-API-Key": with_key.key},
    )
    assert problem_of(by_header)["code"] == "missing_token"


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"scope": "read"}, 200),
        ({"scope": "openid read profile"}, 200),
        ({"scope": "payloads"}, 403),
        ({"scope": ""}, 403),
        ({"scope": "reader"}, 403),
        ({"scope": None}, 403),
        ({"scope": 7}, 403),
        ({"scope": None, "scp": "read"}, 200),
        ({"scope": None, "scp": ["read", 7, None]}, 200),
        ({"scope": None, "scp": {"read": 1}}, 403),
        ({"scope": "openid", "scp": "read"}, 403),
    ],
    ids=str,
)
def test_scope_is_needed(
    acme: Cast,
    row: IdentityProvider,
    provider: HostileProvider,
    claims: dict[str, Any],
    status: int,
) -> None:
    answer = answer_to(access_token(provider, acme.tenant, **claims), acme)
    assert answer.status_code == status
    if status == 403:
        assert problem_of(answer)["code"] == "insufficient_scope"
        assert 'error="insufficient_scope"' in answer["WWW-Authenticate"]
        assert 'scope="read payloads"' in answer["WWW-Authenticate"]


@pytest.mark.parametrize(
    ("settings", "claims"),
    [
        (  # Entra ID: audience is the application's id, `sub` differs for each application
            {
                "subject_claim": "oid",
                "mcp_audience": "7c1f0b7e-0000-4000-8000-000000000001",
                "mcp_scope_prefix": "http://testserver/mcp/x/",
            },
            {
                "aud": "7c1f0b7e-0000-4000-8000-000000000001",
                "sub": "pairwise",
                "oid": "ada",
                "scope": None,
                "scp": "payloads read",
            },
        ),
        (  # Okta: `sub` is the login, `uid` what the id_token has as `sub`
            {"mcp_person_claim": "uid"},
            {"sub": "ada@example.com", "uid": "ada", "scope": None, "scp": ["read"]},
        ),
        (  # Keycloak with a prefix, and the audience of another service beside ours
            {"mcp_scope_prefix": "tooltrail:"},
            {"typ": "Bearer", "scope": "openid tooltrail:read"},
        ),
    ],
    ids=["entra", "okta", "keycloak"],
)
def test_tokens_of_providers_with_other_habits(
    acme: Cast, provider: HostileProvider, settings: dict[str, Any], claims: dict[str, Any]
) -> None:
    row = let_clients_in(acme.tenant, provider, **settings)
    make_member(row, "ada", Role.VIEWER)
    given = {"aud": [resource_of(acme.tenant), "account"]} | claims
    token = access_token(provider, acme.tenant, kind="JWT", **given)
    assert answer_to(token, acme).status_code == 200
    others = access_token(provider, acme.tenant, kind="JWT", **given | {"aud": "other"})
    assert answer_to(others, acme).status_code == 401
    if "mcp_audience" in settings:  # then it is the only one
        ours = access_token(provider, acme.tenant, **given | {"aud": resource_of(acme.tenant)})
        assert answer_to(ours, acme).status_code == 401
