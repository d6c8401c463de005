"""Did we lose anything? What producers say, and what their numbering shows."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from audit.queries.call_list import SILENCE
from audit.queries.cursor import END
from audit.queries.inbox import inbox_open_count
from audit.queries.open_list import OpenTally, open_tally
from audit.queries.time_range import TimeRange
from audit.sql.run import rows

PRODUCERS_LOOKED_AT = 200


@dataclass(frozen=True, slots=True)
class ProducerHeard:
    """A producer: when it was last heard, and how many of its numbers have not arrived."""

    producer_id: str
    last_heard_at: datetime
    missing: int
    """Neither stored nor given up: under way, refused (the inbox), or lost."""
    given_up: int
    is_silent: bool


@dataclass(frozen=True, slots=True)
class ProducerPage:
    """Some producers, and how many there are of all; none if no more come."""

    producers: list[ProducerHeard]
    count: int
    heard_lately: int
    """Of all, heard within the last `SILENCE`."""
    has_more: bool


@dataclass(frozen=True, slots=True)
class DeclaredGap:
    """Events that producers had to give up, by their reason."""

    reason: str
    lost: int
    producers: int


@dataclass(frozen=True, slots=True)
class Losses:
    """What may be missing. Producers are those heard in the range, the latest first."""

    producers: list[ProducerHeard]
    producer_count: int
    heard_lately: int
    """Of them, heard within the last `SILENCE`."""
    gaps: list[DeclaredGap]
    inbox: int
    open: OpenTally

    @property
    def lost(self) -> int:
        """Events that producers gave up."""
        return sum(gap.lost for gap in self.gaps)

    @property
    def missing(self) -> int:
        """Numbers that have not arrived, of the producers looked at."""
        return sum(each.missing for each in self.producers)

    @property
    def is_complete(self) -> bool:
        """Whether nothing says that anything was lost."""
        return not (self.lost or self.missing or self.inbox)


def losses(of: TimeRange, now: datetime) -> Losses:
    """What may be missing of a range. Five statements."""
    heard = producers(of.start, now, size=PRODUCERS_LOOKED_AT)
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
    """The producers heard since an instant, the latest first, behind a place. One statement.

    A place is when one was heard, and its id. Who is heard meanwhile moves to the front.
    """
    at, producer_id = before or (END, "")
    silent_since = now - SILENCE
    found = rows(
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
            for producer_id, first, last, stored, heard_at, gaps, _, _ in found[:size]
        ],
        count=found[0][6] if found else 0,
        heard_lately=found[0][7] if found else 0,
        has_more=len(found) > size,
    )


def gaps_between(of: TimeRange) -> list[DeclaredGap]:
    """What producers gave up, by reason, the most first. One statement."""
    found = rows("gaps_between", {"since": of.start, "until": of.end})
    return [DeclaredGap(*row) for row in found]


def unaccounted(
    first: int | None, last: int | None, stored: int, gaps: Iterable[tuple[int, int]]
) -> tuple[int, int]:
    """How many numbers from the first to the last are neither stored nor given up; given up.

    `gaps` are in order of their beginning and may overlap; both ends belong to them.
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
