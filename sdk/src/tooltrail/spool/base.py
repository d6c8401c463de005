"""What every spool does: number events, cut them into batches, declare what it had to give up.

Where the bytes lie is the business of `segments` (files) and `memory`. A spool belongs to one
process: it is the producer, and its numbers are contiguous from 0.

One segment becomes one batch, so nothing is copied between writing and sending and the batch
id, given when the segment is sealed, is fixed before the first send.
"""

import json
import logging
import os
import secrets
import socket
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import uuid_utils
from pydantic_core import to_json

from tooltrail.spool.lines import LINE_OVERHEAD, first_number, numbers, seal_line

logger = logging.getLogger("tooltrail")

BATCH_EVENTS = 500
BATCH_BYTES = 1024 * 1024
_GAP = b'{"type":"gap"'


class SpoolFullError(RuntimeError):
    """An event could not be kept, and the trail was told not to run tools unrecorded."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Events that travel together under one idempotency key.

    `size` is bytes as spooled; `is_slim` says that payloads have been given up already.
    `order` grows with the time this process came to have it; what replaces a batch keeps it.
    """

    id: str
    first_seq: int
    count: int
    size: int
    is_slim: bool = False
    order: int = 0


@dataclass(slots=True)
class _Loss:
    """Numbers of one producer given up for one reason, in one piece."""

    producer_id: str
    numbers: range
    reason: str
    event_id: str | None = None  # once it has been written: it keeps its name, and its extent

    @classmethod
    def read(cls, line: bytes) -> "_Loss":
        event = json.loads(line)
        numbers = range(event["from_seq"], event["to_seq"] + 1)
        return cls(event["producer_id"], numbers, event["reason"], event["event_id"])

    def event(self) -> bytes:
        return to_json(
            {
                "type": "gap",
                "event_id": self.event_id or str(uuid_utils.uuid7()),
                "producer_id": self.producer_id,
                "from_seq": self.numbers.start,
                "to_seq": self.numbers.stop - 1,
                "reason": self.reason,
                "count": len(self.numbers),
            }
        )


def new_batch_id() -> str:
    """A batch's idempotency key: a UUIDv7, whose time is the batch's."""
    return str(uuid_utils.uuid7())


def new_producer_id() -> str:
    """Name this process: host, pid and eight random digits, as pids come back."""
    host = "".join(c if c.isalnum() or c in ".-" else "_" for c in socket.gethostname())
    return f"{host[:60] or 'host'}-{os.getpid()}-{secrets.token_hex(4)}"


