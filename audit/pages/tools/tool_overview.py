"""The overview of a tool: its calls, failures, durations and violations, by version and caller."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.pages.show.range_bar import invalid_range, range_bar, requested_range
from audit.queries.agents import AgentFigures, agents_of_query
from audit.queries.alerts import Fired, fired_in
from audit.queries.call_filter import CallFilter, Text
from audit.queries.call_query import quoted
from audit.queries.call_walk import Budget
from audit.queries.costs import costs_over_time
from audit.queries.latency import Latency, Spent, ToolFilter, latency
from audit.queries.over_time import has_figures_before
from audit.queries.time_range import TimeRange
from audit.queries.violations import (
    ViolationFilter,
    Violations,
    violations,
    violations_before,
)
from audit.show import figures
from audit.show.charts import (
    MARKED,
    Chart,
    Kind,
    Series,
    Unit,
    alert_marks,
    range_query,
    time_slots,
    value_text,
    with_thresholds,
)
from audit.show.costs import cost_facts
from audit.show.text import plain
from audit.show.tiles import Tile, points, relative, tokens_tile
from config.http.htmx import render_page
from config.http.ordering import Key, in_order, requested_order, sorted_table
from tenants.access import TenantRequest, tenant_page
from tools_registry.models import Tool
from tools_registry.versions import versions_named

VERSIONS_SHOWN = 50
CALLERS_SHOWN = 20
ERRORS_SHOWN = 8
_CALLERS_BUDGET = Budget(rows=20_000, seconds=0.2)
"""How many of the tool's newest calls are read to count its callers."""


@dataclass(frozen=True, slots=True)
class VersionRow:
    """Calls of a version of the tool in the range."""

    version: str
    """As the calls report it; '' if they report none."""
    address: str
    """Its page in the registry; '' if it is not registered."""
    number: int | None
    spent: Spent
    violations: int
    query: str
    """The query for its calls."""

    @property
    def error_rate(self) -> float:
        """The share of its calls that failed."""
        return self.spent.failed / self.spent.calls

    @property
    def p50_ms(self) -> float | None:
        """The median duration in milliseconds."""
        return self.spent.duration_ms(0.5)

    @property
    def p95_ms(self) -> float | None:
        """The same for the 95th percentile."""
        return self.spent.duration_ms(0.95)


_ORDERS: dict[str, Callable[[VersionRow], Any]] = {
    "version": lambda row: row.number,
    "calls": lambda row: row.spent.calls,
    "failed": lambda row: row.error_rate,
    "violations": lambda row: row.violations,
    "p50": lambda row: row.p50_ms,
    "p95": lambda row: row.p95_ms,
}
"""The columns by which versions are sorted."""


class Caller(NamedTuple):
    """The calls of an agent, and the query for them."""

    figures: AgentFigures
    query: str


_CALLERS: Mapping[str, Key[Caller]] = {
    "agent": lambda row: row.figures.name or None,
    "calls": lambda row: row.figures.calls,
    "failed": lambda row: row.figures.failed,
    "refused": lambda row: row.figures.refused,
    "p95": lambda row: row.figures.p95_us,
    "latest": lambda row: row.figures.last_at,
}
"""The columns by which callers are sorted."""


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """Failed calls of the tool with one type of error."""

    error_type: str
    calls: int
    query: str


