"""Which stored hours make up a stretch of time, and which single calls must be moved.

Pure. Sums are stored by UTC hour, and a page may cut hours anywhere: at a range's ends, at
midnight in Kathmandu. An hour is counted whole for the slot its middle lies in; of the calls
beyond the cut, half an hour's at most, each is then added to its own slot and taken from that
one. So any slots are exact, from as few single calls as can be.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Hour:
    """A whole stored hour and the slot it is counted for."""

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
    """What to sum up for slots 0, 1, …"""

    hours: tuple[Hour, ...]
    pieces: tuple[Piece, ...]

    @property
    def start(self) -> datetime | None:
        """Before it nothing is read."""
        starts = [one.at for one in self.hours] + [one.start for one in self.pieces]
        return min(starts, default=None)

    @property
    def end(self) -> datetime | None:
        """From it on nothing is read."""
        ends = [one.at + HOUR for one in self.hours] + [one.end for one in self.pieces]
        return max(ends, default=None)


def cells(bounds: Sequence[datetime], *, first_single: int | None = None) -> Cells:
    """The cells of the slots between these instants, which are in UTC and ascend.

    From the slot `first_single` on, calls are read singly: where slots are shorter than hours.
    """
    hours: list[Hour] = []
    pieces: list[Piece] = []
    slots = list(pairwise(bounds))
    at, n = bounds[0].replace(minute=0, second=0, microsecond=0), 0
    while at < bounds[-1]:
        while n < len(slots) and slots[n][1] <= at:
            n += 1
        inside = n < len(slots) and slots[n][0] <= at and at + HOUR <= slots[n][1]
        if inside and (first_single is None or n < first_single):
            hours.append(Hour(at, n))  # as most are
            at += HOUR
            continue
        parts: list[tuple[datetime, datetime, int | None]] = []
        if at < bounds[0]:
            parts.append((at, bounds[0], None))
        while n < len(slots) and slots[n][0] < at + HOUR:
            start, end = slots[n]
            parts.append((max(at, start), min(at + HOUR, end), n))
            if end > at + HOUR:
                break
            n += 1
        if n == len(slots) and bounds[-1] < at + HOUR:
            parts.append((bounds[-1], at + HOUR, None))
        middle = at + HOUR / 2
        owner = next(slot for start, end, slot in parts if start <= middle < end)
        if owner is not None and first_single is not None and owner >= first_single:
            owner = None
        if owner is not None:
            hours.append(Hour(at, owner))
        pieces += [Piece(*part, owner) for part in parts if part[2] != owner]
        at += HOUR
    return Cells(tuple(hours), tuple(_joined(pieces)))


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """The same with neighbours of one slot, both taken from nowhere, as one."""
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.taken_from is None
            and piece.taken_from is None
            and (last.end, last.slot) == (piece.start, piece.slot)
        ):
            joined[-1] = Piece(last.start, piece.end, piece.slot, None)
        else:
            joined.append(piece)
    return joined
