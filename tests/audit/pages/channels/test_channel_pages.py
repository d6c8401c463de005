"""Admins create, change, test and delete channels; secrets are shown once or never."""

import base64
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings
from django.urls import reverse
from standardwebhooks import Webhook

from audit.deliveries.channels import all_channels, secrets_of
from audit.models import AlertChannel, ChannelKind, DeliveryState
from tenants.models import Action
from tenants.scope import tenant_scope
from tests.support.deliveries import (
    HOST,
    Receiver,
    allow,
    deliver,
    deliveries,
    mail_settings,
    make_channel,
    webhook_receiver,
)
from tests.support.factories import Cast
from tests.support.pages import HOSTILE, PARTIAL, signed_in, text


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    allow(monkeypatch, HOST)
    with webhook_receiver() as receiver:
        yield receiver


def the_channel(cast: Cast) -> AlertChannel:
    with tenant_scope(cast.tenant.id):
        (channel,) = all_channels()
    return channel


def mail_form(**others: Any) -> dict[str, Any]:
    return {**mail_settings(587), "recipients": "ann@example.com, bob@example.com", **others}


def test_webhook_from_its_creation_to_a_verified_message(acme: Cast, receiver: Receiver) -> None:
    admin = signed_in(acme.admin)
    created = admin.post(
        reverse("channel_new", args=["webhook"]), {"name": "On call", "url": receiver.url}
    )
    (secret,) = re.findall(r"whsec_[A-Za-z0-9+/=]+", created.content.decode())
    channel = the_channel(acme)
    address = reverse("channel_detail", args=[channel.id])
    assert secret not in admin.get(address).content.decode()
    assert secrets_of(channel) == {"secret": secret}
    assert secret.encode() not in bytes(channel.secret_box or b"")

    tested = admin.post(reverse("channel_test", args=[channel.id]), follow=True)
    assert "waiting" in text(tested.content.decode())
    assert "every 2s" in tested.content.decode()
    deliver(acme)
    (request,) = receiver.requests
    assert Webhook(secret).verify(request.body, request.headers)["type"] == "tooltrail.alert.test"
    fragment = admin.get(address, headers=PARTIAL).content.decode()
    assert "delivered" in text(fragment)
    assert "200 thank you" in text(fragment)
    assert "every 2s" not in fragment
    assert "delivered" in text(admin.get(reverse("channel_list")).content.decode())


def test_secret_stays_unless_it_is_replaced(acme: Cast) -> None:
    channel, before = make_channel(acme, ChannelKind.WEBHOOK, "On call", url="https://a.example/")
    admin = signed_in(acme.admin)
    address = reverse("channel_detail", args=[channel.id])
    changed = {"name": "On duty", "url": "https://b.example/"}
    assert admin.post(address, changed).status_code == 302
    assert secrets_of(the_channel(acme)) == before
    assert the_channel(acme).settings == {"url": "https://b.example/"}
    replaced = admin.post(address, {**changed, "is_replaced": "on"})
    (secret,) = re.findall(r"whsec_[A-Za-z0-9+/=]+", replaced.content.decode())
    assert secrets_of(the_channel(acme)) == {"secret": secret} != before
    own = "whsec_" + base64.b64encode(bytes(32)).decode()
    assert own in admin.post(address, {**changed, "secret": own}).content.decode()
    with tenant_scope(acme.tenant.id):
        own_actions = Action.objects.filter(tenant=acme.tenant, verb="channel.change")
        actions = list(own_actions.order_by("at"))
    changes = [each.details["changed"] for each in actions]
    assert changes == [["name", "url"], ["secret"], ["secret"]]
    assert secret not in str([each.details for each in actions])


def test_saving_without_a_change_records_nothing(acme: Cast) -> None:
    channel, _ = make_channel(acme, ChannelKind.EMAIL, "Mail", **mail_settings(587))
    address = reverse("channel_detail", args=[channel.id])
    assert signed_in(acme.admin).post(address, mail_form(name="Mail")).status_code == 302
    with tenant_scope(acme.tenant.id):
        assert not Action.objects.filter(tenant=acme.tenant, verb="channel.change").exists()
    assert the_channel(acme).changed_at == channel.changed_at


def test_mail_channel_keeps_its_password(acme: Cast) -> None:
    admin = signed_in(acme.admin)
    form = mail_form(name="Mail", security="tls", username="u", password="p4ss w0rd")
    assert admin.post(reverse("channel_new", args=["email"]), form).status_code == 302
    channel = the_channel(acme)
    assert channel.settings["recipients"] == ["ann@example.com", "bob@example.com"]
    page = admin.get(reverse("channel_detail", args=[channel.id])).content.decode()
    assert "p4ss" not in page
    form |= {"password": "", "port": 465}
    assert admin.post(reverse("channel_detail", args=[channel.id]), form).status_code == 302
    assert secrets_of(the_channel(acme)) == {"password": "p4ss w0rd"}
    form |= {"username": "", "password": ""}
    assert admin.post(reverse("channel_detail", args=[channel.id]), form).status_code == 302
    assert the_channel(acme).secret_box is None


