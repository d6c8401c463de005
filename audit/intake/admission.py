"""Limit how many requests to the intake run at once in this process; the others get 503.

A request takes a *place* at the door (`audit.intake.door`), with as many bytes as it announces, and
a *slot* before its body is inflated and stored. Places are limited in number and bytes. This bounds
the memory and always leaves threads for pages and probes. A request without a free place is
rejected at once. A request waits for a slot for at most `WAIT_S`. While the slots do not move,
because PostgreSQL hangs, further requests do not wait but are rejected. A producer keeps the events
of a rejected request (docs/adr/0006).

One tenant never holds all slots, nor all places. Its outputs may be expensive to validate, or its
bodies may arrive slowly; meanwhile the requests of all other tenants would be rejected.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

SLOTS = 3
"""Requests being stored. Each has one PostgreSQL connection and up to 20 MiB of inflated body."""
SLOTS_OF_TENANT = 2
"""Slots of one tenant. At least one slot is left for the others."""
PLACES = 10
"""Requests being read, in line or being stored; the web server has more threads."""
PLACES_OF_TENANT = 8
"""Places of one tenant. At least two are left for the others."""
BYTES_MAX = 16 * 1024 * 1024
"""Bytes of all bodies in places, as sent."""
BYTES_OF_TENANT = 10 * 1024 * 1024
"""Bytes of one tenant: two of the largest bodies, with room for one of another tenant."""
LINE_OF_TENANT = 4
"""Requests of one tenant that wait for a slot. With those being stored: six of ten places."""
WAIT_S = 1.0
"""The longest wait for a slot."""
RETRY_AFTER_S = 1
_REPORTED_MIN_MS = 100
_WEIGHT = 0.1  # weight of the latest request in the moving average


class OverloadedError(Exception):
    """The server is overloaded: answer 503, retry after `RETRY_AFTER_S`."""


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
        """Hold a place for a request of `size` bytes. Raises OverloadedError if none is free."""
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
        """Count a request that has a place against its tenant's share, once its key is known.

        Raises OverloadedError at once if the share is used up.
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
        """Hold a slot, the right to store. Waits in line; raises OverloadedError if none comes."""
        with self._lock:
            if not self._has_slot(tenant_id):
                self._wait(tenant_id)
            self._slots_left -= 1
            self._held[tenant_id] += 1
        began = time.monotonic()
        try:
            yield
        finally:
            seconds = time.monotonic() - began
            with self._lock:
                self._mean_s += _WEIGHT * (seconds - self._mean_s)
                self._is_stuck = False
                self._slots_left += 1
                _take(self._held, tenant_id)
                self._is_given_back.notify_all()

    def next_after_ms(self) -> int:
        """Milliseconds a served sender should wait before its next request; 0 if the line is short.

        After a recent rejection it is as long as the rejected senders wait: else those would never
        get a place.
        """
        if time.monotonic() < self._refused_at + RETRY_AFTER_S:
            return 1000 * RETRY_AFTER_S
        wait_ms = round(1000 * self._mean_s * self._in_line / self._slot_count)
        return wait_ms if wait_ms >= _REPORTED_MIN_MS else 0

    @property
    def in_line(self) -> int:
        """How many requests wait for a slot."""
        return self._in_line

    def _has_slot(self, tenant_id: UUID) -> bool:
        return self._slots_left > 0 and self._held[tenant_id] < self._slots_of_tenant

    def _wait(self, tenant_id: UUID) -> None:
        """Wait until the tenant has a slot. The lock is held, and released while waiting."""
        if self._is_stuck or self._waiting[tenant_id] >= LINE_OF_TENANT:
            raise OverloadedError
        self._in_line += 1
        self._waiting[tenant_id] += 1
        got_one = self._is_given_back.wait_for(lambda: self._has_slot(tenant_id), self._wait_s)
        self._in_line -= 1
        _take(self._waiting, tenant_id)
        # If slots are left, the tenant only waited for its own requests: other slots may move.
        self._is_stuck = not got_one and not self._slots_left
        if not got_one:
            raise OverloadedError


def _take(counted: Counter[UUID], tenant_id: UUID, count: int = 1) -> None:
    counted[tenant_id] -= count
    if not counted[tenant_id]:
        del counted[tenant_id]


ADMISSION = Admission()
"""The instance of this process."""
