"""What is on record of signing in and out, which is done in no tenant."""

from django.test import Client
from django.urls import reverse

from tenants.members import add_member
from tenants.models import Action, Role, Tenant
from tenants.scope import tenant_scope
from tenants.sign_in import FAILURES_ALLOWED
from tests.factories import PASSWORD, Cast


def done(tenant: Tenant) -> list[tuple[str, str]]:
    """Who did what, in order."""
    with tenant_scope(tenant.id):
        found = Action.objects.filter(tenant=tenant).order_by("at")
        return list(found.values_list("verb", "user_name"))


def test_signing_in_and_out_is_on_record_in_every_tenant_of_theirs(
    acme: Cast, globex: Cast
) -> None:
    with tenant_scope(globex.tenant.id):
        add_member(globex.tenant, acme.viewer, Role.ADMIN)
    client, name = Client(), acme.viewer.username
    client.post(reverse("login"), {"username": name, "password": "wrong"})
    client.post(reverse("login"), {"username": name, "password": PASSWORD})
    new = "a quite different horse"
    answer = client.post(
        reverse("password_change"),
        {"old_password": PASSWORD, "new_password1": new, "new_password2": new},
    )
    assert answer.status_code == 302
    client.post(reverse("logout"))
    verbs = ["session.refuse", "session.start", "password.change", "session.end"]
    assert done(acme.tenant) == done(globex.tenant) == [(verb, name) for verb in verbs]


def test_who_guesses_fills_no_record(acme: Cast) -> None:
    client, name = Client(), acme.viewer.username
    for _ in range(FAILURES_ALLOWED + 5):
        client.post(reverse("login"), {"username": name, "password": "wrong"})
    refused = done(acme.tenant)
    assert set(refused) == {("session.refuse", name)}
    assert len(refused) <= 3, "once a minute"


def test_a_name_that_is_nobodys_is_on_no_record(acme: Cast) -> None:
    Client().post(reverse("login"), {"username": "correct horse", "password": ""})
    Client().post(reverse("login"), {"username": "correct horse", "password": "x"})
    assert done(acme.tenant) == []


def test_a_password_that_was_not_changed_is_not_on_record(acme: Cast) -> None:
    client = Client()
    client.force_login(acme.viewer)
    data = {"old_password": "wrong", "new_password1": "a", "new_password2": "b"}
    assert client.post(reverse("password_change"), data).status_code == 200
    assert done(acme.tenant) == []
