"""What all spools do: number events, cut them into batches, declare what they had to give up.

`segments` (files) and `memory` store the bytes. Lines that the disk does not accept wait in
memory here, up to a limit. A note on file has their numbers, so that they are declared lost if
the process is killed. A spool belongs to one process, its producer. Its numbers are contiguous
from 0.

One segment becomes one batch. So nothing is copied between writing and sending, and the batch
id, which is set when the segment is sealed, is fixed before the first send.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pydantic_core import to_json

from tooltrail.spool.batch import (
    BATCH_BYTES,
    BATCH_EVENTS,
    Batch,
    new_batch_id,
    new_producer_id,
)
from tooltrail.spool.lines import (
    LINE_OVERHEAD,
    Salvage,
    first_number,
    numbers,
    seal_line,
)
from tooltrail.spool.loose import Loose
from tooltrail.spool.losses import (
    Loss,
    damage,
    declared_in,
    gather,
    held_in,
    reason_of,
)
from tooltrail.spool.sealed import SealedBatches
from tooltrail.spool.storage import Storage

logger = logging.getLogger("tooltrail")

# Multiples of the allowance: above the first, payloads are removed even while events are being
# sent; above the second, new events are rejected.
_OVERFLOWING, _HARD_LIMIT = 1.125, 1.25
SPILL_BYTES = 16 * 1024 * 1024  # what may wait in memory while the disk rejects writes


class Spool(Storage):
    """Keeps events until the server has them. All methods may be called from any thread.

    `on_ready` is called when there is something new to send. It runs in the caller's thread,
    under the lock, and must return at once.
    """

    def __init__(
        self, max_bytes: int, on_ready: Callable[[], None], *, spill_bytes: int = 0
    ) -> None:
        self.producer_id = new_producer_id()
        self.allowance = max_bytes  # bytes this process may keep
        self.adopted = 0
        self.dropped: Counter[str] = Counter()
        self._on_ready = on_ready
        self._member = b',"producer_id":%b,"producer_seq":' % to_json(self.producer_id)
        self._lock = threading.RLock()  # a signal handler may call a tool within append
        self._next_seq = 0
        self._unwritten = 0  # numbered events that never were in a file
        self._open_first_seq = 0
        self._open_count = 0  # lines in the open segment, gap lines included
        self._open_bytes = 0
        self._sealed = SealedBatches()
        self._loose = Loose(spill_bytes)
        self._has_spilled = False
        self._losses: list[Loss] = []
        self._noted: list[Loss] = []  # the content of the note on file
        self._is_writing = False
        self._is_abandoned = False
        self._late: list[bytes] = []  # emitted while another event was being written

    def append(self, head: bytes) -> bool:
        """Number one event, given as JSON text without its closing brace, and keep it.

        Returns False if the event could not be kept; its loss is noted.
        """
        with self._lock:
            if self._is_writing:
                return self._put_off(head)
            self._is_writing = True
            try:
                return self._append(head)
            finally:
                self._is_writing = False
                if self._late:
                    self._alone(self._catch_up)

    def _append(self, head: bytes) -> bool:
        seq = self._next_seq
        line = seal_line(b"%b%b%d}" % (head, self._member, seq))
        try:
            self._next_seq = seq + 1
            if self._sealed.size + self._open_bytes + len(line) > self.allowance * _HARD_LIMIT:
                # Normally the shipper keeps the limit; this one holds if events come too fast.
                self._lose_new(seq, "spool-full")
                return False
            if self._losses:
                self._declare()
            self._add(line, seq)
        except OSError as error:
            self._unwritten += 1
            loss = Loss(self.producer_id, range(seq, seq + 1), reason_of(error))
            if not self._spill(line, loss):
                self._lose(self.producer_id, loss.numbers, loss.reason)
                return False
        except BaseException:  # a signal handler that ends the process by raising
            self._lose_new(seq, "interrupted")
            raise
        return True

    def append_unnumbered(self, text: bytes) -> bool:
        """Keep one event without a number, given as whole JSON text.

        Returns False if it could not be kept. Its loss cannot be declared, as it has no number: use
        this only for events that are sent again when they matter.
        """
        kept = False

        def add() -> None:
            nonlocal kept
            line = seal_line(text)
            if self._sealed.size + self._open_bytes + len(line) > self.allowance * _HARD_LIMIT:
                return
            with suppress(OSError):
                self._add(line, self._next_seq)
                kept = True

        self._alone(add)
        return kept

    def lose(self, reason: str) -> None:
        """Number an event that could not be made, and declare it lost. Never raises.

        The first is declared at once, which makes the file for the note of the others.
        """

        def lose() -> None:
            seq = self._next_seq
            self._next_seq = seq + 1
            self._lose_new(seq, reason)
            if seq == 0:
                self._declare()

        self._alone(lose)

    def _put_off(self, head: bytes) -> bool:
        """Queue an event that this thread emits in the middle of writing another.

        It comes from a signal handler, or an object's finalizer, that calls a tool.
        """
        if self._is_abandoned:  # the call began before the fork: the parent records its end
            return False
        self._late.append(head)
        return True

    def _catch_up(self) -> None:
        while self._late:
            self._append(self._late.pop(0))

    def _alone(self, work: Callable[[], None]) -> None:
        """Run work that writes, unless this thread is already writing."""
        with self._lock:
            while not self._is_writing:
                self._is_writing = True
                try:
                    work()
                    self._catch_up()
                finally:
                    self._is_writing = False
                if not self._late:
                    return
                work = self._catch_up

    def _add(self, line: bytes, seq: int) -> None:
        if self._open_count and self._open_bytes + len(line) > BATCH_BYTES:
            self._seal()
        if not self._open_count:
            self._open_first_seq = seq
        self._write(line)
        self._open_bytes += len(line)
        self._open_count += 1
        if self._open_count >= BATCH_EVENTS or self._open_bytes >= BATCH_BYTES:
            self._seal()
        elif self._open_count == 1:
            self._on_ready()

    def _spill(self, line: bytes, loss: Loss) -> bool:
        """Keep a line in memory that the disk rejected; False if there is no room here either.

        `loss` is what is lost with the line.
        """
        if not self._loose.take(line, loss):
            return False
        self._note()
        if not self._has_spilled:
            self._has_spilled = True
            logger.warning("tooltrail: %s: events are kept in memory", loss.reason)
        if self._loose.is_a_batch:
            self._seal_spilled()
        elif self._loose.line_count == 1:
            self._on_ready()
        return True

    def _seal_spilled(self) -> None:
        if not self._loose.line_count:
            return
        size = self._loose.line_bytes
        lines, losses = self._loose.hand_over()
        first = first_number(lines, 0)
        batch = Batch(new_batch_id(), first, len(lines), size, order=self._sealed.take_order())
        self._loose.keep(batch, lines, losses)
        self._add_batch(batch)

    def _add_batch(self, batch: Batch) -> None:
        self._sealed.add(batch)
        self._on_ready()

    def enqueue(self, lines: list[bytes]) -> None:
        """Take finished events of another process or file as one batch. Raises OSError."""
        size = sum(map(len, lines)) + LINE_OVERHEAD * len(lines)
        with self._lock:
            first = first_number(lines, 0)
            batch = Batch(new_batch_id(), first, len(lines), size, order=self._sealed.take_order())
            self._store(batch, lines)
            self.adopted += len(lines)
            self._add_batch(batch)

    def seal(self) -> None:
        """Turn everything written since the last batch into a batch, ready to send."""
        self._alone(self._seal)

    def _seal(self) -> None:
        self._seal_spilled()
        if not self._open_count:
            return
        first, count, size = self._open_first_seq, self._open_count, self._open_bytes
        self._open_count = self._open_bytes = 0
        batch = Batch(new_batch_id(), first, count, size, order=self._sealed.take_order())
        try:
            self._close_segment(batch)
        except OSError as error:
            self._lose(self.producer_id, range(first, self._next_seq), reason_of(error))
            return
        self._add_batch(batch)

    def declare(self) -> None:
        """Write the losses noted so far as gap events. Those that do not fit stay noted."""
        self._alone(self._declare)

    def _declare(self) -> None:
        while self._losses:
            loss = self._losses[0]
            name = loss.event_id
            line = seal_line(loss.event())  # from here on this loss no longer grows
            try:
                self._add(line, self._next_seq)
            except OSError:
                if not self._spill(line, loss):
                    loss.event_id = name
                    return
            del self._losses[0]
            self._note()

    def _note(self) -> None:
        """Update the note on file that lists the events only in memory. Never raises."""
        losses = gather((*self._loose.at_risk(), *self._losses))
        if losses != self._noted and self._write_note(losses):
            self._noted = losses

    def oldest(self) -> Batch | None:
        """The batch to send next; None if there is none, or all are held."""
        with self._lock:
            return self._sealed.oldest()

    def hold(self, batch: Batch) -> None:
        """Keep a batch and let later ones be sent before it, until `release`."""
        with self._lock:
            self._sealed.hold(batch)

    def release(self) -> bool:
        """Let held batches be sent. Returns whether there were any."""
        with self._lock:
            return self._sealed.release()

    def batches(self) -> list[Batch]:
        """The batches that are ready to send, oldest first."""
        with self._lock:
            return list(self._sealed)

    def discard(self, batch: Batch) -> None:
        """Remove a batch that the server has."""
        with self._lock:
            self._sealed.remove(batch)
            if self._loose.drop(batch):
                self._note()
            else:
                self._erase(batch)

    def read(self, batch: Batch) -> list[bytes]:
        """The events of a batch. Raises DamagedError, or OSError if it cannot be read."""
        lines = self._loose.get(batch)
        return self._read(batch) if lines is None else lines

    def give_up(self, batch: Batch, reason: str) -> None:
        """Drop a batch and note its numbers as lost. Gaps it declares stay declared."""
        held, declared, unnumbered = self._contents(batch)
        self._write_off(held, reason, declared, unnumbered)
        self.discard(batch)

    def park(self, batch: Batch, reason: str) -> None:
        """Lay aside a batch that the server rejects for good, with the reason; declare its loss.

        Raises OSError if it cannot be laid aside.
        """
        held, declared, unnumbered = self._contents(batch)
        # Gaps alone are not declared again: they would be rejected again, endlessly.
        self._write_off(held, "refused", declared if held else [], unnumbered)
        with self._lock:
            if not self._loose.drop(batch):  # a batch in memory has no file to lay aside
                self._lay_aside(batch, reason)
            self._sealed.remove(batch)
            self._note()

    def mend(self, batch: Batch) -> None:
        """Replace a damaged batch by its whole lines, and note the rest as lost.

        Raises OSError.
        """
        salvaged = self._salvage(batch)
        owner = next(iter(numbers(salvaged.lines)), self.producer_id)
        # The bytes are different, so the id must be, too: the first may have been sent.
        lines = salvaged.lines + damage(owner, salvaged)
        self.replace(batch, [lines] if lines else [], is_slim=batch.is_slim)
        self._count_damage(salvaged)

    def _count_damage(self, salvaged: Salvage) -> None:
        if salvaged.lost:
            self._count_lost("damaged", sum(map(len, salvaged.lost)))

    def replace(self, batch: Batch, parts: list[list[bytes]], *, is_slim: bool) -> None:
        """Replace a batch by others, which get their own ids. Raises OSError."""
        fresh = []
        for lines in parts:
            size = sum(map(len, lines)) + LINE_OVERHEAD * len(lines)
            first = first_number(lines, batch.first_seq)
            fresh.append(
                Batch(
                    id=new_batch_id(),
                    first_seq=first,
                    count=len(lines),
                    size=size,
                    is_slim=is_slim,
                    order=batch.order,
                    since=batch.since,
                )
            )
        with self._lock:
            if self._loose.drop(batch):
                for part, lines in zip(fresh, parts, strict=True):
                    self._loose.keep(part, lines, held_in(lines, "killed"))
            else:
                self._swap(batch, list(zip(fresh, parts, strict=True)))
            self._sealed.replace(batch, fresh)

    def last_order(self) -> int:
        """The `order` of the newest batch so far."""
        return self._sealed.last_order()

    @property
    def is_full(self) -> bool:
        """Whether the waiting events have reached the allowance."""
        return self.waiting_bytes >= self.allowance

    @property
    def is_overflowing(self) -> bool:
        """Whether the waiting events exceed the allowance even while events are being sent."""
        return self.waiting_bytes >= self.allowance * _OVERFLOWING

    @property
    def emitted(self) -> int:
        """How many events have been numbered."""
        return self._next_seq

    @property
    def open_count(self) -> int:
        """How many lines are not sealed yet."""
        return self._open_count + self._loose.line_count

    @property
    def waiting(self) -> int:
        """How many lines the server does not have yet, including gaps still to be written."""
        with self._lock:
            return self.open_count + sum(b.count for b in self._sealed) + len(self._losses)

    @property
    def waiting_bytes(self) -> int:
        """How many bytes wait here."""
        return self._sealed.size + self._open_bytes + self._loose.line_bytes

    def abandon(self) -> None:
        """In a forked child: release what belongs to the parent, without changing it.

        Events emitted here afterwards, by calls begun before the fork, are not kept.
        """
        self._lock = threading.RLock()  # its holder, if any, is not in this process
        self._is_abandoned = self._is_writing = True

    def _contents(self, batch: Batch) -> tuple[dict[str, list[range]], list[Loss], int]:
        """The numbers in a batch by producer, the losses it declares, and its unnumbered events.

        Also notes damaged lines as lost.
        """
        loose = self._loose.get(batch)
        try:
            salvaged = self._salvage(batch) if loose is None else Salvage(loose, [])
        except OSError:  # the file is gone; the batch has its numbers
            lost = range(batch.first_seq, batch.first_seq + batch.count)
            return {self.producer_id: [lost]}, [], 0
        held = numbers(salvaged.lines)
        for lost in salvaged.lost:
            self._lose(next(iter(held), self.producer_id), lost, "damaged")
        declared = declared_in(salvaged.lines)
        numbered = sum(len(each) for ranges in held.values() for each in ranges)
        return held, declared, len(salvaged.lines) - numbered - len(declared)

    def _write_off(
        self,
        held: dict[str, list[range]],
        reason: str,
        declared: list[Loss],
        unnumbered: int,
    ) -> None:
        with self._lock:
            self._losses += declared
            if unnumbered > 0:  # from a file without numbers: no gap event can declare them
                self._count_lost(reason, unnumbered)
        for producer_id, ranges in held.items():
            for lost in ranges:
                self._lose(producer_id, lost, reason)
        # Before the batch is removed: a kill in between declares a loss twice, never not at all.
        self.declare()

    def _lose_new(self, seq: int, reason: str) -> None:
        self._unwritten += 1
        self._lose(self.producer_id, range(seq, seq + 1), reason)

    def _lose(self, producer_id: str, lost: range, reason: str) -> None:
        """Note numbers as lost. Never raises."""
        with self._lock:
            self._count_lost(reason, len(lost))
            loss = Loss(producer_id, lost, reason)
            if not (self._losses and self._losses[-1].takes_up(loss)):
                self._losses.append(loss)
            self._note()

    def _count_lost(self, reason: str, count: int) -> None:
        if reason not in self.dropped:
            logger.warning("tooltrail: events are being dropped (%s); each one is counted", reason)
        self.dropped[reason] += count

    def snapshot(self) -> dict[str, Any]:
        """The counters, at one instant."""
        with self._lock:
            return {
                "emitted": self.emitted,
                "written": self.emitted - self._unwritten,
                "adopted": self.adopted,
                "in_memory": self._in_memory(),
                "waiting": self.waiting,
                "dropped": dict(self.dropped),
            }
