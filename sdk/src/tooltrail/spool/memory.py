"""A spool that keeps its events in memory only: for tests, and if no file can be written."""

import math
from collections.abc import Callable
from typing import Any

from tooltrail.spool.base import Spool
from tooltrail.spool.batch import Batch
from tooltrail.spool.lines import Salvage, open_lines
from tooltrail.spool.losses import Loss


class MemorySpool(Spool):
    """Events live as long as the process. Those beyond the limit are lost and declared."""

    def __init__(self, max_bytes: int, on_ready: Callable[[], None]) -> None:
        super().__init__(max_bytes, on_ready)
        self._segment: list[bytes] = []

    def close(self) -> None:
        """Seal the open events. They cannot be passed on to another process."""
        self.seal()

    def adopt(self, seconds: float = math.inf) -> None:
        """Do nothing: other processes cannot leave anything in this memory."""

    def keep_acknowledged(self, kept: dict[str, Any]) -> None:
        """Do nothing: there is no folder."""

    def _write_note(self, losses: list[Loss]) -> bool:
        return True

    def _in_memory(self) -> int:
        return self.waiting

    def snapshot(self) -> dict[str, Any]:
        """The counters at one instant. `written` is 0, as nothing is written to a file."""
        return super().snapshot() | {"written": 0}

    def _write(self, line: bytes) -> None:
        self._segment.append(line)

    def _close_segment(self, batch: Batch) -> None:
        self._loose.keep(batch, open_lines(b"".join(self._segment)))
        self._segment = []

    def _store(self, batch: Batch, lines: list[bytes]) -> None:
        self._loose.keep(batch, lines)

    # A batch that is not in memory is not in this spool.

    def _read(self, batch: Batch) -> list[bytes]:
        raise FileNotFoundError(batch.id)

    def _salvage(self, batch: Batch) -> Salvage:
        raise FileNotFoundError(batch.id)

    def _lay_aside(self, batch: Batch, reason: str) -> None:
        raise FileNotFoundError(batch.id)

    def _swap(self, batch: Batch, parts: list[tuple[Batch, list[bytes]]]) -> None:
        raise FileNotFoundError(batch.id)

    def _erase(self, batch: Batch) -> None:
        """Do nothing: nothing is left of the batch."""
