"""Figures of the calls that a query selects. No sum knows them, so the calls are read one by one.

One walk over the calls of a range, newest first, within a budget. If the budget ends first, the
figures are of the calls since `searched_until`, and of none before.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime

from audit.queries.call_filter import OPEN, UNRUN, CallFilter, Text
from audit.queries.call_walk import QUERY_BUDGET, Budget, Walk
from audit.queries.latency import Latency, Spent, ToolFilter
from audit.queries.over_time import FORMULA, Counts, Figures, OverTime
from audit.queries.summary import Summary
from audit.queries.time_range import TimeRange
from audit.queries.unrun import Unrun
from audit.queries.violations import (
    ViolationFilter,
    Violations,
    range_parameters,
    summed_up,
)
from audit.sql.run import Row


@dataclass(slots=True)
class QueriedFigures:
    """The figures of matching calls."""

    latency: Latency
    """Completed calls, without those of the range before."""
    counts: Counts = field(default_factory=Counts)
    parts: list[Counts] = field(default_factory=list[Counts])
    """The same by part of the range."""
    unrun_parts: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Calls that did not run by state, each by part of the range."""
    unrun: Unrun = field(default_factory=Unrun)
    """Only of a query about decisions: others do not find calls that did not run."""
    searched_until: datetime | None = None
    """Set if the budget ended here: older calls were not read."""

    @property
    def over_time(self) -> OverTime:
        """The figures by part, as of a range without a query; without tools."""
        spent = self.latency
        parts = [
            Figures(**asdict(counts), latency=part.latency)
            for counts, part in zip(self.parts, spent.parts, strict=True)
        ]
        total = Figures(**asdict(self.counts), latency=spent.total.latency)
        return OverTime(spent.of, total, Figures(), parts, {})

    @property
    def summary(self) -> Summary:
        """The sums of all of them."""
        of, counts = self.latency.of, self.counts
        return Summary(
            start=of.start,
            end=of.end,
            calls=counts.calls,
            open=counts.open,
            cancelled=counts.cancelled,
            errors=counts.failed,
            violations=counts.violations,
            violating_calls=counts.violating,
            prompt_tokens=counts.prompt_tokens,
            completion_tokens=counts.completion_tokens,
            latency=tuple(self.latency.total.latency),
        )


@dataclass(frozen=True, slots=True)
class QueriedViolations:
    """The violations of the results of matching calls."""

    violations: Violations
    searched_until: datetime | None
    """Set if the budget ended here: older calls were not read."""


def figures_of_query(
    wanted: CallFilter, of: TimeRange, now: datetime, *, budget: Budget = QUERY_BUDGET
) -> QueriedFigures:
    """The figures of the calls of a range that match. The filter has no payload terms."""
    spent = Latency(of, ToolFilter(), Spent(), Spent(), [Spent() for _ in of.parts])
    figures = QueriedFigures(spent, parts=[Counts() for _ in of.parts])
    walk = Walk(wanted, now, budget)
    parameters = FORMULA | {"bounds": list(of.bounds)}
    for is_match, *group in walk.summed("calls_summed_before", parameters):
        if is_match:
            _add(figures, *group)
    figures.unrun.started = figures.counts.calls + figures.counts.open + figures.counts.cancelled
    figures.searched_until = walk.stopped.at if walk.stopped else None
    return figures


def violations_of_query(
    wanted: CallFilter,
    of: TimeRange,
    only: ViolationFilter,
    now: datetime,
    *,
    budget: Budget = QUERY_BUDGET,
) -> QueriedViolations:
    """The violations of the results of the calls of a range that match.

    `of_calls` counts matching calls. The filter has no payload terms.
    """
    only = replace(only, side="results")
    for member, value in (("tool", only.tool), ("version", only.version)):
        if value is not None:
            wanted = wanted.also(member, Text(value))
    parameters = range_parameters(of, only)
    sections = {"bounds": parameters["bounds"]} | {
        f"of_{name}": getattr(only, name) for name in ("code", "path", "outcome")
    }
    walk = Walk(wanted, now, budget)
    of_calls: dict[tuple[str, str], int] = {}
    summed: list[Row] = []
    for tool, version, path, *kind in walk.summed("violations_summed_before", sections):
        if path is None:
            of_calls[tool, version] = of_calls.get((tool, version), 0) + kind[5]
        else:
            summed += _kinds(tool, version, path, *kind[:-2])
    violations = summed_up(of, parameters, summed)
    for one in violations.kinds:
        one.of_calls = of_calls[one.tool_name, one.tool_version]
    return QueriedViolations(violations, walk.stopped.at if walk.stopped else None)


def _add(
    figures: QueriedFigures,
    tool: str,
    version: str,
    state: str,
    error: str | None,
    part: int,
    bucket: int | None,
    calls: int,
    prompt: int,
    completion: int,
    hits: int,
    violating: int,
    violations: int,
    *_: object,
) -> None:
    """Add the calls of a section that have all of these in common."""
    both = figures.counts, figures.parts[part]
    if state in UNRUN:
        figures.unrun.by_decision[state] = figures.unrun.by_decision.get(state, 0) + calls
        figures.unrun_parts.setdefault(state, [0] * len(figures.parts))[part] += calls
    elif state in OPEN:
        for counts in both:
            counts.open += calls
    elif state == "cancelled":
        for counts in both:
            counts.cancelled += calls
    else:
        failed = calls if state == "failed" else 0
        sums = (calls - failed, failed, 0, violating, violations, int(prompt), int(completion), 0)
        for counts in both:
            counts.add(sums, 1)
        spent = figures.latency
        of_version = spent.versions.setdefault((tool, version), Spent())
        in_bucket = {} if bucket is None else {bucket: calls}
        for one in (spent.total, spent.parts[part], of_version):
            one.add((calls, failed, prompt, completion, hits), in_bucket, 1)
        if error is not None:
            spent.errors[tool, error] = spent.errors.get((tool, error), 0) + calls


def _kinds(
    tool: str,
    version: str,
    path: str,
    code: str,
    strategy: str,
    outcome: str,
    part: int,
    *sums: object,
) -> Iterator[Row]:
    """A row of a section as the two rows of `violation_kinds` that it is counted in."""
    yield ("results", tool, version, path, code, None, None, part, *sums)
    yield ("results", tool, None, None, code, strategy, outcome, None, *sums)
