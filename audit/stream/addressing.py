"""The settings of each way: which may be shown, and which are secret."""

import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from audit.models import StreamWay
from audit.stream.ways.syslog import PORT, show_certificate
from config.http.given_urls import checked_url

type Given = Mapping[str, Any]
TEXT_MAX = 2_000
CA_MAX = 100_000
KEY_MAX = 20_000
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
    StreamWay.SYSLOG: frozenset(("host", "port", "certificate", "key", "ca")),
    StreamWay.HTTPS: frozenset(("url", "authorization", "ca")),
    StreamWay.SPLUNK: frozenset(("url", "token", "index", "has_acks", "ca")),
    StreamWay.S3: frozenset(
        ("endpoint", "region", "bucket", "folder", "access_key", "secret_key", "ca")
    ),
}
"""What each way can be given."""
SECRETS: Final[Mapping[str, str]] = {
    StreamWay.SYSLOG: "key",
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
    secret = SECRETS[way]
    if way == StreamWay.SYSLOG:
        text = _client_key(given, settings["certificate"], kept.get(secret, ""))
    else:
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
    return {"host": host, "port": port, "certificate": _client_certificate(given)}


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
        checked_url(url)
    except ValueError as error:
        raise StreamError(field, str(error)) from None
    return url


def _client_certificate(given: Given) -> str:
    """The certificate that this side shows, and those between it and its authority, in PEM."""
    text = _pem(given, "certificate")
    if not text:
        return ""
    if "PRIVATE KEY" in text:  # settings are shown
        raise StreamError("certificate", "Enter the private key in its own field.")
    try:
        if len(text) > CA_MAX:
            raise ValueError
        x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        raise StreamError("certificate", "Enter certificates in PEM.") from None
    return f"{text}\n"


def _client_key(given: Given, certificate: str, kept: str) -> str:
    """The private key of the certificate, in PEM; '' without a certificate."""
    text = _pem(given, "key")
    if not certificate:
        if text:
            raise StreamError("certificate", "Enter the certificate of this key.")
        return ""
    if not text and not kept:
        raise StreamError("key", "Enter the private key of the certificate.")
    try:
        if len(text) > KEY_MAX:
            raise ValueError
        key = load_pem_private_key((text or kept).encode(), None)
    except TypeError:
        raise StreamError("key", "Enter a private key without a passphrase.") from None
    except (ValueError, UnsupportedAlgorithm):
        raise StreamError("key", "Enter a private key in PEM.") from None
    shown = x509.load_pem_x509_certificates(certificate.encode())[0]
    if key.public_key() != shown.public_key():
        raise StreamError("key", "This is not the private key of the first certificate.")
    try:
        show_certificate(ssl.create_default_context(), certificate + (text or kept))
    except ssl.SSLError as error:  # a key that is too short, or of a kind that TLS has not
        reason = f"TLS takes no such certificate: {error.reason or error}."
        raise StreamError("certificate", reason) from None
    return f"{text}\n" if text else kept


def _pem(given: Given, field: str) -> str:
    text = given.get(field) or ""
    return text.replace("\r\n", "\n").strip() if isinstance(text, str) else ""


def _certificates(given: Given) -> str:
    """Certificates in PEM that are trusted beside those of the system."""
    text = _pem(given, "ca")
    if not text:
        return ""
    try:
        if len(text) > CA_MAX:
            raise ValueError
        ssl.create_default_context().load_verify_locations(cadata=f"{text}\n")
    except (ssl.SSLError, ValueError):
        raise StreamError("ca", "Enter certificates in PEM.") from None
    return f"{text}\n"
