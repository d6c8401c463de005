"""Finds the messages of MCP in a stream of bytes, and reads them.

Pure. A message may be of any length and form, as either side may be hostile: at most
`READ_MAX_BYTES` of one are kept, and one with more than `VALUES_MAX` values is not built. Of such a
message, its beginning and its end say whose it is.
"""

import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from pydantic_core import from_json

READ_MAX_BYTES: Final = 1024 * 1024
KEEP_MAX_BYTES: Final = 256 * 1024
"""Payloads of longer messages are not kept: to search them for secrets takes too long."""
VALUES_MAX: Final = 20_000
_EDGE_BYTES: Final = 8192
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_BOM: Final = b"\xef\xbb\xbf"
# The last member of an object that ends with the text: a comma or brace before it cannot be inside
# of a string, because a quote inside of one has a backslash.
_LAST_ID = re.compile(
    rb'[{,]\s*"id"\s*:\s*(-?\d{1,20}|"(?:[^"\\]|\\.){0,200}")\s*'
    rb'(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$'
)
_LAST_IS_ERROR = re.compile(rb'"isError"\s*:\s*true\s*\}\s*,\s*"(?:jsonrpc|id)"[^{}]*\}\s*$')


@dataclass(frozen=True, slots=True)
class Line:
    """A message as it came, without its end of line. Of a long one, only the two ends are kept."""

    size: int
    """In bytes."""
    head: bytes
    tail: bytes = b""

    @property
    def is_whole(self) -> bool:
        """Whether `head` is all of it."""
        return len(self.head) == self.size


class Kept:
    """What is kept of one message while it comes: all of it, or its ends if it is long."""

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[bytes] = []
        self._edge = b""
        self._tail: deque[bytes] = deque()
        self._tail_size = 0

    @property
    def is_long(self) -> bool:
        """Whether it is longer than what is read."""
        return self.size > READ_MAX_BYTES

    def take(self, part: bytes) -> None:
        """Take what came next."""
        self.size += len(part)
        if not self.is_long:
            self._parts.append(part)
            return
        if self._parts:
            self._edge = b"".join(self._parts)[:_EDGE_BYTES]
            self._parts = []
        elif not self._edge:
            self._edge = part[:_EDGE_BYTES]
        self._tail.append(part[-_EDGE_BYTES:])
        self._tail_size += len(self._tail[-1])
        while self._tail_size - len(self._tail[0]) >= _EDGE_BYTES:
            self._tail_size -= len(self._tail.popleft())

    def skip(self, count: int, tail: bytes) -> None:
        """Count bytes that nobody kept, but for their end."""
        self.size += count
        if self._parts:
            self._edge = b"".join(self._parts)[:_EDGE_BYTES]
            self._parts = []
        self._tail = deque([tail])
        self._tail_size = len(tail)

    def line(self) -> Line:
        """The message."""
        if self.is_long:
            return Line(self.size, self._edge, b"".join(self._tail)[-_EDGE_BYTES:])
        return Line(self.size, b"".join(self._parts))


class Lines:
    """Cuts a stream into its lines. Of one that has not ended at most `READ_MAX_BYTES` are kept."""

    def __init__(self) -> None:
        self._kept = Kept()

    def feed(self, chunk: bytes) -> Iterator[Line]:
        """Take what came next. Yields each line that it completes, but for empty ones."""
        begin = 0
        while (end := chunk.find(b"\n", begin)) >= 0:
            if self._kept.size:
                self._kept.take(chunk[begin:end])
                yield self.end()
            elif end > begin:
                yield _line(chunk[begin:end])
            begin = end + 1
        if begin < len(chunk):
            self._kept.take(chunk[begin:] if begin else chunk)

    @property
    def is_empty(self) -> bool:
        """Whether the last line has ended."""
        return not self._kept.size

    @property
    def is_long(self) -> bool:
        """Whether the line that has not ended is longer than what is read."""
        return self._kept.is_long

    def end(self) -> Line:
        """The rest, which is a line without its end."""
        kept, self._kept = self._kept, Kept()
        return kept.line()


