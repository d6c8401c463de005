"""One POST over HTTP. It follows no redirect and knows no proxy."""

import http.client
import ssl
from collections.abc import Mapping
from urllib.parse import quote

from audit.deliveries.sender.job import ANSWER_MAX
from config.http.given_urls import checked_url

_READ_BYTES = 4 * ANSWER_MAX


def post(
    url: str, body: bytes, headers: Mapping[str, str], timeout_s: float
) -> tuple[bool, int, str]:
    """Send a body. Returns whether the status is 2xx, the status, and the begin of the answer.

    Raises ValueError for a URL that cannot be used, OSError and HTTPException.
    """
    parts = checked_url(url)
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
