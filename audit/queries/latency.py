"""Durations, tokens and errors of a range, by tool and version.

Counts are exact for any range in any time zone. Percentiles have the 5 % error of
`audit.index.histogram`, as in `audit.queries.over_time`. Figures that need single calls are in
`audit.queries.newest`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from audit.index import histogram
from audit.queries.hour_cells import whole_hours
from audit.queries.over_time import FORMULA, day_of, slot_parameters
from audit.queries.time_range import TimeRange
from audit.sql.run import rows
from tenants.actions import storable_text

SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
"""The percentiles that pages and exports show."""

_MAX_VALUE = 600
"""Maximum characters of a filter's value. No column holds that many."""


@dataclass(frozen=True, slots=True)
class ToolFilter:
    """Which calls. None means any; '' as version means calls that name none."""

    tool: str | None = None
    version: str | None = None

    @classmethod
    def read(cls, params: Mapping[str, str]) -> "ToolFilter":
        """The filter in an address. Values are exact; what no column can hold matches nothing."""

        def text(name: str) -> str | None:
            value = params.get(name)
            if value is None or (not value and name != "version"):
                return None
            return storable_text(value)[:_MAX_VALUE]

        return cls(text("tool"), text("version"))

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the part `of_tool` of `sql/latency.sql`."""
        return {"tool": self.tool, "version": self.version}


@dataclass(slots=True)
class Spent:
    """Completed calls: how many, how long they took, and the tokens they used."""

    calls: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cache_hits: int = 0
    latency: list[int] = field(default_factory=lambda: [0] * histogram.BUCKET_COUNT)

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def cache_share(self) -> float | None:
        """The share of calls that a cache answered; None without any call."""
        return self.cache_hits / self.calls if self.calls else None

    def duration_ms(self, share: float) -> float | None:
        """The milliseconds that this share of the calls took at most; None without any calls."""
        duration_us = histogram.percentile(self.latency, share)
        return None if duration_us is None else duration_us / 1000

    def add(self, sums: Sequence[Any], counts: Mapping[int, int], sign: int) -> None:
        """Add or subtract a row of `latency_by_version`: its sums and its calls by bucket."""
        calls, failed, prompt, completion, hits = sums
        self.calls += sign * calls
        self.failed += sign * failed
        self.prompt_tokens += sign * int(prompt)
        self.completion_tokens += sign * int(completion)
        self.cache_hits += sign * hits
        for bucket, count in counts.items():
            self.latency[bucket] += sign * count


@dataclass(slots=True)
class Latency:
    """The figures of a range, in total and by part (`TimeRange.parts`), and of the range before."""

    of: TimeRange
    wanted: ToolFilter
    total: Spent
    previous: Spent
    parts: list[Spent]
    versions: dict[tuple[str, str], Spent] = field(default_factory=dict)
    """By tool and version ('' if calls name none)."""
    errors: dict[tuple[str, str], int] = field(default_factory=dict)
    """Failed calls by tool and error type ('' if the error has none)."""
    before: list[Spent] = field(default_factory=list[Spent])
    """The range before by its parts, as of `OverTime`."""


def latency(of: TimeRange, wanted: ToolFilter, *, with_parts_before: bool = False) -> Latency:
    """The figures of a range. One statement."""
    result = Latency(of, wanted, Spent(), Spent(), [Spent() for _ in of.parts])
    earlier = [of.previous.start]
    if with_parts_before and of.has_parts_before:
        earlier = of.bounds_before
        result.before = [Spent() for _ in earlier]
    current = len(earlier)
    parameters = slot_parameters((*earlier, *of.bounds)) | edge_parameters(of)
    parameters["current"] = current
    for row in rows("latency_by_version", parameters | wanted.parameters | FORMULA):
        slot, taken_from, sign, tool, version, error, number, buckets, bucket_calls, *sums = row
        if error is not None:
            result.errors[tool, error] = sums[1]
            continue
        counts = _counts(number) if number else dict(zip(buckets, bucket_calls, strict=True))
        if version is not None:
            result.versions.setdefault((tool, version), Spent()).add(sums, counts, sign)
            continue
        for place, way in ((slot, 1), (taken_from, -1)):
            if place is None:
                continue
            if place < current:
                counted = [result.previous, *result.before[place : place + 1]]
            else:
                counted = [result.total, result.parts[place - current]]
            for spent in counted:
                spent.add(sums, counts, way)
    result.versions = {key: spent for key, spent in result.versions.items() if spent.calls}
    result.errors = {key: count for key, count in result.errors.items() if count}
    return result


def edge_parameters(of: TimeRange) -> dict[str, Any]:
    """Parameters of `latency_by_version` for failed calls: the whole hours and the two ends."""
    first, end = whole_hours(of.start, of.end)
    return {
        "whole_from": first,
        "whole_to": end,
        "whole_from_day": day_of(first),
        "whole_to_day": day_of(end),
        "edge_starts": [of.start, end],
        "edge_ends": [first, of.end],
        "edge_days": sorted({day_of(at) for at in (of.start, first, end, of.end)}),
    }


def _counts(number: str) -> dict[int, int]:
    """The calls by bucket of a stored histogram, without empty buckets."""
    return {n: count for n, count in enumerate(histogram.from_number(number)) if count}
