"""Finds the messages of MCP in a stream of bytes, and reads them.

Pure. A message may be of any length and form, as either side may be hostile: at most
`READ_MAX_BYTES` of one are kept, and one with more than `VALUES_MAX` values is not built. Of such a
message, its beginning and its end say whose it is.
"""

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from pydantic_core import from_json

READ_MAX_BYTES: Final = 1024 * 1024
KEEP_MAX_BYTES: Final = 384 * 1024
"""Payloads of longer messages are not kept: to search them for secrets takes too much memory."""
VALUES_MAX: Final = 15_000
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


class Allowance:
    """How many bytes of messages that have not ended a process may keep. May be used by threads."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Whether so many more may be kept; if so, they are counted."""
        with self._lock:
            is_enough = size <= self._left
            self._left -= size if is_enough else 0
        return is_enough

    def give_back(self, size: int) -> None:
        """Count so many less."""
        with self._lock:
            self._left += size


class Kept:
    """What is kept of one message while it comes: all of it, or its ends if it is long.

    It is also long if the allowance does not suffice. As long as it lives, it has its share.
    """

    def __init__(self, allowance: Allowance | None = None) -> None:
        self.size = 0
        self.is_long = False
        """Whether not all of it is kept."""
        self._allowance = allowance
        self._share = 0
        self._head = bytearray()
        self._tail = b""

    def __del__(self) -> None:
        self._give_back()

    def take(self, part: bytes) -> None:
        """Take what came next."""
        self.size += len(part)
        if self.is_long or not self._is_allowed():
            self._forget()
            self._head += part[: _EDGE_BYTES - len(self._head)]
            self._tail = (self._tail + part[-_EDGE_BYTES:])[-_EDGE_BYTES:]
        else:
            self._head += part

    def skip(self, count: int, tail: bytes) -> None:
        """Count bytes that nobody kept, but for their end."""
        self.size += count
        self._forget()
        self._tail = tail

    def line(self) -> Line:
        """The message. Nothing may follow: it is not kept twice."""
        head, self._head = bytes(self._head), bytearray()
        return Line(self.size, head, self._tail)

    def _is_allowed(self) -> bool:
        """Whether all of it may be kept."""
        if self.size > READ_MAX_BYTES:
            return False
        if self._allowance is None or self.size <= _EDGE_BYTES:
            return True
        wanted = self.size - self._share
        is_allowed = self._allowance.take(wanted)
        self._share += wanted if is_allowed else 0
        return is_allowed

    def _forget(self) -> None:
        """Keep the ends only, from now on."""
        self.is_long = True
        self._head = self._head[:_EDGE_BYTES]
        self._give_back()

    def _give_back(self) -> None:
        if self._allowance is not None and self._share:
            self._allowance.give_back(self._share)
            self._share = 0


class Lines:
    """Cuts a stream into its lines. Of one that has not ended at most `READ_MAX_BYTES` are kept."""

    def __init__(self, allowance: Allowance | None = None) -> None:
        self._allowance = allowance
        self._kept = Kept(allowance)

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
        kept, self._kept = self._kept, Kept(self._allowance)
        return kept.line()


class Events:
    """Cuts a stream of server-sent events (WHATWG HTML, 9.2) into the data of its events."""

    def __init__(self, allowance: Allowance | None = None) -> None:
        self._allowance = allowance
        self._lines = _AnyLines(allowance)
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
            self._data = Kept(self._allowance)
        else:
            self._data.take(b"\n")
        self._data.take(value)
        if not line.is_whole:  # what was not kept counts
            self._data.skip(line.size - before - len(value), line.tail)


class _AnyLines:
    """Cuts at LF, CR LF and CR, and yields empty lines, too."""

    def __init__(self, allowance: Allowance | None) -> None:
        self._lines = Lines(allowance)
        self._ends_in_cr = False

    def feed(self, chunk: bytes) -> Iterator[Line]:
        """Take what came next."""
        if self._ends_in_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        if chunk:
            self._ends_in_cr = chunk.endswith(b"\r")
        begin = 0
        for end in _LINE_END.finditer(chunk):
            yield next(self._lines.feed(chunk[begin : end.start()] + b"\n"), Line(0, b""))
            begin = end.end()
        yield from self._lines.feed(chunk[begin:])  # none, as it has no end


def _line(text: bytes) -> Line:
    if len(text) <= READ_MAX_BYTES:
        return Line(len(text), text)
    return Line(len(text), text[:_EDGE_BYTES], text[-_EDGE_BYTES:])


@dataclass(frozen=True, slots=True)
class Message:
    """One JSON-RPC message. `not_kept` says why its arguments or result cannot be recorded."""

    document: dict[str, Any]
    size: int
    """Of its line, in bytes."""
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
        return [_outline(text, line.tail, line.size, f"too long: {line.size} bytes")]
    if text.count(b",") + text.count(b"[") + text.count(b"{") > VALUES_MAX:
        reason = f"too long: {line.size} bytes, too many values"
        return [_outline(text, text[-_EDGE_BYTES:], line.size, reason)]
    document = _parse(text)
    documents = document if isinstance(document, list) else [document]
    not_kept = f"too long: {line.size} bytes" if line.size > KEEP_MAX_BYTES else None
    return [Message(each, line.size, not_kept) for each in documents if isinstance(each, dict)]


def _parse(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        pass
    try:  # takes NaN and lone surrogates, as many peers do
        return json.loads(text.decode())
    except (ValueError, RecursionError):
        raise UnreadableError("unreadable-message") from None


def _outline(text: bytes, tail: bytes, size: int, reason: str) -> Message:
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
    return Message(document, size, reason, is_whole=False)
