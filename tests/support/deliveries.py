"""Real receivers of alerts on this machine, and the worker's part of delivering to them."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message as Mail
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session
from django.utils import timezone

from audit.deliveries import delivering
from audit.deliveries.channels import create_channel
from audit.deliveries.message import Message
from audit.models import AlertChannel, AlertDelivery, ChannelKind
from tenants.models import new_id
from tenants.scope import tenant_scope
from tests.support.factories import Cast

HOST = "127.0.0.1"
MESSAGE = {
    "id": "1",
    "kind": "test",
    "rule": "r",
    "severity": "alert",
    "title": "t",
    "text": "t",
    "url": "/",
    "source": "s",
    "facts": {},
    "at": "2026-11-26T08:00:00Z",
}
"""A message as the sender is given it."""


@dataclass(frozen=True)
class Request:
    """What a receiver got."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """The body's JSON."""
        return json.loads(self.body)


@dataclass
class Receiver:
    """An HTTP server that keeps what it gets. `answers` are the next statuses; then 200."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    text: str = "thank you"


@contextmanager
def webhook_receiver() -> Iterator[Receiver]:
    """Receive until the block ends."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.requests.append(Request(self.path, headers, body))
            status = receiver.answers.pop(0) if receiver.answers else 200
            text = receiver.text.encode()
            self.send_response(status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST  # noqa: N815  # as the server calls it

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer((HOST, 0), Handler)
    receiver.url = f"http://{HOST}:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Mailbox:
    """What an SMTP server got: recipients and mails."""

    port: int
    mails: list[tuple[list[str], Mail]] = field(default_factory=list)
    refuses: bool = False

    async def handle_DATA(  # noqa: N802  # as aiosmtpd calls it
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        """Keep a mail."""
        if self.refuses:
            return "451 try later"
        assert isinstance(envelope.content, bytes)
        mail = message_from_bytes(envelope.content, policy=default)
        self.mails.append((list(envelope.rcpt_tos), mail))
        return "250 kept"


@contextmanager
def smtp_server() -> Iterator[Mailbox]:
    """A mail server until the block ends."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        box = Mailbox(probe.getsockname()[1])
    controller = Controller(box, hostname=HOST, port=box.port)
    controller.start()
    try:
        yield box
    finally:
        controller.stop()


def make_message(**members: Any) -> Message:
    """A message about an alert."""
    return Message(
        **{
            "id": new_id(),
            "kind": "fired",
            "rule": "Searches fail",
            "severity": "alert",
            "title": "Searches fail: 12 % of calls",
            "text": "The share of failed calls was over 10 % for 15 minutes.",
            "link": "/alerts/1",
            "facts": {
                "condition": "Failed calls in 5 min above 0 (alert)",
                "value": 0.12,
                "threshold": 0.1,
                "from": "2026-11-26T21:38:00+00:00",
            },
            "at": timezone.now(),
            **members,
        }
    )


def make_channel(
    cast: Cast, kind: ChannelKind, name: str | None = None, **given: Any
) -> tuple[AlertChannel, dict[str, str]]:
    """A channel of the tenant, and its secrets."""
    with tenant_scope(cast.tenant.id):
        channel, address = create_channel(
            cast.tenant, cast.admin, kind, name or f"{kind} {new_id()}", given
        )
    return channel, dict(address.secrets)


def mail_settings(port: int, **others: Any) -> dict[str, Any]:
    """What a mail channel is told, for `smtp_server`."""
    return {
        "recipients": ["ann@example.com", "bob@example.com"],
        "sender": "tooltrail@example.com",
        "host": HOST,
        "port": port,
        "security": "none",
        "username": "",
        **others,
    }


def deliver(cast: Cast) -> None:
    """Do what the worker does for a tenant, until nothing is due."""
    while delivering.run_slice(cast.tenant.id):
        pass


def deliveries(cast: Cast, message_id: UUID | None = None) -> list[AlertDelivery]:
    """The tenant's deliveries, oldest first."""
    with tenant_scope(cast.tenant.id):
        rows = AlertDelivery.objects.for_tenant(cast.tenant.id).order_by("id")
        return list(rows.filter(message_id=message_id) if message_id else rows)


def allow(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """What the operator allows, for the sending process."""
    monkeypatch.setenv("TOOLTRAIL_DELIVERY_ALLOW", " ".join(addresses))
