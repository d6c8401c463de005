"""The guard of this process: every connection of Python code passes the check of its address.

CPython calls audit hooks before `connect`, `sendto` and others, whichever library calls them, and a
hook cannot be removed. It sees the address that is connected to: a name was resolved before, so a
redirect or a second answer of the DNS (rebinding) is checked like the first.
"""

import ctypes  # noqa: F401  # libraries import it, and that opens a library: before the guard
import os
import socket
import sys
import threading
from collections.abc import Iterable
from typing import Any

from config.env import Opening
from config.http.addresses import may_connect

# None of them is needed to send a message. With the first ones another program could connect.
_REFUSED = frozenset(
    {
        *("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"),
        *("pty.spawn", "subprocess.Popen", "ctypes.dlopen", "ctypes.dlsym"),
        *("socket.bind", "socket.listen"),
    }
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_refused = threading.local()


class RefusedError(PermissionError):
    """This process may not do that, or not connect there."""


def install(allowed: Iterable[Opening]) -> None:
    """Guard this process from now on; there is no way back."""
    openings = tuple(allowed)

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
            connection, address = arguments
            if address is not None and not _is_allowed(connection, address, openings):
                _refused.count = refused_count() + 1
                raise RefusedError("The operator does not allow deliveries to this address.")
        elif event in _REFUSED or (event == "open" and arguments[2] & _WRITES):
            raise RefusedError(f"{event} is refused.")

    sys.addaudithook(check)


def refused_count() -> int:
    """How many connections of this thread were refused."""
    count: int = getattr(_refused, "count", 0)
    return count


def _is_allowed(connection: socket.socket, address: Any, openings: tuple[Opening, ...]) -> bool:
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return False  # a socket of this machine, for example of PostgreSQL
    match address:
        case (str(host), int(port), *_):
            return may_connect(host, port, openings)
        case _:
            return False
