"""Passes the requests of MCP clients to a server at a URL, and its answers back (Streamable HTTP,
and HTTP with SSE of 2024-11-05).

Owns the connections. As over standard streams, what completes a message is passed on after the
message is recorded. Bodies and headers pass as they came, but for those of one connection; answers
are asked for without compression, so that they can be read.
"""

import http.client
import json
import select
import socket
import ssl
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from tooltrail.mcp_recorder.messages import Events, Kept, Line
from tooltrail.mcp_recorder.session import Recorder, Session
from tooltrail.mcp_recorder.stdio import NOT_RECORDED
from tooltrail.spool import SpoolFullError

_READ_BYTES: Final = 64 * 1024
_CONNECTIONS_MAX: Final = 200
_SESSIONS_MAX: Final = 1000
_IDLE_SECONDS: Final = 600.0
_CONNECT_SECONDS: Final = 30.0
_OF_ONE_CONNECTION: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te"),
        *("proxy-connection", "trailer", "transfer-encoding", "upgrade"),
    }
)
_OF_OURS: Final = _OF_ONE_CONNECTION | {"host", "content-length", "accept-encoding", "expect"}
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

    def __init__(self, upstream: str, host: str, port: int, recorder: Recorder) -> None:
        """Raises OSError if the address cannot be used, ValueError for a URL that is none."""
        self.upstream = _read_url(upstream)
        self.recorder = recorder
        self.names = _LOOPBACK | {host}
        self.is_closed = recorder.trail.settings.when_full == "raise"
        self.hang_ups = HangUps()
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._lock = threading.Lock()
        self._room = threading.Semaphore(_CONNECTIONS_MAX)
        super().__init__((host, port), _Exchange)

    @property
    def url(self) -> str:
        """Where clients reach the server now: the same path, at our address."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}{self.upstream.path}"

    def session(self, key: str | None) -> Session:
        """The session with this key; a new one if there is none."""
        with self._lock:
            known = None if key is None else self._sessions.get(key)
            return known or Session(self.recorder)

    def keep(self, key: str, session: Session) -> None:
        """Remember a session by its key."""
        with self._lock:
            self._sessions[key] = session
            self._sessions.move_to_end(key)
            if len(self._sessions) > _SESSIONS_MAX:
                self._sessions.popitem(last=False)

    def end_sessions(self) -> None:
        """Record that no further answers come."""
        with self._lock:
            sessions = list(self._sessions.values())
        for session in sessions:
            session.fail(ConnectionAbortedError("the recorder was stopped"))

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


class HangUps:
    """Ends the connection to the server when the client has ended its own (Linux).

    Elsewhere that is noticed with the next bytes.
    """

    def __init__(self) -> None:
        self._targets: dict[int, socket.socket] = {}
        self._gone: set[int] = set()
        self._epoll = select.epoll() if hasattr(select, "epoll") else None
        if self._epoll is not None:
            threading.Thread(target=self._watch, name="mcp-hang-ups", daemon=True).start()

    def add(self, client: socket.socket, target: socket.socket) -> None:
        """Watch a client."""
        if self._epoll is not None:
            self._targets[client.fileno()] = target
            self._epoll.register(client.fileno(), select.EPOLLRDHUP | select.EPOLLONESHOT)

    def remove(self, client: socket.socket) -> bool:
        """Watch it no longer. Returns whether it has hung up."""
        number = client.fileno()
        if self._epoll is not None and self._targets.pop(number, None) is not None:
            self._epoll.unregister(number)
        is_gone = number in self._gone
        self._gone.discard(number)
        return is_gone

    def _watch(self) -> None:
        assert self._epoll is not None
        while True:
            for number, _ in self._epoll.poll():
                target = self._targets.get(number)
                if target is not None:
                    self._gone.add(number)
                    with suppress(OSError):
                        target.shutdown(socket.SHUT_RDWR)


_METHODS: Final = ("GET", "POST", "DELETE", "OPTIONS", "HEAD", "PUT", "PATCH")


class _Exchange(BaseHTTPRequestHandler):
    """The requests of one connection."""

    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS
    server: Proxy
    _target: http.client.HTTPConnection | None = None

    def forward(self) -> None:
        """Pass one request on and its answer back."""
        if not self._is_for_us():
            self._refuse(403, b"tooltrail: the Host header names another host\n", "text/plain")
            return
        key = self.headers.get("Mcp-Session-Id")
        session = self.server.session(key or self.path)
        ids: list[Any] = []
        try:
            target = self._open()
            ids = self._send(target, session)
            self._watch(target)
            answer = target.getresponse()
        except SpoolFullError as error:
            self._drop()
            text = f"tooltrail: not recorded, so not sent: {error}"
            body = {"jsonrpc": "2.0", "id": None, "error": {"code": NOT_RECORDED, "message": text}}
            self._refuse(503, json.dumps(body).encode(), "application/json")
            return
        except (OSError, http.client.HTTPException) as error:
            if self.server.hang_ups.remove(self.connection):
                session.hung_up(ids)
            self._drop()
            session.fail(ConnectionAbortedError(f"no answer: {type(error).__name__}"), ids)
            self._refuse(502, b"tooltrail: the server did not answer\n", "text/plain")
            return
        if (named := answer.getheader("Mcp-Session-Id")) and key is None:
            self.server.keep(named, session)
        try:
            self._pass_back(answer, session)
            is_cut = False
        except OSError:  # one of the two is gone
            is_cut = True
        is_gone = self.server.hang_ups.remove(self.connection) or is_cut
        if is_gone or answer.will_close:
            self._drop()
        self.close_connection = self.close_connection or is_gone
        if is_gone and answer.status < 400:  # an error is the answer, even if nobody reads it
            session.hung_up(ids)
            return
        self._settle(answer, session, ids, is_stateless=not (key or named))

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

    def _send(self, target: http.client.HTTPConnection, session: Session) -> list[Any]:
        """Send the request, the last part of its body when it is recorded. Returns its ids."""
        target.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        target.putheader("Host", self.server.upstream.netloc.rpartition("@")[2])
        target.putheader("Accept-Encoding", "identity")
        for name, value in self.headers.items():
            if name.lower() not in _OF_OURS:
                target.putheader(name, value)
        length, is_chunked = self.headers.get("Content-Length"), self._is_chunked()
        if is_chunked:
            target.putheader("Transfer-Encoding", "chunked")
        elif length is not None:
            target.putheader("Content-Length", length)
        target.endheaders()
        kept, last = Kept(), b""
        for part in self._body(length, is_chunked=is_chunked):
            kept.take(part)
            if last:
                target.send(_chunk(last) if is_chunked else last)
            last = part
        ids = []
        if self.command == "POST" and kept.size:
            session.wait_for_room()
            ids = session.from_client(kept.line())
        if last:
            target.send(_chunk(last) if is_chunked else last)
        if is_chunked:
            target.send(b"0\r\n\r\n")
        return ids

    def _is_chunked(self) -> bool:
        return self.headers.get("Transfer-Encoding", "").strip().lower() == "chunked"

    def _body(self, length: str | None, *, is_chunked: bool) -> Iterator[bytes]:
        """The body in parts. Raises OSError if it ends early."""
        if is_chunked:
            while size := int(self.rfile.readline(100).partition(b";")[0], 16):
                yield from self._bytes(size)
                self.rfile.readline(100)
            while self.rfile.readline(_READ_BYTES).strip():  # trailers
                pass
        elif length is not None:
            yield from self._bytes(int(length))

    def _bytes(self, size: int) -> Iterator[bytes]:
        while size > 0:
            part = self.rfile.read1(min(size, _READ_BYTES))
            if not part:
                raise ConnectionAbortedError("the body ended early")
            size -= len(part)
            yield part

    # To the client

    def _pass_back(self, answer: http.client.HTTPResponse, session: Session) -> None:
        length = answer.getheader("Content-Length")
        has_body = self.command != "HEAD" and answer.status not in (204, 304)
        is_chunked = has_body and length is None
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in _OF_ONE_CONNECTION:
                self.send_header(name, value)
        if is_chunked and self.request_version == "HTTP/1.1":
            self.send_header("Transfer-Encoding", "chunked")
        elif is_chunked:
            is_chunked, self.close_connection = False, True
        self.end_headers()
        kind = (answer.getheader("Content-Type") or "").partition(";")[0].strip().lower()
        for part in self._recorded(answer, kind, session) if has_body else ():
            self.wfile.write(_chunk(part) if is_chunked else part)
            self.wfile.flush()
        if is_chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _recorded(
        self, answer: http.client.HTTPResponse, kind: str, session: Session
    ) -> Iterator[bytes]:
        """The parts of the answer, each when the messages that it completes are recorded."""
        if kind == "text/event-stream":
            events = Events()
            for part in _parts(answer):
                for name, data in events.feed(part):
                    if name == b"endpoint":
                        self._keep_endpoint(data, session)
                    else:
                        session.from_server(data)
                yield part
            return
        kept, last = Kept(), b""
        for part in _parts(answer):
            kept.take(part)
            if last:
                yield last
            last = part
        if kind == "application/json":
            session.from_server(kept.line())
        if last:
            yield last

    def _keep_endpoint(self, data: Line, session: Session) -> None:
        """Remember where the client sends the messages of this stream (2024-11-05)."""
        url = urlsplit(data.head.decode(errors="replace").strip())
        path = f"{url.path}?{url.query}" if url.query else url.path
        self.server.keep(path, session)

    def _settle(
        self,
        answer: http.client.HTTPResponse,
        session: Session,
        ids: list[Any],
        *,
        is_stateless: bool,
    ) -> None:
        """Record calls that this answer leaves without one of their own."""
        if answer.status in (401, 403):
            session.refuse(ids, f"{answer.status} {answer.reason}")
        if answer.status >= 400:
            session.fail(HttpError(answer.status), ids)
        elif is_stateless and answer.status != 202:  # 202: it comes on another stream
            session.fail(ConnectionAbortedError("the answer ended without a result"), ids)

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


def _parts(answer: http.client.HTTPResponse) -> Iterable[bytes]:
    """The body as it comes. Raises OSError if it ends early."""
    try:
        while part := answer.read1(_READ_BYTES):
            yield part
    except http.client.HTTPException as error:
        raise ConnectionAbortedError("the answer ended early") from error
    if answer.length:  # `read1` does not tell
        raise ConnectionAbortedError("the answer ended early")


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _read_url(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"not an http or https URL: {url}")
    return parts
