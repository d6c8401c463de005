"""The calls a replay reads: those of one tool that have ended, newest first."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import starmap
from typing import Any, NamedTuple
from uuid import UUID

from audit.queries.among import ALL, Among
from audit.queries.call_list import calls_by_day
from audit.queries.cursor import Cursor
from audit.queries.listed_call import ListedCall
from audit.sql.run import rows


class ReplayedCall(NamedTuple):
    """A call and the places of its events in the log. A tuple, as there are 100,000 of them."""

    started_on: date
    started_at: datetime
    invocation_id: UUID
    start_batch_id: UUID | None
    start_pos: int | None
    end_batch_id: UUID
    end_pos: int

    @property
    def start(self) -> tuple[UUID, int] | None:
        """The place of its start event; None if that has not arrived."""
        if self.start_batch_id is None or self.start_pos is None:
            return None
        return self.start_batch_id, self.start_pos

    @property
    def end(self) -> tuple[UUID, int]:
        """The place of its end event."""
        return self.end_batch_id, self.end_pos


@dataclass(frozen=True, slots=True)
class ReplayRange:
    """Calls of a tool that started in a range of time, all or those of a query."""

    tool_name: str
    since: datetime
    until: datetime
    among: Among = ALL

    def count(self, limit: int) -> int:
        """How many calls there are, at most `limit`."""
        parameters = self._parameters() | {"count_limit": limit}
        ((count,),) = rows("replayed_count", parameters, conditions=self.among.conditions)
        return int(count)

    def before(self, cursor: Cursor[UUID], size: int) -> list[ReplayedCall]:
        """At most `size` calls older than the cursor, newest first."""
        parameters = self._parameters() | {
            "last_day": min(self.until, cursor.at).astimezone(UTC).date(),
            "at": cursor.at,
            "id": cursor.id,
            "page_limit": size,
        }
        calls = rows("replayed_calls", parameters, conditions=self.among.conditions)
        return list(starmap(ReplayedCall, calls))

    def _parameters(self) -> dict[str, Any]:
        return self.among.parameters | {
            "tool": self.tool_name,
            "since": self.since,
            "until": self.until,
            "first_day": self.since.astimezone(UTC).date(),
            "last_day": self.until.astimezone(UTC).date(),
        }


def sampled_calls(places: Collection[tuple[date, UUID]]) -> dict[UUID, ListedCall]:
    """The calls with these days and ids, by id. At most one statement."""
    return {call.invocation_id: call for call in calls_by_day(places)}