class Spool(ABC):
    """Keeps events until the server has them. All methods may be called from any thread.

    `on_ready` is called, in the caller's thread and under the lock, when there is something
    to send that was not there before; it must return at once.
    """

    def __init__(self, max_bytes: int, on_ready: Callable[[], None]) -> None:
        self.producer_id = new_producer_id()
        self.allowance = max_bytes  # bytes this process may keep
        self.emitted = 0
        self.written = 0
        self.adopted = 0
        self.dropped: Counter[str] = Counter()
        self._on_ready = on_ready
        self._member = b',"producer_id":%b,"producer_seq":' % to_json(self.producer_id)
        self._lock = threading.RLock()  # a signal handler may call a tool within append
        self._next_seq = 0
        self._next_order = 0
        self._open_first_seq = 0
        self._open_count = 0  # lines in the open segment, gap lines included
        self._open_bytes = 0
        self._sealed_bytes = 0
        self._batches: list[Batch] = []
        self._losses: list[_Loss] = []

    def append(self, head: bytes) -> bool:
        """Keep one event, given as JSON text without its closing brace; number it.

        Returns False, having noted the loss, when the event could not be kept.
        """
        with self._lock:
            seq = self._next_seq
            self._next_seq = seq + 1
            self.emitted += 1
            line = seal_line(b"%b%b%d}" % (head, self._member, seq))
            if self._sealed_bytes + self._open_bytes + len(line) > self.allowance * 1.25:
                # The shipper keeps the budget; this holds when events come faster than it can.
                self._lose(self.producer_id, range(seq, seq + 1), "spool-full")
                return False
            if self._losses:
                self.declare()
            try:
                self._add(line, seq)
            except OSError as error:
                self._lose(self.producer_id, range(seq, seq + 1), _reason(error))
                return False
            self.written += 1
            return True

    def _add(self, line: bytes, seq: int) -> None:
        if self._open_count and self._open_bytes + len(line) > BATCH_BYTES:
            self.seal()
        if not self._open_count:
            self._open_first_seq = seq
        self._write(line)
        self._open_bytes += len(line)
        self._open_count += 1
        if self._open_count >= BATCH_EVENTS or self._open_bytes >= BATCH_BYTES:
            self.seal()
        elif self._open_count == 1:
            self._on_ready()

    def enqueue(self, lines: list[bytes]) -> None:
        """Take finished events of somebody else's as one batch. Raises OSError."""
        size = sum(map(len, lines)) + LINE_OVERHEAD * len(lines)
        with self._lock:
            first = first_number(lines, 0)
            batch = Batch(new_batch_id(), first, len(lines), size, order=self._take_order())
            self._store(batch, lines)
            self._batches.append(batch)
            self._sealed_bytes += size
            self.adopted += len(lines)
            self._on_ready()

    def seal(self) -> None:
        """Make what has been written since the last batch a batch, ready to send."""
        with self._lock:
            if not self._open_count:
                return
            first, count, size = self._open_first_seq, self._open_count, self._open_bytes
            self._open_count = self._open_bytes = 0
            batch = Batch(new_batch_id(), first, count, size, order=self._take_order())
            try:
                self._close_segment(batch)
            except OSError as error:
                self._lose(self.producer_id, range(first, self._next_seq), _reason(error))
                return
            self._batches.append(batch)
            self._sealed_bytes += size
            self._on_ready()

    def declare(self) -> None:
        """Write the losses noted so far as gap events; those that do not fit stay noted."""
        with self._lock:
            losses, self._losses = self._losses, []
            for index, loss in enumerate(losses):
                try:
                    self._add(seal_line(loss.event()), self._next_seq)
                except OSError:
                    self._losses = losses[index:] + self._losses
                    return

    def oldest(self) -> Batch | None:
        """The batch to send next."""
        with self._lock:
            return self._batches[0] if self._batches else None

    def batches(self) -> list[Batch]:
        """What is ready to send, oldest first."""
        with self._lock:
            return list(self._batches)

    def discard(self, batch: Batch) -> None:
        """Forget a batch: the server has it."""
        with self._lock:
            self._forget(batch)
            self._erase(batch)

    def give_up(self, batch: Batch, reason: str) -> None:
        """Drop a batch and note every number in it as lost; gaps it declares are not lost."""
        try:
            lines = self.read(batch)
            held = numbers(lines)
            with self._lock:
                self._losses += [_Loss.read(line) for line in lines if line.startswith(_GAP)]
        except OSError:  # the file is gone; its name told what it held
            held = {self.producer_id: [range(batch.first_seq, batch.first_seq + batch.count)]}
        for producer_id, ranges in held.items():
            for lost in ranges:
                self._lose(producer_id, lost, reason)
        self.declare()  # first, so that a kill in between leaves a loss said twice, never unsaid
        self.discard(batch)

    def replace(self, batch: Batch, parts: list[list[bytes]], *, is_slim: bool) -> None:
        """Put other batches, with ids of their own, in a batch's place."""
        fresh = []
        for lines in parts:
            size = sum(map(len, lines)) + LINE_OVERHEAD * len(lines)
            first = first_number(lines, batch.first_seq)
            fresh.append(Batch(new_batch_id(), first, len(lines), size, is_slim, batch.order))
        with self._lock:
            self._swap(batch, list(zip(fresh, parts, strict=True)))
            at = self._batches.index(batch)
            self._batches[at : at + 1] = fresh
            self._sealed_bytes += sum(part.size for part in fresh) - batch.size

    def last_order(self) -> int:
        """The `order` of the youngest batch so far."""
        return self._next_order - 1

    @property
    def is_full(self) -> bool:
        """Whether what waits has reached what may be kept."""
        return self.waiting_bytes >= self.allowance

    @property
    def open_count(self) -> int:
        """How many lines wait to be sealed."""
        return self._open_count

    @property
    def waiting(self) -> int:
        """How many lines the server does not have yet, gaps still to be written included."""
        with self._lock:
            return self._open_count + sum(b.count for b in self._batches) + len(self._losses)

    @property
    def waiting_bytes(self) -> int:
        """How many bytes wait here."""
        return self._sealed_bytes + self._open_bytes

    @abstractmethod
    def read(self, batch: Batch) -> list[bytes]:
        """The events of a batch. Raises OSError when they cannot be read."""

    @abstractmethod
    def park(self, batch: Batch, reason: str) -> None:
        """Lay a batch aside that the server will never take, with the reason."""

    @abstractmethod
    def close(self) -> None:
        """Leave everything as the next process, or the next append, can take it up."""

    @abstractmethod
    def abandon(self) -> None:
        """In a forked child: let go of what is the parent's, changing nothing of it."""

    @abstractmethod
    def adopt(self) -> None:
        """Take over what dead processes left behind."""

    @abstractmethod
    def _write(self, line: bytes) -> None:
        """Append to the open segment. Raises OSError, leaving no part of the line behind."""

    @abstractmethod
    def _close_segment(self, batch: Batch) -> None:
        """Turn the open segment into this batch."""

    @abstractmethod
    def _store(self, batch: Batch, lines: list[bytes]) -> None:
        """Keep these lines as this batch, all or none of them."""

    @abstractmethod
    def _erase(self, batch: Batch) -> None: ...

    @abstractmethod
    def _swap(self, batch: Batch, parts: list[tuple[Batch, list[bytes]]]) -> None: ...

    def _take_order(self) -> int:
        self._next_order += 1
        return self._next_order - 1

    def _forget(self, batch: Batch) -> None:
        if batch in self._batches:
            self._batches.remove(batch)
            self._sealed_bytes -= batch.size

    def _lose(self, producer_id: str, lost: range, reason: str) -> None:
        with self._lock:
            if reason not in self.dropped:
                logger.warning("tooltrail: events are being lost (%s); each is counted", reason)
            self.dropped[reason] += len(lost)
            last = self._losses[-1] if self._losses else None
            if (
                last is not None
                and last.event_id is None
                and (last.producer_id, last.reason) == (producer_id, reason)
                and last.numbers.stop == lost.start
            ):
                last.numbers = range(last.numbers.start, lost.stop)
            else:
                self._losses.append(_Loss(producer_id, lost, reason))

    def snapshot(self) -> dict[str, Any]:
        """The counters, at one instant."""
        with self._lock:
            return {
                "emitted": self.emitted,
                "written": self.written,
                "adopted": self.adopted,
                "waiting": self.waiting,
                "dropped": dict(self.dropped),
            }


def _reason(error: OSError) -> str:
    """A short word for the ledger: which kind of failure, never a path or a payload."""
    return os.strerror(error.errno).lower().replace(" ", "-") if error.errno else "write-failed"
