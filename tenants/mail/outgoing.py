"""Put a mail into the worker's queue, and send it from there. It may arrive twice."""

import json
import logging
import time
from base64 import b64decode, b64encode
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import datetime
from smtplib import SMTPDataError, SMTPRecipientsRefused
from typing import Any, Final
from uuid import UUID

from allauth.core.ratelimit import consume
from django.conf import settings
from django.core.cache import cache
from django.core.mail import EmailMultiAlternatives, mailers, make_msgid
from django.http import HttpRequest
from django.template.loader import render_to_string
from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from config.boxes import BoxError, close, open_box
from tenants.actions import THE_SERVER, record_action
from tenants.mail.texts import Letter
from tenants.models import Tenant
from tenants.scope import tenant_scope

LATER: Final = RetryStrategy(exponential_wait=4)
"""Retry after 4 seconds, 16, 64 … until the mail is of no use any more (`Mail.until`)."""
_PLACE: Final = b"mail"
_DOWN: Final = "mail-server-down"
_DOWN_S: Final = 20
_PERMANENT: Final = 500
_log = logging.getLogger(__name__)


class MailWaitsError(Exception):
    """A mail was not sent; the worker tries again later. The message names no address."""


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail in the queue."""

    id: str
    """The same in each attempt: a reader's program shows a repeated mail once."""
    to: str
    subject: str
    plain: str
    html: str
    until: float
    """When it is of no use any more, in Unix seconds."""
    tenant_id: str = ""
    """Where its end is recorded; empty: nowhere."""
    about: str = ""
    """The subject of that action."""


def is_on() -> bool:
    """Whether the operator has set a mail server."""
    return bool(settings.MAILERS)


def may_mail(request: HttpRequest, address: str) -> bool:
    """Count a mail that somebody asks for; False after too many to this address or from there."""
    return bool(consume(request, action="mail", key=address.casefold()))


def send_later(
    to: str, letter: Letter, until: datetime, *, tenant: Tenant | None = None, about: str = ""
) -> None:
    """Let the worker send a letter once this transaction is committed. Raises BoxError."""
    mail = Mail(
        id=make_msgid(domain="tooltrail"),
        to=to,
        subject=letter.subject,
        plain=letter.plain,
        html=render_to_string("mail/letter.html", {"letter": letter}),
        until=until.timestamp(),
        tenant_id="" if tenant is None else str(tenant.pk),
        about=about,
    )
    defer("tenants.tasks.send_mail", json.dumps(asdict(mail)))


def defer(task: str, text: str) -> None:
    """Defer a task of `tenants.tasks` with a text, encrypted in the queue. Raises BoxError."""
    box = b64encode(close(_PLACE, text.encode())).decode()
    app.configure_task(task, queue="deliveries", priority=10).defer(box=box)


def read(box: str) -> str | None:
    """The text of a deferred task; None, and a line in the log, if its key is lost."""
    try:
        return open_box(_PLACE, b64decode(box)).decode()
    except BoxError as error:
        _log.error("a mail is lost: %s", error)
        return None


def send(text: str) -> None:
    """Send a mail of the queue. Raises MailWaitsError if it is to be tried again.

    After a server did not answer, no mail is tried for some seconds: each would wait as long.
    """
    mail = Mail(**json.loads(text))
    if time.time() > mail.until:
        _record(mail, "mail.undelivered", "The mail server did not take it in time.")
        return
    if cache.get(_DOWN):
        raise MailWaitsError("the mail server did not answer a moment ago")
    message = EmailMultiAlternatives(
        mail.subject,
        mail.plain,
        to=[mail.to],
        headers={"Message-ID": mail.id, "Auto-Submitted": "auto-generated"},  # RFC 3834
    )
    message.attach_alternative(mail.html, "text/html")
    try:
        with closing(mailers.default) as server:
            server.send_messages([message])
    except (SMTPRecipientsRefused, SMTPDataError) as error:
        if min(_codes(error)) >= _PERMANENT:
            _record(mail, "mail.undelivered", f"The mail server refuses it: {min(_codes(error))}.")
            return
        raise MailWaitsError(f"the mail server answered {min(_codes(error))}") from None
    except OSError as error:  # smtplib's exceptions are some, too
        cache.set(_DOWN, True, _DOWN_S)
        raise MailWaitsError(f"the mail server does not work: {type(error).__name__}") from None
    _record(mail, "mail.deliver", "")


def _codes(error: SMTPRecipientsRefused | SMTPDataError) -> Sequence[int]:
    if isinstance(error, SMTPDataError):
        return [error.smtp_code]
    return [code for code, _ in error.recipients.values()]


def _record(mail: Mail, verb: str, reason: str) -> None:
    if reason:
        _log.warning("a mail was not delivered: %s", reason)
    if mail.tenant_id:
        details: dict[str, Any] = {"reason": reason} if reason else {}
        with tenant_scope(UUID(mail.tenant_id)):
            record_action(Tenant(id=UUID(mail.tenant_id)), THE_SERVER, verb, mail.about, **details)
