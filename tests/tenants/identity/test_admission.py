"""Whom a provider lets in, and that it opens its own tenant only."""

import re
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tenants.accounts.policy import PROVIDER
from tenants.identity.admission import role_for
from tenants.identity.providers import switch_provider
from tenants.invitations import invite
from tenants.members import add_member
from tenants.models import Action, IdentityProvider, Membership, Role, Tenant, User, provider_key
from tenants.scope import tenant_scope
from tests.support.factories import PASSWORD, Cast, make_user
from tests.support.identity.hostile_provider import HostileProvider
from tests.support.identity.visits import (
    come_back,
    last_refusal,
    leave,
    members_by,
    sign_in_with,
)
from tests.support.second_factor import add_app, totp

HOME = reverse("home")


def verbs(row: IdentityProvider) -> list[tuple[str, Any]]:
    """What the provider did to members, oldest first."""
    with tenant_scope(row.tenant_id):
        actions = Action.objects.filter(tenant_id=row.tenant_id, user_name=row.name)
        return [
            (one.verb, one.details.get("after") or one.details.get("role"))
            for one in actions.filter(verb__startswith="member.").order_by("at", "id")
        ]


def connect(user: User, row: IdentityProvider, subject: str = "ada") -> None:
    key = provider_key(row.tenant_id, row.pk)
    SocialAccount.objects.create(user=user, provider=key, uid=subject)


@pytest.mark.parametrize(
    ("groups", "default", "role"),
    [
        (["staff"], None, "viewer"),
        (["staff", "platform"], None, "editor"),
        (["platform", "unknown"], None, "editor"),
        ("platform", None, "editor"),
        (["unknown"], None, None),
        (["unknown"], "auditor", "auditor"),
        (None, None, None),
        (["Staff", 7, None, ["staff"], {"staff": 1}], None, None),
        ({"staff": "viewer"}, None, None),
        (7, "viewer", "viewer"),
    ],
    ids=str,
)
def test_strongest_role_of_the_groups_counts(
    groups: Any, default: str | None, role: str | None
) -> None:
    provider = IdentityProvider(
        settings={"groups_claim": "groups"},
        role_by_group={"staff": "viewer", "platform": "editor"},
        default_role=default,
    )
    assert role_for(provider, {"groups": groups}) == role


def test_groups_are_read_again_at_each_sign_in(
    row: IdentityProvider, provider: HostileProvider
) -> None:
    name = f"ada@{row.tenant.slug}"
    first = Client()
    sign_in_with(first, row, provider)
    assert first.get(reverse("key_list")).status_code == 403
    provider.claims = {"groups": ["platform"]}
    second = Client()
    sign_in_with(second, row, provider)
    assert members_by(row) == {name: "editor"}

    provider.claims = {"groups": []}
    answer = sign_in_with(Client(), row, provider)
    assert answer["Location"] == reverse("tenant_sign_in", args=[row.tenant.slug])
    assert members_by(row) == {}
    for client in (first, second):
        assert client.get(HOME)["Location"].startswith(reverse("account_login"))
    assert "None of your groups" in last_refusal(row)

    provider.claims = {"groups": ["staff"]}
    assert sign_in_with(Client(), row, provider)["Location"] == HOME
    assert members_by(row) == {name: "viewer"}
    assert verbs(row) == [
        ("member.accept", "viewer"),
        ("member.role", "editor"),
        ("member.remove", "editor"),
        ("member.accept", "viewer"),
    ]
    assert User.objects.filter(username__endswith=f"@{row.tenant.slug}").count() == 1


