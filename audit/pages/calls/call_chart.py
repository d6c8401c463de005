"""The calls of a query over time, above their list."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.pages.show.requested_query import read_query
from audit.queries.call_query import Query
from audit.queries.call_walk import Budget
from audit.queries.over_time import has_figures_before, over_time
from audit.queries.queried import figures_of_query
from audit.queries.time_range import MAX_LENGTH, TimeRange
from audit.show.charts import Chart
from audit.show.query_charts import charts_of_query, within_query
from audit.show.tiles import charts
from config.http.htmx import render_page
from tenants.access import TenantRequest, tenant_page

BUDGET = Budget(rows=30_000, seconds=0.2)
"""Of a query that no sums know: the calls that are read, and seconds."""
_USUAL = timedelta(hours=24)


@require_safe
@tenant_page()
def call_chart(request: TenantRequest) -> HttpResponse:
    """Show the calls of the URL's query by state over time, without `since` those of a day.

    A query of nothing but times is answered from sums, in three statements, with the range before;
    another one from at most `BUDGET` calls, newest first, which do not reach as far. A query of
    payloads reads too much for it, and has no chart.
    """
    query, now = read_query(request), timezone.now()
    path = reverse("call_list")
    context: dict[str, Any] = {
        "list_path": path,
        "list_address": f"{path}?{request.GET.urlencode()}",
    }
    if not query.problems and not query.wanted.payload:
        of = range_of(query, now)
        chart, searched_until = _counted(query, of, now)
        notes = [f"last {of.length_name}" if query.wanted.since is None else "", chart.note]
        context |= {
            "chart": replace(chart, id="list", note=", ".join(filter(None, notes))).with_threshold(
                request.GET.get("line-list", "")
            ),
            "searched_until": searched_until,
            "zoom_query": query.without("since", "until"),
        }
    return render_page(request, "components/list_chart.html", "list-chart", context)


def range_of(query: Query, now: datetime) -> TimeRange:
    """The range of a valid query; without `since` the day before its end."""
    end = min(query.wanted.to_instant(now) or now, now)
    start = query.wanted.from_instant(now) or end - _USUAL
    start = max(min(start, end - timedelta(minutes=1)), end - MAX_LENGTH)
    return TimeRange(start, end, timezone.get_current_timezone())


def _counted(query: Query, of: TimeRange, now: datetime) -> tuple[Chart, datetime | None]:
    if not query.without("since", "until"):
        counted = over_time(of, with_parts_before=True)
        if not has_figures_before(of.previous.start):
            counted.before = []
        return within_query(charts(counted)["calls"], query), None
    wanted = replace(query.wanted, since=of.start, until=of.end)
    figures = figures_of_query(wanted, of, now, budget=BUDGET)
    return charts_of_query(figures, query)["calls"], figures.searched_until
