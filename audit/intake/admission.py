"""How much of the intake goes on at once in this process, and who is told to come later.

A request takes a *place* with as many bytes as it announces, at the door (`audit.intake.door`), and
a *slot* before its body is inflated and stored. Places are bounded in number and bytes, so that
memory is, and so that threads are always left for pages and probes; who finds none is refused at
once. In line for a slot a request waits a moment; while the slots do not move, because PostgreSQL
hangs, nobody does. A producer that is refused keeps its events (docs/adr/0006).

One tenant never holds all slots, nor all places: its outputs may cost much to judge, or its
bodies come slowly, and the requests of all others would be refused meanwhile.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

SLOTS = 3
"""Requests being stored. One PostgreSQL connection and up to 20 MiB inflated each."""
SLOTS_OF_TENANT = 2
"""Of one tenant. At least one slot is left for the others."""
PLACES = 10
"""Requests being read, in line or being stored; the web server has more threads."""
PLACES_OF_TENANT = 8
"""Of one tenant. At least two are left for the others."""
BYTES_MAX = 16 * 1024 * 1024
"""Of their bodies, as sent."""
BYTES_OF_TENANT = 10 * 1024 * 1024
"""Of one tenant: two of the largest, and room for one of somebody else's."""
LINE_OF_TENANT = 4
"""Requests of one tenant that wait for a slot: with those being stored, six of ten places."""
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
        slots_of_tenant: int = SLOTS_OF_TENANT,
        places_of_tenant: int = PLACES_OF_TENANT,
        bytes_of_tenant: int = BYTES_OF_TENANT,
    ) -> None:
        self._lock = threading.Lock()
        self._is_given_back = threading.Condition(self._lock)
        self._slot_count = self._slots_left = slots
        self._slots_of_tenant = slots_of_tenant
        self._held = Counter[UUID]()
        self._waiting = Counter[UUID]()
        self._places_left = places
        self._bytes_left = bytes_max
        self._places_of_tenant = places_of_tenant
        self._bytes_of_tenant = bytes_of_tenant
        self._placed = Counter[UUID]()
        self._bytes_placed = Counter[UUID]()
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
    def share(self, tenant_id: UUID, size: int) -> Iterator[None]:
        """The tenant's part of the places, for a request that has one and whose key is known.

        Raises OverloadedError at once where the tenant has no more.
        """
        with self._lock:
            if (
                self._placed[tenant_id] >= self._places_of_tenant
                or self._bytes_placed[tenant_id] + size > self._bytes_of_tenant
            ):
                raise OverloadedError
            self._placed[tenant_id] += 1
            self._bytes_placed[tenant_id] += size
        try:
            yield
        finally:
            with self._lock:
                _take(self._placed, tenant_id)
                _take(self._bytes_placed, tenant_id, size)

    @contextmanager
    def slot(self, tenant_id: UUID) -> Iterator[None]:
        """The right to store. Waits in line; raises OverloadedError when that leads nowhere."""
        with self._lock:
            if not self._has_slot(tenant_id):
                self._wait(tenant_id)
            self._slots_left -= 1
            self._held[tenant_id] += 1
        began = time.monotonic()
        try:
            yield
        finally:
            took = time.monotonic() - began
            with self._lock:
                self._mean_s += _WEIGHT * (took - self._mean_s)
                self._is_stuck = False
                self._slots_left += 1
                _take(self._held, tenant_id)
                self._is_given_back.notify_all()

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

    def _has_slot(self, tenant_id: UUID) -> bool:
        return self._slots_left > 0 and self._held[tenant_id] < self._slots_of_tenant

    def _wait(self, tenant_id: UUID) -> None:
        """Wait until the tenant has a slot; with the lock held, which waiting lets go."""
        if self._is_stuck or self._waiting[tenant_id] >= LINE_OF_TENANT:
            raise OverloadedError
        self._in_line += 1
        self._waiting[tenant_id] += 1
        got_one = self._is_given_back.wait_for(lambda: self._has_slot(tenant_id), self._wait_s)
        self._in_line -= 1
        _take(self._waiting, tenant_id)
        # A tenant that waits for its own requests says nothing about the slots of others.
        self._is_stuck = not got_one and not self._slots_left
        if not got_one:
            raise OverloadedError


def _take(counted: Counter[UUID], tenant_id: UUID, count: int = 1) -> None:
    counted[tenant_id] -= count
    if not counted[tenant_id]:
        del counted[tenant_id]


ADMISSION = Admission()
"""The process's."""
