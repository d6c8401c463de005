"""Traces over time, above their list."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from audit.pages.traces.forms import TraceFilterForm
from audit.queries.over_time import has_figures_before
from audit.queries.time_range import MAX_LENGTH, TimeRange
from audit.queries.traces_over_time import STATES, TracesOverTime, traces_over_time
from audit.show.charts import Chart, Series, time_slots
from config.http.htmx import render_page
from tenants.access import TenantRequest, tenant_page

_USUAL = timedelta(hours=24)
_NAMES = {"failed": "Failed", "violation": "Violations", "open": "Open", "ok": "OK"}


@require_safe
@tenant_page()
def trace_chart(request: TenantRequest) -> HttpResponse:
    """Show the traces of the URL's filters by state over time, without a range those of a day."""
    now = timezone.now()
    form = TraceFilterForm(request.GET, now)
    path = reverse("trace_list")
    context: dict[str, Any] = {
        "list_path": path,
        "list_address": f"{path}?{request.GET.urlencode()}",
    }
    if form.is_valid():
        wanted = form.wanted()
        end = min(wanted.until or now, now)
        start = max(min(wanted.since or end - _USUAL, end - timedelta(minutes=1)), end - MAX_LENGTH)
        of = TimeRange(start, end, timezone.get_current_timezone())
        counted = traces_over_time(of, wanted.prefix)
        if counted.before and not has_figures_before(of.previous.start):
            # What was recorded in part only would look like a rise.
            counted = replace(counted, before={})
        usual = "" if wanted.since else f"last {of.length_name}, "
        context |= {
            "chart": chart_of(counted, wanted.state, wanted.prefix, usual).with_threshold(
                request.GET.get("line-list", "")
            ),
            "searched_until": counted.since,
            "requested": of,  # parts can be chosen as the range
        }
    return render_page(request, "components/list_chart.html", "list-chart", context)


def chart_of(counted: TracesOverTime, state: str, prefix: str, usual: str) -> Chart:
    """Return the chart: of one state, if the list shows only that. The range before is a line."""
    shown = [state] if state in STATES else list(STATES)
    known = [counted.since is None or start >= counted.since for start, _ in counted.of.parts]
    named = {"trace": prefix} if prefix else {}
    series = [
        Series(
            _NAMES[one],
            one,
            [
                number if is_known else None
                for number, is_known in zip(counted.by_state[one], known, strict=True)
            ],
            urlencode(named | {"state": one}),
        )
        for one in shown
    ]
    if counted.before:
        before = zip(*(counted.before[one] for one in shown), strict=True)
        series += Series.earlier(counted.of, [sum(part) for part in before])
    return Chart(
        id="list",
        title="Traces by state",
        kind="bars",
        unit="count",
        slots=time_slots(counted.of),
        series=series,
        note=f"{usual}per {counted.of.step_name}",
        query=urlencode(named | ({"state": state} if state in STATES else {})),
        leads_to="traces",
    )
