"""Runs a server of MCP and passes the bytes between it and the client, its standard streams.

Owns the process and the two threads that pass bytes. What completes a message is passed on after
the message is recorded, so a kill loses no call that the client or the server has seen. Bytes of a
message that has not ended pass at once, but for requests with `--fail-closed`.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from tooltrail.mcp_recorder.messages import Line, Lines
from tooltrail.mcp_recorder.session import CancelledError, Recorder, Session, request_ids
from tooltrail.spool import SpoolFullError

NOT_RECORDED: Final = -32000
_READ_BYTES: Final = 64 * 1024
_REQUEST_BYTES: Final = 16 * 1024
"""Read at once from the client: fewer requests than may be open."""
_PASSED_ON: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
_LAST_BYTES_SECONDS: Final = 5.0
_PR_SET_PDEATHSIG: Final = 1
_OUR_KEY: Final = "TOOLTRAIL_API_KEY"
CANNOT_RUN: Final = 127


def run(command: Sequence[str], recorder: Recorder) -> int:
    """Run the server until it ends. Returns its exit code, as a shell tells it.

    The server does not get our API key. Raises OSError if it cannot be started.
    """
    environment = {name: value for name, value in os.environ.items() if name != _OUR_KEY}
    server = subprocess.Popen(  # noqa: S603  # the user has given the command
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env=environment,
        preexec_fn=_end_with_parent(),  # no thread of ours runs yet
    )
    for number in _PASSED_ON:
        signal.signal(number, lambda received, frame: server.send_signal(received))
    _Relay(server, Session(recorder), is_closed=recorder.trail.settings.when_full == "raise").run()
    code = server.returncode
    return code if code >= 0 else 128 - code


def _end_with_parent() -> Callable[[], None] | None:
    """Make the server end when we are killed, even if it ignores the end of its input (Linux)."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


class _Relay:
    """The two directions of one server."""

    def __init__(
        self, server: "subprocess.Popen[bytes]", session: Session, *, is_closed: bool
    ) -> None:
        self._server = server
        self._session = session
        self._is_closed = is_closed
        self._has_client_ended = False
        self._answers: list[bytes] = []  # of ours, for when the server's line has ended
        self._is_between_lines = True
        self._out = threading.Lock()

    def run(self) -> None:
        """Pass bytes until the server has ended."""
        up = threading.Thread(target=self._to_server, name="mcp-to-server", daemon=True)
        down = threading.Thread(target=self._to_client, name="mcp-to-client", daemon=True)
        up.start()
        down.start()
        self._server.wait()
        down.join(_LAST_BYTES_SECONDS)  # a child of the server may hold its output open
        reason: Exception = ConnectionAbortedError("the server ended before it answered")
        if self._has_client_ended:
            reason = CancelledError("the client ended the session")
        self._session.fail(reason)

    def _to_server(self) -> None:
        assert self._server.stdin is not None
        target = self._server.stdin.fileno()
        lines = Lines()
        pass_on = self._recorded_only if self._is_closed else self._all
        with suppress(OSError):  # the server has closed its input
            while chunk := os.read(0, _REQUEST_BYTES):
                self._session.wait_for_room()
                for part in pass_on(lines, chunk):
                    _write(target, part)
            self._has_client_ended = True
            if not lines.is_empty:
                self._session.from_client(lines.end())
        with suppress(OSError):
            self._server.stdin.close()

    def _all(self, lines: Lines, chunk: bytes) -> Iterator[bytes]:
        for line in lines.feed(chunk):
            self._session.from_client(line)
        yield chunk

    def _recorded_only(self, lines: Lines, chunk: bytes) -> Iterator[bytes]:
        """The lines that are recorded, each when it has ended. Others are answered by us."""
        for line in lines.feed(chunk):
            try:
                if not line.is_whole:  # only its ends were kept, so it cannot be passed on
                    raise SpoolFullError(f"the message has {line.size} bytes")
                self._session.from_client(line)
            except SpoolFullError as error:
                self._refuse(line, str(error))
            else:
                yield line.head + b"\n"

    def _refuse(self, line: Line, reason: str) -> None:
        error = {"code": NOT_RECORDED, "message": f"tooltrail: not recorded, so not sent: {reason}"}
        answers: list[dict[str, Any]] = [
            {"jsonrpc": "2.0", "id": each, "error": error} for each in request_ids(line) or [None]
        ]
        with self._out:
            self._answers += [json.dumps(each).encode() + b"\n" for each in answers]
            if self._is_between_lines:
                self._write_answers()

    def _to_client(self) -> None:
        assert self._server.stdout is not None
        source = self._server.stdout.fileno()
        lines = Lines()
        with suppress(OSError):  # the client is gone
            while chunk := os.read(source, _READ_BYTES):
                for line in lines.feed(chunk):
                    self._session.from_server(line)
                with self._out:
                    _write(1, chunk)
                    self._is_between_lines = chunk.endswith(b"\n")
                    if self._answers and self._is_between_lines:
                        self._write_answers()
        if not lines.is_empty:
            self._session.from_server(lines.end())
        with suppress(OSError):
            self._server.stdout.close()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the client sees the end now

    def _write_answers(self) -> None:
        while self._answers:
            _write(1, self._answers.pop(0))


def _write(target: int, data: bytes) -> None:
    """Write all of it. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(target, view) :]
