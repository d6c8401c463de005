"""Definitions of the tools that a running MCP server has: its `tools/list`, page by page.

The server may be hostile: what it sends is bounded in time and size, and is only data. Servers are
asked with the handshake of 2025, and without one (2026-07-28) if they have none.
Source: https://modelcontextprotocol.io/specification
"""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import urllib3

from tooltrail.cli.check.definitions import CheckError, Definition, read_json
from tooltrail.version import __version__

LIST_MAX_BYTES: Final = 10_000_000
"""Of all that a server sends."""
PAGES_MAX: Final = 100
_CURSOR_MAX: Final = 10_000
_READ_BYTES: Final = 64 * 1024
END_SECONDS: Final = 2.0
"""For a server of ours to end by itself when its input ends, and then on a signal."""
_OUR_KEY: Final = "TOOLTRAIL_API_KEY"
AUTHORIZATION: Final = "MCP_AUTHORIZATION"
"""The variable whose text servers behind URLs get as the header `Authorization`."""
_HANDSHAKE: Final = "2025-11-25"
_WITHOUT_HANDSHAKE: Final = "2026-07-28"
_NO_METHOD: Final = -32601
_OK: Final = 200
_CLIENT: Final = {"name": "tooltrail-check", "version": __version__}
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": _WITHOUT_HANDSHAKE,
    "io.modelcontextprotocol/clientInfo": _CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Connection(Protocol):
    """A way to an MCP server."""

    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request; its answer. Raises CheckError."""

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a notification. Raises CheckError."""

    def speak(self, version: str) -> None:
        """Use a version of the protocol from now on."""


