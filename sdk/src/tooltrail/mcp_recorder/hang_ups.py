"""Notices that a client of HTTP has gone, while its request waits for the server.

Owns the thread that watches connections.
"""

import select
import socket
import threading
from contextlib import suppress


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

    def has_left(self, client: socket.socket) -> bool:
        """Whether a client that is watched has hung up."""
        return client.fileno() in self._gone

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
