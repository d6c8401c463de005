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


def traces_over_time(of: TimeRange, prefix: str) -> TracesOverTime:
    """Count the traces of a range whose ids begin with `prefix`. One statement.

    A trace is counted where it began, with the state of its calls that started on that UTC day.
    """
    parameters = {
        "first_day": of.start.astimezone(UTC).date(),
        "last_day": of.end.astimezone(UTC).date(),
        "since": of.start,
        "until": of.end,
        "bounds": list(of.bounds),
        "prefix": prefix,
        "prefix_end": prefix_end(prefix),
        "scan_limit": READ_MAX,
    }
    by_state = {state: [0] * len(of.parts) for state in STATES}
    oldest, read = of.end, 0
    for part, state, number, first_at, all_read in rows("traces_over_time", parameters):
        by_state[state][part] += number
        oldest, read = min(oldest, first_at), int(all_read)
    return TracesOverTime(of, by_state, oldest if read >= READ_MAX else None)
