"""`/mcp/<tenant>` as a protected resource: its metadata, and which members get in."""

import json
import time
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from django.conf import settings
from django.test import Client

from tenants.identity import published
from tenants.identity.providers import switch_provider
from tenants.identity.published import KEPT_KEYS
from tenants.models import Action, IdentityProvider, Membership, Role, Tenant, User, provider_key
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.identity.access_tokens import (
    access_token,
    agent_with,
    let_clients_in,
    make_member,
    resource_of,
)
from tests.support.identity.hostile_provider import HostileProvider
from tests.support.identity.visits import sign_in_with
from tests.support.mcp_agent import problem_of


@pytest.fixture(autouse=True)
def _without_kept_keys() -> None:
    KEPT_KEYS.forget()


@pytest.fixture
def row(acme: Cast, provider: HostileProvider) -> IdentityProvider:
    """Acme's provider, which lets MCP clients in."""
    return let_clients_in(acme.tenant, provider)


@pytest.fixture
def ada(row: IdentityProvider) -> User:
    """A member by this provider."""
    return make_member(row, "ada", Role.EDITOR)


def metadata(tenant: Tenant) -> Any:
    return Client().get(f"/.well-known/oauth-protected-resource/mcp/{tenant.slug}")


def ask(cast: Cast, provider: HostileProvider, **claims: Any) -> Any:
    return agent_with(access_token(provider, cast.tenant, **claims), cast.tenant).send("tools/list")


def refusals(cast: Cast) -> list[tuple[str, str]]:
    with tenant_scope(cast.tenant.pk):
        found = Action.objects.filter(tenant=cast.tenant, verb="session.refuse")
        return [(one.subject, one.details["reason"]) for one in found.order_by("at", "id")]


