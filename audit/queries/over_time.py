"""The figures of a range over time and by tool, and of the range before.

Counts are exact for any range in any time zone. Percentiles have the 5 % error of
`audit.index.histogram`. `audit.queries.hour_cells` says which stored hours and quarters make up
the figures and which calls are moved.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from audit.index import histogram
from audit.queries.hour_cells import cells
from audit.queries.time_range import TimeRange
from audit.sql.run import rows, rows_prepared

FORMULA = {
    "lowest_us": histogram.LOWEST_US,
    "log_growth": histogram.LOG_GROWTH,
    "last_bucket": histogram.BUCKET_COUNT - 1,
    "digits": histogram.DIGITS,
}
"""Parameters of the part `latency_bucket` of `sql/over_time.sql`."""


@dataclass(slots=True)
class Counts:
    """Sums of calls. `calls` are completed ones: they succeeded or failed.

    `open` ones have started and not ended. `cancelled` ones have ended and are in no other sum.
    """

    ok: int = 0
    failed: int = 0
    open: int = 0
    violating: int = 0
    """Completed calls with schema violations, failed or not."""
    violations: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cancelled: int = 0

    @property
    def calls(self) -> int:
        """Completed calls."""
        return self.ok + self.failed

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def error_rate(self) -> float | None:
        """The share of completed calls that failed; None without any."""
        return self.failed / self.calls if self.calls else None

    @property
    def violation_rate(self) -> float | None:
        """The share of completed calls with schema violations; None without any."""
        return self.violating / self.calls if self.calls else None

    def add(self, sums: Sequence[int], times: int) -> None:
        """Add a row of `figures_over_time`, in the order of the fields, multiplied by `times`."""
        ok, failed, is_open, violating, violations, prompt, completion, cancelled = sums
        self.ok += times * ok
        self.failed += times * failed
        self.open += times * is_open
        self.violating += times * violating
        self.violations += times * violations
        self.prompt_tokens += times * prompt
        self.completion_tokens += times * completion
        self.cancelled += times * cancelled


@dataclass(slots=True)
class Figures(Counts):
    """Sums of calls with the histogram of their durations."""

    latency: list[int] = field(default_factory=lambda: [0] * histogram.BUCKET_COUNT)

    def duration_ms(self, share: float) -> float | None:
        """The milliseconds that this share of the calls took at most; None without any calls."""
        duration_us = histogram.percentile(self.latency, share)
        return None if duration_us is None else duration_us / 1000

    def add_latency(self, counts: Sequence[int] | Mapping[int, int], sign: int) -> None:
        """Add or subtract a histogram: all of it, or some of its buckets."""
        items = counts.items() if isinstance(counts, Mapping) else enumerate(counts)
        for bucket, count in items:
            if count:
                self.latency[bucket] += sign * count


@dataclass(slots=True)
class ToolFigures:
    """A tool's figures in the range, and its number of calls by part."""

    name: str
    total: Figures
    calls: list[int]


@dataclass(slots=True)
class OverTime:
    """A range's figures in total, by part (`TimeRange.parts`), by tool, and of the range before."""

    of: TimeRange
    total: Figures
    previous: Figures
    parts: list[Figures]
    tools: dict[str, ToolFigures]
    before: list[Figures] = field(default_factory=list[Figures])
    """The range before by its parts, each of which is one length before a part; empty if it was
    not asked for, or is not cut at quarters of an hour."""