class Events:
    """Cuts a stream of server-sent events (WHATWG HTML, 9.2) into the data of its events."""

    def __init__(self) -> None:
        self._lines = _AnyLines()
        self._data: Kept | None = None
        self._type = b""

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, Line]]:
        """Take what came next. Yields type and data of each event that it completes."""
        for line in self._lines.feed(chunk):
            name, _, value = line.head.partition(b":")
            value = value.removeprefix(b" ")
            if not line.size:
                if self._data is not None:
                    yield self._type, self._data.line()
                self._data, self._type = None, b""
            elif name == b"data":
                self._add(line, len(line.head) - len(value), value)
            elif name == b"event":
                self._type = value[:64]

    def _add(self, line: Line, before: int, value: bytes) -> None:
        if self._data is None:
            self._data = Kept()
        else:
            self._data.take(b"\n")
        self._data.take(value)
        if not line.is_whole:  # what was not kept counts
            self._data.skip(line.size - before - len(value), line.tail)


class _AnyLines:
    """Cuts at LF, CR LF and CR, and yields empty lines, too."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._ends_in_cr = False

    def feed(self, chunk: bytes) -> Iterator[Line]:
        """Take what came next."""
        if self._ends_in_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        if chunk:
            self._ends_in_cr = chunk.endswith(b"\r")
        *ended, rest = _LINE_END.split(chunk)
        for part in ended:
            yield next(self._lines.feed(part + b"\n"), Line(0, b""))
        yield from self._lines.feed(rest)  # none, as it has no end


def _line(text: bytes) -> Line:
    if len(text) <= READ_MAX_BYTES:
        return Line(len(text), text)
    return Line(len(text), text[:_EDGE_BYTES], text[-_EDGE_BYTES:])


@dataclass(frozen=True, slots=True)
class Message:
    """One JSON-RPC message. `not_kept` says why its arguments or result cannot be recorded."""

    document: dict[str, Any]
    not_kept: str | None = None
    is_whole: bool = True
    """Whether the document has all of the message, and not only what its two ends say."""


class UnreadableError(ValueError):
    """The text is no message that can be read, or too little of it. The message is the reason."""


def read_messages(line: Line) -> list[Message]:
    """The messages of a line: one, or those of a batch (2025-03-26). Raises UnreadableError."""
    text = line.head.removeprefix(_BOM)
    begins = text.lstrip()[:1]
    if not begins and line.is_whole:
        return []
    if begins not in (b"{", b"["):
        raise UnreadableError("not-a-message")
    if not line.is_whole:
        return [_outline(text, line.tail, f"too long: {line.size} bytes")]
    if text.count(b",") + text.count(b"[") + text.count(b"{") > VALUES_MAX:
        return [
            _outline(text, text[-_EDGE_BYTES:], f"too long: {line.size} bytes, too many values")
        ]
    document = _parse(text)
    documents = document if isinstance(document, list) else [document]
    not_kept = f"too long: {line.size} bytes" if line.size > KEEP_MAX_BYTES else None
    return [Message(each, not_kept) for each in documents if isinstance(each, dict)]


def _parse(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        pass
    try:  # takes NaN and lone surrogates, as many peers do
        return json.loads(text.decode())
    except (ValueError, RecursionError):
        raise UnreadableError("unreadable-message") from None


def _outline(text: bytes, tail: bytes, reason: str) -> Message:
    """What the two ends of a message say: its id, what it is, and which tool it calls."""
    try:
        document = from_json(text[:_EDGE_BYTES], allow_partial=True)
    except ValueError:
        raise UnreadableError("unreadable-message") from None
    if not isinstance(document, dict) or text.lstrip()[:1] == b"[":
        raise UnreadableError("message-too-long")
    if "id" not in document and (last := _LAST_ID.search(tail)):
        document["id"] = json.loads(last[1])
    if isinstance(document.get("result"), dict) and _LAST_IS_ERROR.search(tail):
        document["result"]["isError"] = True
    if "id" not in document:
        raise UnreadableError("message-too-long")
    return Message(document, reason, is_whole=False)
