"""Service accounts: programs that own keys, and are never people."""

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from tenants.keys import KeyRefused, authenticate, create_key
from tenants.models import Action, ApiKey, Membership, Scope, User
from tenants.scope import tenant_scope
from tenants.sessions import memberships_of
from tests.support.api_client import Program, program
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import signed_in

PAGE = "/settings/service-accounts"


def _account(api: Program, name: str = "deploy") -> dict[str, str]:
    account: dict[str, str] = api.do("service-accounts", {"name": name})
    return account


def test_its_key_outlives_the_person_who_made_it(acme: Cast) -> None:
    api = program(acme.tenant, owner=acme.editor)
    account = _account(api)
    assert account["user"] == f"service:deploy@{acme.tenant.slug}"
    made = api.do("keys", {"name": "ci", "owner": account["user"], "scopes": ["read", "operate"]})
    assert made["owner"] == account["user"]
    members = {one["user"]: one["id"] for one in api.get("members")["items"]}
    assert account["user"] not in members, "it is no person"
    api.do(f"members/{members[acme.editor.username]}/remove")

    of_service = Program(acme.tenant, made["key"])
    of_service.do("views", {"name": "Failed", "q": "state:error"})
    assert [one["name"] for one in of_service.get("views")["items"]] == ["Failed"]
    (listed,) = api.get("service-accounts")["items"]
    assert listed == account | {"working_keys": 1}


@pytest.mark.parametrize("scope", [Scope.INGEST, Scope.READ])
def test_disabled_account_has_no_working_key(scope: Scope, acme: Cast) -> None:
    api = program(acme.tenant)
    account = _account(api)
    made = api.do("keys", {"name": "ci", "owner": account["user"], "scopes": [scope.value]})
    assert authenticate(made["key"], scope)
    off = api.do(f"service-accounts/{account['id']}/disable")
    assert (off["working_keys"], off["disabled_at"] is None) == (0, False)
    with pytest.raises(KeyRefused) as refused:
        authenticate(made["key"], scope)
    assert (refused.value.status, refused.value.code) == (403, "disabled_owner")
    assert api.refused("keys", {"name": "more", "owner": account["user"], "scopes": ["read"]}) == (
        422,
        "invalid",
    )
    api.do(f"service-accounts/{account['id']}/enable")
    assert authenticate(made["key"], scope)


def test_events_of_a_disabled_account_are_refused(acme: Cast) -> None:
    api = program(acme.tenant)
    account = _account(api)
    key = api.do("keys", {"name": "e", "owner": account["user"], "scopes": ["ingest"]})["key"]
    send_events(acme.tenant, make_call(), key=key)
    api.do(f"service-accounts/{account['id']}/disable")
    answer = Client().post(
        "/api/v1/events",
        b"{}",
        content_type="application/x-ndjson",
        headers={"Authorization": f"Bearer {key}"},
    )
    assert (answer.status_code, answer.json()["code"]) == (403, "disabled_owner")


def test_deleted_account_takes_its_keys_along(acme: Cast) -> None:
    api = program(acme.tenant)
    account = _account(api)
    made = api.do("keys", {"name": "ci", "owner": account["user"], "scopes": ["read"]})
    _, other = create_key(acme.tenant, "other", [Scope.READ], owner=acme.editor)
    api.do(f"service-accounts/{account['id']}", method="DELETE")
    assert api.get("service-accounts")["items"] == []
    assert api.refused(f"service-accounts/{account['id']}/enable") == (404, "not_found")
    with pytest.raises(KeyRefused, match="revoked"):
        authenticate(made["key"], Scope.READ)
    assert authenticate(other, Scope.READ)
    with tenant_scope(acme.tenant.id):
        verbs = list(Action.objects.order_by("id").values_list("verb", flat=True))
        key = ApiKey.objects.get(pk=made["id"])
    assert verbs[-2:] == ["key.revoke", "service.delete"]
    assert key.revoked_at is not None

    again = _account(api)
    assert (again["user"], again["id"] == account["id"]) == (account["user"], False)
    with pytest.raises(KeyRefused, match="revoked"):
        authenticate(made["key"], Scope.READ)


def test_it_is_never_a_person(acme: Cast) -> None:
    """No password, no session, no role, no way into the lists of members."""
    api = program(acme.tenant)
    account = _account(api)
    user = User.objects.get(username=account["user"])
    assert not user.has_usable_password()
    assert memberships_of(user.pk) == []
    client = Client()
    client.force_login(user)
    assert client.get("/traces/").status_code == 403
    with pytest.raises(CommandError, match="no password"):
        call_command("changepassword", user.username)
    for path, body, method in (
        (f"members/{account['id']}/role", {"role": "admin"}, "PUT"),
        (f"members/{account['id']}/remove", None, "POST"),
    ):
        assert api.refused(path, body, method) == (404, "not_found")
    with tenant_scope(acme.tenant.id):
        person = Membership.objects.get(tenant=acme.tenant, user=acme.editor)
    assert api.refused(f"service-accounts/{person.pk}", method="DELETE") == (404, "not_found")


@pytest.mark.parametrize("name", ["Deploy", "a b", "-a", "a-", "é", "a@b", "a:b", "x" * 61, "\x00"])
def test_invalid_name(name: str, acme: Cast) -> None:
    status, code = program(acme.tenant).refused("service-accounts", {"name": name})
    assert (status, code) in {(422, "invalid"), (400, "malformed")}
    page = signed_in(acme.admin).post(PAGE, {"name": name})
    assert page.status_code == 200
    assert b"errorlist" in page.content


def test_name_is_taken_within_one_tenant_only(acme: Cast, globex: Cast) -> None:
    api = program(acme.tenant)
    _account(api)
    assert api.refused("service-accounts", {"name": "deploy"}) == (409, "conflict")
    assert (
        b"There is a service account"
        in signed_in(acme.admin).post(PAGE, {"name": "deploy"}).content
    )
    _account(program(globex.tenant))


def test_page(acme: Cast) -> None:
    admin = signed_in(acme.admin)
    assert "No service accounts yet" in admin.get(PAGE).content.decode()
    assert admin.post(PAGE, {"name": "deploy"}).status_code == 302
    with tenant_scope(acme.tenant.id):
        account = Membership.objects.get(tenant=acme.tenant, is_service=True)
    name = f"service:deploy@{acme.tenant.slug}"
    assert name in admin.get(PAGE).content.decode()
    assert name in admin.get("/settings/keys").content.decode()
    assert name not in admin.get("/settings/members").content.decode()
    assert admin.post(f"{PAGE}/{account.pk}/disable").status_code == 302
    assert "disabled" in admin.get(PAGE).content.decode()
    assert admin.post(f"{PAGE}/{account.pk}/enable").status_code == 302
    assert admin.post(f"{PAGE}/{account.pk}/delete").status_code == 302
    assert "No service accounts yet" in admin.get(PAGE).content.decode()
