"""The list of traces by a figure: the longest, those with the most calls, failures or tokens.

No index has these orders. So the newest traces up to a limit are sorted, which is said on the page.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from audit.queries.cursor import BEGINNING, END, SortedPlace, first_place
from audit.queries.traces import (
    SCAN_LIMIT,
    Reason,
    TraceDay,
    TraceFilter,
    prefix_end,
    reasons_of,
    whole_traces,
)
from audit.sql.run import rows

FIGURES: Final = ("failed", "calls", "duration", "tokens")
_BEYOND: Final = chr(0x10FFFF)
"""An id after that of every trace."""


@dataclass(frozen=True, slots=True)
class SortedTraces:
    """A page of traces by a figure, and the place of the next page."""

    traces: list[TraceDay]
    reasons: dict[str, Reason]
    next: SortedPlace[str] | None
    since: datetime | None
    """Only traces from this instant on were sorted; None: all that match."""


def sorted_traces(
    wanted: TraceFilter,
    figure: str,
    *,
    now: datetime,
    place: SortedPlace[str] | None,
    is_smallest_first: bool = False,
    size: int = 50,
    scan_limit: int = SCAN_LIMIT,
) -> SortedTraces:
    """At most `size` traces that have the figure, largest first. At most four statements."""
    place = place or first_place(min(wanted.until or now, now), _BEYOND)
    since = wanted.since or BEGINNING
    parameters = {
        "first_day": since.astimezone(UTC).date(),
        "last_day": place.pinned.astimezone(UTC).date(),
        "since": since,
        "until": place.pinned,
        "prefix": wanted.prefix,
        "prefix_end": prefix_end(wanted.prefix),
        "state": wanted.state,
        "scan_limit": scan_limit,
        "page_limit": size + 1,
        "figure": figure,
        "sign": -1 if is_smallest_first else 1,
    }
    sorted_rows = rows("traces_sorted", parameters | place.parameters)
    scan = parameters | {"at": END, "id": ""}
    scanned_since = next((at for at, _ in rows("trace_scan_end", scan)), None)
    shown = sorted_rows[:size]
    following = None
    if len(sorted_rows) > size:
        trace_id, first_at, sorted_by = shown[-1]
        following = SortedPlace(place.pinned, sorted_by, first_at, trace_id)
    traces = whole_traces({trace_id: first_at for trace_id, first_at, _ in shown})
    return SortedTraces(traces, reasons_of(traces), following, scanned_since)