def list_of_command(command: Sequence[str], deadline: float) -> list[Definition]:
    """Start a server, and list its tools. It does not get our API key. Raises CheckError.

    `deadline` is of `time.monotonic`.
    """
    environment = {name: value for name, value in os.environ.items() if name != _OUR_KEY}
    try:
        server = subprocess.Popen(  # noqa: S603  # the user has given the command
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise CheckError(f"{command[0]}: {error.strerror}") from None
    try:
        return _listed(command[0], _Piped(server, deadline))
    finally:
        _end(server)


def list_of_url(url: str, deadline: float) -> list[Definition]:
    """List the tools of a server behind a URL (Streamable HTTP). Raises CheckError."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CheckError(f"not an http or https URL: {url}")
    with urllib3.PoolManager(num_pools=1, maxsize=1) as pool:
        return _listed(url, _Posted(pool, url, deadline))


def _listed(source: str, server: Connection) -> list[Definition]:
    try:
        meta = _begin(server)
        return _pages(source, server, meta)
    except CheckError as error:
        raise CheckError(f"{source}: {error}") from None


def _begin(server: Connection) -> dict[str, Any]:
    """Shake hands. Returns the members that further requests have in addition."""
    params = {"protocolVersion": _HANDSHAKE, "capabilities": {}, "clientInfo": _CLIENT}
    answer = server.ask(_request(0, "initialize", params))
    error = answer.get("error")
    if isinstance(error, dict):
        if error.get("code") == _NO_METHOD:
            server.speak(_WITHOUT_HANDSHAKE)
            return {"_meta": _META}
        raise CheckError(f"the server refuses: {error.get('message')}")
    result = answer.get("result")
    version = result.get("protocolVersion") if isinstance(result, dict) else None
    if not isinstance(version, str) or not (version.isascii() and version.isprintable()):
        raise CheckError("the server says no version of the protocol")
    server.speak(version)
    server.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return {}


def _pages(source: str, server: Connection, meta: Mapping[str, Any]) -> list[Definition]:
    definitions: list[Definition] = []
    cursor: Any = None
    for number in range(1, PAGES_MAX + 1):
        params = {**meta, **({} if cursor is None else {"cursor": cursor})}
        answer = server.ask(_request(number, "tools/list", params))
        if isinstance(error := answer.get("error"), dict):
            raise CheckError(f"the server refuses tools/list: {error.get('message')}")
        result = answer.get("result")
        tools = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(result, dict) or not isinstance(tools, list):
            raise CheckError("the answer to tools/list has no list of tools")
        for tool in tools:
            definitions.append(Definition(f"{source}: tools[{len(definitions)}]", tool))
        cursor = result.get("nextCursor")
        if cursor is None:
            break
        if not isinstance(cursor, str) or len(cursor) > _CURSOR_MAX:
            raise CheckError("nextCursor is no text, or too long")
    else:
        raise CheckError(f"the list has more than {PAGES_MAX} pages")
    if not definitions:
        raise CheckError("the server has no tools")
    return definitions


def _request(number: int, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _as_answer(text: bytes, number: Any) -> dict[str, Any] | None:
    """The message, if it answers this request."""
    message = read_json("the server", text)
    if not isinstance(message, dict) or "method" in message or message.get("id") != number:
        return None
    return message


class _Budget:
    """How much a server may still send, and until when."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._left = LIST_MAX_BYTES

    def seconds(self) -> float:
        """Until the deadline. Raises CheckError if it has passed."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise CheckError("the server did not answer in time (--timeout)")
        return left

    def take(self, part: bytes) -> bytes:
        """Count what came. Raises CheckError if it is too much."""
        self._left -= len(part)
        if self._left < 0:
            raise CheckError(f"the server sends more than {LIST_MAX_BYTES:,} bytes")
        return part


class _Piped:
    """A server of ours: messages are lines."""

    def __init__(self, server: "subprocess.Popen[bytes]", deadline: float) -> None:
        assert server.stdin is not None
        assert server.stdout is not None
        self._in, self._out = server.stdin.fileno(), server.stdout.fileno()
        os.set_blocking(self._in, False)
        self._budget = _Budget(deadline)
        self._received = bytearray()

    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request, and read lines until its answer."""
        self.tell(message)
        while True:
            line = self._line()
            with suppress(CheckError):  # some servers write their log here, too
                if (answer := _as_answer(line, message["id"])) is not None:
                    return answer

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a line."""
        view = memoryview(json.dumps(message).encode() + b"\n")
        while view:
            if not select.select([], [self._in], [], self._budget.seconds())[1]:
                continue
            try:
                view = view[os.write(self._in, view) :]
            except OSError:
                raise CheckError("the server ended before it answered") from None

    def speak(self, version: str) -> None:
        """Lines name no version."""

    def _line(self) -> bytes:
        begin = 0
        while (end := self._received.find(b"\n", begin)) < 0:
            begin = len(self._received)
            if not select.select([self._out], [], [], self._budget.seconds())[0]:
                continue
            part = os.read(self._out, _READ_BYTES)
            if not part:
                raise CheckError("the server ended before it answered")
            self._received += self._budget.take(part)
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line


class _Posted:
    """A server behind a URL: a message is a request, its answer JSON or a stream of events."""

    def __init__(self, pool: urllib3.PoolManager, url: str, deadline: float) -> None:
        self._pool = pool
        self._url = url
        self._budget = _Budget(deadline)
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "User-Agent": f"{_CLIENT['name']}/{__version__}",
        }
        if authorization := os.environ.get(AUTHORIZATION):
            self._headers["Authorization"] = authorization

    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Post a request; its answer."""
        return self._post(message, lambda response: self._answer(response, message["id"]))

    def tell(self, message: Mapping[str, Any]) -> None:
        """Post a notification."""
        self._post(message, lambda response: {})

    def speak(self, version: str) -> None:
        """Name the version in each request."""
        self._headers["MCP-Protocol-Version"] = version

    def _post(
        self,
        message: Mapping[str, Any],
        read: Callable[[urllib3.BaseHTTPResponse], dict[str, Any]],
    ) -> dict[str, Any]:
        try:
            response = self._pool.request(
                "POST",
                self._url,
                body=json.dumps(message).encode(),
                headers={**self._headers, "Mcp-Method": str(message["method"])},
                redirect=False,
                retries=False,
                timeout=self._budget.seconds(),
                preload_content=False,
                decode_content=False,  # what is small may inflate to gigabytes
            )
            try:
                if session := response.headers.get("Mcp-Session-Id"):
                    self._headers["Mcp-Session-Id"] = session
                return read(response)
            finally:
                response.close()
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise CheckError(f"no answer ({type(error).__name__})") from None

    def _answer(self, response: urllib3.BaseHTTPResponse, number: Any) -> dict[str, Any]:
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            return self._streamed(response, number)
        body = b""
        while part := self._part(response):
            body += part
        if kind != "application/json":
            raise CheckError(f"the server answers {response.status} and no JSON")
        message = read_json("the server", body)
        if isinstance(message, dict) and isinstance(message.get("error"), dict):
            return message  # its id is missing if the request could not be read
        if response.status != _OK:
            raise CheckError(f"the server answers {response.status}")
        if (answer := _as_answer(body, number)) is None:
            raise CheckError("the answer has another id")
        return answer

    def _streamed(self, response: urllib3.BaseHTTPResponse, number: Any) -> dict[str, Any]:
        """The answer among the events of a stream (text/event-stream of HTML)."""
        received = b""
        data: list[bytes] = []
        while part := self._part(response):
            *lines, received = (received + part).replace(b"\r\n", b"\n").split(b"\n")
            for line in lines:
                if line.startswith(b"data:"):
                    data.append(line.removeprefix(b"data:").removeprefix(b" "))
                elif not line and data:
                    answer = _as_answer(b"\n".join(data), number)
                    if answer is not None:
                        return answer
                    data = []
        raise CheckError("the stream ended before the answer")

    def _part(self, response: urllib3.BaseHTTPResponse) -> bytes:
        """What comes next; empty at the end."""
        self._budget.seconds()
        return self._budget.take(response.read1(_READ_BYTES))


def _end(server: "subprocess.Popen[bytes]") -> None:
    """End a server and what it has started."""
    assert server.stdin is not None
    assert server.stdout is not None
    with suppress(OSError):
        server.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        server.wait(END_SECONDS)
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(OSError):
            os.killpg(server.pid, number)
        with suppress(subprocess.TimeoutExpired):
            server.wait(END_SECONDS)
    server.stdout.close()
