"""The bodies of HTTP requests and answers, in parts, as they come; and the messages in them.

Owns chunks, and when a part of an answer may pass: when the messages that it completes are
recorded.
"""

import http.client
import re
from collections.abc import Callable, Iterable, Iterator
from email.message import Message
from io import BufferedIOBase
from typing import Final

from tooltrail.mcp_recorder.messages import Allowance, Events, Kept, Line
from tooltrail.mcp_recorder.session import Session

_READ_BYTES: Final = 8 * 1024
_LINE_BYTES: Final = 4096
_LENGTH: Final = re.compile(r"[0-9]{1,18}")
_CHUNK_SIZE: Final = re.compile(rb"[0-9a-fA-F]{1,15}")


class BodyError(ValueError):
    """Nobody can say where the body of a request ends. The message is the reason."""


def is_chunked(headers: Message) -> bool:
    """Whether the body is sent in chunks (RFC 9112, 6.3). Raises BodyError if that is not clear.

    What two servers read differently, a client could hide a request in.
    """
    coding = headers.get_all("Transfer-Encoding", [])
    lengths = headers.get_all("Content-Length", [])
    if [each.strip().lower() for each in coding] == ["chunked"] and not lengths:
        return True
    if coding:
        raise BodyError("only Transfer-Encoding: chunked is read, without Content-Length")
    if len(lengths) > 1 or not all(_LENGTH.fullmatch(each) for each in lengths):
        raise BodyError("Content-Length must be one number")
    return False


def request_parts(source: BufferedIOBase, headers: Message) -> Iterator[bytes]:
    """The body of a request. Raises OSError if it ends early, BodyError for a malformed chunk."""
    if not is_chunked(headers):
        yield from _bytes(source, int(headers.get("Content-Length", 0)))
        return
    while size := _chunk_size(source.readline(_LINE_BYTES)):
        yield from _bytes(source, size)
        if source.readline(_LINE_BYTES) not in (b"\r\n", b"\n"):
            raise BodyError("a chunk is longer than it says")
    while source.readline(_LINE_BYTES).strip():  # trailers
        pass


def _chunk_size(line: bytes) -> int:
    if not line.endswith(b"\n"):
        raise ConnectionAbortedError("the body ended early")
    digits = line.partition(b";")[0].strip()
    if not _CHUNK_SIZE.fullmatch(digits):
        raise BodyError("a chunk has no size")
    return int(digits, 16)


def _bytes(source: BufferedIOBase, size: int) -> Iterator[bytes]:
    while size > 0:
        part = source.read1(min(size, _READ_BYTES))
        if not part:
            raise ConnectionAbortedError("the body ended early")
        size -= len(part)
        yield part


def answer_parts(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """The body of an answer. Raises OSError if it ends early."""
    try:
        while part := answer.read1(_READ_BYTES):
            yield part
    except http.client.HTTPException as error:
        raise ConnectionAbortedError("the answer ended early") from error
    if answer.length:  # `read1` does not tell
        raise ConnectionAbortedError("the answer ended early")


def recorded_parts(
    answer: http.client.HTTPResponse,
    session: Session,
    allowance: Allowance,
    keep_endpoint: Callable[[bytes], None],
    finish: Callable[[], None],
) -> Iterator[bytes]:
    """The body of an answer, each part when the messages that it completes are recorded.

    `keep_endpoint` gets the address that a stream of 2024-11-05 names for the client's messages.
    `finish` is called when all is recorded, and the client does not know yet that all has come.
    Raises OSError if the body ends early.
    """
    kind = (answer.getheader("Content-Type") or "").partition(";")[0].strip().lower()
    if kind == "text/event-stream":
        events = Events(allowance)
        for part in answer_parts(answer):
            for name, data in events.feed(part):
                if name == b"endpoint":
                    keep_endpoint(data.head)
                else:
                    session.from_server(data)
            yield part
        finish()
    elif kind == "application/json":

        def record(line: Line) -> None:
            session.from_server(line)
            finish()

        yield from recorded_last(answer_parts(answer), allowance, record)
    else:
        yield from answer_parts(answer)
        finish()


def recorded_last(
    parts: Iterable[bytes], allowance: Allowance, record: Callable[[Line], None]
) -> Iterator[bytes]:
    """The parts of a body that is one message, the last when `record` has got the message."""
    kept, last = Kept(allowance), b""
    for part in parts:
        kept.take(part)
        if last:
            yield last
        last = part
    if kept.size:
        record(kept.line())
    if last:
        yield last


def chunk(data: bytes) -> bytes:
    """Data as one chunk of a body."""
    return b"%x\r\n%b\r\n" % (len(data), data)
