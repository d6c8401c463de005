"""Disconnects clients that send a request's body too slowly, so that none blocks a thread.

The web server waits for a body without a limit, and stops only when the connection ends. So we end
the connection. The server does not tell which connection a request has, only the client's address.
So we end as many connections of that address as are slow. Candidates are those on which we sent
nothing since the request began, the oldest first. These are the slow ones, or one that has waited
for its response even longer; its client will retry.
"""

import logging
import os
import socket
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Protocol

GRACE_S = 10.0
"""Every body may take this long, plus one second per `BYTES_PER_S` received."""
BYTES_PER_S = 64 * 1024
HURRY_S = 3.0
"""The grace while more than `MANY` threads wait, so that threads stay free for probes."""
MANY = 8

_CHECK_EVERY_S = 0.5
_CLOCKS_DIFFER_S = 0.5  # the start of our wait, and when the kernel sent `100 Continue`
_LAST_DATA_SENT = 44  # offset in Linux' struct tcp_info, before last_ack_sent and last_data_recv
_TCP_INFO_LENGTH = _LAST_DATA_SENT + 3 * 4

_log = logging.getLogger(__name__)

type Environ = dict[str, Any]
type Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class _Input(Protocol):
    def read(self, size: int, /) -> bytes: ...
    def readline(self, size: int, /) -> bytes: ...


@dataclass(eq=False, slots=True)
class _Wait:
    """A thread that waits for more bytes of a body."""

    address: str
    port: int  # of the server
    began_at: float  # start, if all waits for this body had been one without a break
    received: int

    def is_over(self, now: float, grace_s: float) -> bool:
        return now - self.began_at > grace_s + self.received / BYTES_PER_S


class SlowSenders:
    """WSGI middleware that watches all request bodies of this process."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lock = threading.Lock()
        self._waits: set[_Wait] = set()
        self._is_watching = False

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        environ["wsgi.input"] = TimedBody(environ, self.waiting)
        return self._application(environ, start_response)

    @contextmanager
    def waiting(self, wait: _Wait) -> Iterator[None]:
        """Watch this wait while the block runs."""
        with self._lock:
            self._waits.add(wait)
            if not self._is_watching:  # not in __init__: the process may fork after it
                self._is_watching = True
                threading.Thread(target=self._watch, name="slow-senders", daemon=True).start()
        try:
            yield
        finally:
            with self._lock:
                self._waits.discard(wait)

    def _watch(self) -> None:
        while True:
            time.sleep(_CHECK_EVERY_S)
            with self._lock:
                waits = list(self._waits)
            grace_s = HURRY_S if len(waits) > MANY else GRACE_S
            now = time.monotonic()
            over: dict[tuple[str, int], list[float]] = {}
            for wait in waits:
                if wait.is_over(now, grace_s):
                    over.setdefault((wait.address, wait.port), []).append(now - wait.began_at)
            for (address, port), waited_s in over.items():
                if cut := cut_off(address, port, len(waited_s), min(waited_s)):
                    _log.warning(
                        "%s sends request bodies too slowly; closed its connections: %d",
                        address,
                        cut,
                    )


class TimedBody:
    """`wsgi.input` with every read inside `waiting`."""

    def __init__(self, environ: Environ, waiting: Callable[[_Wait], Any]) -> None:
        self._stream: _Input = environ["wsgi.input"]
        self._environ = environ
        self._waiting = waiting
        self._waited_s = 0.0
        self._received = 0

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; empty at the end, or after the client was disconnected."""
        return self._timed(self._stream.read, size)

    def readline(self, size: int, /) -> bytes:
        """Return at most `size` bytes, up to the end of the line."""
        return self._timed(self._stream.readline, size)

    def _timed(self, read: Callable[[int], bytes], size: int) -> bytes:
        began = time.monotonic()
        wait = _Wait(
            self._environ.get("REMOTE_ADDR", ""),
            int(self._environ["SERVER_PORT"]),
            began - self._waited_s,
            self._received,
        )
        with self._waiting(wait):
            data = read(size)
        self._waited_s += time.monotonic() - began
        self._received += len(data)
        return data


def cut_off(address: str, port: int, count: int, silent_s: float) -> int:
    """End up to `count` connections from `address` to our `port`. Return how many it ended.

    Only connections on which we sent nothing for `silent_s` seconds are ended, the longest silence
    first. Idle connections, where our response was the last data, come after all others. Does
    nothing if the kernel is not Linux.
    """
    silent = []
    with ExitStack() as opened:
        for connection in _connections(address, port):
            opened.enter_context(connection)
            sent_ago_s, received_ago_s = _ages_s(connection)
            if sent_ago_s >= silent_s - _CLOCKS_DIFFER_S:
                is_idle = received_ago_s > sent_ago_s
                silent.append((is_idle, -sent_ago_s, connection.fileno(), connection))
        cut = 0
        for _, _, _, connection in sorted(silent)[:count]:
            with suppress(OSError):  # it has just ended by itself
                connection.shutdown(socket.SHUT_RDWR)
                cut += 1
    return cut


def _connections(address: str, port: int) -> Iterator[socket.socket]:
    sockets = {}  # by inode, so that each occurs once
    for descriptor in [int(path.name) for path in Path("/dev/fd").iterdir()]:
        with suppress(OSError):  # closed meanwhile
            facts = os.fstat(descriptor)
            if stat.S_ISSOCK(facts.st_mode):
                sockets[facts.st_ino] = descriptor
    for descriptor in sockets.values():
        try:
            connection = socket.socket(fileno=os.dup(descriptor))
        except OSError:
            continue
        if _is_from(connection, address, port):
            yield connection
        else:
            connection.close()


def _is_from(connection: socket.socket, address: str, port: int) -> bool:
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    try:
        own, peer = connection.getsockname(), connection.getpeername()
    except OSError:
        return False  # a listening socket, or one that ended
    return own[1] == port and _same_host(peer[0], address)


def _same_host(one: str, other: str) -> bool:
    try:
        return ip_address(one.partition("%")[0]) == ip_address(other)
    except ValueError:
        return False


def _ages_s(connection: socket.socket) -> tuple[float, float]:
    """Return the seconds since we last sent and last received data on the connection."""
    if not hasattr(socket, "TCP_INFO"):
        return -_CLOCKS_DIFFER_S, 0.0
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_LENGTH)
    sent_ms, _, received_ms = struct.unpack_from("3I", info, _LAST_DATA_SENT)
    return sent_ms / 1000, received_ms / 1000