def over_time(of: TimeRange, *, with_parts_before: bool = False) -> OverTime:
    """The figures of a range. Two statements."""
    series = OverTime(of, Figures(), Figures(), [Figures() for _ in of.parts], {})
    earlier = [of.previous.start]
    if with_parts_before and of.has_parts_before:
        earlier = of.bounds_before
        series.before = [Figures() for _ in earlier]
    parameters = slot_parameters((*earlier, *of.bounds)) | {"current": len(earlier)}
    if not _has_cancelled(of.previous.start):
        parameters["cancelled_from"] = date.max
    for (
        slot,
        taken_from,
        sign,
        tool_name,
        number,
        buckets,
        in_buckets,
        *sums,
        slots,
        in_slots,
    ) in rows("figures_over_time", parameters | FORMULA):
        moved = (slot, 1), (taken_from, -1)
        if tool_name is None:
            latency = _latency(number, buckets, in_buckets)
            for place, times in moved:
                _add(series, place, times, sums, latency)
            continue
        tool = _tool(series, tool_name)
        if slot is None and taken_from is None:
            tool.total.add(sums, sign)
            tool.total.add_latency(_latency(number, buckets, in_buckets), sign)
            for place, calls in zip(slots or (), in_slots or (), strict=True):
                tool.calls[place - len(earlier)] += calls
            continue
        for place, times in moved:
            if place is not None and place >= len(earlier):
                tool.calls[place - len(earlier)] += times * (sums[0] + sums[1])
    return series


def started_calls(series: OverTime) -> dict[str, int]:
    """The calls of a range that started, by tool. Pure."""
    totals = {name: tool.total for name, tool in series.tools.items()}
    return {name: one.calls + one.open + one.cancelled for name, one in totals.items()}


def has_figures_before(instant: datetime) -> bool:
    """Whether calls were recorded before an instant's hour. One statement."""
    parameters = {"day": day_of(instant), "hour": instant}
    return bool(rows("figures_before", parameters))


def slot_parameters(bounds: Sequence[datetime]) -> dict[str, Any]:
    """The parameters of the parts in `sql/over_time.sql` for the slots between these instants."""
    bounds = [at.astimezone(UTC) for at in bounds]
    time_cells = cells(bounds)
    return {
        "start": bounds[0],
        "end": bounds[-1],
        "bounds": bounds,
        "current": 1,  # the first slot that is no part of the range before
        "first_day": day_of(bounds[0]),
        "cancelled_from": day_of(bounds[0]),
        "last_day": day_of(bounds[-1]),
        "cut_hours": list(time_cells.cut_hours),
        "quarters": [quarter.at for quarter in time_cells.quarters],
        "quarter_days": sorted({day_of(quarter.at) for quarter in time_cells.quarters}),
        "piece_starts": [piece.start for piece in time_cells.pieces],
        "piece_ends": [piece.end for piece in time_cells.pieces],
        "piece_slots": [piece.slot for piece in time_cells.pieces],
        "piece_taken_from": [piece.taken_from for piece in time_cells.pieces],
        "piece_days": sorted({day_of(piece.start) for piece in time_cells.pieces}),
    }


def _has_cancelled(since: datetime) -> bool:
    """Whether a call that started since an instant was cancelled. One statement, planned once."""
    return any(at >= since for (at,) in rows_prepared("newest_cancelled", {}))


def _add(
    series: OverTime,
    slot: int | None,
    times: int,
    sums: Sequence[int],
    latency: Mapping[int, int] | Sequence[int],
) -> None:
    """Add or subtract the sums and the histogram of a slot."""
    if slot is None:
        return
    earlier = len(series.before) or 1
    if slot >= earlier:
        counted = [series.total, series.parts[slot - earlier]]
    else:
        counted = [series.previous, *series.before[slot : slot + 1]]
    for figures in counted:
        figures.add(sums, times)
        figures.add_latency(latency, times)


def _latency(
    number: str | None, buckets: Sequence[int] | None, calls: Sequence[int] | None
) -> Mapping[int, int] | Sequence[int]:
    """Calls by bucket, from either of the two forms in which a row has them."""
    if number is not None:
        return histogram.from_number(number)
    return dict(zip(buckets or (), calls or (), strict=True))


def _tool(series: OverTime, name: str) -> ToolFigures:
    tool = series.tools.get(name)
    if tool is None:
        tool = ToolFigures(name, Figures(), [0] * len(series.parts))
        series.tools[name] = tool
    return tool


def day_of(instant: datetime) -> date:
    """The UTC day of an instant."""
    return instant.astimezone(UTC).date()
