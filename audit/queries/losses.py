"""Data completeness: events that producers dropped, and gaps in their sequence numbers."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from audit.queries.call_walk import SILENCE
from audit.queries.cursor import END
from audit.queries.inbox import inbox_open_count
from audit.queries.open_list import OpenTally, open_tally
from audit.queries.time_range import TimeRange
from audit.sql.run import rows

PRODUCERS_READ = 200


@dataclass(frozen=True, slots=True)
class ProducerHeard:
    """A producer: when it was last heard, and how many of its sequence numbers are missing."""

    producer_id: str
    last_heard_at: datetime
    missing: int
    """Sequence numbers neither stored nor dropped: under way, rejected (inbox), or lost."""
    given_up: int
    is_silent: bool


@dataclass(frozen=True, slots=True)
class ProducerPage:
    """A page of producers. The counts are of all producers; they are 0 if the page is empty."""

    producers: list[ProducerHeard]
    count: int
    heard_lately: int
    """How many of all were heard within the last `SILENCE`."""
    has_more: bool


@dataclass(frozen=True, slots=True)
class DeclaredGap:
    """Events that producers dropped for one reason."""

    reason: str
    lost: int
    producers: int


@dataclass(frozen=True, slots=True)
class Losses:
    """What may be missing. `producers` are those heard in the range, the latest first."""

    producers: list[ProducerHeard]
    producer_count: int
    heard_lately: int
    """How many of them were heard within the last `SILENCE`."""
    gaps: list[DeclaredGap]
    inbox: int
    open: OpenTally

    @property
    def lost(self) -> int:
        """Events that producers dropped."""
        return sum(gap.lost for gap in self.gaps)

    @property
    def missing(self) -> int:
        """Missing sequence numbers of the listed producers."""
        return sum(each.missing for each in self.producers)

    @property
    def is_complete(self) -> bool:
        """Whether there is no sign of a lost event."""
        return not (self.lost or self.missing or self.inbox)


def losses(of: TimeRange, now: datetime) -> Losses:
    """What may be missing in a range. Four statements."""
    heard = producers(of.start, now, size=PRODUCERS_READ)
    return Losses(
        producers=heard.producers,
        producer_count=heard.count,
        heard_lately=heard.heard_lately,
        gaps=gaps_between(of),
        inbox=inbox_open_count(),
        open=open_tally(now),
    )


def producers(
    since: datetime, now: datetime, *, size: int, before: tuple[datetime, str] | None = None
) -> ProducerPage:
    """The producers heard since an instant, the latest first. One statement.

    `before` is the position of a producer: when it was heard, and its id. A producer that is heard
    between two pages moves to the front.
    """
    at, producer_id = before or (END, "")
    silent_since = now - SILENCE
    producer_rows = rows(
        "producers_lately",
        {
            "since": since,
            "silent_since": silent_since,
            "at": at,
            "id": producer_id,
            "limit": size + 1,
        },
    )
    return ProducerPage(
        producers=[
            ProducerHeard(
                producer_id,
                heard_at,
                *unaccounted(first, last, stored, gaps),
                is_silent=heard_at < silent_since,
            )
            for producer_id, first, last, stored, heard_at, gaps, _, _ in producer_rows[:size]
        ],
        count=producer_rows[0][6] if producer_rows else 0,
        heard_lately=producer_rows[0][7] if producer_rows else 0,
        has_more=len(producer_rows) > size,
    )


def gaps_between(of: TimeRange) -> list[DeclaredGap]:
    """The events that producers dropped, by reason, the most frequent first. One statement."""
    gaps = rows("gaps_between", {"since": of.start, "until": of.end})
    return [DeclaredGap(*row) for row in gaps]


def unaccounted(
    first: int | None, last: int | None, stored: int, gaps: Iterable[tuple[int, int]]
) -> tuple[int, int]:
    """How many numbers from `first` to `last` are missing, and how many were dropped.

    A missing number is neither stored nor dropped. `gaps` are sorted by their beginning and may
    overlap; both ends are inclusive.
    """
    if first is None or last is None:
        return 0, 0
    given_up, covered = 0, first - 1
    for low, high in gaps:
        begin = max(low, covered + 1)
        if high >= begin:
            given_up += high - begin + 1
            covered = high
    return max(0, last - first + 1 - stored - given_up), given_up
