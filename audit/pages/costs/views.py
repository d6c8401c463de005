"""The page of costs."""

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.exports.costs import FORMS, documents
from audit.pages.show.figures_file import figures_file
from audit.pages.show.range_bar import invalid_range, range_bar, requested_range
from audit.pages.show.saved_views import opens_with
from audit.queries.agents import CALLS_MAX
from audit.queries.costs import CALLS_MAX as READ_MAX
from audit.queries.costs import LISTED, costs_by_dimension, costs_over_time
from audit.queries.over_time import has_figures_before
from audit.queries.price_lists import all_lists, percent_counted
from audit.queries.token_costs import token_costs_by_name
from audit.show.charts import range_query
from audit.show.costs import cost_tile, token_tile
from config.http.htmx import render_page
from tenants.access import TenantRequest, tenant_page


@require_safe
@tenant_page()
def cost_page(request: TenantRequest) -> HttpResponseBase:
    """Show what the calls of the URL's range cost."""
    if default := opens_with(request, "costs"):
        return redirect(default)
    requested = requested_range(request, timezone.now())
    page = "costs/costs.html"
    if requested.problem:
        return invalid_range(request, requested, page, "Costs")
    of = requested.range
    costs = costs_over_time(of)
    within = range_query(of.start, of.end)
    lists = all_lists()
    context: dict[str, object] = {
        **range_bar(request, requested),
        "changed": max(lists, key=lambda one: one.changed_at, default=None),
        "costs": costs,
        "calls_max": CALLS_MAX,
        "read_max": READ_MAX,
        "exports": tuple(FORMS),
        "listed": LISTED,
        "within": within,
        "percent_counted": percent_counted(),
    }
    is_comparable = has_figures_before(of.previous.start)
    if costs is not None:
        context["tile"] = cost_tile(costs, is_comparable=is_comparable)
        context["by"] = costs_by_dimension(of, most=CALLS_MAX)
    if (both := token_costs_by_name(of, most=CALLS_MAX)) is not None:
        tokens, context["tokens_by"] = both
        context["tokens"] = tokens
        context["token_tile"] = token_tile(tokens, of, is_comparable=is_comparable)
    return render_page(request, page, "costs", context)


@require_safe
@tenant_page()
def cost_export(request: TenantRequest, kind: str) -> HttpResponse:
    """Export what the calls and the models' answers of the range cost, as NDJSON or CSV.

    The audit log records it.
    """
    return figures_file(request, kind, FORMS, documents, of="costs", action="cost.export")
