"""How many traces began in each part of a range, by their worst state."""

from dataclasses import dataclass
from datetime import UTC, datetime

from audit.queries.time_range import TimeRange
from audit.queries.traces import prefix_end
from audit.sql.run import rows

STATES = ("failed", "violation", "open", "ok")
"""The worst first."""
READ_MAX = 20_000
"""Traces that are read, the newest ones."""


@dataclass(frozen=True, slots=True)
class TracesOverTime:
    """Traces by state, each by part of the range."""

    of: TimeRange
    by_state: dict[str, list[int]]
    since: datetime | None
    """Set if there are more traces than were read: those that began before it were not."""
    before: dict[str, list[int]]
    """The range before, likewise, each part one length before a part; empty if not all its traces
    were read, or if it does not have the same parts."""


def traces_over_time(of: TimeRange, prefix: str) -> TracesOverTime:
    """Count the traces of a range, and of the range before, whose ids begin with `prefix`.

    A trace is counted where it began, with the state of its calls that started on that UTC day.
    One statement.
    """
    earlier = of.bounds_before if of.has_parts_before else []
    bounds = [*earlier, *of.bounds]
    parameters = {
        "first_day": bounds[0].astimezone(UTC).date(),
        "last_day": of.end.astimezone(UTC).date(),
        "since": bounds[0],
        "until": of.end,
        "bounds": bounds,
        "prefix": prefix,
        "prefix_end": prefix_end(prefix),
        "scan_limit": READ_MAX,
    }
    by_state = {state: [0] * (len(bounds) - 1) for state in STATES}
    oldest, read = of.end, 0
    for part, state, number, first_at, all_read in rows("traces_over_time", parameters):
        by_state[state][part] += number
        oldest, read = min(oldest, first_at), int(all_read)
    is_cut, current = read >= READ_MAX, len(earlier)
    return TracesOverTime(
        of,
        {state: counts[current:] for state, counts in by_state.items()},
        oldest if is_cut and oldest > of.start else None,
        {} if is_cut or not earlier else {one: all_[:current] for one, all_ in by_state.items()},
    )
