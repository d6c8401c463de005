"""One HTTP connection to the server: requests and the server's answers.

Owns the connection, its timeouts, proxies and compression. The shipper decides what an answer
means for the spool. Nothing is retried here.
"""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3

from tooltrail.events import CONTRACT_HEADER

CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
_NO_RETRIES = urllib3.Retry(False, redirect=0)
RETRY_AFTER_MAX_SECONDS = 600.0  # a longer Retry-After is shortened to this


class UnreachableError(Exception):
    """No complete answer arrived. The message names the kind of failure, without payloads."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The server's answer. `document` is its JSON object, empty if the body is anything else.

    `retry_after` is in seconds. `contract` is the server's version of the wire contract; 1 if it
    names none.
    """

    status: int
    document: dict[str, Any]
    retry_after: float | None = None
    contract: int = 1


class Transport:
    """Talks to one server with one key over one kept-alive connection; one thread at a time."""

    def __init__(self, url: str, api_key: str, user_agent: str) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {api_key}", "User-Agent": user_agent}
        self._pool: urllib3.PoolManager | None = None

    def post_events(self, lines: list[bytes], batch_id: str) -> Answer:
        """Send one batch. Raises UnreachableError."""
        body = b"\n".join(lines) + b"\n"
        # Level 1, because the processor belongs to the host. No timestamp, so that a batch that
        # is sent again has the same bytes.
        return self._post(
            "/api/v1/events",
            gzip.compress(body, compresslevel=1, mtime=0),
            {
                "Content-Type": "application/x-ndjson",
                "Content-Encoding": "gzip",
                "Idempotency-Key": batch_id,
            },
        )

    def ask_contract(self) -> Answer:
        """Ask for the server's version of the wire contract. Raises UnreachableError.

        The endpoint of events does not answer GET, but says its version. A server of version 1
        says that the method is not allowed.
        """
        return self._request("GET", "/api/v1/events", None, {})

    def post_tools(self, tools: list[dict[str, Any]]) -> Answer:
        """Announce tools. Raises UnreachableError."""
        return self.post_json("tools", {"tools": tools})

    def post(self, path: str, body: bytes) -> Answer:
        """Post a JSON text, `path` below `/api/v1/`. Raises UnreachableError."""
        return self._post(f"/api/v1/{path}", body, {"Content-Type": "application/json"})

    def post_json(self, path: str, document: Mapping[str, Any]) -> Answer:
        """Post a JSON document, `path` below `/api/v1/`. Raises UnreachableError."""
        return self.post(path, json.dumps(document).encode())

    def get(self, path: str, query: Mapping[str, str]) -> Answer:
        """Get a JSON document, `path` below `/api/v1/`. Raises UnreachableError."""
        address = f"/api/v1/{path}?{urlencode(query)}" if query else f"/api/v1/{path}"
        # Without the old names of `items`, which double a list.
        return self._request("GET", address, None, {"Prefer": "items"})

    def get_bytes(self, path: str) -> tuple[int, bytes]:
        """Get a body that is not JSON, as status and bytes. Raises UnreachableError."""
        response = self._respond("GET", f"/api/v1/{path}", None, {})
        return response.status, response.data

    def close(self) -> None:
        """Close the connection. The next request opens another."""
        if self._pool is not None:
            self._pool.clear()

    def _post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        return self._request("POST", path, body, headers)

    def _request(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        response = self._respond(method, path, body, headers)
        try:
            document = json.loads(response.data)
        except ValueError:
            document = None
        return Answer(
            response.status,
            document if isinstance(document, dict) else {},
            _retry_after(response.headers.get("Retry-After")),
            _contract(response.headers.get(CONTRACT_HEADER)),
        )

    def _respond(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> urllib3.BaseHTTPResponse:
        if self._pool is None:
            self._pool = _pool_for(self._url)
        try:
            return self._pool.request(
                method,
                self._url + path,
                body=body,
                headers={**self._headers, **headers},
                redirect=False,
                retries=_NO_RETRIES,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS),
            )
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise UnreachableError(type(error).__name__) from error


def _pool_for(url: str) -> urllib3.PoolManager:
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    if proxy and not proxy_bypass(parts.hostname or ""):
        return urllib3.ProxyManager(proxy, num_pools=1, maxsize=1)
    return urllib3.PoolManager(num_pools=1, maxsize=1)


def _contract(value: str | None) -> int:
    return int(value) if value is not None and value.isascii() and value.isdecimal() else 1


def _retry_after(value: str | None) -> float | None:
    """Seconds from a Retry-After header, which holds seconds or a date."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time()
        except ValueError:
            return None
    return min(max(seconds, 0.0), RETRY_AFTER_MAX_SECONDS)