def test_last_admin_stays_and_does_not_get_in(
    acme: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    with tenant_scope(acme.tenant.id):
        IdentityProvider.objects.filter(tenant=acme.tenant).update(role_by_group={"a": "admin"})
        provider.claims = {"groups": ["a"]}
    client = Client()
    assert sign_in_with(client, row, provider)["Location"] == HOME
    with tenant_scope(acme.tenant.id):
        Membership.objects.filter(tenant=acme.tenant, user=acme.admin).delete()
    provider.claims = {"groups": []}
    assert sign_in_with(Client(), row, provider)["Location"] != HOME
    assert list(members_by(row).values()) == ["admin"]
    assert client.get(HOME).status_code == 302
    # It is the operator's to decide; with another admin the provider's word counts again.
    with tenant_scope(acme.tenant.id):
        add_member(acme.tenant, acme.admin, Role.ADMIN)
    sign_in_with(Client(), row, provider)
    assert members_by(row) == {}


def test_account_is_never_found_by_its_name(
    row: IdentityProvider, provider: HostileProvider
) -> None:
    taken = User.objects.create_user(f"ada@{row.tenant.slug}", email="ada@example.com")
    provider.claims = {"email": "ada@example.com", "email_verified": True}
    sign_in_with(Client(), row, provider)
    assert members_by(row) == {f"ada.2@{row.tenant.slug}": "viewer"}
    provider.claims = {"sub": "another", "preferred_username": " <Ada> \u202e "}
    sign_in_with(Client(), row, provider)
    assert f"Ada@{row.tenant.slug}" in members_by(row)
    provider.claims = {"sub": "no name", "preferred_username": None}
    sign_in_with(Client(), row, provider)
    assert f"no-name@{row.tenant.slug}" in members_by(row)
    assert not SocialAccount.objects.filter(user=taken).exists()
    assert not SocialAccount.objects.exclude(extra_data={}).exists()


def test_session_of_a_provider_opens_its_tenant_alone(
    acme: Cast, globex: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    # Somebody with an account of their own, who is a member of both.
    both = acme.editor
    with tenant_scope(globex.tenant.id):
        add_member(globex.tenant, both, Role.ADMIN)
        _, token = invite(globex.tenant, "x", Role.VIEWER, created_by=globex.admin)
    User.objects.filter(pk=both.pk).update(last_tenant=globex.tenant)
    connect(both, row)
    client = Client()
    assert sign_in_with(client, row, provider)["Location"] == HOME
    page = client.get(reverse("sign_in_settings"))
    assert page.status_code == 403  # an editor of Acme; in Globex an admin
    assert globex.tenant.name not in client.get(HOME).content.decode()
    switched = client.post(reverse("tenant_switch"), {"tenant": str(globex.tenant.pk)})
    assert switched.status_code == 404
    for name in ("mfa_index", "password_change", "mfa_activate_totp", "account_reauthenticate"):
        answer = client.get(reverse(name))
        assert answer.status_code == 403, name
        assert "identity provider" in answer.content.decode()
    assert client.get(reverse("invitation_accept", args=[token])).status_code == 403
    with tenant_scope(globex.tenant.id):
        seen = Action.objects.filter(tenant=globex.tenant, user_name=both.username)
        assert not seen.exists()
    # Without the membership of its tenant it opens nothing.
    with tenant_scope(acme.tenant.id):
        Membership.objects.filter(tenant=acme.tenant, user=both).delete()
    assert client.get(HOME).status_code == 403
    # The same person with the password.
    client = Client()
    client.post(reverse("account_login"), {"username": both.username, "password": PASSWORD})
    assert client.get(reverse("sign_in_settings")).status_code == 200


@pytest.mark.slow
def test_provider_does_not_change_members_it_did_not_make(
    acme: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    connect(acme.admin, row)
    for groups in (["staff"], [], ["platform"]):
        provider.claims = {"groups": groups}
        client = Client()
        assert sign_in_with(client, row, provider)["Location"] == HOME
        assert client.get(reverse("key_list")).status_code == 200
    assert (members_by(row), verbs(row)) == ({}, [])
    # Whom an admin removed, the provider does not bring back.
    with tenant_scope(acme.tenant.id):
        add_member(acme.tenant, make_user("other"), Role.ADMIN)
        Membership.objects.filter(tenant=acme.tenant, user=acme.admin).delete()
    assert sign_in_with(Client(), row, provider)["Location"] != HOME
    assert "Ask for an invitation" in last_refusal(row)


def test_membership_of_a_provider_is_open_to_its_sessions_only(
    row: IdentityProvider, provider: HostileProvider
) -> None:
    sign_in_with(Client(), row, provider)
    user = User.objects.get(username=f"ada@{row.tenant.slug}")
    client = Client()
    client.force_login(user)
    assert client.get(HOME).status_code == 403
    session = client.session
    session[PROVIDER] = provider_key(row.tenant_id, row.tenant_id)  # another one of the tenant
    session.save()
    assert client.get(HOME).status_code == 403


def test_disabled_provider_lets_nobody_in_and_ends_its_sessions(
    acme: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    client, local = Client(), Client()
    connect(acme.editor, row)
    local.post(reverse("account_login"), {"username": acme.editor.username, "password": PASSWORD})
    sign_in_with(client, row, provider)
    late = Client()
    brought = provider.authorize(leave(late, row))
    with tenant_scope(acme.tenant.id):
        assert switch_provider(acme.tenant, acme.admin, row, is_on=False)
        assert not switch_provider(acme.tenant, acme.admin, row, is_on=False)
    assert client.get(HOME).status_code == 302
    assert local.get(HOME).status_code == 200
    assert come_back(late, row, brought).status_code == 404
    start = reverse("provider_start", args=[row.tenant_id, row.pk])
    assert Client().post(start).status_code == 404
    page = Client().get(reverse("tenant_sign_in", args=[acme.tenant.slug])).content.decode()
    assert row.name not in page
    with tenant_scope(acme.tenant.id):
        assert switch_provider(acme.tenant, acme.admin, row, is_on=True)
        action = Action.objects.get(tenant=acme.tenant, verb="provider.disable")
    assert action.details == {"ended_sessions": 1}
    assert Client().post(start).status_code == 200


def test_suspended_tenant_is_not_opened(
    acme: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    client = Client()
    brought = provider.authorize(leave(client, row))
    Tenant.objects.filter(pk=acme.tenant.pk).update(suspended_at=timezone.now())
    assert come_back(client, row, brought)["Location"] != HOME
    assert members_by(row) == {}
    assert "suspended" in last_refusal(row)


def test_unknown_tenant_looks_like_one_without_providers(acme: Cast) -> None:
    texts = set()
    for slug in (acme.tenant.slug, "no-such-tenant"):
        page = Client().get(reverse("tenant_sign_in", args=[slug]))
        assert page.status_code == 200
        texts.add(re.sub(r'(csrfmiddlewaretoken" value|nonce)="[^"]+"', "", page.content.decode()))
    assert len(texts) == 1


def test_second_factor_of_the_account_is_asked_for(
    acme: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    own = Client()
    own.post(reverse("account_login"), {"username": acme.editor.username, "password": PASSWORD})
    secret = add_app(own)
    connect(acme.editor, row)
    client = Client()
    assert sign_in_with(client, row, provider)["Location"] == reverse("mfa_authenticate")
    assert client.get(HOME).status_code == 302
    answer = client.post(reverse("mfa_authenticate"), {"code": totp(secret, 1)})
    assert answer["Location"] == HOME
    assert client.session[PROVIDER] == provider_key(row.tenant_id, row.pk)
    assert client.get(reverse("mfa_index")).status_code == 403


def test_provider_that_asks_for_a_factor_suffices(
    acme: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    Tenant.objects.filter(pk=acme.tenant.pk).update(second_factor_roles=["viewer"])
    client = Client()
    sign_in_with(client, row, provider)
    assert client.get("/calls/").status_code == 302
    with tenant_scope(acme.tenant.id):
        asks = row.settings | {"asks_second_factor": True}
        IdentityProvider.objects.filter(tenant=acme.tenant).update(settings=asks)
    client = Client()
    sign_in_with(client, row, provider)
    assert client.get("/calls/").status_code == 200


def test_closed_account_stays_closed(row: IdentityProvider, provider: HostileProvider) -> None:
    sign_in_with(Client(), row, provider)
    User.objects.filter(username=f"ada@{row.tenant.slug}").update(is_active=False)
    client = Client()
    answer = sign_in_with(client, row, provider)
    assert "This account is closed." in client.get(answer["Location"]).content.decode()
    assert client.get(HOME).status_code == 302


@pytest.mark.slow
def test_member_connects_an_account_after_a_confirmation(
    acme: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    client = Client()
    client.post(reverse("account_login"), {"username": acme.editor.username, "password": PASSWORD})
    start = reverse("provider_connect", args=[row.pk])
    assert client.post(start)["Location"].startswith(reverse("account_reauthenticate"))
    client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    brought = provider.authorize(str(client.post(start).context["address"]))
    assert come_back(client, row, brought)["Location"] == reverse("mfa_index")
    page = client.get(reverse("mfa_index")).content.decode()
    assert "Connected. The provider signs you in now." in page
    assert "third-party" not in page

    fresh = Client()
    assert sign_in_with(fresh, row, provider)["Location"] == HOME
    assert fresh.session["_auth_user_id"] == str(acme.editor.pk)
    # The same identity cannot be a second person's.
    other = Client()
    other.post(reverse("account_login"), {"username": acme.viewer.username, "password": PASSWORD})
    other.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    come_back(other, row, provider.authorize(str(other.post(start).context["address"])))
    assert not SocialAccount.objects.filter(user=acme.viewer).exists()

    client.post(reverse("provider_disconnect", args=[row.pk]))
    assert fresh.get(HOME).status_code == 302
    with tenant_scope(acme.tenant.id):
        actions = Action.objects.filter(tenant=acme.tenant, verb__startswith="identity.")
        assert [one.verb for one in actions.order_by("at", "id")] == [
            "identity.connect",
            "identity.disconnect",
        ]
