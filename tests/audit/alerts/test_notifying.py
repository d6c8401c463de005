"""An alert reaches people: a rule fires on real calls, and a webhook and a mailbox get messages."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from standardwebhooks import Webhook

from audit.alerts import life
from audit.alerts.evaluation import SETTLING, evaluate
from audit.alerts.notifying import notify_again
from audit.alerts.rules import Rule
from audit.alerts.stored import all_rules, channel_names, mute_rule, rule_of, save_rule
from audit.deliveries.channels import delete_channel
from audit.models import Alert, ChannelKind
from audit.tasks.alerts import repeat_alerts
from tenants.models import Action
from tenants.scope import tenant_scope
from tests.support.deliveries import (
    HOST,
    allow,
    deliver,
    deliveries,
    mail_settings,
    make_channel,
    smtp_server,
    webhook_receiver,
)
from tests.support.factories import Cast, make_call, send_events

FAILED: dict[str, Any] = {
    "is_error": True,
    "output": {"status": "error", "error": {"type": "X", "message": "no"}},
}
RULE: dict[str, Any] = {
    "name": "fails",
    "condition": {"measure": "failed", "window_minutes": 5, "alert": 0},
}


def fire(cast: Cast, **members: Any) -> datetime:
    """Make the rule, and let it fire on a failed call. Returns the instant at which it does."""
    now = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=30)
    with tenant_scope(cast.tenant.id):
        save_rule(cast.tenant, cast.editor, Rule.model_validate(RULE | members), now)
    send_events(cast.tenant, make_call(started_at=now + timedelta(seconds=5), **FAILED))
    return now + timedelta(minutes=1)


def judge(cast: Cast, at: datetime) -> None:
    with tenant_scope(cast.tenant.id):
        evaluate(at + SETTLING)


@pytest.mark.slow
def test_alert_reaches_webhook_and_mailbox_and_so_does_its_end(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, HOST)
    with webhook_receiver() as receiver, smtp_server() as mailbox:
        _, secrets = make_channel(acme, ChannelKind.WEBHOOK, url=receiver.url)
        make_channel(acme, ChannelKind.EMAIL, **mail_settings(mailbox.port))
        at = fire(acme)
        judge(acme, at)
        judge(acme, at)
        deliver(acme)
        (request,) = receiver.requests
        event = Webhook(secrets["secret"]).verify(request.body, request.headers)
        assert event["type"] == "tooltrail.alert.fired"
        with tenant_scope(acme.tenant.id):
            alert = Alert.objects.for_tenant(acme.tenant.id).get()
        assert event["data"]["title"] == alert.title
        assert event["data"]["url"].endswith(f"/alerts/{alert.id}")
        assert event["data"]["facts"]["value"] == alert.value
        judge(acme, at + timedelta(minutes=10))
        deliver(acme)
    kinds = [each.document["data"]["kind"] for each in receiver.requests]
    assert kinds == ["fired", "resolved"]
    subjects = [mail["Subject"] for _, mail in mailbox.mails]
    assert subjects == [alert.title, f"Resolved: {alert.title}"]
    text = mailbox.mails[0][1].get_content()  # type: ignore[attr-defined]  # of the modern policy
    assert "Condition: Failed calls in 5 min above 0 (alert)\r\n" in text
    assert f"Held from: {alert.held_from:%Y-%m-%d %H:%M} UTC\r\n" in text
    with tenant_scope(acme.tenant.id):
        delivered = Action.objects.filter(tenant=acme.tenant, verb="alert.deliver")
        assert delivered.count() == 4


def test_muted_rule_notifies_nobody(acme: Cast) -> None:
    make_channel(acme, ChannelKind.WEBHOOK, url="https://alerts.example/")
    at = fire(acme)
    with tenant_scope(acme.tenant.id):
        (stored,) = all_rules()
        mute_rule(acme.tenant, acme.editor, stored, 60, "maintenance", datetime.now(UTC))
    judge(acme, at)
    with tenant_scope(acme.tenant.id):
        alert = Alert.objects.for_tenant(acme.tenant.id).get()
        life.resolve(alert, acme.editor, "done", datetime.now(UTC))
    assert deliveries(acme) == []


def test_rule_with_channels_of_its_own_notifies_only_these(acme: Cast) -> None:
    chosen, _ = make_channel(acme, ChannelKind.WEBHOOK, url="https://alerts.example/")
    make_channel(acme, ChannelKind.WEBHOOK, url="https://alerts.example/")
    judge(acme, fire(acme, channels=[chosen.name]))
    assert [row.channel_id for row in deliveries(acme)] == [chosen.id]


def test_rule_whose_channels_were_deleted_notifies_all(acme: Cast) -> None:
    chosen, _ = make_channel(acme, ChannelKind.WEBHOOK, url="https://alerts.example/")
    other, _ = make_channel(acme, ChannelKind.WEBHOOK, url="https://alerts.example/")
    at = fire(acme, channels=[chosen.name])
    with tenant_scope(acme.tenant.id):
        delete_channel(acme.tenant, acme.admin, chosen)
        (stored,) = all_rules()
        assert rule_of(stored, channel_names()).channels == ()
    judge(acme, at)
    assert [row.channel_id for row in deliveries(acme)] == [other.id]


def notified_again(cast: Cast, ago: timedelta) -> int:
    """Let time pass since the last message about the alert. Returns how many are repeated."""
    with tenant_scope(cast.tenant.id):
        now = datetime.now(UTC)
        Alert.objects.for_tenant(cast.tenant.id).update(notified_at=now - ago)
        return notify_again(now)


@pytest.mark.slow
def test_open_alert_is_repeated_until_somebody_acknowledges_it(
    acme: Cast, globex: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, HOST)
    with webhook_receiver() as receiver:
        make_channel(acme, ChannelKind.WEBHOOK, url=receiver.url)
        judge(acme, fire(acme, repeat_minutes=30))
        deliver(acme)
        with tenant_scope(globex.tenant.id):
            assert notify_again(datetime.now(UTC) + timedelta(days=1)) == 0
        assert notified_again(acme, timedelta(minutes=29)) == 0
        with tenant_scope(acme.tenant.id):
            then = datetime.now(UTC) - timedelta(minutes=30)
            Alert.objects.for_tenant(acme.tenant.id).update(notified_at=then)
        repeat_alerts(0)
        with tenant_scope(acme.tenant.id):
            assert notify_again(datetime.now(UTC)) == 0, "people were notified just now"
        deliver(acme)
        with tenant_scope(acme.tenant.id):
            (stored,) = all_rules()
            mute_rule(acme.tenant, acme.editor, stored, 60, "maintenance", datetime.now(UTC))
        assert notified_again(acme, timedelta(hours=1)) == 0
        with tenant_scope(acme.tenant.id):
            mute_rule(acme.tenant, acme.editor, stored, 0, "", datetime.now(UTC))
        assert notified_again(acme, timedelta(hours=1)) == 1
        with tenant_scope(acme.tenant.id):
            alert = Alert.objects.for_tenant(acme.tenant.id).get()
            life.acknowledge(alert, acme.editor, "on it", datetime.now(UTC))
        assert notified_again(acme, timedelta(hours=1)) == 0
        deliver(acme)
    kinds = [each.document["data"]["kind"] for each in receiver.requests]
    assert kinds == ["fired", "repeated", "repeated"]
    again = receiver.requests[1].document
    assert again["type"] == "tooltrail.alert.repeated"
    assert again["data"]["title"] == f"Still open: {alert.title}"
    assert "Nobody has acknowledged it since" in again["data"]["text"]
    assert len({each.headers["webhook-id"] for each in receiver.requests}) == 3


def test_rule_without_repeats_notifies_once(acme: Cast) -> None:
    make_channel(acme, ChannelKind.WEBHOOK, url="https://alerts.example/")
    judge(acme, fire(acme))
    assert notified_again(acme, timedelta(days=30)) == 0
    assert len(deliveries(acme)) == 1


def test_alert_without_channels_is_no_error(acme: Cast) -> None:
    judge(acme, fire(acme))
    assert deliveries(acme) == []
