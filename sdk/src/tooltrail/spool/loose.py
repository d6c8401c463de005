"""Holds what is only in memory: lines that the disk rejected, and batches made of them."""

from collections.abc import Iterable, Iterator

from tooltrail.spool.batch import BATCH_BYTES, BATCH_EVENTS, Batch
from tooltrail.spool.lines import open_lines
from tooltrail.spool.losses import Loss, gather


class Loose:
    """Lines that are in no batch yet, and batches by id. `max_bytes` limits what `take` accepts."""

    def __init__(self, max_bytes: int) -> None:
        self.line_count = 0
        self.line_bytes = 0
        self._max_bytes = max_bytes
        self._lines: list[bytes] = []
        self._losses: list[Loss] = []  # what is lost with the open lines
        self._batches: dict[str, list[bytes]] = {}
        self._losses_of: dict[str, list[Loss]] = {}
        self._batch_bytes = 0

    def take(self, line: bytes, loss: Loss) -> bool:
        """Keep a sealed line if there is room. `loss` is what is lost with it."""
        if self.line_bytes + self._batch_bytes + len(line) > self._max_bytes:
            return False
        self._lines.append(line)
        self._losses = gather((*self._losses, loss))
        self.line_count += 1
        self.line_bytes += len(line)
        return True

    @property
    def is_a_batch(self) -> bool:
        """Whether the lines fill a batch."""
        return self.line_count >= BATCH_EVENTS or self.line_bytes >= BATCH_BYTES

    def hand_over(self) -> tuple[list[bytes], list[Loss]]:
        """Return the lines as events, and what is lost with them. They are no longer kept here."""
        lines, self._lines = open_lines(b"".join(self._lines)), []
        losses, self._losses = self._losses, []
        self.line_count = self.line_bytes = 0
        return lines, losses

    def keep(self, batch: Batch, lines: list[bytes], losses: Iterable[Loss] = ()) -> None:
        """Keep a batch of any size. `losses` are what is lost with it."""
        self._batches[batch.id] = lines
        self._losses_of[batch.id] = gather(losses)
        self._batch_bytes += batch.size

    def get(self, batch: Batch) -> list[bytes] | None:
        """A batch's events; None if it is not here."""
        return self._batches.get(batch.id)

    def drop(self, batch: Batch) -> bool:
        """Remove a batch. Returns whether it was here."""
        if self._batches.pop(batch.id, None) is None:
            return False
        del self._losses_of[batch.id]
        self._batch_bytes -= batch.size
        return True

    def at_risk(self) -> Iterator[Loss]:
        """What is lost if the process is killed now."""
        for losses in self._losses_of.values():
            yield from losses
        yield from self._losses
