"""How much of the intake goes on at once in this process, and who is told to come later.

A request takes a *place* with as many bytes as it announces, at the door (`audit.door`), and a
*slot* before its body is inflated and stored. Places are bounded in number and bytes, so that
memory is, and so that threads are always left for pages and probes; who finds none is refused
at once. In line for a slot a request waits a moment; while the slots do not move, because
PostgreSQL hangs, nobody does. A producer that is refused keeps its events (docs/adr/0006).
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SLOTS = 3
"""Requests being stored. One PostgreSQL connection and up to 20 MiB inflated each."""
PLACES = 10
"""Requests being read, in line or being stored; the web server has more threads."""
BYTES_MAX = 16 * 1024 * 1024
"""Of their bodies, as sent."""
WAIT_S = 1.0
"""The longest wait for a slot."""
RETRY_AFTER_S = 1
_WORTH_SAYING_MS = 100
_WEIGHT = 0.1  # of the latest request in the mean


class OverloadedError(Exception):
    """There is too much to do: 503, and come again after `RETRY_AFTER_S`."""


class Admission:
    """The places and slots of one process."""

    def __init__(
        self,
        slots: int = SLOTS,
        places: int = PLACES,
        bytes_max: int = BYTES_MAX,
        wait_s: float = WAIT_S,
    ) -> None:
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(slots)
        self._slot_count = slots
        self._places_left = places
        self._bytes_left = bytes_max
        self._wait_s = wait_s
        self._in_line = 0
        self._is_stuck = False
        self._mean_s = 0.0
        self._refused_at = -float(RETRY_AFTER_S)

    @contextmanager
    def place(self, size: int) -> Iterator[None]:
        """Room for a request of `size` bytes. Raises OverloadedError at once if there is none."""
        with self._lock:
            if self._places_left < 1 or self._bytes_left < size:
                self._refused_at = time.monotonic()
                raise OverloadedError
            self._places_left -= 1
            self._bytes_left -= size
        try:
            yield
        finally:
            with self._lock:
                self._places_left += 1
                self._bytes_left += size

    @contextmanager
    def slot(self) -> Iterator[None]:
        """The right to store. Waits in line; raises OverloadedError when that leads nowhere."""
        if not self._slots.acquire(blocking=False):
            self._wait()
        began = time.monotonic()
        try:
            yield
        finally:
            took = time.monotonic() - began
            with self._lock:
                self._mean_s += _WEIGHT * (took - self._mean_s)
                self._is_stuck = False
            self._slots.release()

    def next_after_ms(self) -> int:
        """When who was served should send again; 0 while the line is none to speak of.

        Where others were just refused, as late as they may: else those would stay outside.
        """
        if time.monotonic() < self._refused_at + RETRY_AFTER_S:
            return 1000 * RETRY_AFTER_S
        wait_ms = round(1000 * self._mean_s * self._in_line / self._slot_count)
        return wait_ms if wait_ms >= _WORTH_SAYING_MS else 0

    @property
    def in_line(self) -> int:
        """How many requests wait for a slot."""
        return self._in_line

    def _wait(self) -> None:
        with self._lock:
            if self._is_stuck:
                raise OverloadedError
            self._in_line += 1
        got_one = self._slots.acquire(timeout=self._wait_s)
        with self._lock:
            self._in_line -= 1
            self._is_stuck = not got_one
        if not got_one:
            raise OverloadedError


ADMISSION = Admission()
"""The process's."""
