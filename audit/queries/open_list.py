"""Open calls: how many there are of each kind, and when their producers were last heard."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from audit.queries.call_walk import AHEAD, SILENCE
from audit.sql.run import rows, rows_prepared

COUNT_LIMIT = 10_000
"""Open calls that are counted; this number means that many or more."""


@dataclass(frozen=True, slots=True)
class OpenTally:
    """Calls of each kind. A call may be both overdue and presumed crashed."""

    open: int
    overdue: int
    crashed: int
    running: int
    orphan: int


def open_tally(now: datetime) -> OpenTally:
    """Count the calls of each kind, up to `COUNT_LIMIT`. One statement."""
    parameters = {
        "now": now,
        "silent_since": now - SILENCE,
        "last_day": (now + AHEAD).astimezone(UTC).date(),
        "count_limit": COUNT_LIMIT,
    }
    return OpenTally(*rows_prepared("open_tally", parameters)[0])


def producers_heard(producer_ids: Iterable[str]) -> dict[str, datetime]:
    """When each of these producers was last heard. At most one statement."""
    wanted = sorted(set(producer_ids))
    return dict(rows("producers_heard", {"producer_ids": wanted})) if wanted else {}
