"""Spread senders over the web processes, so that none is idle while another is full.

The system assigns each connection to a process by a hash of its addresses. The connection lasts as
long as its sender sends, and one Python process fills one core. Of four senders, one process often
had three or all. The server then took in 8,200 to 9,900 calls/s; with two senders on each process
it takes in 11,300 (docs/adr/0006). In HTTP a server may close a connection with an answer, and the
sender opens a new one. So a process that was busier than the idlest one closes some connections
until the senders are spread.

Each process writes how busy it is to its own memory-mapped file, and locks the file for as long as
it lives. If the file cannot be created, no sender is moved.
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

CHECK_EVERY_S = 0.5
"""How long the load of the processes is measured before senders are moved."""
_STALE_S = 5.0  # an average over a longer time says too little about the present
_FIGURES = struct.Struct("<ddd")  # total seconds of requests, running requests, time of writing


class Balance:
    """How busy this process is with requests of senders, compared with the others of the folder."""

    def __init__(
        self, folder: Path, name: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Write the file `name` in `folder`. All processes must share `clock`."""
        self._folder = folder
        self._name = name
        self._clock = clock
        self._lock = threading.Lock()
        self._request_s = 0.0
        self._at_work = 0
        self._counted_at = self._checked_at = clock()
        self._seen: dict[str, float] = {}
        self._to_move = 0
        self._file = _held(folder / name)

    @contextmanager
    def request(self) -> Iterator[None]:
        """Count a running request of a sender while the block runs."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def asks_to_move(self) -> bool:
        """Whether the sender of the current request should open a new connection."""
        with self._lock:
            now = self._clock()
            if now - self._checked_at >= CHECK_EVERY_S:
                self._to_move = self._too_many(now)
                self._checked_at = now
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
        """How many senders to move away, by the average load since the last measurement.

        That is half of the difference to the idlest process, if the difference is at least one and
        a quarter. With two senders here and one there, moving one gains nothing.
        """
        before, self._seen = self._seen, self._request_seconds(now)
        elapsed = now - self._checked_at
        if self._name not in before or elapsed > _STALE_S:
            return 0
        means = {
            name: (seconds - before[name]) / elapsed
            for name, seconds in self._seen.items()
            if name in before
        }
        return int((means[self._name] - min(means.values())) / 2 + 0.375)

    def _request_seconds(self, now: float) -> dict[str, float]:
        """Total seconds of requests until `now`, by name of the processes that are alive."""
        totals = {self._name: self._request_s + self._at_work * (now - self._counted_at)}
        if self._file is None:
            return totals
        for path in self._folder.glob("[!.]*"):
            if path.name != self._name and (figures := _figures_of(path)) is not None:
                request_s, at_work, counted_at = figures
                totals[path.name] = request_s + at_work * (now - counted_at)
        return totals


def _held(path: Path) -> mmap.mmap | None:
    """Create and map the file, locked for the life of the process; None if that is impossible.

    The file gets its name only once it is locked, so that no other process takes it for the file
    of a dead process.
    """
    draft = path.with_name(f".{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w+b", buffering=0) as file:
            # Write zeros instead of only extending the file: if the disk is full, a write to
            # mapped memory would kill the process.
            file.write(bytes(_FIGURES.size))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mapped = mmap.mmap(file.fileno(), _FIGURES.size)  # keeps the file open, so the lock
        draft.replace(path)
    except (OSError, ValueError):
        return None
    return mapped


def _figures_of(path: Path) -> tuple[float, float, float] | None:
    """The figures of another process; None if it has died."""
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
    """The instance of this process."""
    return Balance(settings.METRICS_DIR / "balance", str(os.getpid()))
