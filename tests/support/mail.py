"""A real mail server on this machine, and the worker's part of sending mails."""

import socket
import ssl
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.conf import settings
from django.core.cache import cache
from django.db import connection

from tenants import tasks
from tenants.mail import outgoing

HOST = "127.0.0.1"
USER, PASSWORD = "tooltrail", "the mail server's"


@dataclass
class MailServer:
    """What it got, oldest first, and what it answers."""

    port: int
    mails: list[tuple[str, EmailMessage]] = field(default_factory=list)
    """Recipient and mail."""
    answer: str = "250 kept"
    to_recipient: str = "250 fine"

    async def handle_RCPT(  # noqa: N802  # as aiosmtpd calls it
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Take a recipient, or not."""
        if self.to_recipient.startswith("250"):
            envelope.rcpt_tos.append(address)
        return self.to_recipient

    async def handle_DATA(  # noqa: N802  # likewise
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        """Keep a mail, or not."""
        if self.answer.startswith("250"):
            assert isinstance(envelope.content, bytes)
            mail = message_from_bytes(envelope.content, policy=default)
            assert isinstance(mail, EmailMessage)
            [to] = envelope.rcpt_tos
            self.mails.append((to, mail))
        return self.answer

    def __len__(self) -> int:
        return len(self.mails)


def plain(mail: EmailMessage) -> str:
    """The text of a mail."""
    body = mail.get_body(("plain",))
    assert body is not None
    return str(body.get_content())


def html(mail: EmailMessage) -> str:
    """The same as HTML."""
    body = mail.get_body(("html",))
    assert body is not None
    return str(body.get_content())


def link_in(mail: EmailMessage) -> str:
    """The path of the link in a mail."""
    from config.http.origin import own_url

    [line] = [line for line in plain(mail).splitlines() if "://" in line]
    assert line.startswith(f"{own_url()}/")
    return line.removeprefix(own_url())


@contextmanager
def mail_server(port: int | None = None, certificate: Path | None = None) -> Iterator[MailServer]:
    """Serve until the block ends; with a certificate, only with STARTTLS and a password."""
    box = MailServer(port or free_port())
    more: dict[str, Any] = {}
    if certificate is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        more = {"tls_context": context, "require_starttls": True, "auth_required": True}
        more["authenticator"] = _check
    controller = Controller(box, hostname=HOST, port=box.port, **more)
    controller.start()
    try:
        yield box
    finally:
        controller.stop()


def _check(
    server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: Any
) -> AuthResult:
    assert isinstance(given, LoginPassword)
    is_right = (given.login, given.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=is_right, handled=False)


def free_port() -> int:
    """A port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def make_certificate(folder: Path) -> Path:
    """A certificate of this machine's loopback address with its key, which nobody trusts yet."""
    key = generate_private_key(SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mail of a test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, SHA256())
    )
    path = folder / "mail.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(private + certificate.public_bytes(Encoding.PEM))
    return path


def use(monkeypatch: pytest.MonkeyPatch, port: int, **options: Any) -> None:
    """Let the installation send by a server of this machine, and forget earlier failures."""
    given = {"host": HOST, "port": port, "timeout": 5, **options}
    backend = "django.core.mail.backends.smtp.EmailBackend"
    monkeypatch.setattr(settings, "MAILERS", {"default": {"BACKEND": backend, "OPTIONS": given}})
    cache.clear()
    waiting_tasks(is_forgotten=True)


def waiting_tasks(*, is_forgotten: bool = False) -> list[tuple[int, str, str]]:
    """Id, name and box of the waiting tasks about mails, oldest first."""
    with connection.cursor() as cursor:
        if is_forgotten:
            cursor.execute("DELETE FROM procrastinate_jobs WHERE task_name ~ '^tenants'")
        cursor.execute(
            "SELECT id, task_name, args ->> 'box' FROM procrastinate_jobs"
            " WHERE task_name ~ '^tenants' AND status = 'todo' ORDER BY id"
        )
        return [tuple(row) for row in cursor.fetchall()]


def work() -> int:
    """Do what the worker does with the waiting tasks about mails; how many must be tried again.

    Mails that the tasks put into the queue are sent, too.
    """
    failed: set[int] = set()
    while todo := [task for task in waiting_tasks() if task[0] not in failed]:
        number, name, box = todo[0]
        try:
            getattr(tasks, name.rpartition(".")[2])(box)
        except outgoing.MailWaitsError:
            failed.add(number)
            continue
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM procrastinate_jobs WHERE id = %s", [number])
    return len(failed)


def queued_bytes() -> bytes:
    """All that the queue holds about mails, as whoever reads the database sees it."""
    return b"".join(f"{name} {box}".encode() + b64decode(box) for _, name, box in waiting_tasks())
