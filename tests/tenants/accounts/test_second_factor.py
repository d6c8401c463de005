"""Authenticator apps and recovery codes: added, asked for, stored encrypted, recorded."""

import io
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from tenants.models import Action, User
from tenants.scope import tenant_scope
from tests.support.factories import PASSWORD, Cast
from tests.support.second_factor import add_app, totp


def password(client: Client, user: User) -> Any:
    return client.post(
        reverse("account_login"),
        {"username": user.username, "password": PASSWORD, "next": "/settings/preferences"},
    )


def recorded(cast: Cast, user: User) -> list[tuple[str, Any]]:
    with tenant_scope(cast.tenant.id):
        actions = Action.objects.filter(tenant=cast.tenant, user_id=user.pk).order_by("at", "id")
        return [(one.verb, one.details) for one in actions]


@pytest.fixture
def member(acme: Cast) -> tuple[Client, str]:
    """A signed-in editor with an authenticator app, and the app's secret."""
    client = Client()
    assert password(client, acme.editor)["Location"] == "/settings/preferences"
    return client, add_app(client)


def test_sign_in_asks_for_the_code_before_a_session_opens(
    acme: Cast, member: tuple[Client, str]
) -> None:
    _, secret = member
    client = Client()
    assert password(client, acme.editor)["Location"] == reverse("mfa_authenticate")
    assert client.get("/settings/preferences").status_code == 302
    wrong = client.post(reverse("mfa_authenticate"), {"code": "000000"})
    assert "Incorrect code" in wrong.content.decode()
    assert client.get("/settings/preferences").status_code == 302
    right = client.post(reverse("mfa_authenticate"), {"code": totp(secret, 1)})
    assert right["Location"] == "/settings/preferences"
    assert client.get("/settings/preferences").status_code == 200


def test_code_works_once(acme: Cast, member: tuple[Client, str]) -> None:
    code = totp(member[1], 1)
    for location in ("/settings/preferences", None):
        client = Client()
        password(client, acme.editor)
        assert client.post(reverse("mfa_authenticate"), {"code": code}).get("Location") == location


def test_wrong_codes_are_limited_in_all_processes(acme: Cast, member: tuple[Client, str]) -> None:
    client = Client()
    password(client, acme.editor)
    for _ in range(5):
        client.post(reverse("mfa_authenticate"), {"code": "000000"})
    answer = client.post(reverse("mfa_authenticate"), {"code": totp(member[1], 1)})
    assert "Too many failed login attempts" in answer.content.decode()
    cache.clear()


def test_recovery_code_works_once(acme: Cast, member: tuple[Client, str]) -> None:
    page = member[0].get(reverse("mfa_view_recovery_codes")).content.decode()
    # Not in the whole page: the name of a user may end with eight digits.
    codes = page.partition('<pre class="codes">')[2].partition("</pre>")[0].split()
    assert len(codes) == 10
    for location in ("/settings/preferences", None):
        client = Client()
        password(client, acme.editor)
        answer = client.post(reverse("mfa_authenticate"), {"code": codes[0]})
        assert answer.get("Location") == location


def test_secrets_are_encrypted_in_the_database(acme: Cast, member: tuple[Client, str]) -> None:
    kept = {one.type: one.data for one in Authenticator.objects.filter(user_id=acme.editor.pk)}
    assert kept.keys() == {"totp", "recovery_codes"}
    assert member[1] not in str(kept)
    assert len(kept["totp"]["secret"]) > 60
    assert len(kept["recovery_codes"]["seed"]) > 60


def test_what_happens_to_factors_is_recorded(acme: Cast, member: tuple[Client, str]) -> None:
    client, _ = member
    client.post(reverse("mfa_generate_recovery_codes"))
    client.post(reverse("mfa_deactivate_totp"))
    other = Client()
    assert password(other, acme.editor)["Location"] == "/settings/preferences"
    assert [one for one in recorded(acme, acme.editor) if one[0].startswith("factor.")] == [
        ("factor.add", {"factor": "totp"}),
        ("factor.add", {"factor": "recovery_codes"}),
        ("factor.renew", {"factor": "recovery_codes"}),
        ("factor.remove", {"factor": "totp"}),
        ("factor.remove", {"factor": "recovery_codes"}),
    ]
    assert not Authenticator.objects.filter(user_id=acme.editor.pk).exists()


def test_factors_change_only_after_a_confirmation(acme: Cast, member: tuple[Client, str]) -> None:
    client = Client()
    client.force_login(acme.editor)
    for name in ("mfa_deactivate_totp", "mfa_generate_recovery_codes", "mfa_add_webauthn"):
        for answer in (client.get(reverse(name)), client.post(reverse(name))):
            assert answer["Location"].startswith(reverse("mfa_reauthenticate")), name
    # Who has a second factor cannot confirm with the password.
    client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    answer = client.post(reverse("mfa_deactivate_totp"))
    assert answer["Location"].startswith(reverse("mfa_reauthenticate"))
    assert Authenticator.objects.filter(user_id=acme.editor.pk).count() == 2


def test_factors_of_others_are_out_of_reach(acme: Cast, member: tuple[Client, str]) -> None:
    passkey = Authenticator.objects.create(
        user=acme.editor, type="webauthn", data={"name": "mine", "credential": {}}
    )
    client = Client()
    password(client, acme.admin)
    client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    for name in ("mfa_edit_webauthn", "mfa_remove_webauthn"):
        assert client.post(reverse(name, args=[passkey.pk]), {"name": "x"}).status_code == 404
    passkey.refresh_from_db()
    assert passkey.data["name"] == "mine"


def test_operator_removes_the_factors_of_an_account(acme: Cast, member: tuple[Client, str]) -> None:
    printed = io.StringIO()
    call_command("removefactors", acme.editor.username, stdout=printed)
    assert printed.getvalue() == "Removed 2: recovery_codes, totp\n"
    assert password(Client(), acme.editor)["Location"] == "/settings/preferences"
    with tenant_scope(acme.tenant.id):
        action = Action.objects.get(tenant=acme.tenant, verb="factor.clear")
    assert (action.subject, action.details["factors"]) == (
        acme.editor.username,
        ["recovery_codes", "totp"],
    )
    for name, reason in ((acme.editor.username, "no second factor"), ("nobody", "unknown user")):
        with pytest.raises(CommandError, match=reason):
            call_command("removefactors", name)


def test_page_of_a_user_without_password_and_factors_opens(acme: Cast) -> None:
    acme.editor.set_unusable_password()
    acme.editor.save(update_fields=["password"])
    client = Client()
    client.force_login(acme.editor)
    assert client.get(reverse("mfa_index")).status_code == 200
