"""The settings of each way: which may be shown, and which are secret."""

import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from audit.models import StreamWay
from audit.stream.ways.syslog import PORT

type Given = Mapping[str, Any]
TEXT_MAX = 2_000
CA_MAX = 100_000
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9a-fA-F:]{2,39}")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_FOLDER = re.compile(r"[A-Za-z0-9._/=-]{0,200}")


class StreamError(ValueError):
    """A value of a stream is invalid. `field` names it; the message is for people."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


@dataclass(frozen=True, slots=True)
class Address:
    """Where a stream leads: what may be shown, and what is stored encrypted."""

    settings: Mapping[str, Any]
    secrets: Mapping[str, str]


MEMBERS: Final[Mapping[str, frozenset[str]]] = {
    StreamWay.SYSLOG: frozenset(("host", "port", "ca")),
    StreamWay.HTTPS: frozenset(("url", "authorization", "ca")),
    StreamWay.SPLUNK: frozenset(("url", "token", "index", "has_acks", "ca")),
    StreamWay.S3: frozenset(
        ("endpoint", "region", "bucket", "folder", "access_key", "secret_key", "ca")
    ),
}
"""What each way can be given."""
SECRETS: Final[Mapping[str, str]] = {
    StreamWay.HTTPS: "authorization",
    StreamWay.SPLUNK: "token",
    StreamWay.S3: "secret_key",
}


def read(way: StreamWay, given: Given, kept: Mapping[str, str]) -> Address:
    """Check what somebody entered. A secret that is left empty stays as it is in `kept`.

    Raises StreamError.
    """
    settings = _READERS[way](given)
    settings["ca"] = _certificates(given)
    secret = SECRETS.get(way)
    if secret is None:
        return Address(settings, {})
    text = _text(given, secret) or kept.get(secret, "")
    if not text and way != StreamWay.HTTPS:
        raise StreamError(secret, "Enter it.")
    return Address(settings, {secret: text} if text else {})


def leads_to(way: str, settings: Mapping[str, Any]) -> str:
    """Where a stream leads, for people."""
    match way:
        case StreamWay.SYSLOG:
            return f"{settings['host']}:{settings['port']}"
        case StreamWay.S3:
            return f"{settings['endpoint']}/{settings['bucket']}/{settings['folder']}".rstrip("/")
        case _:
            return str(settings["url"])


def _syslog(given: Given) -> dict[str, Any]:
    host, port = _text(given, "host"), given.get("port")
    if not _HOST.fullmatch(host):
        raise StreamError("host", "Enter the name or the address of a syslog server.")
    port = PORT if port in (None, "") else port
    if not isinstance(port, int) or isinstance(port, bool) or not 0 < port < 65_536:
        raise StreamError("port", "Enter a port from 1 to 65535.")
    return {"host": host, "port": port}


def _https(given: Given) -> dict[str, Any]:
    return {"url": _url(given, "url")}


def _splunk(given: Given) -> dict[str, Any]:
    index = _text(given, "index")
    if index and not _NAME.fullmatch(index):
        raise StreamError("index", "Enter letters, digits, points, - and _.")
    url = _url(given, "url")
    if urlsplit(url).path.rstrip("/") or urlsplit(url).query:
        raise StreamError("url", "Enter the address without a path, such as https://host:8088.")
    return {"url": url, "index": index, "has_acks": given.get("has_acks") is True}


def _s3(given: Given) -> dict[str, Any]:
    bucket, folder = _text(given, "bucket"), _text(given, "folder").strip("/")
    if not _BUCKET.fullmatch(bucket):
        raise StreamError("bucket", "Enter the name of a bucket.")
    if not _FOLDER.fullmatch(folder) or ".." in folder or "//" in folder:
        raise StreamError("folder", "Enter letters, digits, / . _ = and -.")
    region = _text(given, "region") or "us-east-1"
    if not _NAME.fullmatch(region):
        raise StreamError("region", "Enter the name of a region, such as us-east-1.")
    access_key = _text(given, "access_key")
    if not access_key:
        raise StreamError("access_key", "Enter it.")
    return {
        "endpoint": _url(given, "endpoint"),
        "region": region,
        "bucket": bucket,
        "folder": folder,
        "access_key": access_key,
    }


_READERS: Mapping[StreamWay, Callable[[Given], dict[str, Any]]] = {
    StreamWay.SYSLOG: _syslog,
    StreamWay.HTTPS: _https,
    StreamWay.SPLUNK: _splunk,
    StreamWay.S3: _s3,
}


def _text(given: Given, field: str) -> str:
    value = given.get(field) or ""
    if not isinstance(value, str) or len(value) > TEXT_MAX or not value.isprintable():
        raise StreamError(field, "Enter one line of text.")
    return value.strip()


def _url(given: Given, field: str) -> str:
    url = _text(given, field)
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise StreamError(field, "This is not a URL.") from None
    if not is_web or not url.isascii() or " " in url or "\\" in url:
        raise StreamError(field, "The URL must begin with https:// and name a host.")
    if "@" in parts.netloc or parts.fragment:
        raise StreamError(field, "The URL must not contain a user, a password or a fragment.")
    return url


def _certificates(given: Given) -> str:
    """Certificates in PEM that are trusted beside those of the system."""
    text = (given.get("ca") or "").replace("\r\n", "\n").strip()
    if not text:
        return ""
    try:
        if len(text) > CA_MAX:
            raise ValueError
        ssl.create_default_context().load_verify_locations(cadata=f"{text}\n")
    except (ssl.SSLError, ValueError):
        raise StreamError("ca", "Enter certificates in PEM.") from None
    return f"{text}\n"
