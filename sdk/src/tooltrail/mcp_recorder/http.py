"""Passes the requests of MCP clients to a server at a URL, and its answers back (Streamable HTTP,
and HTTP with SSE of 2024-11-05).

Owns the connections. As over standard streams, what completes a message is passed on after the
message is recorded. Bodies and headers pass as they came, but for those of one connection; answers
are request for without compression, so that they can be read.
"""

import hashlib
import http.client
import json
import select
import socket
import ssl
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from tooltrail.mcp_recorder.hang_ups import HangUps
from tooltrail.mcp_recorder.http_bodies import (
    BodyError,
    chunk,
    is_chunked,
    recorded_last,
    recorded_parts,
    request_parts,
)
from tooltrail.mcp_recorder.http_sessions import ClientRequest, Sessions
from tooltrail.mcp_recorder.messages import Allowance, Line
from tooltrail.mcp_recorder.session import CancelledError, Recorder
from tooltrail.mcp_recorder.stdio import NOT_RECORDED
from tooltrail.mcp_rounds import brief
from tooltrail.spool import SpoolFullError

_KEPT_MAX_BYTES: Final = 3 * 512 * 1024
_IDLE_SECONDS: Final = 600.0
_CONNECT_SECONDS: Final = 30.0
_OF_ONE_CONNECTION: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te"),
        *("proxy-connection", "trailer", "transfer-encoding", "upgrade"),
    }
)
_OF_OURS: Final = _OF_ONE_CONNECTION | {"host", "content-length", "accept-encoding", "expect"}
_NO_ROOM: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    b"tooltrail: too many connections (--connections)\n"
)
_REPEATED: Final = (307, 308)
_ANSWERED_ELSEWHERE: Final = (202, *_REPEATED)
_LEFT: Final = CancelledError("the client ended the session")
_CUT: Final = ConnectionAbortedError("the server ended before it answered")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class HttpError(Exception):
    """The server answered a request with an HTTP error. `describe_failure` reads `status`."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the server answered {status}")
        self.status = status


class Proxy(ThreadingHTTPServer):
    """Listens for clients and forwards to one server, until `shutdown`."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self,
        upstream: str,
        host: str,
        port: int,
        recorder: Recorder,
        connections_max: int,
    ) -> None:
        """Raises OSError if the address cannot be used, ValueError for a URL that is none."""
        self.upstream = _read_url(upstream)
        self.recorder = recorder
        self.names = _LOOPBACK | {host}
        self.allowance = Allowance(_KEPT_MAX_BYTES)
        self.hang_ups = HangUps()
        self.sessions = Sessions(recorder)
        self._room = threading.Semaphore(connections_max)
        super().__init__((host, port), _Exchange)

    @property
    def url(self) -> str:
        """Where clients reach the server now: the same path, at our address."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}{self.upstream.path}"

    def connect(self) -> http.client.HTTPConnection:
        """A new connection to the server."""
        host, port = self.upstream.hostname or "", self.upstream.port
        if self.upstream.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(
                host, port, timeout=_CONNECT_SECONDS, context=context
            )
        return http.client.HTTPConnection(host, port, timeout=_CONNECT_SECONDS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, if there is room for one more."""
        if not self._room.acquire(blocking=False):
            with suppress(OSError):
                request.sendall(_NO_ROOM)
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report a mistake of ours; a peer that is gone is none."""
        error = sys.exception()
        if isinstance(error, Exception) and not isinstance(error, OSError):
            self.recorder.trail._complain(error)


_METHODS: Final = ("GET", "POST", "DELETE", "OPTIONS", "HEAD", "PUT", "PATCH")


class _Exchange(BaseHTTPRequestHandler):
    """The requests of one connection."""

    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS
    disable_nagle_algorithm = True  # otherwise an answer waits 40 ms for the client's delayed ACK
    server: Proxy
    _target: http.client.HTTPConnection | None = None

    def forward(self) -> None:
        """Pass one request on and its answer back."""
        if not self._is_for_us():
            self._refuse(403, b"tooltrail: the Host header names another host\n", "text/plain")
            return
        key = self.headers.get("Mcp-Session-Id")
        request = ClientRequest(self.server.sessions.get(key or self.path))
        try:
            target = self._open()
            self._send(target, request)
            self._watch(target)
            answer = target.getresponse()
        except BodyError as error:
            self._drop()
            self._refuse(400, f"tooltrail: {error}\n".encode(), "text/plain")
            return
        except SpoolFullError as error:
            self._drop()
            text = f"tooltrail: not recorded, so not sent: {error}"
            body = {"jsonrpc": "2.0", "id": None, "error": {"code": NOT_RECORDED, "message": text}}
            self._refuse(503, json.dumps(body).encode(), "application/json")
            return
        except (OSError, http.client.HTTPException) as error:
            if self.server.hang_ups.remove(self.connection):
                request.session.hung_up(request.ids)
                self._drop()
                self.close_connection = True
                return
            self._drop()
            reason = ConnectionAbortedError(f"no answer: {type(error).__name__}")
            request.session.fail(reason, request.ids)
            self._refuse(502, b"tooltrail: the server did not answer\n", "text/plain")
            return
        if (named := answer.getheader("Mcp-Session-Id")) and key is None:
            self.server.sessions.keep(named, request.session)
        self._record_status(answer, request, key)
        try:
            self._pass_back(answer, request, is_stateless=not (key or named))
            answer.close()  # until Python 3.12.1 its end does not, and no request can follow
            is_cut = False
        except OSError:  # one of the two is gone
            is_cut = True
        has_left = self.server.hang_ups.remove(self.connection)
        is_gone = has_left or is_cut
        self.server.sessions.forget(request.endpoint, _LEFT if has_left else _CUT)
        if is_gone or answer.will_close:
            self._drop()
        self.close_connection = self.close_connection or is_gone
        if is_gone and answer.status < 400:  # an error is the answer, even if nobody reads it
            request.session.hung_up(request.ids)

    def _is_for_us(self) -> bool:
        """Whether the client meant this host: a web page may have bound its name to our address."""
        named = urlsplit(f"//{self.headers.get('Host', '')}").hostname
        return named in self.server.names

    def _open(self) -> http.client.HTTPConnection:
        """The connection to the server: that of the last request, if it is still open."""
        target = self._target
        if target is not None and target.sock is not None:
            is_ended = bool(select.select([target.sock], [], [], 0)[0])
            if not is_ended:
                return target
        self._drop()
        self._target = self.server.connect()
        self._target.connect()
        assert self._target.sock is not None
        self._target.sock.settimeout(None)
        self._target.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._target

    def _watch(self, target: http.client.HTTPConnection) -> None:
        assert target.sock is not None
        self.server.hang_ups.add(self.connection, target.sock)

    def _drop(self) -> None:
        self.server.hang_ups.remove(self.connection)
        if self._target is not None:
            self._target.close()
            self._target = None

    # To the server

    def _send(self, target: http.client.HTTPConnection, request: ClientRequest) -> None:
        """Send the request, the last part of its body when it is recorded.

        Raises BodyError, and SpoolFullError with `--fail-closed`.
        """
        is_in_chunks = is_chunked(self.headers)
        target.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        target.putheader("Host", self.server.upstream.netloc.rpartition("@")[2])
        target.putheader("Accept-Encoding", "identity")
        for name, value in self.headers.items():
            if name.lower() not in _OF_OURS:
                target.putheader(name, value)
        if is_in_chunks:
            target.putheader("Transfer-Encoding", "chunked")
        elif (length := self.headers.get("Content-Length")) is not None:
            target.putheader("Content-Length", length)
        target.endheaders()

        def record(line: Line) -> None:
            request.digest = hashlib.sha256(line.head + line.tail).digest()
            if (moved := self.server.sessions.moved(request.digest)) is not None:
                request.session, request.ids = moved.session, moved.ids
                return
            request.session.wait_for_room()
            request.ids += request.session.from_client(line)

        parts = request_parts(self.rfile, self.headers)
        if self.command == "POST":
            parts = recorded_last(parts, self.server.allowance, record)
        for part in parts:
            target.send(chunk(part) if is_in_chunks else part)
        if is_in_chunks:
            target.send(b"0\r\n\r\n")

    # To the client

    def _at_our_address(self, address: str) -> str:
        """Where a client finds what the server has at its own address: it must not pass us by."""
        parts, upstream = urlsplit(address), self.server.upstream
        if (parts.scheme, parts.netloc) != (upstream.scheme, upstream.netloc.rpartition("@")[2]):
            return address
        return parts._replace(scheme="http", netloc=self.headers.get("Host", "")).geturl()

    def _pass_back(
        self, answer: http.client.HTTPResponse, request: ClientRequest, *, is_stateless: bool
    ) -> None:
        length = answer.getheader("Content-Length")
        has_body = self.command != "HEAD" and answer.status not in (204, 304)
        is_in_chunks = has_body and length is None
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() == "location":
                self.send_header(name, self._at_our_address(value))
            elif name.lower() not in _OF_ONE_CONNECTION:
                self.send_header(name, value)
        if is_in_chunks and self.request_version == "HTTP/1.1":
            self.send_header("Transfer-Encoding", "chunked")
        elif is_in_chunks:
            is_in_chunks, self.close_connection = False, True
        self.end_headers()

        def keep_endpoint(address: bytes) -> None:
            url = urlsplit(address.decode(errors="replace").strip())
            if request.endpoint:
                self.server.sessions.forget(request.endpoint)
            request.endpoint = brief(f"{url.path}?{url.query}" if url.query else url.path)
            self.server.sessions.keep(request.endpoint, request.session)

        def finish() -> None:
            if self.server.hang_ups.has_left(self.connection):  # so the answer was cut
                return
            self.server.sessions.forget(request.endpoint, _CUT)
            if is_stateless and answer.status not in _ANSWERED_ELSEWHERE:
                reason = ConnectionAbortedError("the answer ended without a result")
                request.session.fail(reason, request.ids)

        allowance = self.server.allowance
        if not has_body:
            finish()
        else:
            for part in recorded_parts(answer, request.session, allowance, keep_endpoint, finish):
                self.wfile.write(chunk(part) if is_in_chunks else part)
                self.wfile.flush()
        if is_in_chunks:
            self.wfile.write(b"0\r\n\r\n")

    def _record_status(
        self, answer: http.client.HTTPResponse, request: ClientRequest, key: str | None
    ) -> None:
        """Record what the status alone says, before the client knows it."""
        if answer.status in (401, 403):
            request.session.refuse(request.ids, f"{answer.status} {answer.reason}")
        if answer.status >= 400:
            request.session.fail(HttpError(answer.status), request.ids)
        elif answer.status in _REPEATED:
            self.server.sessions.move(request)
        elif self.command == "DELETE" and key is not None:
            self.server.sessions.forget(key, _LEFT)

    def _refuse(self, status: int, body: bytes, kind: str) -> None:
        self.close_connection = True  # the body may not have been read
        with suppress(OSError):
            self.send_response_only(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

    def finish(self) -> None:
        """Close both connections."""
        self._drop()
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: paths may hold secrets."""


for _method in _METHODS:
    setattr(_Exchange, f"do_{_method}", _Exchange.forward)


def _read_url(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"not an http or https URL: {url}")
    return parts
