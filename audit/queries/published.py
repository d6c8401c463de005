"""Versions of tools that were published in a range, for marks on its charts."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from audit.queries.time_range import TimeRange
from audit.sql.run import rows_prepared

MARKED_MAX = 100
"""Versions that are marked on the charts of a page: the newest ones."""


@dataclass(frozen=True, slots=True)
class Published:
    """That a version was published."""

    tool_id: UUID
    tool_name: str
    number: int
    at: datetime


def published_in(of: TimeRange, tool: str | None = None) -> list[Published]:
    """The newest versions published in a range, of all tools or of one. One statement."""
    parameters = {"start": of.start, "end": of.end, "tool": tool, "limit": MARKED_MAX}
    return [Published(*row) for row in rows_prepared("versions_published", parameters)]
