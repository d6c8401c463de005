"""How many events a key may send: none is set by default.

A bucket per key and process fills at the rate that is allowed and holds what ten seconds give.
A request is let in while the bucket is not empty, and may then empty it beyond: what it took
too much must flow back before the next one.
"""

import threading
import time
from functools import cache

from django.conf import settings

HOLDS_S = 10.0
_KEYS_MAX = 10_000


class QuotaExceededError(Exception):
    """A key has sent more than it may: 429. `retry_after_s` is when it may send again."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"again in {retry_after_s:.1f} s")
        self.retry_after_s = retry_after_s


class Quota:
    """The buckets of one process, each for `per_second` events; 0 is no quota."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}  # events, and when that was

    def check(self, key_id: str) -> None:
        """Raise QuotaExceededError if the key must wait."""
        if self._per_second:
            with self._lock:
                left = self._now_left(key_id, time.monotonic())
            if left <= 0:
                raise QuotaExceededError((1 - left) / self._per_second)

    def take(self, key_id: str, events: int) -> None:
        """Count events the key has sent."""
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
    """This process's: its share of what a key may send."""
    return Quota(settings.EVENTS_PER_SECOND / settings.WEB_PROCESSES)
