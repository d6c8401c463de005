"""The overview: failures, durations, cost, and whether any event was lost."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.pages.calls.call_list import CallRow, call_rows
from audit.pages.first_steps.guide import guide
from audit.pages.show.range_bar import invalid_range, range_bar, requested_range
from audit.queries.alerts import fired_in
from audit.queries.call_list import call_page
from audit.queries.call_query import parse
from audit.queries.call_walk import Budget
from audit.queries.costs import costs_over_time
from audit.queries.losses import losses
from audit.queries.over_time import OverTime, has_figures_before, over_time, started_calls
from audit.queries.published import published_in
from audit.queries.token_costs import token_costs_over_time
from audit.queries.unrun import Unrun, unrun_calls
from audit.queries.violations import new_violations
from audit.show import tiles
from audit.show.charts import range_query, with_thresholds
from audit.show.costs import cost_tile, token_tile
from config.http.htmx import render_page
from config.http.ordering import Key, in_order, requested_order, sorted_table
from tenants.access import TenantRequest, tenant_page

FAILURES_SHOWN = 6
VIOLATIONS_SHOWN = 6
UNRUN_SHOWN = 8
_ORDERS: dict[str, Callable[[tiles.ToolRow], Any]] = {
    "worst": lambda row: 0,
    "tool": lambda row: row.name,
    "calls": lambda row: row.calls,
    "failed": lambda row: row.error_rate,
    "violations": lambda row: row.violation_rate,
    "p50": lambda row: row.p50_ms,
    "p95": lambda row: row.p95_ms,
}
"""The columns by which tools are sorted; at first those with the most failures and violations."""
_UNRUN: Mapping[str, Key[tuple[str, Unrun]]] = {
    "tool": lambda row: row[0],
    "asked": lambda row: row[1].asked_for,
    "refused": lambda row: row[1].refusal_rate,
    "awaiting": lambda row: row[1].awaiting,
    "approved": lambda row: row[1].approved,
}
"""The columns by which tools with calls that did not run are sorted; at first by such calls."""
_LIST_BUDGET = Budget(rows=20_000, seconds=0.02)


@require_safe
@tenant_page()
def home(request: TenantRequest) -> HttpResponse:
    """Show the figures of the URL's range, each compared with the range before."""
    now = timezone.now()
    requested = requested_range(request, now)
    if requested.problem:
        return invalid_range(request, requested, "overview/overview.html", "Overview")
    range_figures = over_time(requested.range, with_parts_before=True)
    before = range_figures.previous.calls > 0 and has_figures_before(requested.range.previous.start)
    unrun = unrun_calls(requested.range.start, requested.range.end, started_calls(range_figures))
    within = range_query(requested.range.start, requested.range.end)
    order = requested_order(request, _ORDERS, "worst")
    shown_tiles = tiles.tiles(range_figures, is_comparable=before)
    if not before:  # what was recorded in part only would look like a rise
        range_figures.before = []
    if costs := costs_over_time(requested.range):
        shown_tiles.append(cost_tile(costs, is_comparable=before))
    if models := token_costs_over_time(requested.range):
        shown_tiles.append(token_tile(models, requested.range, is_comparable=before))
    context: dict[str, Any] = {
        **range_bar(request, requested),
        "range_figures": range_figures,
        "within": within,
        "tiles": shown_tiles,
        "is_comparable": before,
        "charts": with_thresholds(
            tiles.charts(range_figures, fired_in(requested.range), published_in(requested.range)),
            request.GET.dict(),
        ),
        "unrun": unrun.total,
        "unrun_tools": sorted_table(
            request, unrun.tools.items(), _UNRUN, "", "sort-unrun", most=UNRUN_SHOWN
        ),
        "more_unrun_tools": max(0, len(unrun.tools) - UNRUN_SHOWN),
        "order": order,
        "tools": in_order(tiles.worst_first(range_figures), _ORDERS, order)[: tiles.TOOLS_SHOWN],
        "failures": _latest_failures(request, range_figures, now),
        "new_violations": new_violations(
            requested.range,
            limit=VIOLATIONS_SHOWN,
            has_decisions=unrun.newest_decision is not None,
        ),
        "losses": losses(requested.range, now),
        "is_empty": not unrun.total.asked_for and not has_figures_before(now + timedelta(days=3)),
    }
    if context["is_empty"]:
        context |= guide(request, now)
    return render_page(request, "overview/overview.html", "overview", context)


def _latest_failures(
    request: TenantRequest, range_figures: OverTime, now: datetime
) -> list[CallRow]:
    """Return the newest failed calls. The search starts in the newest part that has any."""
    part = tiles.last_part_with_failures(range_figures.parts)
    if part is None:
        return []
    wanted = parse("state:failed").wanted
    page = call_page(
        replace(wanted, since=range_figures.of.start, until=range_figures.of.parts[part][1]),
        now=now,
        size=FAILURES_SHOWN,
        budget=_LIST_BUDGET,
    )
    return call_rows(request, "overview", page.calls, now)
