"""What a tenant asks of a session: a second factor for some roles, and an end."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tenants.accounts.policy import SEEN_AT, SIGNED_IN_AT, why_refused
from tenants.models import Action, Membership, Role, Scope, Tenant
from tenants.scope import tenant_scope
from tests.support.api_client import program
from tests.support.factories import PASSWORD, Cast
from tests.support.second_factor import add_app, totp

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
MFA = {
    "_auth_user_id": "7",
    "account_authentication_methods": [{"method": "password"}, {"method": "mfa"}],
    "account_authentication_methods_user": "7",
}


def membership(role: Role = Role.EDITOR, **settings: Any) -> Membership:
    return Membership(role=role, tenant=Tenant(name="Acme", **settings))


def session(*, signed_in: timedelta, seen: timedelta, **others: Any) -> dict[str, Any]:
    return {
        SIGNED_IN_AT: (NOW - signed_in).timestamp(),
        SEEN_AT: (NOW - seen).timestamp(),
        **others,
    }


@pytest.mark.parametrize(
    ("settings", "signed_in", "seen", "is_over"),
    [
        ({}, timedelta(days=13), timedelta(days=13), False),
        ({"session_max_hours": 8}, timedelta(hours=8), timedelta(0), False),
        ({"session_max_hours": 8}, timedelta(hours=8, seconds=1), timedelta(0), True),
        ({"session_idle_minutes": 30}, timedelta(days=3), timedelta(minutes=31), False),
        ({"session_idle_minutes": 30}, timedelta(days=3), timedelta(minutes=31, seconds=1), True),
    ],
)
def test_session_ends(
    settings: dict[str, Any], signed_in: timedelta, seen: timedelta, *, is_over: bool
) -> None:
    refusal = why_refused(session(signed_in=signed_in, seen=seen), membership(**settings), NOW)
    assert (refusal is not None and refusal.is_over) == is_over


@pytest.mark.parametrize("setting", [{"session_max_hours": 8}, {"session_idle_minutes": 30}])
def test_session_without_an_instant_is_over(setting: dict[str, Any]) -> None:
    refusal = why_refused({}, membership(**setting), NOW)
    assert refusal is not None
    assert refusal.is_over


def test_factor_of_another_account_does_not_count() -> None:
    asked = membership(Role.EDITOR, second_factor_roles=["editor"])
    assert why_refused(MFA, asked, NOW) is None
    assert why_refused(MFA | {"account_authentication_methods_user": "8"}, asked, NOW) is not None


def test_second_factor_is_asked_of_the_named_roles() -> None:
    roles = {"second_factor_roles": ["admin", "editor"]}
    refusal = why_refused({}, membership(Role.EDITOR, **roles), NOW)
    assert refusal is not None
    assert not refusal.is_over
    assert why_refused(MFA, membership(Role.EDITOR, **roles), NOW) is None
    assert why_refused({}, membership(Role.VIEWER, **roles), NOW) is None


def change(cast: Cast, **settings: Any) -> None:
    client = Client()
    client.force_login(cast.admin)
    answer = client.post(reverse("sign_in_settings"), settings)
    assert answer.status_code == 302, answer.content.decode()


@pytest.mark.slow
def test_member_sets_up_the_factor_that_the_tenant_asks_for(acme: Cast) -> None:
    client = Client()
    pair = {"username": acme.editor.username, "password": PASSWORD}
    client.post(reverse("account_login"), pair)
    assert client.get("/traces/").status_code == 200
    change(acme, second_factor_roles=["editor"])
    refused = client.get("/traces/", follow=True)
    assert refused.redirect_chain == [(reverse("mfa_index"), 302)]
    shown = refused.content.decode()
    assert "requires a second factor for your role" in shown
    assert "nav-side" not in shown  # nothing of the tenant
    secret = add_app(client)
    assert client.get("/traces/").status_code == 302  # added, but not shown in this session
    client.post(reverse("mfa_reauthenticate"), {"code": totp(secret, 1)})
    assert client.get("/traces/").status_code == 200
    # The role viewer is not asked.
    viewer = Client()
    viewer.force_login(acme.viewer)
    assert viewer.get("/traces/").status_code == 200


def test_expired_session_must_sign_in_again_and_is_recorded(acme: Cast) -> None:
    client = Client()
    pair = {"username": acme.editor.username, "password": PASSWORD}
    client.post(reverse("account_login"), pair)
    change(acme, session_idle_minutes=30)
    assert client.get("/traces/").status_code == 200
    stored = client.session
    stored[SEEN_AT] = timezone.now().timestamp() - 32 * 60
    stored.save()
    kept = dict(client.session)
    # Pages of the account end it, too.
    answer = client.get(reverse("mfa_index"))
    assert answer["Location"] == f"/login?next={reverse('mfa_index')}"
    client.force_login(acme.editor)
    stored = client.session
    stored.update(kept)
    stored.save()
    answer = client.get("/traces/", follow=True)
    assert answer.redirect_chain == [("/login?next=/traces/", 302)]
    assert "idle for 30 minutes" in answer.content.decode()
    with tenant_scope(acme.tenant.id):
        assert Action.objects.filter(
            tenant=acme.tenant, verb="session.expire", user_id=acme.editor.pk
        ).exists()


def test_a_page_stores_once_a_minute_that_the_session_is_used(acme: Cast) -> None:
    client = Client()
    pair = {"username": acme.editor.username, "password": PASSWORD}
    client.post(reverse("account_login"), pair)
    for age, is_stored in ((59, False), (61, True)):
        stored = client.session
        at = int(timezone.now().timestamp()) - age
        stored[SEEN_AT] = at
        stored.save()
        client.get("/traces/")
        assert (client.session[SEEN_AT] != at) == is_stored


def test_changed_settings_are_recorded_once(acme: Cast) -> None:
    wanted = {"second_factor_roles": ["viewer", "admin"], "step_up": "on", "session_max_hours": 8}
    for _ in range(2):
        change(acme, **wanted)
    stored = Tenant.objects.get(pk=acme.tenant.pk)
    assert stored.second_factor_roles == ["admin", "viewer"]
    assert stored.step_up
    assert (stored.session_idle_minutes, stored.session_max_hours) == (None, 8)
    with tenant_scope(acme.tenant.id):
        (action,) = Action.objects.filter(tenant=acme.tenant, verb="tenant.sign-in")
    assert action.details["after"] == {
        "second_factor_roles": ["admin", "viewer"],
        "step_up": True,
        "session_max_hours": 8,
    }


def test_program_changes_the_settings(acme: Cast) -> None:
    admin = program(acme.tenant, Scope.ADMIN)
    wanted = {
        "second_factor_roles": ["admin"],
        "step_up": True,
        "session_idle_minutes": 30,
        "session_max_hours": None,
        "anonymous_links": True,
    }
    assert admin.do("settings/sign-in", wanted, "PUT") == wanted
    assert admin.get("settings/sign-in") == wanted
    for wrong in ({"session_idle_minutes": 4}, {"second_factor_roles": ["owner"]}):
        assert admin.refused("settings/sign-in", wanted | wrong, "PUT") == (400, "malformed")
    with tenant_scope(acme.tenant.id):
        assert Action.objects.filter(tenant=acme.tenant, verb="tenant.sign-in").count() == 1


@pytest.mark.parametrize(
    "wrong",
    [{"session_idle_minutes": 0}, {"session_max_hours": 337}, {"second_factor_roles": ["owner"]}],
)
def test_impossible_settings_are_refused(acme: Cast, wrong: dict[str, Any]) -> None:
    client = Client()
    client.force_login(acme.admin)
    assert client.post(reverse("sign_in_settings"), wrong).status_code == 200
    stored = Tenant.objects.get(pk=acme.tenant.pk)
    assert stored.second_factor_roles == []
    assert stored.session_max_hours is None
