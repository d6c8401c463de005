"""A tenant that only its providers open, and the admin who gets in all the same."""

from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from audit.alerts.rules import EventKind, Rule
from audit.alerts.stored import save_rule
from audit.alerts.watching import watch
from audit.models import Alert
from tenants.identity.providers import switch_provider
from tenants.members import add_member
from tenants.models import Action, IdentityProvider, Membership, Role, Scope, Tenant, provider_key
from tenants.scope import tenant_scope
from tests.support.api_client import program
from tests.support.factories import PASSWORD, Cast, make_user
from tests.support.identity.hostile_provider import HostileProvider
from tests.support.identity.visits import sign_in_with
from tests.support.pages import signed_in

HOME = reverse("home")


def close(cast: Cast) -> None:
    answer = signed_in(cast.admin).post(
        reverse("sso_only_settings"), {"sso_only": "on", "break_glass": cast.admin.username}
    )
    assert answer.status_code == 302
    assert Tenant.objects.get(pk=cast.tenant.pk).sso_only


def by_password(user: Any) -> Client:
    client = Client()
    client.post(reverse("account_login"), {"username": user.username, "password": PASSWORD})
    return client


def broken_glass(cast: Cast) -> list[str]:
    with tenant_scope(cast.tenant.id):
        actions = Action.objects.filter(tenant=cast.tenant, verb="session.break-glass")
        return [one.user_name for one in actions]


@pytest.mark.slow
def test_password_and_key_no_longer_open_what_the_provider_opens(
    acme: Cast, globex: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    open_before = by_password(acme.editor)
    assert open_before.get(HOME).status_code == 200
    with tenant_scope(globex.tenant.id):
        add_member(globex.tenant, acme.editor, Role.VIEWER)
    close(acme)
    sign_in_page = reverse("tenant_sign_in", args=[acme.tenant.slug])
    for client in (open_before, by_password(acme.editor)):
        assert client.get(HOME)["Location"] == sign_in_page
        assert "asks you to sign in with its provider" in client.get(sign_in_page).content.decode()
        htmx = client.get(HOME, headers={"HX-Request": "true"})
        assert htmx["HX-Redirect"] == sign_in_page
    # Other tenants stay open to the password.
    client.post(reverse("account_logout"))
    globex.tenant.refresh_from_db()
    acme.editor.last_tenant = globex.tenant
    acme.editor.save()
    assert by_password(acme.editor).get(HOME).status_code == 200

    SocialAccount.objects.create(
        user=acme.editor, provider=provider_key(row.tenant_id, row.pk), uid="ada"
    )
    client = Client()
    assert sign_in_with(client, row, provider)["Location"] == HOME
    assert client.get(HOME).status_code == 200
    # Programs have keys, and are not asked.
    assert program(acme.tenant, Scope.ADMIN).get("settings/sso-only") == {
        "sso_only": True,
        "break_glass": acme.admin.username,
    }


@pytest.mark.slow
def test_named_admin_gets_in_and_it_is_told(
    acme: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    condition = {"on": "event", "event": EventKind.GLASS_BROKEN, "severity": "alert"}
    rule = Rule.model_validate({"name": "glass", "condition": condition})
    with tenant_scope(acme.tenant.id):
        save_rule(acme.tenant, acme.editor, rule, timezone.now())
    assert broken_glass(acme) == []
    close(acme)
    client = by_password(acme.admin)
    for _ in range(3):
        assert client.get(reverse("sign_in_settings")).status_code == 200
    assert broken_glass(acme) == [acme.admin.username]
    with tenant_scope(acme.tenant.id):
        watch(timezone.now())
        (alert,) = Alert.objects.for_tenant(acme.tenant.id)
    assert alert.title == f"glass: {acme.admin.username} got in without the tenant's provider"
    by_password(acme.admin).get(HOME)
    assert len(broken_glass(acme)) == 2
    # With the provider it is no use of it.
    SocialAccount.objects.create(
        user=acme.admin, provider=provider_key(row.tenant_id, row.pk), uid="ada"
    )
    client = Client()
    sign_in_with(client, row, provider)
    assert client.get(HOME).status_code == 200
    assert len(broken_glass(acme)) == 2


def test_named_admin_stays_an_admin(acme: Cast, row: IdentityProvider) -> None:
    close(acme)
    other = make_user("other")
    with tenant_scope(acme.tenant.id):
        add_member(acme.tenant, other, Role.ADMIN)
        named = Membership.objects.get(tenant=acme.tenant, user=acme.admin)
    client = by_password(acme.admin)
    client.post(reverse("member_role", args=[named.pk]), {"role": "viewer"})
    client.post(reverse("member_remove", args=[named.pk]))
    api = program(acme.tenant, Scope.ADMIN)
    role = f"members/{named.pk}/role"
    assert api.refused(role, {"role": "viewer"}, "PUT") == (409, "conflict")
    with tenant_scope(acme.tenant.id):
        named.refresh_from_db()
        assert (named.role, named.breaks_glass) == ("admin", True)
    # Another one is named, and this one may go.
    api.do("settings/sso-only", {"sso_only": True, "break_glass": other.username}, "PUT")
    assert by_password(acme.admin).get(HOME).status_code == 302
    api.do(role, {"role": "viewer"}, "PUT")
    with tenant_scope(acme.tenant.id):
        assert Membership.objects.filter(tenant=acme.tenant, breaks_glass=True).count() == 1


def test_nobody_shuts_everybody_out(
    acme: Cast, row: IdentityProvider, provider: HostileProvider
) -> None:
    api = program(acme.tenant, Scope.ADMIN)

    def refused(**body: Any) -> str:
        answer = api.send("PUT", "settings/sso-only", body)
        assert answer.status_code == 422, answer.content
        return str(answer.json()["parameter"])

    with tenant_scope(acme.tenant.id):
        IdentityProvider.objects.filter(tenant=acme.tenant).update(default_role="admin")
    provider.claims = {"groups": []}
    sign_in_with(Client(), row, provider)
    made = f"ada@{acme.tenant.slug}"
    assert refused(sso_only=True) == "break_glass"
    for name in (acme.editor.username, made, "nobody"):
        assert refused(sso_only=True, break_glass=name) == "break_glass"
    with tenant_scope(acme.tenant.id):
        switch_provider(acme.tenant, acme.admin, row, is_on=False)
    assert refused(sso_only=True, break_glass=acme.admin.username) == "sso_only"
    assert not Tenant.objects.get(pk=acme.tenant.pk).sso_only
