"""Syslog over TLS: messages of RFC 5424, framed and sent as RFC 5425 says.

Syslog has no acknowledgement. The best that TLS allows: after some records this side closes
(`close_notify`), and the cursor advances only if the receiver closes its side without an error. It
has then read all bytes in order. What it does with them afterwards it does not say (docs/siem.md).
"""

import fcntl
import os
import socket
import ssl
import struct
import tempfile
import termios
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

from audit.stream.place import rfc3339
from audit.stream.records import Record
from audit.stream.ways.way import SendError
from config.env import Opening
from config.http import connection_failures
from config.http.outbound import RefusedAddressError, guarded_socket

PORT = 6514
_TIMEOUT_S = 10.0
_TCP_CLOSE = 7  # of the states in <netinet/tcp.h>: reset
_AUDIT = 13
"""The facility "log audit"."""


class SyslogWay:
    """A connection for each group of records that is acknowledged together."""

    def __init__(
        self,
        host: str,
        port: int,
        context: ssl.SSLContext,
        *,
        hostname: str,
        of: str,
        allowed: Iterable[Opening],
    ) -> None:
        self._address = host, port
        self._context = context
        self._allowed = tuple(allowed)
        name = "".join(each for each in hostname if "!" <= each <= "~")[:255] or "-"
        self._head = f"{name} tooltrail - {of} - "
        self._connection: ssl.SSLSocket | None = None

    def send(self, records: Sequence[Record]) -> None:
        """Write the records. Raises SendError."""
        frames = b"".join(map(self.frame, records))
        try:
            if self._connection is None:
                self._connection = self._connect()
            self._connection.sendall(frames)
        except OSError as error:
            self.close()
            raise SendError(reason_of(error)) from error

    def settle(self) -> None:
        """Close this side, and wait for the receiver to close its own. Raises SendError."""
        connection = self._connection
        if connection is None:
            return
        try:
            try:
                rest = connection.unwrap()
                # Bytes that the receiver had not read would reset the connection.
                while rest.recv(4096):
                    pass
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
                pass  # it closed without `close_notify`, as many do, but without an error
            _await_receipt(connection)
        except OSError as error:
            raise SendError(f"It did not take all records: {reason_of(error)}") from error
        finally:
            self.close()

    def close(self) -> None:
        """Close the connection. What was not settled counts as not sent."""
        if self._connection is not None:
            with suppress(OSError):
                self._connection.close()
            self._connection = None

    def frame(self, record: Record) -> bytes:
        """A record as a frame of RFC 5425."""
        pri = _AUDIT * 8 + record.severity
        head = f"<{pri}>1 {rfc3339(record.received_us)} {self._head}".encode()
        return b"%d %b%b" % (len(head) + len(record.body), head, record.body)

    def _connect(self) -> ssl.SSLSocket:
        host, port = self._address
        plain = guarded_socket(host, port, self._allowed)
        try:
            plain.settimeout(_TIMEOUT_S)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self._context.wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise


def _await_receipt(connection: socket.socket) -> None:
    """Wait until all bytes have arrived at the receiver, which has closed. Raises OSError.

    One that closes before it reads, as one that refuses a client certificate, has closed before
    our bytes came. It answers them by a reset, which reading the end does not show.
    """
    if not hasattr(socket, "TCP_INFO"):  # other systems than Linux do not say it
        return
    until = time.monotonic() + _TIMEOUT_S
    while True:
        waiting = struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, b"\0" * 4))[0]
        if connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _TCP_CLOSE:
            raise ConnectionResetError
        if waiting == 0:
            return
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(0.01)


def reason_of(error: OSError) -> str:
    """Why it failed, for people."""
    if isinstance(error, RefusedAddressError):
        return "The operator does not allow streams to this address."
    return connection_failures.words_of(error) or f"{error.strerror or error}."


def show_certificate(context: ssl.SSLContext, pem: str) -> None:
    """Let the context show a certificate, given with its key. Raises ssl.SSLError.

    Python reads both from a file only. It is in memory where the system has such files (Linux),
    and otherwise one that only this user may read, for a moment.
    """
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(pem)
            file.flush()
            context.load_cert_chain(file.name)
        return
    with os.fdopen(os.memfd_create("certificate"), "w") as file:
        file.write(pem)
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
