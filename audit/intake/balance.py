"""Senders are spread over the web processes, so that none stands idle while another is full.

Which of them gets a connection the system rolls by its addresses, and it lasts as long as its
sender sends; one Python process fills one core. Of four senders one process often had three or all,
and took in 8,200 to 9,900 calls/s, where two each make 11,300 (docs/adr/0006). HTTP lets a server
end a connection with an answer, and the sender opens another. So a process that was busier than
the idlest of them asks some to, until they are spread.

Each process says how busy it is in a file of its own, written by memory, and holds a lock on
it for as long as it lives. Where there is no room for one, all stays where it is.
"""

import fcntl
import mmap
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from django.conf import settings

LOOK_EVERY_S = 0.5
"""How long it is watched who is busy, before senders are moved."""
_STALE_S = 5.0  # a longer time says nothing of now
_FIGURES = struct.Struct("<ddd")  # seconds of requests until then, requests at work, when that was


class Balance:
    """How busy this process is with requests of senders, beside the others of the folder."""

    def __init__(
        self, folder: Path, name: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`name` is this process's in the folder; `clock` is one that all of them share."""
        self._folder = folder
        self._name = name
        self._clock = clock
        self._lock = threading.Lock()
        self._request_s = 0.0
        self._at_work = 0
        self._counted_at = self._looked_at = clock()
        self._seen: dict[str, float] = {}
        self._to_move = 0
        self._file = _held(folder / name)

    @contextmanager
    def request(self) -> Iterator[None]:
        """While the block runs, a sender's request is at work."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def asks_to_move(self) -> bool:
        """Whether the sender that is answered now should come by another connection."""
        with self._lock:
            now = self._clock()
            if now - self._looked_at >= LOOK_EVERY_S:
                self._to_move = self._too_many(now)
                self._looked_at = now
            if not self._to_move:
                return False
            self._to_move -= 1
            return True

    def _count(self, change: int) -> None:
        with self._lock:
            now = self._clock()
            self._request_s += self._at_work * (now - self._counted_at)
            self._at_work += change
            self._counted_at = now
            if self._file is not None:
                _FIGURES.pack_into(self._file, 0, self._request_s, self._at_work, now)

    def _too_many(self, now: float) -> int:
        """How many senders there are too many, by what was at work on average since the last look.

        Half of what the idlest process had fewer, from one and a quarter on: with two senders here
        and one there, nothing is gained.
        """
        before, self._seen = self._seen, self._request_seconds(now)
        took = now - self._looked_at
        if self._name not in before or took > _STALE_S:
            return 0
        means = {
            name: (seconds - before[name]) / took
            for name, seconds in self._seen.items()
            if name in before
        }
        return int((means[self._name] - min(means.values())) / 2 + 0.375)

    def _request_seconds(self, now: float) -> dict[str, float]:
        """By name of the processes that live, the seconds all their requests took until now."""
        found = {self._name: self._request_s + self._at_work * (now - self._counted_at)}
        if self._file is None:
            return found
        for path in self._folder.glob("[!.]*"):
            if path.name != self._name and (figures := _figures_of(path)) is not None:
                request_s, at_work, counted_at = figures
                found[path.name] = request_s + at_work * (now - counted_at)
        return found


def _held(path: Path) -> mmap.mmap | None:
    """The file, mapped, with a lock that goes when the process does; None where it cannot be.

    It gets its name once it is locked: nobody takes it for that of one who has died.
    """
    draft = path.with_name(f".{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w+b", buffering=0) as file:
            # Written, not only made longer: without room for it, memory that is written to a
            # file kills the process.
            file.write(bytes(_FIGURES.size))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mapped = mmap.mmap(file.fileno(), _FIGURES.size)  # holds the file open, so the lock
        draft.replace(path)
    except (OSError, ValueError):
        return None
    return mapped


def _figures_of(path: Path) -> tuple[float, float, float] | None:
    """What another process says; None if it has died."""
    try:
        with path.open("rb", buffering=0) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                data = file.read(_FIGURES.size)
                return _FIGURES.unpack(data) if len(data) == _FIGURES.size else None
    except OSError:
        pass
    return None


@cache
def balance() -> Balance:
    """This process's."""
    return Balance(settings.METRICS_DIR / "balance", str(os.getpid()))
