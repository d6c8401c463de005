"""Requests to servers that a tenant names: only to public addresses, or those an operator opened.

A name is resolved here, and the connection goes to the address that was checked, so a second answer
of the DNS (rebinding) changes nothing. Redirects are not followed, and no proxy or .netrc is used.
"""

import io
import socket
import ssl
import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import NewConnectionError

from config.env import Opening
from config.http.addresses import is_opened, may_connect

ANSWER_MAX_BYTES = 1_000_000
_DEADLINE_S = 10.0
"""For a whole answer; a server that sends a byte at a time must not keep a thread."""
_WAIT_S = 5.0
_CHUNK_BYTES = 65_536
_SHOWN = 200


class RefusedAddressError(OSError):
    """The operator does not allow connections to this address."""


def guarded_session(
    allowed: Iterable[Opening], *, ca: str = "", max_bytes: int = ANSWER_MAX_BYTES
) -> requests.Session:
    """A session that checks each address and takes at most `max_bytes` within 10 s.

    Of a larger answer, each `ANSWER_MAX_BYTES` have 10 s. `ca` has certificates in PEM that are
    trusted beside those of the system. Without TLS it connects only to addresses that are
    `allowed`. Its requests raise `requests.RequestException`.
    """
    session = _Session()
    session.trust_env = False
    session.headers.update({"User-Agent": "Tooltrail", "Accept-Encoding": "identity"})
    adapter = _GuardedAdapter(tuple(allowed), ca, max_bytes)
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    return session


class _Session(requests.Session):
    def request(self, *args: Any, **options: Any) -> requests.Response:
        return super().request(*args, **{**options, "allow_redirects": False, "timeout": _WAIT_S})


class _GuardedAdapter(HTTPAdapter):
    def __init__(self, allowed: tuple[Opening, ...], ca: str, max_bytes: int) -> None:
        self._allowed, self._ca, self._max_bytes = allowed, ca, max_bytes
        super().__init__()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        # The system's certificates beside those of requests: a company may have its own.
        options["ssl_context"] = _certificates(self._ca)
        super().init_poolmanager(*args, **options)
        allowed = self._allowed

        class Plain(HTTPConnection):
            def _new_conn(self) -> socket.socket:
                return _connect(self, allowed, needs_opening=True)

        class Secure(HTTPSConnection):
            def _new_conn(self) -> socket.socket:
                return _connect(self, allowed, needs_opening=False)

        class PlainPool(HTTPConnectionPool):
            ConnectionCls = Plain

        class SecurePool(HTTPSConnectionPool):
            ConnectionCls = Secure

        self.poolmanager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}

    def send(  # type: ignore[override]  # its options are those of the library
        self, request: requests.PreparedRequest, **options: Any
    ) -> requests.Response:
        begun = time.monotonic()
        response = super().send(request, **{**options, "stream": True})
        body = io.BytesIO()
        with response:
            for chunk in response.iter_content(_CHUNK_BYTES):
                body.write(chunk)
                until = begun + _DEADLINE_S * (1 + body.tell() // ANSWER_MAX_BYTES)
                if body.tell() > self._max_bytes or time.monotonic() > until:
                    raise requests.RequestException("the answer is too large or too slow")
        response._content = body.getvalue()
        return response


@lru_cache(maxsize=16)
def _certificates(ca: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca:
        context.load_verify_locations(cadata=ca)
    return context


def guarded_socket(
    host: str, port: int, allowed: Iterable[Opening], *, needs_opening: bool = False
) -> socket.socket:
    """Connect to a host, at an address that may be connected to. Needs less than 10 s.

    With `needs_opening` only addresses that are `allowed` count. Raises OSError: for a refused
    address RefusedAddressError.
    """
    may = is_opened if needs_opening else may_connect
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    openings = tuple(allowed)
    error: OSError = RefusedAddressError("the operator does not allow this address")
    until = time.monotonic() + _DEADLINE_S
    for *_, address in answers:
        text, left = str(address[0]), until - time.monotonic()
        if may(text, port, openings) and left > 0:
            try:
                return socket.create_connection((text, port), min(_WAIT_S, left))
            except OSError as refused:
                error = refused
    raise error


def reason_of(error: requests.RequestException) -> str:
    """Why there was no answer, for people: one line."""
    cause = getattr(error.args[0], "reason", None) if error.args else None
    if isinstance(cause, NewConnectionError):
        reason = str(cause).rpartition(": ")[2]
    elif isinstance(error, requests.exceptions.SSLError):
        reason = "TLS failed"
    elif isinstance(error, requests.Timeout):
        reason = "no answer in time"
    else:
        reason = str(error)
    return one_line(f"{reason[:1].upper()}{reason[1:]}.")


def one_line(text: str) -> str:
    """A foreign text on one line, in which nothing hides."""
    shown = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return shown[:_SHOWN]


def _connect(
    connection: HTTPConnection, allowed: tuple[Opening, ...], *, needs_opening: bool
) -> socket.socket:
    host, port = connection.host.strip("[]"), connection.port
    try:
        return guarded_socket(host, port, allowed, needs_opening=needs_opening)
    except RefusedAddressError as error:
        raise NewConnectionError(connection, str(error)) from error
    except socket.gaierror as error:
        raise NewConnectionError(connection, "the name is unknown") from error
    except OSError as error:
        raise NewConnectionError(connection, "no connection") from error
