"""A position in a list that is read newest first: where one page ends and the next one begins."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.utils.dateparse import parse_datetime

from audit.events.instants import EPOCH

BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)
END = datetime(9999, 1, 1, tzinfo=UTC)
"""No list has a row before `BEGINNING` or after `END`."""
_BEYOND = Decimal(10**40)
"""More than any figure by which rows are sorted."""


@dataclass(frozen=True, slots=True)
class Cursor[Id: (UUID, str)]:
    """The instant and the id of the row just before or just after it."""

    at: datetime
    id: Id

    def __str__(self) -> str:
        """The cursor as written in addresses: `2026-11-20T10:15:00.000001+00:00,<id>`."""
        return f"{self.at.isoformat()},{self.id}"


NEWEST = Cursor(END, UUID(int=2**128 - 1))
"""The cursor before the newest row: every row with a UUID comes after it."""


def parse_cursor[Id: (UUID, str)](text: str, id_type: type[Id]) -> Cursor[Id]:
    """Read a cursor that `str` wrote. Raises ValueError."""
    at, _, row_id = text.partition(",")
    instant = parse_datetime(at)
    if instant is None or instant.tzinfo is None or not EPOCH <= instant <= END:
        raise ValueError("the cursor has no instant of a list")
    if "\x00" in row_id:
        raise ValueError("the cursor has an id that no column can hold")
    return Cursor(instant.astimezone(UTC), id_type(row_id))


def read_cursor[Id: (UUID, str)](text: str, id_type: type[Id]) -> Cursor[Id] | None:
    """The cursor in an address; None if it is invalid."""
    try:
        return parse_cursor(text, id_type)
    except ValueError:
        return None


def stored_cursor(at: datetime | None, row_id: UUID | None) -> Cursor[UUID]:
    """Where a job continues, by the columns of its row: at the newest if it has not begun."""
    return NEWEST if at is None or row_id is None else Cursor(at, row_id)


@dataclass(frozen=True, slots=True)
class SortedPlace[Id: (UUID, str)]:
    """The last row of a page that is sorted by a figure.

    `pinned` is when the first page was read: only rows before it are sorted, so that later pages
    continue the same order.
    """

    pinned: datetime
    figure: Decimal
    at: datetime
    id: Id

    def __str__(self) -> str:
        """The place as written in addresses, without spaces."""
        return f"{self.pinned.isoformat()},{self.figure},{self.at.isoformat()},{self.id}"

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of a sorted statement."""
        return {"sorted_figure": self.figure, "sorted_at": self.at, "sorted_id": self.id}


def first_place[Id: (UUID, str)](pinned: datetime, beyond: Id) -> SortedPlace[Id]:
    """The place before the first row; `beyond` is an id after all others."""
    return SortedPlace(pinned, _BEYOND, END, beyond)


def read_place[Id: (UUID, str)](text: str, id_type: type[Id]) -> SortedPlace[Id] | None:
    """The place in an address; None if it is invalid."""
    try:
        pinned, figure, rest = text.split(",", 2)
        cursor = parse_cursor(rest, id_type)
        at = parse_cursor(f"{pinned},", str).at
        number = Decimal(figure)
    except (ValueError, ArithmeticError):
        return None
    if not number.is_finite() or abs(number) > _BEYOND:
        return None
    return SortedPlace(at, number, cursor.at, cursor.id)
