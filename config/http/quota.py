"""A limit on how much a key may send: a bucket that fills at the allowed rate.

It holds ten seconds' worth. A request is admitted while the bucket is not empty, and may overdraw
it. The next request must wait until the bucket is positive again.

A process counts in its own bucket. With `settle` that is a copy of a common one: it settles once
the copy is a second old, or a second's worth has been taken from it. So each further process lets a
key exceed its quota by a second's worth and a request at most.
"""

import math
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

HOLDS_S = 10.0
SETTLED_FOR_S = 1.0
"""How old the copy of a bucket may be, and how many seconds' worth may be taken from it."""
_KEYS_MAX = 10_000


class QuotaExceededError(Exception):
    """A key has exceeded its quota: 429. It may send again after `retry_after_s` seconds."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"retry after {retry_after_s:.1f} s")
        self.retry_after_s = retry_after_s


@dataclass
class _Bucket:
    left: float
    at: float
    """When so many events were left: seconds of the monotonic clock."""
    taken: int = 0
    """Events not yet settled."""
    settled_at: float | None = None
    is_settling: bool = False


class Quota[Key: Hashable]:
    """The buckets of one process. `per_second` is in events; 0 means no quota.

    `settle` takes a number of events from the key's common bucket and returns how many are left
    in it. Without it, the process is the only one.
    """

    def __init__(
        self, per_second: float, settle: Callable[[Key, int], float] | None = None
    ) -> None:
        self._per_second = per_second
        self._settle = settle
        self._lock = threading.Lock()
        self._buckets: dict[Key, _Bucket] = {}

    def check(self, key: Key) -> None:
        """Raise QuotaExceededError if the key must wait, or an error of `settle`."""
        if not self._per_second:
            return
        with self._lock:
            now = time.monotonic()
            bucket = self._filled(key, now)
            is_due = self._settle is not None and self._is_due(bucket, now)
            bucket.is_settling |= is_due
        if is_due:
            self._settle_with(key, bucket)
        if bucket.left <= 0:
            raise QuotaExceededError((1 - bucket.left) / self._per_second)

    def take(self, key: Key, events: int) -> None:
        """Count `events` that the key has sent."""
        if self._per_second:
            with self._lock:
                bucket = self._filled(key, time.monotonic())
                bucket.left -= events
                bucket.taken += events

    def headers(self, key: Key) -> dict[str, str]:
        """What an answer says of the key's quota (draft-ietf-httpapi-ratelimit-headers).

        The figures are those of this process's copy. Empty without a quota.
        """
        if not self._per_second:
            return {}
        full = self._per_second * HOLDS_S
        with self._lock:
            left = self._filled(key, time.monotonic()).left
        seconds = math.ceil((full - left) / self._per_second)
        return {
            "RateLimit-Policy": f'"events";q={full:.0f};w={HOLDS_S:.0f}',
            "RateLimit": f'"events";r={max(0, left):.0f};t={seconds}',
        }

    def _filled(self, key: Key, now: float) -> _Bucket:
        full = self._per_second * HOLDS_S
        if (bucket := self._buckets.get(key)) is None:
            if len(self._buckets) >= _KEYS_MAX:
                self._buckets.clear()
            bucket = self._buckets[key] = _Bucket(full, now)
        bucket.left = min(full, bucket.left + (now - bucket.at) * self._per_second)
        bucket.at = now
        return bucket

    def _is_due(self, bucket: _Bucket, now: float) -> bool:
        if bucket.is_settling:
            return False  # another request of this process does it
        is_old = bucket.settled_at is None or now >= bucket.settled_at + SETTLED_FOR_S
        return is_old or bucket.taken >= self._per_second * SETTLED_FOR_S

    def _settle_with(self, key: Key, bucket: _Bucket) -> None:
        assert self._settle is not None
        taken = bucket.taken
        try:
            left = self._settle(key, taken)
            with self._lock:
                bucket.taken -= taken
                bucket.left = left - bucket.taken
                bucket.at = bucket.settled_at = time.monotonic()
        finally:
            bucket.is_settling = False
