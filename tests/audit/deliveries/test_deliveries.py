"""Messages reach real receivers: mail, webhook, Slack; each attempt is recorded."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import jsonschema_rs
import pytest
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from audit.deliveries import delivering
from audit.deliveries.channels import delete_channel
from audit.deliveries.message import KINDS, to_document
from audit.deliveries.outbox import SOON, enqueue
from audit.deliveries.sender.webhook import event
from audit.models import AlertDelivery, ChannelKind, DeliveryState
from audit.tasks.alerts import deliver as deliver_task
from audit.tasks.alerts import judge_alert_rules, keep_deliveries, watch_for_events
from config import instance
from config.http.origin import own_url
from tenants.models import Action
from tenants.scope import tenant_scope
from tests.support.deliveries import (
    HOST,
    Mailbox,
    Receiver,
    allow,
    deliver,
    deliveries,
    mail_settings,
    make_channel,
    make_message,
    smtp_server,
    webhook_receiver,
)
from tests.support.documents import ROOT
from tests.support.factories import Cast


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    allow(monkeypatch, HOST)
    with webhook_receiver() as receiver:
        yield receiver


@pytest.fixture
def mailbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mailbox]:
    allow(monkeypatch, HOST)
    with smtp_server() as mailbox:
        yield mailbox


def test_webhook_is_an_event_with_a_signature(acme: Cast, receiver: Receiver) -> None:
    channel, secrets = make_channel(acme, ChannelKind.WEBHOOK, url=f"{receiver.url}?a=b%20ç")
    message = make_message(title="ünïcode 12\u202f%")
    with tenant_scope(acme.tenant.id):
        enqueue(acme.tenant.id, message, [channel.id])
    deliver(acme)
    (request,) = receiver.requests
    assert request.path == "/hook?a=b%20%C3%A7"
    verified = Webhook(secrets["secret"]).verify(request.body, request.headers)
    assert verified == request.document
    assert request.headers["webhook-id"] == f"msg_{message.id}"
    assert request.headers["content-type"].startswith("application/cloudevents+json")
    assert verified["specversion"] == "1.0"
    assert (verified["id"], verified["type"]) == (str(message.id), "tooltrail.alert.fired")
    assert verified["data"]["title"] == "ünïcode 12\u202f%"
    assert verified["data"]["facts"] == message.facts
    assert verified["data"]["url"].endswith("/alerts/1")
    with pytest.raises(WebhookVerificationError):
        Webhook(secrets["secret"]).verify(request.body + b" ", request.headers)
    (row,) = deliveries(acme)
    assert (row.state, row.attempt_count) == (DeliveryState.DELIVERED, 1)
    assert [(each["status"], each["answer"]) for each in row.attempts] == [(200, "thank you")]


@pytest.mark.parametrize("kind", KINDS)
def test_body_follows_the_published_schema(kind: Any) -> None:
    schema = json.loads((ROOT / "docs" / "schemas" / "alert-message.json").read_text())
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    message = to_document(make_message(kind=kind, title="t" * 999, text="t" * 9_999))
    body = event(message | {"url": "https://a.example/x", "source": "https://a.example/#acme"})
    assert [error.message for error in validator.iter_errors(body)] == []
    del body["data"]["facts"]
    assert not validator.is_valid(body)
    kinds = schema["properties"]["data"]["properties"]["kind"]["enum"]
    assert kinds == list(KINDS)


def test_mail_has_no_second_header_of_a_name(acme: Cast, mailbox: Mailbox) -> None:
    channel, _ = make_channel(acme, ChannelKind.EMAIL, **mail_settings(mailbox.port))
    message = make_message(title="It fails\r\nBcc: eve@example.com", text="Zwölf <b>calls</b>")
    with tenant_scope(acme.tenant.id):
        enqueue(acme.tenant.id, message, [channel.id])
    deliver(acme)
    ((recipients, mail),) = mailbox.mails
    assert recipients == ["ann@example.com", "bob@example.com"]
    assert mail["Subject"] == "It fails Bcc: eve@example.com"
    assert mail["Bcc"] is None
    assert mail["Message-ID"] == f"<{message.id}.{channel.id}@tooltrail>"
    text = mail.get_content()  # type: ignore[attr-defined]  # of the modern policy
    assert "Zwölf <b>calls</b>" in text
    assert "Condition: Failed calls in 5 min above 0 (alert)" in text
    assert "Held from: 2026-11-26 21:38 UTC" in text
    assert "/alerts/1" in text


def test_slack_shows_names_of_others_as_text(acme: Cast, receiver: Receiver) -> None:
    channel, _ = make_channel(acme, ChannelKind.SLACK, url=receiver.url)
    with tenant_scope(acme.tenant.id):
        enqueue(acme.tenant.id, make_message(text="<!channel> & <http://x|y>"), [channel.id])
    deliver(acme)
    (request,) = receiver.requests
    assert "&lt;!channel&gt; &amp; &lt;http://x|y&gt;" in request.document["text"]
    assert request.document["blocks"][0]["text"]["text"] == request.document["text"]


@pytest.mark.parametrize(
    ("origins", "name", "lock", "address"),
    [
        (["https://*.example", "https://tools.example/"], "x.example", "", "https://tools.example"),
        ([], "tools.example", "7 127.0.0.1:8765\n", "http://tools.example"),
        ([], "localhost", "7 127.0.0.1:8765\n", "http://localhost:8765"),
        ([], "localhost", "7 ::1:8765\n", "http://localhost:8765"),
        ([], "localhost", "", "http://localhost"),
    ],
)
def test_links_lead_to_this_server(
    origins: list[str],
    name: str,
    lock: str,
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settings, "CSRF_TRUSTED_ORIGINS", origins)
    monkeypatch.setattr(settings, "LEDGER_HOST", name)
    monkeypatch.setattr(settings, "HTTPS", False)
    monkeypatch.setattr(instance, "UP_LOCK", tmp_path / "up.lock")
    if lock:
        instance.UP_LOCK.write_text(lock)
    assert own_url() == address


def test_message_is_stored_only_with_what_caused_it(acme: Cast, receiver: Receiver) -> None:
    channel, _ = make_channel(acme, ChannelKind.WEBHOOK, url=receiver.url)
    message = make_message()
    with pytest.raises(RuntimeError), tenant_scope(acme.tenant.id):
        enqueue(acme.tenant.id, message, [channel.id])
        raise RuntimeError
    assert deliveries(acme) == []
    with tenant_scope(acme.tenant.id):
        enqueue(acme.tenant.id, message, [channel.id])
        enqueue(acme.tenant.id, message, [channel.id])
    assert len(deliveries(acme)) == 1, "the same message is not sent twice"
    job = ProcrastinateJob.objects.filter(task_name="audit.tasks.deliver").latest("id")
    assert (job.queue_name, job.args) == ("deliveries", {"tenant_id": str(acme.tenant.id)})
    assert job.priority == deliver_task.priority == SOON


def test_worker_takes_the_tasks_of_alerts_before_those_that_wait() -> None:
    queue = f"test-{uuid4().hex[:12]}"
    tasks = (keep_deliveries, judge_alert_rules, watch_for_events)
    for task in tasks:
        # Its own lock may be held by a job that another test left.
        lock = f"{queue} {task.name}"
        task.configure(queue=queue, queueing_lock=lock).defer(timestamp=0)
    taken = []
    with transaction.atomic(), connection.cursor() as cursor:
        for _ in tasks:
            cursor.execute(
                "SELECT task_name FROM procrastinate_fetch_job_v2(%s::text[], NULL)", [[queue]]
            )
            taken += cursor.fetchone()
        transaction.set_rollback(True)
    ProcrastinateJob.objects.filter(queue_name=queue).delete()
    assert taken == [judge_alert_rules.name, watch_for_events.name, keep_deliveries.name]


@pytest.mark.slow
def test_failed_delivery_is_tried_again_for_a_day(acme: Cast, receiver: Receiver) -> None:
    channel, _ = make_channel(acme, ChannelKind.WEBHOOK, url=receiver.url)
    receiver.answers = [503] * 100
    with tenant_scope(acme.tenant.id):
        enqueue(acme.tenant.id, make_message(), [channel.id])
    delays = []
    for _ in range(30):
        deliver(acme)
        (row,) = deliveries(acme)
        if row.state != DeliveryState.WAITING:
            break
        delays.append(row.next_attempt_at - timezone.now())
        set_back(row, delays[-1])
    assert row.state == DeliveryState.FAILED
    assert [round(delay / timedelta(minutes=1)) for delay in delays[:5]] == [1, 2, 4, 8, 16]
    assert timedelta(hours=20) < sum(delays, timedelta()) < timedelta(hours=24)
    assert len(receiver.requests) == row.attempt_count == len(delays) + 1 == len(row.attempts)
    assert {request.headers["webhook-id"] for request in receiver.requests} == {
        f"msg_{row.message_id}"
    }
    with tenant_scope(acme.tenant.id):
        action = Action.objects.get(tenant=acme.tenant, verb="alert.undelivered")
    assert action.details["status"] == 503


def set_back(row: AlertDelivery, by: timedelta) -> None:
    """Let time pass for a delivery."""
    with tenant_scope(row.tenant_id):
        AlertDelivery.objects.for_tenant(row.tenant_id).filter(id=row.id).update(
            created_at=row.created_at - by, next_attempt_at=row.next_attempt_at - by
        )


def test_delivery_is_an_action_without_the_text(acme: Cast, receiver: Receiver) -> None:
    channel, secrets = make_channel(acme, ChannelKind.WEBHOOK, url=receiver.url)
    with tenant_scope(acme.tenant.id):
        enqueue(acme.tenant.id, make_message(), [channel.id])
    deliver(acme)
    with tenant_scope(acme.tenant.id):
        actions = {each.verb: each for each in Action.objects.filter(tenant=acme.tenant)}
    assert actions["alert.deliver"].details["channel"] == channel.name
    assert actions["alert.deliver"].user_name == "Tooltrail"
    assert f"alert_channel/{channel.id}" in actions["channel.create"].rows
    stored = json.dumps([[each.subject, each.details] for each in actions.values()])
    assert secrets["secret"] not in stored
    assert receiver.url not in stored


def test_one_dead_receiver_does_not_keep_others_waiting(acme: Cast, receiver: Receiver) -> None:
    dead, _ = make_channel(acme, ChannelKind.WEBHOOK, url=f"http://{HOST}:9/")
    alive, _ = make_channel(acme, ChannelKind.WEBHOOK, url=receiver.url)
    with tenant_scope(acme.tenant.id):
        enqueue(acme.tenant.id, make_message(), [dead.id, alive.id])
    deliver(acme)
    by_channel = {row.channel_id: row for row in deliveries(acme)}
    assert by_channel[alive.id].state == DeliveryState.DELIVERED
    assert by_channel[dead.id].state == DeliveryState.WAITING
    assert by_channel[dead.id].attempts[0]["answer"] == "The connection was refused."


def test_deleted_channel_gets_nothing_more(acme: Cast, receiver: Receiver) -> None:
    channel, _ = make_channel(acme, ChannelKind.WEBHOOK, url=receiver.url)
    with tenant_scope(acme.tenant.id):
        enqueue(acme.tenant.id, make_message(), [channel.id])
        delete_channel(acme.tenant, acme.admin, channel)
        enqueue(acme.tenant.id, make_message(), [channel.id])
    deliver(acme)
    assert [row.state for row in deliveries(acme)] == [DeliveryState.CANCELLED]
    assert receiver.requests == []


@pytest.mark.slow
def test_sweep_finds_what_a_lost_task_left(acme: Cast, receiver: Receiver) -> None:
    channel, _ = make_channel(acme, ChannelKind.WEBHOOK, url=receiver.url)
    with tenant_scope(acme.tenant.id):
        enqueue(acme.tenant.id, make_message(), [channel.id])
    mine = ProcrastinateJob.objects.filter(args={"tenant_id": str(acme.tenant.id)})
    before = mine.count()
    keep_deliveries(0)
    keep_deliveries(0)
    assert mine.count() == before + 1
    deliver(acme)
    keep_deliveries(0)
    assert mine.filter(status="todo").count() == before + 1


def test_old_deliveries_are_forgotten(acme: Cast, receiver: Receiver) -> None:
    channel, _ = make_channel(acme, ChannelKind.WEBHOOK, url=receiver.url)
    with tenant_scope(acme.tenant.id):
        enqueue(acme.tenant.id, make_message(), [channel.id])
    deliver(acme)
    now = timezone.now()
    with tenant_scope(acme.tenant.id):
        delivering.forget_old(acme.tenant.id, now + timedelta(days=89))
    assert len(deliveries(acme)) == 1
    with tenant_scope(acme.tenant.id):
        delivering.forget_old(acme.tenant.id, now + timedelta(days=91))
    assert deliveries(acme) == []
