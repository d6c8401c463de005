"""What all ways have in common: records are handed over, and later all of them are acknowledged."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from audit.stream.records import Record


class SendError(Exception):
    """The receiver did not take the records, or may not have. The message is for people."""


class Way(Protocol):
    """A way to one receiver. It is used by one thread, and closed at the end."""

    def send(self, records: Sequence[Record]) -> None:
        """Hand over the next records. Raises SendError."""

    def settle(self) -> None:
        """Wait until the receiver has acknowledged all that was sent. Raises SendError."""

    def close(self) -> None:
        """Let go of the connection. Raises nothing."""


def bodies(records: Sequence[Record], limit: int) -> Iterator[Sequence[Record]]:
    """The records in groups of so many bytes; a larger record is a group of its own."""
    begin = size = 0
    for at, record in enumerate(records):
        if size and size + len(record.body) > limit:
            yield records[begin:at]
            begin, size = at, 0
        size += len(record.body)
    if begin < len(records):
        yield records[begin:]
