"""The pages and the API of streams."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from audit.alerts import watching
from audit.alerts.rules import EventKind, Rule
from audit.alerts.stored import save_rule
from audit.models import Alert, Stream, StreamWay
from audit.stream.streams import all_streams
from tenants.models import Action, Scope
from tenants.scope import tenant_scope
from tests.support.api_client import program
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import as_owner, sign
from tests.support.pages import signed_in
from tests.support.pages import text as text_of
from tests.support.siem_receivers import certificate
from tests.support.streams import make_stream

HTTPS = {"name": "soc", "of": "calls", "format": "ocsf", "has_proofs": "on", "begin": "now"}


def text(answer: Any) -> str:
    """What a page shows."""
    return text_of(answer.content.decode())


def streams_of(cast: Cast) -> list[Stream]:
    with tenant_scope(cast.tenant.id):
        return all_streams()


def actions_of(cast: Cast) -> list[str]:
    with tenant_scope(cast.tenant.id):
        actions = Action.objects.filter(tenant=cast.tenant, verb__startswith="stream.")
        return list(actions.order_by("at", "id").values_list("verb", flat=True))


@pytest.mark.parametrize(
    ("way", "given"),
    [
        ("syslog", {"host": "siem.example", "port": "6514"}),
        ("https", {"url": "https://siem.example/in", "authorization": "Bearer a-secret"}),
        ("splunk", {"url": "https://siem.example:8088", "token": "a-secret", "has_acks": "on"}),
        (
            "s3",
            {
                "endpoint": "https://s3.example",
                "bucket": "logs",
                "folder": "tooltrail",
                "access_key": "AK",
                "secret_key": "a-secret",
            },
        ),
    ],
)
def test_an_admin_creates_a_stream_of_each_way(acme: Cast, way: str, given: dict[str, str]) -> None:
    admin = signed_in(acme.admin)
    answer = admin.post(reverse("stream_new", args=[way]), {**HTTPS, **given}, follow=True)
    assert answer.status_code == 200
    [stream] = streams_of(acme)
    assert stream.way == way and stream.payloads_by is None
    shown = text(answer)
    assert "soc was created" in shown
    assert b"a-secret" not in answer.content
    assert b"a-secret" not in bytes(stream.secret_box or b"")
    assert "soc" in text(admin.get(reverse("stream_list")))
    # A secret that is left empty stays.
    given = {name: value for name, value in given.items() if value != "a-secret"}
    before = stream.secret_box
    data = {**HTTPS, **given, "name": "siem"}
    assert admin.post(reverse("stream_change", args=[stream.id]), data).status_code == 302
    [stream] = streams_of(acme)
    assert stream.name == "siem" and stream.secret_box == before
    assert actions_of(acme) == ["stream.create", "stream.change"]


@pytest.mark.parametrize(
    ("way", "given", "said"),
    [
        ("syslog", {"host": "a b", "port": "1"}, "name or the address"),
        ("syslog", {"host": "a", "port": "70000"}, "65535"),
        ("https", {"url": "ftp://a"}, "must begin with https"),
        ("https", {"url": "https://u:p@a"}, "must not contain"),
        ("https", {"url": "https://a", "ca": "no PEM"}, "certificates in PEM"),
        ("syslog", {"host": "a", "port": "1", "certificate": "x"}, "certificates in PEM"),
        ("syslog", {"host": "a", "port": "1", "key": "x"}, "certificate of this key"),
        ("splunk", {"url": "https://a/path", "token": "t"}, "without a path"),
        ("splunk", {"url": "https://a"}, "Enter it"),
        ("s3", {"endpoint": "https://a", "bucket": "../x", "access_key": "k"}, "bucket"),
    ],
)
def test_what_is_invalid_is_named(acme: Cast, way: str, given: dict[str, str], said: str) -> None:
    answer = signed_in(acme.admin).post(reverse("stream_new", args=[way]), {**HTTPS, **given})
    assert answer.status_code == 200
    assert said in text(answer)
    assert streams_of(acme) == []


def test_key_of_a_client_certificate_is_never_shown(acme: Cast) -> None:
    own, admin = certificate("tooltrail.test"), signed_in(acme.admin)
    data = {**HTTPS, "host": "siem.example", "port": "6514", "certificate": own.pem}
    wrong = {**data, "key": certificate("other.test").key}
    answer = admin.post(reverse("stream_new", args=["syslog"]), wrong)
    assert "not the private key" in text(answer)
    assert b"PRIVATE KEY" not in answer.content
    admin.post(reverse("stream_new", args=["syslog"]), {**data, "key": own.key})
    [stream] = streams_of(acme)
    assert stream.settings["certificate"] == own.pem and "key" not in stream.settings
    page = admin.get(reverse("stream_detail", args=[stream.id]))
    assert b"BEGIN CERTIFICATE" in page.content
    assert b"PRIVATE KEY" not in page.content
    assert "Leave empty to keep" in text(page)
    # An empty key stays, and goes with its certificate.
    change, before = reverse("stream_change", args=[stream.id]), stream.secret_box
    assert admin.post(change, {**data, "port": "6515"}).status_code == 302
    assert streams_of(acme)[0].secret_box == before
    assert admin.post(change, {**data, "certificate": ""}).status_code == 302
    assert streams_of(acme)[0].secret_box is None


def test_auditors_see_streams_and_decide_about_payloads(acme: Cast) -> None:
    stream = make_stream(acme, StreamWay.HTTPS, url="https://siem.example")
    auditor, admin = signed_in(acme.auditor), signed_in(acme.admin)
    page = reverse("stream_detail", args=[stream.id])
    shown = text(auditor.get(page))
    assert "An erasure cannot reach what has left" in shown
    assert "Save" not in shown and "Delete" not in shown
    assert signed_in(acme.viewer).get(page).status_code == 403
    allow = reverse("stream_payloads", args=[stream.id])
    auditor.post(allow, {"reason": "x"})
    assert streams_of(acme)[0].payloads_by is None
    auditor.post(allow, {"reason": "incident 7"})
    [stored] = streams_of(acme)
    assert (stored.payloads_by, stored.payloads_reason) == (
        acme.auditor.get_username(),
        "incident 7",
    )
    assert "incident 7" in text(auditor.get(page))
    # To another address they do not leave.
    data = {**HTTPS, "name": stored.name, "url": "https://other.example"}
    admin.post(reverse("stream_change", args=[stream.id]), data)
    assert streams_of(acme)[0].payloads_by is None
    assert actions_of(acme) == ["stream.create", "stream.payloads", "stream.change"]


def test_a_replay_goes_back_and_never_forward(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    stream = make_stream(acme, StreamWay.HTTPS, url="https://siem.example", begin=1)
    admin, replay = signed_in(acme.admin), reverse("stream_replay", args=[stream.id])
    assert "from 0 to 1" in text(admin.post(replay, {"index": 2}, follow=True))
    assert "Nothing was changed" in text(admin.post(replay, {"index": "x"}, follow=True))
    admin.post(replay, {"index": 0})
    assert streams_of(acme)[0].next_index == 0
    assert actions_of(acme) == ["stream.create", "stream.replay"]


def test_the_api_creates_reads_and_changes_as_the_page(acme: Cast) -> None:
    api = program(acme.tenant, Scope.ADMIN, Scope.REVEAL)
    body: dict[str, Any] = {"way": "splunk", "url": "https://s.example:8088", "token": "a-secret"}
    made = api.do("streams/soc", body, "PUT")
    assert made["has_secret"] is True and "a-secret" not in str(made)
    assert made["state"] == "current" and made["behind_entries"] == 0
    again = api.do("streams/soc", {**body, "has_acks": True}, "PUT")
    assert again["settings"]["has_acks"] is True
    api.do("streams/soc", {**body, "has_acks": True}, "PUT")
    assert actions_of(acme) == ["stream.create", "stream.change"]
    assert api.refused("streams/soc", {**body, "way": "https"}, "PUT")[0] in (409, 422)
    assert api.refused("streams/x", {"way": "https", "token": "t"}, "PUT") == (422, "invalid")
    assert api.refused("streams/none", method="GET")[0] == 404
    assert api.do("streams/soc/pause")["state"] == "paused"
    assert api.do("streams/soc/resume")["paused_at"] is None
    assert api.refused("streams/soc/replay", {"index": 10**6}) == (422, "invalid")
    assert api.do("streams/soc/payloads", {"reason": "incident"})["payloads_by"]
    assert api.do("streams/soc/payloads", method="DELETE")["payloads_by"] is None
    assert api.do("streams/soc/test")["last_test"]["at"] is None
    assert [one["name"] for one in api.get("streams")["items"]] == ["soc"]
    assert api.do("streams/soc", method="DELETE")["name"] == "soc"
    assert api.get("streams")["items"] == []


def test_the_api_takes_a_client_certificate_and_keeps_its_key(acme: Cast) -> None:
    api, own = program(acme.tenant, Scope.ADMIN), certificate("tooltrail.test")
    body = {"way": "syslog", "host": "siem.example", "certificate": own.pem}
    assert api.refused("streams/soc", body, "PUT") == (422, "invalid")
    made = api.do("streams/soc", {**body, "key": own.key}, "PUT")
    assert made["has_secret"] is True and "PRIVATE KEY" not in str(made)
    assert made["settings"]["certificate"] == own.pem
    assert api.do("streams/soc", {**body, "port": 6515}, "PUT")["has_secret"] is True
    assert (
        api.do("streams/soc", {"way": "syslog", "host": "siem.example"}, "PUT")["has_secret"]
        is False
    )


def test_a_stream_that_is_behind_raises_an_alert_until_it_is_not(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    sign(acme.tenant)
    stream = make_stream(acme, StreamWay.HTTPS, url="https://siem.example", name="soc")
    rule = {"on": "event", "event": EventKind.STREAM_BEHIND, "severity": "alert"}
    now = timezone.now()
    with tenant_scope(acme.tenant.id):
        save_rule(
            acme.tenant,
            acme.editor,
            Rule.model_validate({"name": "SIEM", "condition": rule}),
            now,
        )
        watching.watch(now)
        assert not Alert.objects.for_tenant(acme.tenant.id).exists()
        later = now + timedelta(minutes=6)
        watching.watch(later)
        alert = Alert.objects.for_tenant(acme.tenant.id).get()
        assert "the stream soc is" in alert.title and alert.resolved_at is None
    as_owner("UPDATE stream SET next_index = 100 WHERE id = %s", [stream.id])
    with tenant_scope(acme.tenant.id):
        watching.watch(later + timedelta(minutes=1))
        assert Alert.objects.for_tenant(acme.tenant.id).get().resolved_at is not None


def test_schemas_are_served_to_everybody(acme: Cast) -> None:

    for form in ("ocsf", "ecs"):
        answer = Client().get(f"/schemas/stream-{form}-1.json")
        assert answer.status_code == 200
        assert answer.json()["$id"] == f"urn:tooltrail:stream-{form}-1"
    assert Client().get("/schemas/config.json").status_code == 404
