"""Durations and tokens by tool and version, and figures that need single calls."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.events.end_meta import Route, Routed
from audit.exports.latency import FORMS, documents
from audit.pages.latency.page import (
    ORDERS,
    LimitRow,
    SourceRow,
    VersionRow,
    charts,
    error_rows,
    limit_rows,
    order_keys,
    source_rows,
    tiles,
    upstream_rows,
    version_rows,
    within_query,
)
from audit.pages.show.active_filters import active_filters
from audit.pages.show.figures_file import figures_file
from audit.pages.show.range_bar import invalid_range, range_bar, requested_range
from audit.pages.show.saved_views import opens_with
from audit.queries.alerts import fired_in
from audit.queries.costs import Cost, costs_over_time
from audit.queries.latency import SHARES, Spent, ToolFilter, latency
from audit.queries.newest import newest
from audit.queries.over_time import has_figures_before
from audit.queries.published import published_in
from audit.queries.token_costs import token_costs_over_time
from audit.show.charts import range_query, with_thresholds
from audit.show.costs import cost_facts
from config.http.htmx import render_page
from config.http.ordering import Key, in_order, requested_order, sorted_table
from tenants.access import TenantRequest, tenant_page

ROWS_SHOWN = 100
ERRORS_SHOWN = 8
LIMITS_SHOWN, ROUTES_SHOWN, SOURCES_SHOWN, EARLY_SHOWN = 12, 12, 12, 8
FILTERS = {"tool": "Tool", "version": "Version"}
_LIMITS: Mapping[str, Key[LimitRow]] = {
    "tool": lambda row: row.tool,
    "limit": lambda row: row.limit.high,
    "most": lambda row: row.limit.most,
    "over": lambda row: row.limit.over,
}
_ROUTES: Mapping[str, Key[tuple[Route, Routed]]] = {
    "tool": lambda row: row[0].tool_name,
    "profile": lambda row: row[0].profile or None,
    "space": lambda row: row[0].space or None,
    "calls": lambda row: row[1].calls,
    "p50": lambda row: row[1].duration_ms(0.5),
    "p95": lambda row: row[1].duration_ms(0.95),
}
_SOURCES: Mapping[str, Key[SourceRow]] = {
    "tool": lambda row: row.tool,
    "source": lambda row: row.name,
    "calls": lambda row: row.source.calls,
    "results": lambda row: row.source.results,
    "mean": lambda row: row.source.mean,
}
"""The columns by which limits, routes and sources are sorted."""


class PricedRow(NamedTuple):
    """A tool or a version, and what its calls cost; None without prices."""

    row: VersionRow
    cost: Cost | None


@require_safe
@tenant_page()
def latency_page(request: TenantRequest) -> HttpResponseBase:
    """Show durations and tokens of the URL's range."""
    if default := opens_with(request, "latency"):
        return redirect(default)
    now = timezone.now()
    requested, wanted = requested_range(request, now), ToolFilter.read(request.GET)
    if requested.problem:
        return invalid_range(request, requested, "latency/latency.html", "Latency & tokens")
    order = requested_order(request, ORDERS, "p95")
    range_figures = latency(requested.range, wanted, with_parts_before=True)
    before = range_figures.previous.calls > 0 and has_figures_before(requested.range.previous.start)
    if not before:  # what was recorded in part only would look like a rise
        range_figures.before, range_figures.previous = [], Spent()
    ordered = in_order(version_rows(range_figures), order_keys(), order)
    errors = error_rows(range_figures)
    costs = costs_over_time(requested.range, wanted.tool)
    of_version = (
        {(one.tool, one.version): one.cost for tool in costs.tools for one in tool.versions}
        if costs
        else {}
    )
    models = None if wanted.tool else token_costs_over_time(requested.range)
    context: dict[str, Any] = {
        **range_bar(request, requested),
        "range_figures": range_figures,
        "tiles": tiles(range_figures, is_comparable=before),
        "is_comparable": before,
        "charts": with_thresholds(
            charts(
                range_figures,
                fired_in(requested.range, wanted.tool),
                published_in(requested.range, wanted.tool),
            ),
            request.GET.dict(),
        )
        if range_figures.total.calls
        else {},
        "currency": costs and costs.currency,
        "costs": cost_facts(None if wanted.version else costs, models),
        "rows": [
            PricedRow(row, of_version.get((row.tool, row.version))) for row in ordered[:ROWS_SHOWN]
        ],
        "more_rows": len(ordered) - ROWS_SHOWN,
        "errors": errors[:ERRORS_SHOWN],
        "more_errors": len(errors) - ERRORS_SHOWN,
        "percentiles": tuple(SHARES),
        "order": order,
        "within": within_query(requested.range, wanted),
        "filters": active_filters(wanted, FILTERS),
        "exports": tuple(FORMS),
    }
    return render_page(request, "latency/latency.html", "latency", context)