def test_metadata_and_challenge_lead_to_the_provider(
    acme: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    unsigned_in = Client().post(f"/mcp/{acme.tenant.slug}", "{}", content_type="application/json")
    assert unsigned_in.status_code == 401
    where = f"http://testserver/.well-known/oauth-protected-resource/mcp/{acme.tenant.slug}"
    assert unsigned_in["WWW-Authenticate"] == (
        f'Bearer realm="tooltrail", scope="read payloads", resource_metadata="{where}"'
    )
    answer = metadata(acme.tenant)
    assert answer["Content-Type"] == "application/json"
    document = answer.json()
    assert document.pop("resource_documentation").startswith("http://testserver/docs/")
    assert document == {
        "resource": resource_of(acme.tenant),
        "resource_name": "Tooltrail",
        "authorization_servers": [provider.issuer],
        "scopes_supported": ["read", "payloads"],
        "bearer_methods_supported": ["header"],
    }
    assert acme.tenant.name not in answer.content.decode()
    got = Client().get(f"/mcp/{acme.tenant.slug}")
    assert (got.status_code, got["Allow"]) == (405, "POST")


def test_scopes_are_named_as_the_provider_names_them(acme: Cast, provider: HostileProvider) -> None:
    let_clients_in(acme.tenant, provider, mcp="read", mcp_scope_prefix="api://x/")
    assert metadata(acme.tenant).json()["scopes_supported"] == ["api://x/read"]


def test_nothing_tells_a_tenant_without_from_no_tenant(
    acme: Cast, globex: Cast, provider: HostileProvider
) -> None:
    let_clients_in(acme.tenant, provider, mcp="off")
    disabled = let_clients_in(globex.tenant, provider)
    with tenant_scope(globex.tenant.pk):
        switch_provider(globex.tenant, globex.admin, disabled, is_on=False)
    answers = []
    for slug in (acme.tenant.slug, globex.tenant.slug, "nowhere"):
        token = {"Authorization": f"Bearer {access_token(provider, acme.tenant)}"}
        sent = Client().post(f"/mcp/{slug}", "{}", content_type="application/json", headers=token)
        told = Client().get(f"/.well-known/oauth-protected-resource/mcp/{slug}")
        answers.append((sent.status_code, sent.content, told.status_code, told.content))
    assert len(set(answers)) == 1
    assert answers[0][0] == answers[0][2] == 404


def test_server_of_any_host_has_no_resource(
    acme: Cast, row: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An audience would be what a request says."""
    assert metadata(acme.tenant).status_code == 200
    monkeypatch.setattr(settings, "ALLOWED_HOSTS", ["*"])
    assert metadata(acme.tenant).status_code == 404


def test_token_for_another_name_of_the_server_is_refused(
    acme: Cast, ada: User, provider: HostileProvider
) -> None:
    token = access_token(provider, acme.tenant, aud=f"http://localhost/mcp/{acme.tenant.slug}")
    agent = agent_with(token, acme.tenant)
    assert agent.send("tools/list").status_code == 401
    assert agent.send("tools/list", Host="localhost").status_code == 200


def test_whoever_has_not_signed_in_here_does_not_get_in(
    acme: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    for _ in range(3):
        refused = ask(acme, provider, preferred_username="ada@example.com")
        assert refused.status_code == 403
        assert f"/sign-in/{acme.tenant.slug}" in problem_of(refused)["detail"]
        assert "WWW-Authenticate" not in refused, "another token would not help"
    [(name, reason)] = set(refusals(acme))
    assert (name, "Sign in once" in reason) == ("ada@example.com", True)
    assert len(refusals(acme)) <= 2, "once a minute"
    provider.claims = {"groups": ["any"]}
    with tenant_scope(acme.tenant.pk):
        IdentityProvider.objects.filter(tenant=acme.tenant).update(role_by_group={"any": "viewer"})
    sign_in_with(Client(), row, provider)
    assert ask(acme, provider).status_code == 200


def test_ended_membership_ends_access_at_once(
    acme: Cast, ada: User, provider: HostileProvider
) -> None:
    assert ask(acme, provider).status_code == 200
    with tenant_scope(acme.tenant.pk):
        Membership.objects.filter(tenant=acme.tenant, user=ada).delete()
    assert ask(acme, provider).status_code == 403


def test_disabled_provider_suspended_tenant_and_closed_account_end_access(
    acme: Cast, row: IdentityProvider, ada: User, provider: HostileProvider
) -> None:
    User.objects.filter(pk=ada.pk).update(is_active=False)
    assert ask(acme, provider).status_code == 403
    User.objects.filter(pk=ada.pk).update(is_active=True)
    Tenant.objects.filter(pk=acme.tenant.pk).update(suspended_at="2026-01-01T00:00Z")
    assert ask(acme, provider).status_code == 404
    Tenant.objects.filter(pk=acme.tenant.pk).update(suspended_at=None)
    with tenant_scope(acme.tenant.pk):
        switch_provider(acme.tenant, acme.admin, row, is_on=False)
    assert ask(acme, provider).status_code == 404
    with tenant_scope(acme.tenant.pk):
        switch_provider(acme.tenant, acme.admin, row, is_on=True)
    assert ask(acme, provider).status_code == 200


def test_invited_member_gets_in_after_connecting(
    acme: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    assert ask(acme, provider).status_code == 403
    key = provider_key(acme.tenant.pk, row.pk)
    SocialAccount.objects.create(user=acme.auditor, provider=key, uid="ada")
    assert ask(acme, provider).status_code == 200


def test_identity_of_another_provider_of_the_tenant_does_not_count(
    acme: Cast, ada: User, provider: HostileProvider
) -> None:
    """A membership that a provider made is open only to that provider."""
    other = let_clients_in(acme.tenant, provider, name="Other", issuer="https://id.other.example")
    make_member(other, "eve", Role.ADMIN)
    assert ask(acme, provider, sub="eve").status_code == 403
    key = provider_key(acme.tenant.pk, other.pk)
    with tenant_scope(acme.tenant.pk):
        Membership.objects.filter(tenant=acme.tenant, user=ada).update(
            identity_provider_id=other.pk
        )
    assert ask(acme, provider).status_code == 403
    assert not SocialAccount.objects.filter(provider=key, uid="ada").exists()


def test_tenant_asks_for_a_second_factor(
    acme: Cast, row: IdentityProvider, ada: User, provider: HostileProvider
) -> None:
    Tenant.objects.filter(pk=acme.tenant.pk).update(second_factor_roles=["editor"])
    refused = ask(acme, provider)
    assert (refused.status_code, "second factor" in problem_of(refused)["detail"]) == (403, True)
    with tenant_scope(acme.tenant.pk):
        IdentityProvider.objects.filter(tenant=acme.tenant).update(
            settings=row.settings | {"asks_second_factor": True}
        )
    assert ask(acme, provider).status_code == 200


def test_sso_only_tenant_is_open_to_its_provider(
    acme: Cast, ada: User, provider: HostileProvider
) -> None:
    Tenant.objects.filter(pk=acme.tenant.pk).update(sso_only=True)
    assert ask(acme, provider).status_code == 200


def test_sign_in_that_is_too_long_ago_must_be_repeated(
    acme: Cast, ada: User, provider: HostileProvider
) -> None:
    Tenant.objects.filter(pk=acme.tenant.pk).update(session_max_hours=1, session_idle_minutes=5)
    now = int(time.time())
    assert ask(acme, provider, auth_time=now - 3_000).status_code == 200
    refused = ask(acme, provider, auth_time=now - 3_700)
    assert (refused.status_code, problem_of(refused)["code"]) == (401, "invalid_token")
    assert "1 hours after sign-in" in problem_of(refused)["detail"]
    assert ask(acme, provider).status_code == 200, "without auth_time the instant of issue counts"


def test_one_issuer_lets_clients_in_by_one_provider_of_a_tenant(
    acme: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    with pytest.raises(ValueError, match="Another provider with this issuer"):
        let_clients_in(acme.tenant, provider, name="Again")
    let_clients_in(acme.tenant, provider, name="Again", mcp="off")


@pytest.fixture
def fetched(provider: HostileProvider, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are fetched from now on."""
    paths: list[str] = []
    answer = provider.answer

    def counted(path: str, form: Any) -> bytes:
        paths.append(path)
        return answer(path, form)

    monkeypatch.setattr(provider, "answer", counted)
    return paths


def test_keys_are_fetched_once_and_again_after_a_rotation(
    acme: Cast,
    ada: User,
    provider: HostileProvider,
    fetched: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for _ in range(5):
        assert ask(acme, provider).status_code == 200
    assert len(fetched) == 2, "discovery document and keys"
    provider.key, provider.key_id = generate_private_key(SECP256R1()), "two"
    for _ in range(20):  # whoever sends unknown keys makes no requests
        assert ask(acme, provider).status_code == 401
    assert len(fetched) == 2
    monkeypatch.setattr(published, "_AGAIN_S", 0.0)
    assert ask(acme, provider).status_code == 200
    assert len(fetched) == 4


def test_wrong_tokens_fetch_nothing(
    acme: Cast, row: IdentityProvider, provider: HostileProvider, fetched: list[str]
) -> None:
    for claims in ({"iss": "https://id.evil.example"}, {"iss": None}):
        assert ask(acme, provider, **claims).status_code == 401
    assert fetched == []


def test_provider_that_is_away_is_no_reason_to_sign_in_again(
    acme: Cast, ada: User, provider: HostileProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.bodies["/jwks"] = b"<html>"
    away = ask(acme, provider)
    assert (away.status_code, problem_of(away)["code"]) == (503, "provider_away")
    assert away["Retry-After"]
    del provider.bodies["/jwks"]
    monkeypatch.setattr(published, "_AGAIN_S", 0.0)
    assert ask(acme, provider).status_code == 200
    # Keys that are known go on for a while, and not forever.
    provider.bodies["/.well-known/openid-configuration"] = json.dumps({"issuer": "x"}).encode()
    monkeypatch.setattr(published, "_FRESH_S", 0.0)
    assert ask(acme, provider).status_code == 200
    monkeypatch.setattr(published, "_STALE_S", 0.0)
    assert ask(acme, provider).status_code == 503


def test_private_address_is_not_asked(
    acme: Cast, ada: User, provider: HostileProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "IDENTITY_ALLOW", ())
    assert ask(acme, provider).status_code == 503
