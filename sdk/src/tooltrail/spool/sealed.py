"""The batches that wait until the server has them, in the order in which they are sent."""

from collections.abc import Iterator, Sequence

from tooltrail.spool.batch import Batch


class SealedBatches:
    """Sealed batches, oldest first. Some may be held: later ones are sent before them.

    `size` is the sum of their bytes as spooled. Not safe for threads: the spool has the lock.
    """

    def __init__(self) -> None:
        self.size = 0
        self._batches: list[Batch] = []
        self._held: set[str] = set()  # ids of batches that are not sent for now
        self._next_order = 0

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._batches)

    def add(self, batch: Batch) -> None:
        """Add the newest batch."""
        self._batches.append(batch)
        self.size += batch.size

    def add_old(self, batch: Batch) -> None:
        """Add a batch of another process at its place by age."""
        self.add(batch)
        self._batches.sort(key=lambda each: each.id)

    def remove(self, batch: Batch) -> None:
        """Remove a batch, if it is here."""
        if batch in self._batches:
            self._batches.remove(batch)
            self._held.discard(batch.id)
            self.size -= batch.size

    def replace(self, batch: Batch, parts: Sequence[Batch]) -> None:
        """Put these in the place of a batch."""
        at = self._batches.index(batch)
        self._batches[at : at + 1] = parts
        self.size += sum(part.size for part in parts) - batch.size

    def oldest(self) -> Batch | None:
        """The batch to send next; None if there is none, or all are held."""
        if not self._held:
            return self._batches[0] if self._batches else None
        return next((each for each in self._batches if each.id not in self._held), None)

    def hold(self, batch: Batch) -> None:
        """Send later batches before this one, until `release`."""
        self._held.add(batch.id)

    def release(self) -> bool:
        """Let held batches be sent. Returns whether there were any."""
        were_held = any(each.id in self._held for each in self._batches)
        self._held.clear()
        return were_held

    def last_order(self) -> int:
        """The `order` of the newest batch so far."""
        return self._next_order - 1

    def take_order(self) -> int:
        """The `order` of the next batch."""
        self._next_order += 1
        return self._next_order - 1
