"""The page of costs."""

from collections.abc import Mapping
from typing import Any, Final

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
from audit.queries.costs import LISTED, ToolCost, costs_by_dimension, costs_over_time
from audit.queries.over_time import has_figures_before
from audit.queries.price_lists import all_lists, percent_counted
from audit.queries.token_costs import ModelCost, token_costs_by_name
from audit.show.charts import range_query
from audit.show.costs import cost_tile, token_tile
from config.http.htmx import render_page
from config.http.ordering import Key, sorted_table
from tenants.access import TenantRequest, tenant_page

_OF_CALLS: Final[Mapping[str, Key[Any]]] = {
    "calls": lambda row: row.cost.calls,
    "unpriced": lambda row: row.cost.unpriced,
    "cost": lambda row: row.cost.amount,
}
_OF_ANSWERS: Final[Mapping[str, Key[Any]]] = {
    "answers": lambda row: row.cost.answers,
    "unpriced": lambda row: row.cost.unpriced,
    "cost": lambda row: row.cost.amount,
}
_TOOLS: Final[Mapping[str, Key[ToolCost]]] = {"tool": lambda row: row.tool, **_OF_CALLS}
_MODELS: Final[Mapping[str, Key[ModelCost]]] = {
    "model": lambda row: row.model or None,
    "provider": lambda row: row.provider or None,
    "input": lambda row: row.cost.input,
    "cached": lambda row: row.cost.cached,
    "output": lambda row: row.cost.output,
    **_OF_ANSWERS,
}
_NAMED: Final[Mapping[str, Key[Any]]] = {"name": lambda row: row.name or None, **_OF_CALLS}
_NAMED_TOKENS: Final[Mapping[str, Key[Any]]] = {
    "name": lambda row: row.name or None,
    "tokens": lambda row: row.cost.tokens,
    **_OF_ANSWERS,
}
"""The columns by which the tables are sorted; each table has an order of its own."""


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
        context["tools"] = sorted_table(request, costs.tools, _TOOLS, "cost")
        by = costs_by_dimension(of, most=CALLS_MAX)
        context["by"] = by
        context["named"] = by and {
            name: sorted_table(request, rows, _NAMED, "cost", f"sort-{name}")
            for name, rows in (
                ("agents", by.agents),
                ("models", by.models),
                ("conversations", by.conversations),
                ("traces", by.traces),
            )
        }
    if (both := token_costs_by_name(of, most=CALLS_MAX)) is not None:
        tokens, tokens_by = both
        context |= {
            "tokens": tokens,
            "tokens_by": tokens_by,
            "models": sorted_table(request, tokens.models, _MODELS, "cost", "sort-answers"),
            "answers_of": {
                name: sorted_table(request, rows, _NAMED_TOKENS, "cost", f"sort-answers-{name}")
                for name, rows in (
                    ("agents", tokens_by.agents),
                    ("conversations", tokens_by.conversations),
                )
            },
        }
        context["token_tile"] = token_tile(tokens, of, is_comparable=is_comparable)
    return render_page(request, page, "costs", context)


@require_safe
@tenant_page()
def cost_export(request: TenantRequest, kind: str) -> HttpResponse:
    """Export what the calls and the models' answers of the range cost, as NDJSON or CSV.

    The audit log records it.
    """
    return figures_file(request, kind, FORMS, documents, of="costs", action="cost.export")
