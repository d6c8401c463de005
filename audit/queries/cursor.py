"""A position in a list that is read newest first: where one page ends and the next one begins."""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from django.utils.dateparse import parse_datetime

from audit.events.instants import EPOCH

BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)
END = datetime(9999, 1, 1, tzinfo=UTC)
"""No list has a row before `BEGINNING` or after `END`."""


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
    return Cursor(instant, id_type(row_id))


def read_cursor[Id: (UUID, str)](text: str, id_type: type[Id]) -> Cursor[Id] | None:
    """The cursor in an address; None if it is invalid."""
    try:
        return parse_cursor(text, id_type)
    except ValueError:
        return None


def stored_cursor(at: datetime | None, row_id: UUID | None) -> Cursor[UUID]:
    """Where a job continues, by the columns of its row: at the newest if it has not begun."""
    return NEWEST if at is None or row_id is None else Cursor(at, row_id)
