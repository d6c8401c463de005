"""A page of rows that are ordered by size, such as the tools of a range.

They are counted again for each page. The cursor keeps the range of the first page, so that the rows
stay in place, except for late events.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, Self

from audit.queries.cursor import BEGINNING, END
from audit.queries.time_range import MAX_LENGTH, TimeRange
from tenants.api_reads import seal, unseal

_ROWS_MAX = 10_000_000


class _Params(Protocol):
    cursor: str
    limit: int

    def read_range(self) -> TimeRange: ...


@dataclass(frozen=True, slots=True)
class FigurePage:
    """The range of the figures, and which rows of them are listed."""

    name: str
    of: TimeRange
    first: int
    limit: int

    @classmethod
    def read(cls, name: str, params: _Params) -> Self:
        """The requested page of the list `name`. Raises ProblemError."""
        of, first = unseal(name, params.cursor, _read_place) or (params.read_range(), 0)
        return cls(name, of, first, params.limit)

    def members(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """The members `items` and `next` of the answer, from all rows."""
        end = self.first + self.limit
        start, until = self.of.start.astimezone(UTC), self.of.end.astimezone(UTC)
        return {
            "items": rows[self.first : end],
            "next": seal(self.name, start, until, end) if len(rows) > end else None,
        }


def _read_place(place: list[str]) -> tuple[TimeRange, int]:
    from_, to, first = place
    start, end = datetime.fromisoformat(from_), datetime.fromisoformat(to)
    is_known = start.tzinfo is not None and end.tzinfo is not None
    if not (is_known and BEGINNING <= start < end <= END and end - start <= MAX_LENGTH):
        raise ValueError("no range")
    if not 0 < int(first) < _ROWS_MAX:
        raise ValueError("no place in the rows")
    return TimeRange(start.astimezone(UTC), end.astimezone(UTC), UTC), int(first)
