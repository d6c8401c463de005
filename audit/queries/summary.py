"""The figures of a range: whole UTC hours from the rollups, its two ends from the calls."""

from dataclasses import dataclass
from datetime import datetime

from audit.index import histogram
from audit.queries.hour_cells import whole_hours
from audit.queries.over_time import FORMULA
from audit.sql.run import rows


@dataclass(frozen=True, slots=True)
class Summary:
    """`calls` are completed ones, by when they started: they succeeded or failed.

    `open` ones have started and not ended; `cancelled` ones have ended and are in no other sum.
    """

    start: datetime
    end: datetime
    calls: int
    open: int
    cancelled: int
    errors: int
    violations: int
    violating_calls: int
    prompt_tokens: int
    completion_tokens: int
    latency: tuple[int, ...]
    """The histogram of the completed calls' durations (`audit.index.histogram`)."""

    def duration_ms(self, share: float) -> float | None:
        """The milliseconds that this share of the calls took at most; None without any calls."""
        duration_us = histogram.percentile(self.latency, share)
        return None if duration_us is None else duration_us / 1000


def summary(start: datetime, end: datetime) -> Summary:
    """Sum up the calls that started from `start` on and before `end`. Four queries."""
    first_hour, last_hour = whole_hours(start, end)
    span = {"start": start, "end": end, "first_hour": first_hour, "last_hour": last_hour}
    ((number, *hours),) = rows("summary_hours", span)
    completed, failed, violating, violations, prompt, completion = map(int, hours)
    (edges,) = rows("summary_edges", span)
    edge_completed, edge_failed, *edge_sums = map(int, edges)
    ((is_open, cancelled),) = rows("summary_uncounted", span)
    buckets = histogram.from_number(number)
    for bucket, count in rows("latency_edges", span | FORMULA):
        buckets[bucket] += int(count)
    return Summary(
        start=start,
        end=end,
        calls=completed + edge_completed,
        open=int(is_open),
        cancelled=int(cancelled),
        errors=failed + edge_failed,
        violating_calls=violating + edge_sums[0],
        violations=violations + edge_sums[1],
        prompt_tokens=prompt + edge_sums[2],
        completion_tokens=completion + edge_sums[3],
        latency=tuple(buckets),
    )
