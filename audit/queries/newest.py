"""Figures of a range that need single calls: computed from its newest calls only.

Limits compared with usage, upstream responses, retries, routing and sources are in the calls and
in the log, not in stored sums. The number of calls is limited, so that a page takes only a moment.
Each answer says how many calls it covers, and since when.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from audit.events.end_meta import Ended, EndMetadata, summarize
from audit.log.payload import read_events
from audit.queries.latency import ToolFilter
from audit.queries.retries import (
    Attempt,
    Refusal,
    Wait,
    waits,
)
from audit.queries.time_range import TimeRange
from audit.sql.run import rows
from tenants.scope import current_tenant_id

CALLS = 20_000
"""Calls whose limits, responses and retries are analyzed."""
TRACES = 20_000
"""Traces whose tokens are summed up by run."""
ENDS = 1_000
"""End events that are read from the log."""
WAITS, LATER = 500, 5_000
_RUNS = 8
_DAY = timedelta(days=1)

BANDS = ("up to 50 %", "50 to 90 %", "90 to 100 %", "more than 100 %")
"""How much of a limit was used."""


@dataclass(slots=True)
class Limit:
    """How much of their limit the calls of a tool used."""

    bands: list[int] = field(default_factory=lambda: [0] * len(BANDS))
    """Calls by the part of the limit that they used: `BANDS`."""
    low: int | None = None
    """The smallest limit of a call; `high` is the largest."""
    high: int | None = None
    most: int | None = None
    """The highest usage by a call."""

    @property
    def calls(self) -> int:
        """Calls that had a limit."""
        return sum(self.bands)

    @property
    def over(self) -> int:
        """Calls that used more than their limit."""
        return self.bands[-1]

    def add(self, band: int, count: int, low: int, high: int, most: int) -> None:
        """Add calls of one band."""
        self.bands[band] += count
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)
        self.most = most if self.most is None else max(self.most, most)


@dataclass(slots=True)
class ToolSpent:
    """A tool's newest calls. Timeouts are milliseconds, `timeout.most` is microseconds."""

    calls: int = 0
    retries: int = 0
    """Calls that say they are not the first attempt."""
    retried_well: int = 0
    """Retries that succeeded."""
    timeout: Limit = field(default_factory=Limit)
    budget: Limit = field(default_factory=Limit)
    upstream: dict[tuple[str, int], int] = field(default_factory=dict)
    """Failed calls by error type and upstream status."""


@dataclass(frozen=True, slots=True)
class RunTokens:
    """The tokens of a run in the analyzed traces. `run_id` is '' for traces without a run."""

    run_id: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    first_at: datetime

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(slots=True)
class Newest:
    """Figures from the newest calls of a range."""

    calls: int
    """How many were analyzed. Fewer than `CALLS` means all calls of the range."""
    since: datetime | None
    """When the first of them started."""
    tools: dict[str, ToolSpent]
    waits: list[Wait]
    runs: list[RunTokens]
    traces: int
    traces_since: datetime | None
    end_metadata: EndMetadata
    end_metadata_since: datetime | None

    @property
    def is_all(self) -> bool:
        """Whether they are all calls of the range."""
        return self.calls < CALLS


def newest(of: TimeRange, wanted: ToolFilter) -> Newest:
    """Analyze the newest calls of a range. Five statements, and one to the log."""
    parameters = {
        **wanted.parameters,
        "start": of.start,
        "end": of.end,
        "first_day": of.start.astimezone(UTC).date(),
        "last_day": of.end.astimezone(UTC).date(),
        "call_limit": CALLS,
    }
    tools: dict[str, ToolSpent] = {}
    firsts: list[datetime] = []
    for row in rows("newest_spent", parameters):
        firsts.append(row[8])
        _add(tools.setdefault(row[0], ToolSpent()), *row[1:8], *row[9:])
    runs, traces, traces_since = _runs(of, wanted, parameters)
    end_metadata, end_metadata_since = _end_metadata(parameters)
    return Newest(
        calls=sum(tool.calls for tool in tools.values()),
        since=min(firsts, default=None),
        tools=tools,
        waits=_waits(parameters),
        runs=runs,
        traces=traces,
        traces_since=traces_since,
        end_metadata=end_metadata,
        end_metadata_since=end_metadata_since,
    )


def _add(
    tool: ToolSpent,
    state: str,
    error_type: str,
    upstream_status: int | None,
    is_retry: bool,
    timeout_band: int | None,
    budget_band: int | None,
    count: int,
    *limits: Any,
) -> None:
    tool.calls += count
    tool.retries += count * is_retry
    tool.retried_well += count * (is_retry and state == "ok")
    timeout_low, timeout_high, longest, budget_low, budget_high, most = limits
    if timeout_band is not None:
        tool.timeout.add(timeout_band, count, timeout_low, timeout_high, longest)
    if budget_band is not None:
        tool.budget.add(budget_band, count, budget_low, budget_high, int(most))
    if state == "failed" and upstream_status is not None:
        key = error_type, upstream_status
        tool.upstream[key] = tool.upstream.get(key, 0) + count


def _waits(parameters: dict[str, Any]) -> list[Wait]:
    refusals = [Refusal(*row) for row in rows("newest_waits", parameters | {"wait_limit": WAITS})]
    if not refusals:
        return []
    ends = {one.ended_at.astimezone(UTC).date() for one in refusals}
    later = rows(
        "calls_after_waits",
        {
            "days": sorted(ends | {day + _DAY for day in ends}),
            "trace_ids": sorted({one.trace_id for one in refusals}),
            "tool_names": sorted({one.tool_name for one in refusals}),
            "first_at": min(one.ended_at for one in refusals),
            "later_limit": LATER,
        },
    )
    return waits(refusals, [Attempt(*row) for row in later])


def _runs(
    of: TimeRange, wanted: ToolFilter, parameters: dict[str, Any]
) -> tuple[list[RunTokens], int, datetime | None]:
    """The costliest runs, how many traces were read, and since when; empty for a single tool."""
    if wanted.tool is not None:
        return [], 0, None
    run_rows = rows("tokens_by_run", parameters | {"trace_limit": TRACES, "limit": _RUNS})
    runs = [
        RunTokens(run_id, calls, int(prompt), int(completion), first_at)
        for run_id, calls, prompt, completion, first_at, _, _ in run_rows
        if run_id is not None
    ]
    return runs, int(run_rows[0][5]) if run_rows else 0, run_rows[0][6] if run_rows else None


def _end_metadata(parameters: dict[str, Any]) -> tuple[EndMetadata, datetime | None]:
    end_rows = rows("newest_ends", parameters | {"call_limit": ENDS})
    events = read_events(current_tenant_id(), [(row[4], row[5]) for row in end_rows])

    def ends() -> Iterator[Ended]:
        for tool_name, duration_us, tokens, _, batch_id, position in end_rows:
            event = events.get((batch_id, position))
            yield Ended(tool_name, duration_us, int(tokens), event.raw if event else None)

    return summarize(ends()), min((row[3] for row in end_rows), default=None)
