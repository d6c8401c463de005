"""The audit log of signing in and out, which happens outside any tenant."""

from django.test import Client
from django.urls import reverse

from tenants.members import add_member
from tenants.models import Action, Role, Tenant
from tenants.scope import tenant_scope
from tenants.sign_in import FAILURES_ALLOWED
from tests.support.factories import PASSWORD, Cast


def actions_of(tenant: Tenant) -> list[tuple[str, str]]:
    """Who did what, in order."""
    with tenant_scope(tenant.id):
        actions = Action.objects.filter(tenant=tenant).order_by("at")
        return list(actions.values_list("verb", "user_name"))


def test_session_actions_are_logged_only_in_the_tenant_of_the_session(
    acme: Cast, globex: Cast
) -> None:
    with tenant_scope(globex.tenant.id):
        add_member(globex.tenant, acme.viewer, Role.ADMIN)
    client, name = Client(), acme.viewer.username
    client.post(reverse("account_login"), {"username": name, "password": "wrong"})
    client.post(reverse("account_login"), {"username": name, "password": PASSWORD})
    new = "a quite different horse"
    answer = client.post(
        reverse("password_change"),
        {"old_password": PASSWORD, "new_password1": new, "new_password2": new},
    )
    assert answer.status_code == 302
    client.post(reverse("account_logout"))
    verbs = ["session.refuse", "session.start", "password.change", "session.end"]
    assert actions_of(acme.tenant) == [(verb, name) for verb in verbs]
    assert actions_of(globex.tenant) == []


def test_tenant_switch_is_logged_in_the_entered_tenant(acme: Cast, globex: Cast) -> None:
    with tenant_scope(globex.tenant.id):
        add_member(globex.tenant, acme.viewer, Role.VIEWER)
    client, name = Client(), acme.viewer.username
    client.post(reverse("account_login"), {"username": name, "password": PASSWORD})
    for tenant in (globex.tenant, globex.tenant, acme.tenant):
        client.post(reverse("tenant_switch"), {"tenant": str(tenant.id)})
    client.post(reverse("account_logout"))
    assert actions_of(globex.tenant) == [("session.switch", name)]
    assert [verb for verb, _ in actions_of(acme.tenant)] == [
        "session.start",
        "session.switch",
        "session.end",
    ]


def test_next_session_opens_in_the_last_selected_tenant(acme: Cast, globex: Cast) -> None:
    with tenant_scope(globex.tenant.id):
        add_member(globex.tenant, acme.viewer, Role.VIEWER)
    pair = {"username": acme.viewer.username, "password": PASSWORD}
    first, other = Client(), Client()
    for client in (first, other):
        client.post(reverse("account_login"), pair)
    first.post(reverse("tenant_switch"), {"tenant": str(globex.tenant.id)})
    assert _shown(other) == acme.tenant, "a choice in one session does not move another"
    again = Client()
    again.post(reverse("account_login"), pair)
    assert _shown(again) == globex.tenant
    assert ("session.start", acme.viewer.username) in actions_of(globex.tenant)


def test_tenant_name_does_not_affect_the_tenant_of_a_session(acme: Cast, globex: Cast) -> None:
    with tenant_scope(globex.tenant.id):
        add_member(globex.tenant, acme.viewer, Role.VIEWER)
    Tenant.objects.filter(pk=globex.tenant.pk).update(name="!! first by name")
    client = Client()
    client.post(reverse("account_login"), {"username": acme.viewer.username, "password": PASSWORD})
    assert _shown(client) == acme.tenant


def _shown(client: Client) -> Tenant:
    request = client.get(reverse("trace_list")).wsgi_request
    tenant: Tenant = request.tenant  # type: ignore[attr-defined]  # set by tenants.access
    return tenant


def test_repeated_failed_sign_ins_are_logged_once_a_minute(acme: Cast) -> None:
    client, name = Client(), acme.viewer.username
    for _ in range(FAILURES_ALLOWED + 5):
        client.post(reverse("account_login"), {"username": name, "password": "wrong"})
    refused = actions_of(acme.tenant)
    assert set(refused) == {("session.refuse", name)}
    assert len(refused) <= 3, "once a minute"


def test_failed_sign_in_with_an_unknown_name_is_not_logged(acme: Cast) -> None:
    Client().post(reverse("account_login"), {"username": "correct horse", "password": ""})
    Client().post(reverse("account_login"), {"username": "correct horse", "password": "x"})
    assert actions_of(acme.tenant) == []


def test_failed_password_change_is_not_logged(acme: Cast) -> None:
    client = Client()
    client.force_login(acme.viewer)
    data = {"old_password": "wrong", "new_password1": "a", "new_password2": "b"}
    assert client.post(reverse("password_change"), data).status_code == 200
    assert actions_of(acme.tenant) == []
