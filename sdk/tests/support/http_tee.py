"""A listener that passes TCP connections on, and keeps the HTTP exchanges that it saw."""

import io
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from email.message import Message
from http.client import parse_headers
from typing import Any, Self
from urllib.parse import urlsplit

_OF_ONE_CONNECTION = frozenset(
    {
        *("accept-encoding", "connection", "content-length", "host", "keep-alive"),
        *("location", "te", "transfer-encoding"),
    }
)


@dataclass(frozen=True, order=True, slots=True)
class Exchange:
    """A request and its answer, without what belongs to one connection only."""

    request: bytes
    """The first line: method, path and version."""
    sent: bytes
    sent_headers: tuple[tuple[str, str], ...]
    status: bytes
    headers: tuple[tuple[str, str], ...]
    body: bytes
    is_cut: bool
    """Whether the connection ended before the body."""

    def is_beginning_of(self, other: "Exchange") -> bool:
        """Whether the other is the same, and its client left later."""
        body = other.body[: len(self.body)]
        same = replace(other, body=body, is_cut=True)
        if not self.status:  # it left before the answer
            same = replace(same, status=b"", headers=())
        return self.is_cut and self == same


@dataclass
class Tee:
    """Passes connections to a port, and keeps both directions of each."""

    target: int
    listener: socket.socket = field(
        default_factory=lambda: socket.create_server(("127.0.0.1", 0), backlog=64)
    )
    kept: list[tuple[bytearray, bytearray]] = field(default_factory=list)
    sockets: list[socket.socket] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self.listener.getsockname()[1]
        return port

    def exchanges(self) -> list[Exchange]:
        """What passed, in an order that does not depend on the connections."""
        return sorted(each for up, down in self.kept for each in _exchanges(up, down))

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Listen for the block."""
        self._start(self._accept)
        try:
            yield self
        finally:
            for each in (self.listener, *self.sockets):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            for thread in self.threads:
                thread.join()
            for each in (self.listener, *self.sockets):
                each.close()

    def _start(self, target: Callable[..., None], *args: Any) -> None:
        self.threads.append(threading.Thread(target=target, args=args, daemon=True))
        self.threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
                self.sockets += client, server
                self.kept.append((bytearray(), bytearray()))
                self._start(_pass, client, server, self.kept[-1][0])
                self._start(_pass, server, client, self.kept[-1][1])


def _pass(source: socket.socket, goal: socket.socket, kept: bytearray) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            kept += data
            goal.sendall(data)
    with suppress(OSError):
        goal.shutdown(socket.SHUT_WR)


def _exchanges(up: bytearray, down: bytearray) -> Iterator[Exchange]:
    requests, answers = io.BytesIO(up), io.BytesIO(down)
    while request := requests.readline():
        sent_headers = parse_headers(requests)
        sent, _ = _body(requests, sent_headers, is_answer=False)
        status = answers.readline()
        while status.split()[1:2] == [b"100"]:
            parse_headers(answers)
            status = answers.readline()
        headers = parse_headers(answers)
        has_body = status.split()[1:2] not in ([b"202"], [b"204"]) or "Content-Length" in headers
        body, is_cut = _body(answers, headers, is_answer=has_body)
        is_cut = is_cut or not status
        yield Exchange(
            request, sent, _lasting(sent_headers), status, _lasting(headers), body, is_cut
        )


def _body(source: io.BytesIO, headers: Message, *, is_answer: bool) -> tuple[bytes, bool]:
    """A body, and whether the connection ended before it."""
    if headers.get("Transfer-Encoding", "").lower() == "chunked":
        body = b""
        while size := int(source.readline() or b"0", 16):
            body += source.read(size)
            source.readline()
        return body, not source.readline()
    if (length := headers.get("Content-Length")) is not None:
        body = source.read(int(length))
        return body, len(body) < int(length)
    return (source.read(), True) if is_answer else (b"", False)


def _lasting(headers: Message) -> tuple[tuple[str, str], ...]:
    lasting = [
        (name.lower(), value)
        for name, value in headers.items()
        if name.lower() not in _OF_ONE_CONNECTION
    ]
    if (address := headers.get("Location")) is not None:  # each side has its own host
        lasting.append(("location", urlsplit(address)._replace(scheme="", netloc="").geturl()))
    return tuple(sorted(lasting))
