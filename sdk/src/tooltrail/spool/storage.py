"""What a kind of spool does with bytes: `segments` keeps them in files, `memory` in the process."""

import math
from abc import ABC, abstractmethod
from typing import Any

from tooltrail.spool.batch import Batch
from tooltrail.spool.lines import Salvage
from tooltrail.spool.losses import Loss


class Storage(ABC):
    """What `Spool` needs of each kind of spool: storing, reading and taking over bytes."""

    @abstractmethod
    def close(self) -> None:
        """Leave everything in a state that the next process, or the next append, can take over."""

    @abstractmethod
    def adopt(self, seconds: float = math.inf) -> None:
        """Take over what dead processes left, for at most `seconds`. Never raises."""

    @abstractmethod
    def keep_acknowledged(self, kept: dict[str, Any]) -> None:
        """Keep what the server acknowledged last, for `tooltrail verify`. Never raises."""

    @abstractmethod
    def _write(self, line: bytes) -> None:
        """Append to the open segment. Raises OSError and then leaves no part of the line."""

    @abstractmethod
    def _write_note(self, losses: list[Loss]) -> bool:
        """Write the losses of a kill at this moment to file; False if that failed."""

    @abstractmethod
    def _in_memory(self) -> int:
        """How many of the waiting lines are in no file."""

    @abstractmethod
    def _close_segment(self, batch: Batch) -> None:
        """Turn the open segment into this batch. Raises OSError."""

    @abstractmethod
    def _store(self, batch: Batch, lines: list[bytes]) -> None:
        """Keep these lines as this batch, all or none of them. Raises OSError."""

    @abstractmethod
    def _read(self, batch: Batch) -> list[bytes]:
        """The events of a batch that is not in memory. Raises as `read` does."""

    @abstractmethod
    def _salvage(self, batch: Batch) -> Salvage:
        """Which lines of a batch are whole, and which are not. Raises OSError."""

    @abstractmethod
    def _lay_aside(self, batch: Batch, reason: str) -> None:
        """Move a batch to where it is never sent from. Raises OSError."""

    @abstractmethod
    def _erase(self, batch: Batch) -> None: ...

    @abstractmethod
    def _swap(self, batch: Batch, parts: list[tuple[Batch, list[bytes]]]) -> None: ...
