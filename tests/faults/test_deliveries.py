"""Killed workers: every alert is opened once, and every message is delivered, with an id by which
repeats are told.
"""

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from audit.alerts.rules import Rule
from audit.alerts.stored import delete_rule, find_rule, save_rule
from audit.deliveries.outbox import enqueue
from audit.models import Alert, AlertDelivery, ChannelKind, DeliveryState
from config.instance import BASE_DIR
from tenants.models import Action
from tenants.scope import tenant_scope
from tests.support.alerts import judge_all
from tests.support.deliveries import (
    HOST,
    allow,
    deliver,
    deliveries,
    make_channel,
    make_message,
    webhook_receiver,
)
from tests.support.factories import Cast, make_call, send_events

pytestmark = pytest.mark.slow


def run_worker(cast: Cast, step: int, *options: str) -> subprocess.CompletedProcess[str]:
    module = "tests.support.killed_worker"
    command = [sys.executable, "-m", module, str(cast.tenant.id), str(step), *options]
    return subprocess.run(
        command, cwd=BASE_DIR, env=dict(os.environ), capture_output=True, text=True, check=False
    )


def end_leases(cast: Cast) -> None:
    """Let the time pass after which deliveries of a killed worker are tried again."""
    with tenant_scope(cast.tenant.id):
        AlertDelivery.objects.for_tenant(cast.tenant.id).filter(state=DeliveryState.WAITING).update(
            next_attempt_at=timezone.now()
        )


def test_worker_killed_at_any_step_loses_no_message(
    acme: Cast, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, HOST)
    with webhook_receiver() as receiver:
        channel, _ = make_channel(acme, ChannelKind.WEBHOOK, url=receiver.url)
        sent = []

        def send() -> None:
            message = make_message()
            with tenant_scope(acme.tenant.id):
                enqueue(acme.tenant.id, message, [channel.id])
            sent.append(str(message.id))

        send()
        steps = int(run_worker(acme, 0, "--only-deliver").stdout)
        assert steps > 50
        kills = [steps * number // 100 + 1 for number in range(100)]
        for step in kills if full else random.sample(kills, 8):
            send()
            done = run_worker(acme, step, "--only-deliver")
            assert done.returncode == -signal.SIGKILL, done.stderr
            end_leases(acme)
        deliver(acme)
        received = Counter(request.headers["webhook-id"] for request in receiver.requests)
    assert set(received) == {f"msg_{message_id}" for message_id in sent}
    assert {row.state for row in deliveries(acme)} == {DeliveryState.DELIVERED}
    assert len(deliveries(acme)) == len(sent)


def make_true(cast: Cast, name: str) -> None:
    """Make a rule of a window that notifies again, and a call that it fires for."""
    send_events(cast.tenant, make_call(tool_name=name, started_at=timezone.now()))
    condition = {"measure": "calls", "query": f"tool:{name}", "warning": 0}
    rule = Rule.model_validate({"name": name, "condition": condition, "repeat_minutes": 15})
    with tenant_scope(cast.tenant.id):
        save_rule(cast.tenant, cast.editor, rule, timezone.now())


def forget(cast: Cast, name: str) -> None:
    """Delete a rule, so that there are never more than two."""
    with tenant_scope(cast.tenant.id):
        stored = find_rule(name)
        assert stored is not None
        delete_rule(cast.tenant, cast.editor, stored, timezone.now())


def let_time_pass(cast: Cast, name: str) -> None:
    """Let the time pass after which people are notified of an alert again."""
    with tenant_scope(cast.tenant.id):
        alerts = Alert.objects.for_tenant(cast.tenant.id).filter(rule_name=name)
        assert alerts.update(notified_at=timezone.now() - timedelta(minutes=20)) == 1


def test_worker_killed_between_judging_and_delivering_loses_and_doubles_no_alert(
    acme: Cast, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, HOST)
    with webhook_receiver() as receiver:
        make_channel(acme, ChannelKind.WEBHOOK, url=receiver.url)
        names = [f"rule-{number}" for number in range(101 if full else 11)]
        make_true(acme, names[0])
        steps = int(run_worker(acme, 0).stdout)
        assert steps > 500
        parts, killed = len(names) - 1, 0
        for number, name in enumerate(names[1:], 1):
            make_true(acme, name)
            let_time_pass(acme, names[number - 1])
            if number > 1:
                forget(acme, names[number - 2])
            step = random.randint(steps * (number - 1) // parts, steps * number // parts)
            done = run_worker(acme, step + 1)
            assert done.returncode in (-signal.SIGKILL, 0), done.stderr
            killed += done.returncode == -signal.SIGKILL
            end_leases(acme)
            judge_all(acme.tenant.id)
            deliver(acme)
    assert killed > parts // 2, "the others lived, as their work had fewer steps"
    ids: dict[tuple[str, str], set[str]] = {}
    for request in receiver.requests:
        sent = request.document["data"]
        key = sent["rule"], sent["kind"]
        ids.setdefault(key, set()).add(request.headers["webhook-id"])
    assert ids.keys() >= {(name, "fired") for name in names}
    assert ids.keys() >= {(name, "repeated") for name in names[:-1]}
    assert all(len(each) == 1 for each in ids.values()), "none is sent twice with another id"
    with tenant_scope(acme.tenant.id):
        opened = Alert.objects.for_tenant(acme.tenant.id).values_list("rule_name", flat=True)
        assert sorted(opened) == sorted(names)
        fired = Action.objects.filter(tenant=acme.tenant, verb="alert.fire")
        assert fired.count() == len(names)
    assert {row.state for row in deliveries(acme)} == {DeliveryState.DELIVERED}
