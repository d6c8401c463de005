"""The days of which the index accepts calls: those with partitions.

Each process caches them. It looks them up again when a day is missing, at most every
`_REFRESH_SECONDS`. The worker adds days daily, and retention drops them.
"""

import threading
import time

from audit.events.instants import days_since_epoch
from audit.index import partitions

_REFRESH_SECONDS = 10.0


class IndexDays:
    """The days that have a partition in every table of the index, as days since 1970."""

    def __init__(self) -> None:
        self._days: frozenset[int] = frozenset()
        self._read_at = -_REFRESH_SECONDS
        self._lock = threading.Lock()

    def missing(self, days: set[int]) -> set[int]:
        """The days that the index does not accept. May run a query if there are any."""
        missing = days - self._days
        if missing and time.monotonic() - self._read_at >= _REFRESH_SECONDS:
            self.refresh()
            missing = days - self._days
        return missing

    def refresh(self) -> None:
        """Look up the partitions. One query."""
        with self._lock:
            existing = partitions.existing("default")
            tables_by_day: dict[int, int] = {}
            for partition in existing:
                day = days_since_epoch(partition.day)
                tables_by_day[day] = tables_by_day.get(day, 0) + 1
            whole = len(partitions.PARTITIONED_TABLES)
            self._days = frozenset(day for day, tables in tables_by_day.items() if tables == whole)
            self._read_at = time.monotonic()


INDEX_DAYS = IndexDays()
"""The instance of this process."""
