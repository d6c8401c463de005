"""A spool that keeps its events in memory only: for tests, and where no file can be written."""

from collections.abc import Callable

from tooltrail.spool.base import Batch, Spool
from tooltrail.spool.lines import open_lines


class MemorySpool(Spool):
    """Events live as long as the process; what is over budget is lost and declared."""

    def __init__(self, max_bytes: int, on_ready: Callable[[], None]) -> None:
        super().__init__(max_bytes, on_ready)
        self._segment: list[bytes] = []
        self._contents: dict[str, list[bytes]] = {}

    def read(self, batch: Batch) -> list[bytes]:
        return self._contents[batch.id]

    def park(self, batch: Batch, reason: str) -> None:
        self.give_up(batch, reason)

    def close(self) -> None:
        """Seal what is open; there is nothing to hand on."""
        self.seal()

    def abandon(self) -> None:
        """Nothing here is shared with the parent."""

    def adopt(self) -> None:
        """Nobody else can reach this memory."""

    def _write(self, line: bytes) -> None:
        self._segment.append(line)

    def _close_segment(self, batch: Batch) -> None:
        self._contents[batch.id] = open_lines(b"".join(self._segment))
        self._segment = []

    def _store(self, batch: Batch, lines: list[bytes]) -> None:
        self._contents[batch.id] = lines

    def _erase(self, batch: Batch) -> None:
        self._contents.pop(batch.id, None)

    def _swap(self, batch: Batch, parts: list[tuple[Batch, list[bytes]]]) -> None:
        self._erase(batch)
        for part, lines in parts:
            self._contents[part.id] = lines
