"""Each service that is offered connects through the guard, and a real one gets the message."""

import json
import subprocess
import sys

import pytest

from audit.deliveries import process
from audit.deliveries.addressing import ChannelError, read
from audit.deliveries.message import KINDS
from audit.deliveries.outbox import enqueue
from audit.deliveries.sender.chats import OFFERED
from audit.models import ChannelKind, DeliveryState
from config.instance import BASE_DIR
from tenants.scope import tenant_scope
from tests.support.deliveries import (
    MESSAGE,
    allow,
    deliver,
    deliveries,
    make_channel,
    make_message,
    webhook_receiver,
)
from tests.support.factories import Cast

pytest.importorskip("apprise", reason="the extra `apprise` is not installed")

LONG = "a" * 64
UUID = "8b799edf-6f98-4d3a-9be7-2862fb4e5752"
URLS = {
    "betterstack": f"betterstack://{LONG[:24]}",
    "discord": f"discord://4174216298/{LONG}",
    "gchat": "gchat://workspace/key/token",
    "gotify": "gotify://host.example/AbCdEfGhIjKlMnO",
    "gotifys": "gotifys://host.example/AbCdEfGhIjKlMnO",
    "guilded": f"guilded://{UUID}/{LONG}",
    "ilert": "ilert://il4api0123456789abcdef",
    "matrix": "matrix://user:secret@host.example/#room",
    "matrixs": "matrixs://user:secret@host.example/#room",
    "mmost": "mmost://host.example/3ccdd113474722377935511fc85d3dd4",
    "mmosts": "mmosts://host.example/3ccdd113474722377935511fc85d3dd4",
    "ntfy": "ntfy://host.example/topic",
    "ntfys": "ntfys://host.example/topic",
    "pagerduty": f"pagerduty://{LONG[:32]}@{LONG[:20]}",
    "pover": f"pover://{'u' * 30}@{'t' * 30}",
    "signl4": "signl4://teamsecret",
    "splunk": f"splunk://route@{UUID}",
    "squadcast": "squadcast://key0123456789",
    "tgram": "tgram://123456789:abcdefg_hijklmnop/12315544/",
    "webex": f"webex://{'a' * 80}",
    "workflows": "workflows://host.example:443/workflow/signature",
    "zulip": "zulip://bot@organization/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/#room",
}
"""A URL of each scheme, with a secret that may be one."""

# Every name has an address of this machine, whatever library asks.
SENDS = """
import json, socket, sys
from audit.deliveries.sender import guard
guard.install([])
from audit.deliveries.sender.attempt import attempt
from audit.deliveries.sender.job import Job
real = socket.getaddrinfo
socket.getaddrinfo = lambda host, port, *rest, **more: real("127.0.0.1", port, *rest, **more)
for name, job in json.loads(sys.argv[1]).items():
    answer = attempt(Job(**job))
    print(json.dumps([name, answer.is_delivered, answer.is_refused, answer.text]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_offered_service_is_guarded(kind: str) -> None:
    """A service that skips some kinds of message, which apprise calls delivered, is not offered."""
    assert set(URLS) == set(OFFERED)
    jobs = {
        name: {
            "id": name,
            "kind": "service",
            "channel_id": "c",
            "settings": {},
            "secrets": {"url": url},
            "message": MESSAGE | {"kind": kind},
            "timeout_s": 2.0,
        }
        for name, url in URLS.items()
    }
    done = subprocess.run(
        [sys.executable, "-c", SENDS, json.dumps(jobs)],
        cwd=BASE_DIR,
        env=process.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(name, delivered, refused) for name, delivered, refused, _ in answers] == [
        (name, False, True) for name in URLS
    ], answers


@pytest.mark.slow
def test_message_reaches_a_service(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    with webhook_receiver() as receiver:
        receiver.text = "{}"
        place = receiver.url.split("/")[2]
        allow(monkeypatch, place)
        channel, secrets = make_channel(
            acme, ChannelKind.SERVICE, url=f"gotify://{place}/AbCdEfGhIjKlMnO"
        )
        assert channel.settings == {"shown": f"gotify://{place}/A...O/"}
        assert secrets == {"url": f"gotify://{place}/AbCdEfGhIjKlMnO"}
        with tenant_scope(acme.tenant.id):
            enqueue(acme.tenant.id, make_message(), [channel.id])
        deliver(acme)
    (request,) = receiver.requests
    assert "Searches fail: 12 % of calls" in request.document["title"]
    assert "Condition: Failed calls" in request.document["message"]
    assert [row.state for row in deliveries(acme)] == [DeliveryState.DELIVERED]


@pytest.mark.slow
def test_failed_attempt_says_why(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    with webhook_receiver() as receiver:
        place = receiver.url.split("/")[2]
        allow(monkeypatch, place)
        receiver.answers = [401]
        channel, _ = make_channel(
            acme, ChannelKind.SERVICE, url=f"gotify://{place}/AbCdEfGhIjKlMnO"
        )
        with tenant_scope(acme.tenant.id):
            enqueue(acme.tenant.id, make_message(), [channel.id])
        deliver(acme)
    (row,) = deliveries(acme)
    assert row.state == DeliveryState.WAITING
    assert "401" in row.attempts[0]["answer"]


@pytest.mark.slow
def test_redirect_of_a_service_is_refused(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    with webhook_receiver() as receiver, webhook_receiver() as other:
        place = receiver.url.split("/")[2]
        allow(monkeypatch, place)
        receiver.answers = [307]
        receiver.headers = {"Location": other.url}
        channel, _ = make_channel(
            acme, ChannelKind.SERVICE, url=f"gotify://{place}/AbCdEfGhIjKlMnO"
        )
        with tenant_scope(acme.tenant.id):
            enqueue(acme.tenant.id, make_message(), [channel.id])
        deliver(acme)
    assert other.requests == []
    (row,) = deliveries(acme)
    assert row.state == DeliveryState.WAITING


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "must begin with one of"),
        ("file:///etc/passwd", "must begin with one of"),
        ("json://127.0.0.1/", "must begin with one of"),
        ("syslog://", "must begin with one of"),
        ("dbus://", "must begin with one of"),
        ("mailto://user:pass@example.com", "must begin with one of"),
        ("tgram://", "not a URL of Telegram"),
        ("gotifys://host.example/AbCdEfGhIjKlMnO?verify=no", "leave out verify=no"),
    ],
)
def test_other_urls_are_refused(url: str, problem: str) -> None:
    with pytest.raises(ChannelError, match=problem):
        read(ChannelKind.SERVICE, {"url": url}, {})
