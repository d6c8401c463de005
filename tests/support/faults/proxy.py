"""A TCP proxy between executor and server that breaks connections as networks do.

It reads requests and answers only as far as needed to know where they end (`Content-Length`), so
that a fault strikes at a chosen moment: after the server has committed, in mid-answer, in
mid-request. Of each request to the events endpoint it asks `choose` what to do.
"""

import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from urllib.parse import urlsplit

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset


class Fault(Enum):
    """What happens to one request or its answer."""

    NONE = "none"
    ANSWER_DROPPED = "answer dropped after the commit"
    ANSWER_HALVED = "answer half-written"
    ANSWER_DELAYED = "answer delayed beyond the client's patience"
    ANSWER_RESET = "reset after the commit"
    REQUEST_RESET = "reset in the middle of the request"
    BODY_MISSING = "cut between the request's head and its body"


class Proxy:
    """Forwards one port of this host to the server; `url` is where executors send to."""

    def __init__(self, upstream: str) -> None:
        parts = urlsplit(upstream)
        self._upstream = (parts.hostname or "", parts.port or 80)
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._port = 0
        self._ended = threading.Event()
        self.choose: Callable[[], Fault] = lambda: Fault.NONE
        self.struck: Counter[Fault] = Counter()
        self.come_back()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def go_away(self) -> None:
        """Refuse new connections and cut the open ones, like a server that is down."""
        listener, self._listener = self._listener, None
        if listener is not None:
            # Closing alone does not wake the thread in accept().
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self._lock:
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def come_back(self) -> None:
        """Listen again, on the same port."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self._port))
        listener.listen(128)
        self._port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def close(self) -> None:
        self._ended.set()
        self.go_away()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with (
            suppress(OSError, EOFError),
            self._kept(client),
            self._kept(socket.create_connection(self._upstream)) as upstream,
        ):
            while self._pass_on(client, upstream):
                pass

    @contextmanager
    def _kept(self, connection: socket.socket) -> Iterator[socket.socket]:
        with self._lock:
            self._open.add(connection)
        try:
            yield connection
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _pass_on(self, client: socket.socket, upstream: socket.socket) -> bool:
        """One request and its answer; whether the connection stays open. Raises EOFError."""
        request = _read_message(client)
        is_of_events = request.startswith(b"POST /api/v1/events ")
        fault = self.choose() if is_of_events else Fault.NONE
        self.struck[fault] += is_of_events
        if fault is Fault.REQUEST_RESET:
            upstream.sendall(request[: len(request) // 2])
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            return False
        if fault is Fault.BODY_MISSING:
            head, end, _ = request.partition(b"\r\n\r\n")
            upstream.sendall(head + end)
            return False
        upstream.sendall(request)
        answer = _read_message(upstream)
        match fault:
            case Fault.ANSWER_DROPPED:
                return False
            case Fault.ANSWER_HALVED:
                client.sendall(answer[: len(answer) // 2])
                return False
            case Fault.ANSWER_RESET:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                return False
            case Fault.ANSWER_DELAYED:
                client.recv(1)  # until the client times out and disconnects
                return False
        client.sendall(answer)
        return True


def _read_message(connection: socket.socket) -> bytes:
    """A request or an answer, head and body. Raises EOFError when the other side ends first."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _receive(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        received = _receive(connection)
        body += received
        data += received
    return data


def _receive(connection: socket.socket) -> bytes:
    received = connection.recv(65536)
    if not received:
        raise EOFError
    return received
