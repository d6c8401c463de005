"""Channels over the API: as code, tested, and without their secrets."""

import base64
import json
from typing import Any
from urllib.parse import quote

import pytest
from django.test import override_settings
from standardwebhooks import Webhook

from audit.deliveries.channels import all_channels
from tenants.models import Action, Scope
from tenants.scope import tenant_scope
from tests.support.api_client import Program, program
from tests.support.deliveries import HOST, allow, deliver, mail_settings, webhook_receiver
from tests.support.factories import Cast
from tests.support.hostile_text import XSS

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
WEBHOOK: dict[str, Any] = {"kind": "webhook", "url": "https://a.example/hook", "secret": SECRET}


@pytest.fixture
def api(acme: Cast) -> Program:
    return program(acme.tenant, Scope.ADMIN)


def verbs(cast: Cast) -> list[str]:
    with tenant_scope(cast.tenant.id):
        actions = Action.objects.filter(tenant_id=cast.tenant.id, verb__startswith="channel.")
        return list(actions.order_by("at", "id").values_list("verb", flat=True))


def test_channel_is_saved_as_code_and_its_secret_never_comes_back(acme: Cast, api: Program) -> None:
    made = api.do("channels/on%20call", WEBHOOK, "PUT")
    assert (made["name"], made["kind"], made["has_secret"]) == ("on call", "webhook", True)
    assert made["settings"] == {"url": "https://a.example/hook"}
    assert api.do("channels/on%20call", WEBHOOK, "PUT") == made
    without = {name: value for name, value in WEBHOOK.items() if name != "secret"}
    assert api.do("channels/on%20call", without, "PUT") == made
    assert api.get("channels/on%20call") == made
    assert api.get(f"channels/{made['id']}") == made
    moved = api.do(f"channels/{made['id']}", {**without, "url": "https://b.example/"}, "PUT")
    assert moved["settings"] == {"url": "https://b.example/"}
    assert "ci" in moved["changed_by"]
    url = {"kind": "slack", "url": "https://hooks.example/T0/secret-token"}
    assert api.do("channels/chat", url, "PUT")["settings"] == {"host": "hooks.example"}
    mail = {
        "kind": "email",
        **mail_settings(25, security="tls", username="u", password="pass-w0rd"),
    }
    assert api.do("channels/mail", mail, "PUT")["settings"]["username"] == "u"
    listed = api.get("channels")
    assert [one["name"] for one in listed["channels"]] == ["chat", "mail", "on call"]
    for secret in (SECRET, "secret-token", "pass-w0rd"):
        assert secret not in json.dumps(listed)
    assert api.do("channels/on%20call", None, "DELETE") == moved
    assert api.refused("channels/on%20call", None, "DELETE") == (404, "not_found")
    assert verbs(acme) == [
        *("channel.create", "channel.change", "channel.create", "channel.create"),
        "channel.delete",
    ]


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ({"kind": "webhook", "url": "https://a.example/"}, (422, "invalid")),  # no secret
        ({**WEBHOOK, "secret": "whsec_abc"}, (422, "invalid")),
        ({**WEBHOOK, "url": "ftp://a.example/"}, (422, "invalid")),
        ({**WEBHOOK, "host": "a.example"}, (422, "invalid")),  # of another kind
        ({"kind": "slack"}, (422, "invalid")),
        ({"kind": "email", "host": "a.example"}, (422, "invalid")),
        ({"kind": "pigeon"}, (400, "malformed")),
        ({**WEBHOOK, "colour": "red"}, (400, "malformed")),
        ({"kind": "email", "port": "25"}, (400, "malformed")),
        ({}, (400, "malformed")),
        ([], (400, "malformed")),
    ],
)
def test_mistake_stores_nothing(acme: Cast, api: Program, body: Any, answer: Any) -> None:
    assert api.refused("channels/new", body, "PUT") == answer
    with tenant_scope(acme.tenant.id):
        assert all_channels() == []
    assert verbs(acme) == []


@pytest.mark.parametrize("name", ["x" * 101, "a\x00b", "a\nb", "a\u202eb"])
def test_name_that_no_channel_can_have(api: Program, name: str) -> None:
    address = f"channels/{quote(name)}"
    assert api.refused(address, WEBHOOK, "PUT")[0] in {404, 422}
    assert api.send("GET", address).status_code == 404
    assert api.refused(address, None, "DELETE")[0] == 404
    assert api.refused(f"{address}/test")[0] == 404


def test_hostile_names_are_names(api: Program) -> None:
    for name in XSS:
        address = f"channels/{quote(name, safe='')}"
        if "/" in name or not name.isprintable():  # an address has no place for it
            assert api.send("PUT", address, WEBHOOK).status_code in {404, 422}
        else:
            assert api.do(address, WEBHOOK, "PUT")["name"] == name
            assert api.get(address)["name"] == name


def test_kind_stays_and_other_tenants_have_names_of_their_own(
    acme: Cast, globex: Cast, api: Program
) -> None:
    made = api.do("channels/chat", WEBHOOK, "PUT")
    other = {"kind": "slack", "url": "https://b.example/"}
    assert api.refused("channels/chat", other, "PUT") == (409, "conflict")
    stranger = program(globex.tenant, Scope.ADMIN)
    assert stranger.refused(f"channels/{made['id']}", WEBHOOK, "PUT") == (404, "not_found")
    assert stranger.refused("channels/chat/test") == (404, "not_found")
    assert stranger.do("channels/chat", other, "PUT")["kind"] == "slack"
    assert api.get("channels/chat") == made
    editor = program(acme.tenant, Scope.READ, Scope.OPERATE)
    assert editor.refused("channels/chat", WEBHOOK, "PUT") == (403, "missing_scope")
    assert editor.send("GET", "channels").status_code == 403


def test_without_the_key_of_secrets_nothing_is_changed(api: Program, tmp_path: Any) -> None:
    made = api.do("channels/chat", WEBHOOK, "PUT")
    with override_settings(ENCRYPTION_KEYS=tmp_path / "other"):
        changed = {**WEBHOOK, "url": "https://b.example/"}
        assert api.refused("channels/chat", changed, "PUT") == (409, "conflict")
    assert api.get("channels/chat") == made


@pytest.mark.slow
def test_test_message_is_delivered_and_listed(
    acme: Cast, api: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, HOST)
    with webhook_receiver() as receiver:
        api.do("channels/on%20call", {**WEBHOOK, "url": receiver.url}, "PUT")
        sent = [api.do("channels/on%20call/test")["message_id"] for _ in range(3)]
        waiting = api.get("channels/on%20call/deliveries")["deliveries"]
        assert {one["state"] for one in waiting} == {"waiting"}
        assert all(one["next_attempt_at"] for one in waiting)
        deliver(acme)
        received = [Webhook(SECRET).verify(one.body, one.headers) for one in receiver.requests]
    assert sorted(one["id"] for one in received) == sorted(sent)
    first = api.get("channels/on%20call/deliveries?limit=2")
    second = api.get(f"channels/on%20call/deliveries?limit=2&cursor={first['next']}")
    listed = first["deliveries"] + second["deliveries"]
    assert second["next"] is None
    assert [one["message_id"] for one in listed] == sent[::-1]
    assert {(one["state"], one["kind"]) for one in listed} == {("delivered", "test")}
    assert [one["attempts"][0]["status"] for one in listed] == [200] * 3
    assert api.send("GET", "channels/on%20call/deliveries?cursor=x").json()["code"] == "cursor"