@require_safe
@tenant_page()
def tool_overview(request: TenantRequest, pk: UUID) -> HttpResponse:
    """Show how a tool was called in the URL's range."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    now = timezone.now()
    requested = requested_range(request, now)
    if requested.problem:
        return invalid_range(request, requested, "tools/tool_overview.html", plain(tool.name))
    of = requested.range
    spent = latency(of, ToolFilter(tool.name), with_parts_before=True)
    broken = violations(of, ViolationFilter(tool=tool.name))
    is_comparable = spent.previous.calls > 0 and has_figures_before(of.previous.start)
    if not is_comparable:  # what was recorded in part only would look like a rise
        spent.before = []
    elif broken.total:
        broken.before = violations_before(of, ViolationFilter(tool=tool.name))
    within = f"{range_query(of.start, of.end)} tool:{quoted(tool.name)}"
    versions = version_rows(request.tenant.id, tool, spent, broken, within)
    order = requested_order(request, _ORDERS, "calls")
    callers, searched_until = _callers(tool, of)
    errors = error_rows(spent, within)
    context: dict[str, Any] = {
        **range_bar(request, requested),
        "tool": tool,
        "within": within,
        "is_comparable": is_comparable,
        "tiles": tiles(spent, broken, within, is_comparable=is_comparable),
        "charts": with_thresholds(
            charts(spent, broken, tool.name, fired_in(of, tool.name)), request.GET.dict()
        ),
        "costs": cost_facts(costs_over_time(of, tool.name), None),
        "order": order,
        "versions": in_order(versions, _ORDERS, order)[:VERSIONS_SHOWN],
        "more_versions": len(versions) - VERSIONS_SHOWN,
        "callers": sorted_table(
            request,
            [Caller(each, _of_agent(within, each)) for each in callers],
            _CALLERS,
            "calls",
            "sort-callers",
            most=CALLERS_SHOWN,
        ),
        "more_callers": len(callers) - CALLERS_SHOWN,
        "searched_until": searched_until,
        "errors": errors[:ERRORS_SHOWN],
        "more_errors": len(errors) - ERRORS_SHOWN,
        "violation_total": broken.total,
    }
    return render_page(request, "tools/tool_overview.html", "overview", context)


def tiles(spent: Latency, broken: Violations, within: str, *, is_comparable: bool) -> list[Tile]:
    """The headline figures, compared only if the range before is whole. Pure."""
    now, parts = spent.total, spent.of.whole(spent.parts)
    before = spent.previous if is_comparable else Spent()
    p50, p95, p99 = (now.duration_ms(share) for share in (0.5, 0.95, 0.99))
    slow = f"{within} duration:>={round(p95 * 1000)}us" if p95 is not None else within
    return [
        Tile(
            name="Calls",
            value=figures.count(now.calls),
            query=within,
            note="completed",
            note_query="",
            change=relative(now.calls, before.calls, "count"),
            tone="accent",
            course=[part.calls for part in parts],
        ),
        Tile(
            name="Failed",
            value=figures.share(_error_rate(now)),
            query=f"{within} state:failed",
            note=figures.counted(now.failed, "call"),
            note_query="",
            change=points(_error_rate(now), _error_rate(before)),
            tone="failed",
            course=[_error_rate(part) for part in parts],
        ),
        Tile(
            name="Schema violations",
            value=figures.count(broken.total),
            query=f"{within} violation:*",
            note=figures.counted(len(broken.kinds), "kind"),
            note_query="",
            change=None,
            tone="violation",
            course=spent.of.whole(_violations_by_part(broken)),
        ),
        Tile(
            name="p50 · p95",
            value=f"{value_text(p50, 'duration')} · {value_text(p95, 'duration')}" if p50 else "—",
            query=slow,
            note=f"p99 {value_text(p99, 'duration')}" if p99 else "",
            note_query="",
            change=relative(p95, before.duration_ms(0.95), "duration", more_is="worse"),
            tone="accent",
            course=[part.duration_ms(0.95) for part in parts],
        ),
        tokens_tile(now, before, parts, within),
    ]


def charts(
    spent: Latency, broken: Violations, tool_name: str, fired: Sequence[Fired] = ()
) -> dict[str, Chart]:
    """The charts over time by name: calls by result, durations, violations. Pure.

    The range before, if its parts are known, is a line.
    """
    slots, per, of_tool = time_slots(spent.of), f"per {spent.of.step_name}", quoted(tool_name)
    parts = spent.parts

    def series(name: str, tone: str, values: Sequence[float | None], term: str) -> Series:
        return Series(name, tone, values, f"tool:{of_tool} {term}".strip())

    durations = [
        series(name, tone, [part.duration_ms(share) for part in parts], "")
        for name, tone, share in (
            ("p50", "accent", 0.5),
            ("p95", "accent-2", 0.95),
            ("p99", "accent-3", 0.99),
        )
    ]
    before = spent.before
    durations += Series.earlier(spent.of, [part.duration_ms(0.95) for part in before], "p95")
    calls = [
        series("Failed", "failed", [part.failed for part in parts], "state:failed"),
        series("OK", "ok", [part.calls - part.failed for part in parts], "state:ok"),
        *Series.earlier(spent.of, [part.calls for part in before]),
    ]
    violating = [
        series("Violations", "violation", _violations_by_part(broken), "violation:*"),
        *Series.earlier(spent.of, broken.before),
    ]
    kept: tuple[tuple[str, str, Kind, Unit, list[Series], str], ...] = (
        ("calls", "Calls by result", "bars", "count", calls, "errors"),
        ("latency", "Duration", "lines", "duration", durations, "latency"),
        ("violations", "Violations", "bars", "count", violating, "violations"),
    )
    return {
        name: Chart(
            id=name,
            marks=alert_marks(spent.of, fired, MARKED[watched]),
            title=title,
            kind=kind,
            unit=unit,
            slots=slots,
            series=lines,
            note=per,
        )
        for name, title, kind, unit, lines, watched in kept
    }


def version_rows(
    tenant_id: UUID, tool: Tool, spent: Latency, broken: Violations, within: str
) -> list[VersionRow]:
    """The versions that calls reported, most calls first. At most one statement."""
    by_version = Counter[str]()
    for kind in broken.kinds:
        by_version[kind.tool_version] += kind.violations
    named = versions_named(tenant_id, ((tool.name, version) for _, version in spent.versions))
    rows = []
    for (_, version), one in spent.versions.items():
        registered = named.get((tool.name, version))
        rows.append(
            VersionRow(
                version=version,
                address=registered.get_absolute_url() if registered else "",
                number=registered.number if registered else None,
                spent=one,
                violations=by_version[version],
                query=f"{within} version:{quoted(version)}",
            )
        )
    return sorted(rows, key=lambda row: (-row.spent.calls, row.version))


def error_rows(spent: Latency, within: str) -> list[ErrorRow]:
    """The tool's failed calls by type of error, most frequent first. Pure."""
    ordered = sorted(spent.errors.items(), key=lambda item: (-item[1], item[0]))
    return [
        ErrorRow(
            error_type,
            calls,
            f"{within} state:failed" + (f" error:{quoted(error_type)}" if error_type else ""),
        )
        for (_, error_type), calls in ordered
    ]


def _callers(tool: Tool, of: TimeRange) -> tuple[list[AgentFigures], Any]:
    """The agents that called the tool, and until when was searched; None: everything was."""
    wanted = CallFilter(tool=Text(tool.name), since=of.start, until=of.end)
    agents, until = agents_of_query(wanted, of, of.end, budget=_CALLERS_BUDGET)
    return [each.total for each in agents], until


def _of_agent(within: str, one: AgentFigures) -> str:
    return f"{within} agent:{quoted(one.name)}" if one.name else f"{within} NOT agent:*"


def _violations_by_part(broken: Violations) -> list[float | None]:
    totals = [0.0 for _ in broken.of.parts]
    for kind in broken.kinds:
        for n, value in enumerate(kind.course):
            totals[n] += value or 0
    return list(totals)


def _error_rate(spent: Spent) -> float | None:
    return spent.failed / spent.calls if spent.calls else None
