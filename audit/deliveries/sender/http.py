"""One POST over HTTP. It follows no redirect and knows no proxy."""

import http.client
import ssl
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from audit.deliveries.sender.job import ANSWER_MAX

_READ_BYTES = 4 * ANSWER_MAX
_CONTROLS = frozenset(map(chr, (*range(33), 127)))


def check_url(url: str) -> None:
    """Raise ValueError, with a reason for people, if a message cannot be sent to this URL."""
    if _CONTROLS.intersection(url) or "\\" in url:
        raise ValueError("The URL contains a character that must be encoded.")
    try:
        parts = urlsplit(url)
        port = parts.port
        (parts.hostname or "").encode("idna")
    except ValueError:
        raise ValueError("This is not a URL.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ValueError("The URL must begin with https:// and name a host.")
    if parts.username is not None or parts.password is not None:
        raise ValueError("The URL must not contain a user or a password.")


def post(
    url: str, body: bytes, headers: Mapping[str, str], timeout_s: float
) -> tuple[bool, int, str]:
    """Send a body. Returns whether the status is 2xx, the status, and the begin of the answer.

    Raises ValueError for a URL that cannot be used, OSError and HTTPException.
    """
    check_url(url)
    parts = urlsplit(url)
    assert parts.hostname is not None, "checked"
    if parts.scheme == "https":
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=timeout_s, context=ssl.create_default_context()
        )
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)
    target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    if parts.query:
        target += "?" + quote(parts.query, safe="/?%:@!$&'()*+,;=~")
    try:
        connection.request("POST", target, body, {**headers, "User-Agent": "Tooltrail"})
        answer = connection.getresponse()
        text = answer.read(_READ_BYTES).decode(errors="replace")
    finally:
        connection.close()
    return 200 <= answer.status < 300, answer.status, text
