"""The list of calls by a figure: the longest, or those with the most tokens.

No index has these orders. So the newest calls up to a limit are sorted, which is said on the page.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from audit.queries.call_conditions import Conditions
from audit.queries.call_filter import CallFilter
from audit.queries.call_walk import walk_parameters
from audit.queries.cursor import NEWEST, SortedPlace, first_place
from audit.queries.listed_call import ListedCall
from audit.sql.run import rows

FIGURES: Final = ("duration", "tokens")
SORTED_MAX: Final = 20_000
"""Calls of one page that are read, matching or not, newest first."""
_TIMEOUT_MS: Final = 3_000


@dataclass(frozen=True, slots=True)
class SortedCalls:
    """A page of calls by a figure, and the place of the next page."""

    calls: list[ListedCall]
    next: SortedPlace[UUID] | None
    since: datetime | None
    """Only calls from this instant on were sorted; None: all that match."""


def sorted_calls(
    wanted: CallFilter,
    figure: str,
    *,
    now: datetime,
    place: SortedPlace[UUID] | None,
    is_smallest_first: bool = False,
    size: int = 50,
) -> SortedCalls:
    """At most `size` calls that have the figure, largest first. One statement.

    The filter has no payload terms. Raises TimeoutError.
    """
    place = place or first_place(now, NEWEST.id)
    conditions = Conditions(wanted)
    parameters = walk_parameters(wanted, now) | conditions.parameters
    until = min(parameters["until"], place.pinned)
    parameters |= {
        "first_day": parameters["since"].astimezone(UTC).date(),
        "last_day": until.astimezone(UTC).date(),
        "at": place.pinned,
        "id": NEWEST.id,
        "scan_limit": SORTED_MAX,
        "page_limit": size + 1,
        "figure": figure,
        "sign": -1 if is_smallest_first else 1,
    }
    sorted_rows = rows(
        "calls_sorted",
        parameters | place.parameters,
        conditions=conditions.text,
        with_unrun=wanted.is_about_unrun,
        timeout_ms=_TIMEOUT_MS,
    )
    calls = [ListedCall(*row) for *row, _, _ in sorted_rows[:size]]
    following = None
    if len(sorted_rows) > size:
        last, figure_of_last = calls[-1], sorted_rows[size - 1][-2]
        following = SortedPlace(place.pinned, figure_of_last, last.started_at, last.invocation_id)
    return SortedCalls(calls, following, sorted_rows[0][-1] if sorted_rows else None)
