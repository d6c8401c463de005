"""`manage.py key` and `changepassword --stdin`: a first installation without a browser."""

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from tenants.actions import operator
from tenants.keys import KeyRefused, authenticate
from tenants.models import Action, Scope, Tenant
from tenants.scope import tenant_scope
from tests.support.factories import Cast


def _key(*arguments: str) -> str:
    out = io.StringIO()
    call_command("key", *arguments, stdout=out)
    return out.getvalue()


def _actions_of(tenant: Tenant) -> list[tuple[str, Any]]:
    with tenant_scope(tenant.pk):
        actions = Action.objects.filter(tenant=tenant, verb__startswith="key.")
        return [(one.verb, one.details) for one in actions.order_by("at")]


def test_key_is_created_listed_and_revoked_and_changes_are_logged(acme: Cast) -> None:
    slug = acme.tenant.slug
    text = _key("create", slug, "--name", "ci", "--scope", "ingest", "--scope", "read").strip()
    identity = authenticate(text, Scope.READ)
    assert identity.tenant_id == acme.tenant.id
    with pytest.raises(KeyRefused) as refused:
        authenticate(text, Scope.PAYLOADS)
    assert refused.value.code == "missing_scope"

    listed = {one["key_id"]: one for one in json.loads(_key("list", slug, "--json"))}
    assert listed[identity.key_id]["scopes"] == ["ingest", "read"]
    assert text not in _key("list", slug)

    for _ in range(2):  # a second time changes nothing
        assert json.loads(_key("revoke", slug, identity.key_id, "--json"))["revoked_at"]
    with pytest.raises(KeyRefused) as refused:
        authenticate(text, Scope.READ)
    assert refused.value.code == "revoked_key"
    assert _actions_of(acme.tenant) == [
        ("key.create", {"scopes": ["ingest", "read"]}),
        ("key.revoke", {}),
    ]


def test_key_gets_the_requested_expiry(acme: Cast) -> None:
    soon = (timezone.now() + timedelta(days=3)).isoformat()
    document = json.loads(
        _key(
            *("create", acme.tenant.slug, "--name", "x", "--scope", "ingest"),
            *("--expires", soon, "--json"),
        )
    )
    assert document["expires_at"] == soon
    assert authenticate(document["key"], Scope.INGEST).key_id == document["key_id"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--name", " ", "--scope", "read"], "1 to 100 characters"),
        (["--name", "x" * 101, "--scope", "read"], "1 to 100 characters"),
        (["--name", "x", "--scope", "read", "--expires", "tomorrow"], "--expires must be a time"),
        (["--name", "x", "--scope", "read", "--expires", "2020-01-01"], "is in the past"),
        (["--name", "x", "--scope", "all"], "invalid choice"),
    ],
)
def test_invalid_options_create_no_key(acme: Cast, more: list[str], reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        _key("create", acme.tenant.slug, *more)
    assert _actions_of(acme.tenant) == []


def test_key_of_another_tenant_cannot_be_revoked(acme: Cast, globex: Cast) -> None:
    document = json.loads(
        _key("create", globex.tenant.slug, "--name", "x", "--scope", "read", "--json")
    )
    with pytest.raises(CommandError, match="has no key"):
        _key("revoke", acme.tenant.slug, document["key_id"])
    assert authenticate(document["key"], Scope.READ).tenant_id == globex.tenant.id
    with pytest.raises(CommandError, match="unknown tenant"):
        _key("list", "nobody-at-all")


def test_password_is_read_from_standard_input(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    name = acme.viewer.username
    monkeypatch.setattr("sys.stdin", io.StringIO("a Long enough phrase 7\n"))
    call_command("changepassword", name, "--stdin", stdout=io.StringIO())
    with tenant_scope(acme.tenant.id):
        action = Action.objects.filter(tenant=acme.tenant, verb="password.set").get()
    assert (action.subject, action.user_name) == (name, operator())
    assert Client().login(username=name, password="a Long enough phrase 7")

    for bad, reason in (("short\n", "Aborting"), ("", "no password")):
        monkeypatch.setattr("sys.stdin", io.StringIO(bad))
        with pytest.raises(CommandError, match=reason):
            call_command(
                "changepassword", name, "--stdin", stdout=io.StringIO(), stderr=io.StringIO()
            )
    assert Client().login(username=name, password="a Long enough phrase 7")