@require_safe
@tenant_page()
def latency_newest(request: TenantRequest) -> HttpResponse:
    """Show figures that need single calls, from the newest calls of the range."""
    now = timezone.now()
    requested, wanted = requested_range(request, now), ToolFilter.read(request.GET)
    if requested.problem:
        heading = "Latency & tokens: newest calls"
        template = "latency/latency_newest.html"
        return invalid_range(request, requested, template, heading, has_picker=False)
    details = newest(requested.range, wanted)
    within = within_query(requested.range, wanted)
    # `within` may already name a single tool, and a term must not occur twice.
    by_tool = range_query(requested.range.start, requested.range.end)
    retried = sorted(
        ((name, tool) for name, tool in details.tools.items() if tool.retries),
        key=lambda item: (-item[1].retries, item[0]),
    )
    early = [one for one in details.waits if one.verdict == "early"]
    page = reverse("latency_newest")  # the figures are a part of another page, too
    verdicts = [one.verdict for one in details.waits]
    routes = sorted(details.end_metadata.routes.items(), key=lambda item: item[0].tool_name)
    context: dict[str, Any] = {
        "range": requested.range,
        "requested": requested,
        "details": details,
        "within": within,
        "by_tool": by_tool,
        "timeouts": sorted_table(
            request,
            limit_rows(details.tools, "timeout", by_tool),
            _LIMITS,
            "over",
            "sort-timeouts",
            most=LIMITS_SHOWN,
            page=page,
        ),
        "budgets": sorted_table(
            request,
            limit_rows(details.tools, "budget", by_tool),
            _LIMITS,
            "over",
            "sort-budgets",
            most=LIMITS_SHOWN,
            page=page,
        ),
        "retried": retried[:ERRORS_SHOWN],
        "verdicts": {name: verdicts.count(name) for name in ("waited", "early", "none")},
        "early": early[:EARLY_SHOWN],
        "upstream": upstream_rows(details.tools, by_tool)[:ERRORS_SHOWN],
        "routes": sorted_table(
            request, routes, _ROUTES, "calls", "sort-routes", most=ROUTES_SHOWN, page=page
        ),
        "sources": sorted_table(
            request,
            source_rows(details.end_metadata.sources),
            _SOURCES,
            "calls",
            "sort-sources",
            most=SOURCES_SHOWN,
            page=page,
        ),
        "most_tokens": max((run.tokens for run in details.runs), default=0),
    }
    return render_page(request, "latency/latency_newest.html", "newest", context)


@require_safe
@tenant_page()
def latency_export(request: TenantRequest, kind: str) -> HttpResponse:
    """Export every tool and version of the range as NDJSON or CSV. The audit log records it."""
    return figures_file(
        request,
        kind,
        FORMS,
        lambda of: documents(latency(of, ToolFilter.read(request.GET))),
        of="latency",
        action="latency.export",
    )