@pytest.mark.parametrize(
    ("kind", "given", "problem"),
    [
        ("webhook", {"url": "ftp://a.example/"}, "must begin with https://"),
        ("webhook", {"url": "https://u:p@a.example/"}, "must not contain a user"),
        ("webhook", {"url": "https://a.example/\\"}, "must be encoded"),
        ("webhook", {"url": "https://[::1/"}, "not a URL"),
        ("webhook", {"url": "https://a.example:99999/"}, "not a URL"),
        ("webhook", {"url": "https://a.example/", "secret": "whsec_abc"}, "24 to 64 bytes"),
        ("webhook", {"url": "https://a.example/", "name": "x" * 101}, "at most 100"),
        ("slack", {"url": ""}, "must begin with https://"),
        ("email", mail_form(recipients="nobody"), "nobody is not an e-mail address"),
        ("email", mail_form(recipients="ü@example.com"), "is not an e-mail address"),
        ("email", mail_form(recipients=" ".join(f"a{n}@b.example" for n in range(51))), "most 50"),
        ("email", mail_form(sender="x\r\nBcc: y"), "one line of text"),
        ("email", mail_form(host="a b"), "name or the address of a mail server"),
        ("email", mail_form(port="70000"), "less than or equal to 65535"),
        ("email", mail_form(username="u"), "both a user and a password"),
        ("email", mail_form(username="u", password="p"), "not sent without encryption"),
    ],
)
def test_mistake_is_shown_and_nothing_is_stored(
    acme: Cast, kind: str, given: dict[str, Any], problem: str
) -> None:
    form = {"name": "Channel", **given}
    answer = signed_in(acme.admin).post(reverse("channel_new", args=[kind]), form)
    assert answer.status_code == 200
    assert problem in text(answer.content.decode())
    with tenant_scope(acme.tenant.id):
        assert all_channels() == []


def test_name_is_used_once(acme: Cast) -> None:
    make_channel(acme, ChannelKind.WEBHOOK, "On call", url="https://a.example/")
    second, _ = make_channel(acme, ChannelKind.WEBHOOK, "Other", url="https://a.example/")
    admin, form = signed_in(acme.admin), {"name": "On call", "url": "https://b.example/"}
    for address in (
        reverse("channel_new", args=["webhook"]),
        reverse("channel_detail", args=[second.id]),
    ):
        assert "Another channel has this name." in admin.post(address, form).content.decode()


def test_deleted_channel_is_gone_and_its_messages_are_cancelled(acme: Cast) -> None:
    channel, _ = make_channel(acme, ChannelKind.WEBHOOK, "On call", url="https://a.example/")
    admin = signed_in(acme.admin)
    admin.post(reverse("channel_test", args=[channel.id]))
    deleted = admin.post(reverse("channel_delete", args=[channel.id]), follow=True)
    assert "On call was deleted" in text(deleted.content.decode())
    assert [row.state for row in deliveries(acme)] == [DeliveryState.CANCELLED]
    assert admin.get(reverse("channel_detail", args=[channel.id])).status_code == 404


@pytest.mark.parametrize("answer", HOSTILE)
def test_answer_of_a_receiver_is_shown_as_text(acme: Cast, receiver: Receiver, answer: str) -> None:
    receiver.text = answer
    channel, _ = make_channel(acme, ChannelKind.WEBHOOK, "On call", url=receiver.url)
    admin = signed_in(acme.admin)
    admin.post(reverse("channel_test", args=[channel.id]))
    deliver(acme)
    page = admin.get(reverse("channel_detail", args=[channel.id])).content.decode()
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "\u202e" not in page


def test_without_the_key_the_page_says_so_and_messages_wait(
    acme: Cast, receiver: Receiver, tmp_path: Any
) -> None:
    channel, _ = make_channel(acme, ChannelKind.WEBHOOK, "On call", url=receiver.url)
    admin = signed_in(acme.admin)
    admin.post(reverse("channel_test", args=[channel.id]))
    with override_settings(ENCRYPTION_KEYS=tmp_path / "other"):
        deliver(acme)
        form = {"name": "On call", "url": "https://b.example/"}
        answer = admin.post(reverse("channel_detail", args=[channel.id]), form)
    assert "a key that this machine does not have" in text(answer.content.decode())
    (row,) = deliveries(acme)
    assert row.state == DeliveryState.WAITING
    assert "a key that this machine does not have" in row.attempts[0]["answer"]
    assert receiver.requests == []


@pytest.mark.slow
def test_older_deliveries_are_on_the_next_page(acme: Cast) -> None:
    channel, _ = make_channel(acme, ChannelKind.WEBHOOK, "On call", url="https://a.example/")
    admin = signed_in(acme.admin)
    for _ in range(52):
        admin.post(reverse("channel_test", args=[channel.id]))
    address = reverse("channel_detail", args=[channel.id])
    first = admin.get(address)
    shown = {one.delivery.id for one in first.context["deliveries"]}
    second = admin.get(address, {"before": first.context["older"]})
    shown |= {one.delivery.id for one in second.context["deliveries"]}
    assert len(shown) == 52
    assert second.context["older"] == ""
    assert admin.get(address, {"before": "nonsense"}).status_code == 200
