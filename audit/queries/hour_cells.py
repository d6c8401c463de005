"""Which stored hours and quarters make up a stretch of time, and which calls must be moved.

Pure. Sums are stored by UTC hour, and a page may cut hours anywhere: at a range's ends, at
midnight in Kathmandu. A cut hour is made up of its quarters, whose sums are stored, too: every
zone is whole quarters from UTC. A quarter that is cut itself is counted whole for the slot its
middle lies in; of the calls beyond the cut, seven and a half minutes' at most, each is then added
to its own slot and taken from that one. So any slots are exact, from as few single calls as can be.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

HOUR = timedelta(hours=1)
QUARTER = HOUR / 4


@dataclass(frozen=True, slots=True)
class Quarter:
    """A whole stored quarter of an hour and the slot it is counted for."""

    at: datetime
    slot: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Single calls: from (and with) and to; the slot to add them to, and to take them from."""

    start: datetime
    end: datetime
    slot: int | None
    taken_from: int | None


@dataclass(frozen=True, slots=True)
class Cells:
    """What to sum up for slots 0, 1, …: hours between the bounds but the cut ones, and these."""

    cut_hours: tuple[datetime, ...]
    """In order; the first and the last may begin or end outside of the bounds."""
    quarters: tuple[Quarter, ...]
    pieces: tuple[Piece, ...]


def cells(bounds: Sequence[datetime]) -> Cells:
    """The cells of the slots between these instants, which are in UTC and ascend."""
    cut_hours = sorted({hour for at in bounds if (hour := hour_of(at)) != at})
    quarters: list[Quarter] = []
    pieces: list[Piece] = []
    for at in (hour + n * QUARTER for hour in cut_hours for n in range(4)):
        owner = slot_of(bounds, at + QUARTER / 2)
        if owner is not None:
            quarters.append(Quarter(at, owner))
        cuts = bounds[bisect_right(bounds, at) : bisect_left(bounds, at + QUARTER)]
        for start, end in pairwise((at, *cuts, at + QUARTER)):
            if (slot := slot_of(bounds, start)) != owner:
                pieces.append(Piece(start, end, slot, owner))
    return Cells(tuple(cut_hours), tuple(quarters), tuple(pieces))


def slot_of(bounds: Sequence[datetime], at: datetime) -> int | None:
    """The slot an instant lies in; None before the first and behind the last."""
    slot = bisect_right(bounds, at) - 1
    return slot if 0 <= slot < len(bounds) - 1 else None


def hour_of(at: datetime) -> datetime:
    """The beginning of the UTC hour an instant lies in."""
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def whole_hours(start: datetime, end: datetime) -> tuple[datetime, datetime]:
    """The first and the end of the last whole UTC hour within; both are `end` if there is none."""
    first_hour, last_hour = hour_of(start), hour_of(end)
    if first_hour < start:
        first_hour += HOUR
    return (first_hour, last_hour) if first_hour < last_hour else (end, end)
