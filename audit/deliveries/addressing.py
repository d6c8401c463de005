"""The settings of each kind of channel: which may be shown, and which are secret."""

import base64
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from audit.deliveries import process
from audit.deliveries.sender.job import Job
from audit.deliveries.sender.webhook import SECRET_BYTES, SECRET_PREFIX
from audit.models import ChannelKind
from config.http.given_urls import checked_url

type Given = Mapping[str, Any]
SECURITIES = {"starttls": "STARTTLS", "tls": "TLS", "none": "None (not encrypted)"}
RECIPIENTS_MAX = 50
URL_MAX = 2_000
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9a-fA-F:]{2,39}")
_SECRET_BYTES = range(24, 65)  # as Standard Webhooks says


class ChannelError(ValueError):
    """A value of a channel is invalid. `field` names it; the message is for people."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


@dataclass(frozen=True, slots=True)
class Address:
    """Where a channel leads: what may be shown, and what is stored encrypted."""

    settings: Mapping[str, Any]
    secrets: Mapping[str, str]


def read(kind: ChannelKind, given: Given, kept: Mapping[str, str]) -> Address:
    """Check what somebody entered. A secret that is left empty stays as it is in `kept`.

    Raises ChannelError.
    """
    return _READERS[kind](given, kept)


def new_secret() -> str:
    """A new secret for the signatures of a webhook."""
    return SECRET_PREFIX + base64.b64encode(os.urandom(SECRET_BYTES)).decode()


def _email(given: Given, kept: Mapping[str, str]) -> Address:
    recipients = given.get("recipients") or []
    if not recipients:
        raise ChannelError("recipients", "Enter at least one address.")
    if len(recipients) > RECIPIENTS_MAX:
        raise ChannelError("recipients", f"Enter at most {RECIPIENTS_MAX} addresses.")
    for address in recipients:
        _check_address("recipients", address)
    sender = _text(given, "sender")
    _check_address("sender", sender)
    host = _text(given, "host")
    if not _HOST.fullmatch(host):
        raise ChannelError("host", "Enter the name or the address of a mail server.")
    port = given.get("port")
    if not isinstance(port, int) or not 0 < port < 65_536:
        raise ChannelError("port", "Enter a port from 1 to 65535.")
    security = given.get("security")
    if security not in SECURITIES:
        raise ChannelError("security", f"Choose one of {', '.join(SECURITIES)}.")
    username = _text(given, "username")
    password = _text(given, "password") or (kept.get("password", "") if username else "")
    if bool(username) != bool(password):
        raise ChannelError("password", "Enter both a user and a password, or neither.")
    if password and security == "none":
        raise ChannelError("security", "A password is not sent without encryption.")
    settings = {
        "recipients": list(recipients),
        "sender": sender,
        "host": host,
        "port": port,
        "security": security,
        "username": username,
    }
    return Address(settings, {"password": password} if password else {})


def _webhook(given: Given, kept: Mapping[str, str]) -> Address:
    url = _url(given, "url")
    secret = _text(given, "secret") or kept.get("secret") or new_secret()
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except ValueError:
        key = b""
    if len(key) not in _SECRET_BYTES:
        raise ChannelError("secret", "Enter whsec_ and the base64 of 24 to 64 bytes, or nothing.")
    return Address({"url": url}, {"secret": secret})


def _slack(given: Given, kept: Mapping[str, str]) -> Address:
    url = _url(given, "url") if _text(given, "url") or not kept else kept["url"]
    return Address({"host": urlsplit(url).hostname}, {"url": url})


def _service(given: Given, kept: Mapping[str, str]) -> Address:
    url = _text(given, "url") or kept.get("url", "")
    # The process that sends loads apprise, which takes a second and much memory.
    job = Job("check", "service check", "", {}, {"url": url}, {})
    answer = process.send([job]).get(job.id)
    if answer is None or not answer.is_delivered:
        raise ChannelError("url", answer.text if answer else "The URL could not be checked.")
    return Address({"shown": answer.text}, {"url": url})


_READERS: Mapping[ChannelKind, Callable[[Given, Mapping[str, str]], Address]] = {
    ChannelKind.EMAIL: _email,
    ChannelKind.WEBHOOK: _webhook,
    ChannelKind.SLACK: _slack,
    ChannelKind.SERVICE: _service,
}


def _text(given: Given, field: str) -> str:
    value = given.get(field) or ""
    if not isinstance(value, str) or len(value) > URL_MAX or not value.isprintable():
        raise ChannelError(field, "Enter one line of text.")
    return value.strip()


def _url(given: Given, field: str) -> str:
    url = _text(given, field)
    try:
        checked_url(url)
    except ValueError as error:
        raise ChannelError(field, str(error)) from error
    return url


def _check_address(field: str, address: Any) -> None:
    try:
        validate_email(address)
        address.encode("ascii")
    except (ValidationError, UnicodeEncodeError, AttributeError):
        raise ChannelError(field, f"{address!s:.100} is not an e-mail address.") from None
