"""An optional limit on the events a key may send. By default there is none.

Each process has a bucket per key. It fills at the allowed rate and holds ten seconds' worth of
events. A request is admitted while the bucket is not empty, and may overdraw it. The next request
must wait until the bucket is positive again.
"""

import threading
import time
from functools import cache

from django.conf import settings

HOLDS_S = 10.0
_KEYS_MAX = 10_000


class QuotaExceededError(Exception):
    """A key has exceeded its quota: 429. It may send again after `retry_after_s` seconds."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"retry after {retry_after_s:.1f} s")
        self.retry_after_s = retry_after_s


class Quota:
    """The buckets of one process. `per_second` is in events; 0 means no quota."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}  # events left, and at what time

    def check(self, key_id: str) -> None:
        """Raise QuotaExceededError if the key must wait."""
        if self._per_second:
            with self._lock:
                left = self._now_left(key_id, time.monotonic())
            if left <= 0:
                raise QuotaExceededError((1 - left) / self._per_second)

    def take(self, key_id: str, events: int) -> None:
        """Count `events` that the key has sent."""
        if self._per_second:
            with self._lock:
                now = time.monotonic()
                left = self._now_left(key_id, now)
                if len(self._left) >= _KEYS_MAX:
                    self._left.clear()
                self._left[key_id] = left - events, now

    def _now_left(self, key_id: str, now: float) -> float:
        full = self._per_second * HOLDS_S
        left, at = self._left.get(key_id, (full, now))
        return min(full, left + (now - at) * self._per_second)


@cache
def quota() -> Quota:
    """The quota of this process: its share of what a key may send."""
    return Quota(settings.EVENTS_PER_SECOND / settings.INTAKE_PROCESSES)
