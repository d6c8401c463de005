"""Which stored hours and quarters make up a range of time, and which calls must be moved.

Pure. Sums are stored by UTC hour, but a page may cut hours anywhere: at the ends of a range, or at
midnight in Kathmandu. A cut hour is made up of its quarters, whose sums are stored too: the offset
of every time zone is a whole number of quarters. A quarter that is itself cut is counted whole for
the slot that its middle lies in. The calls beyond the cut, those of at most seven and a half
minutes, are then added to their own slot and subtracted from the slot of the middle. So the
figures of any slots are exact, and as few single calls as possible are read.
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
    """A whole stored quarter of an hour, and the slot that it is counted for."""

    at: datetime
    slot: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Calls from `start` on and before `end`: added to `slot`, subtracted from `taken_from`."""

    start: datetime
    end: datetime
    slot: int | None
    taken_from: int | None


@dataclass(frozen=True, slots=True)
class Cells:
    """What to sum up for slots 0, 1, …: the hours within the bounds that are not cut, and these."""

    cut_hours: tuple[datetime, ...]
    """In order; the first and the last may begin or end outside of the bounds."""
    quarters: tuple[Quarter, ...]
    pieces: tuple[Piece, ...]


def cells(bounds: Sequence[datetime]) -> Cells:
    """The cells of the slots between these instants, which are in UTC and in ascending order."""
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
    """The slot that an instant lies in; None before the first and after the last."""
    slot = bisect_right(bounds, at) - 1
    return slot if 0 <= slot < len(bounds) - 1 else None


def hour_of(at: datetime) -> datetime:
    """The beginning of the UTC hour that an instant lies in."""
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def whole_hours(start: datetime, end: datetime) -> tuple[datetime, datetime]:
    """Start of the first and end of the last whole UTC hour; both are `end` if there is none."""
    first_hour, last_hour = hour_of(start), hour_of(end)
    if first_hour < start:
        first_hour += HOUR
    return (first_hour, last_hour) if first_hour < last_hour else (end, end)
