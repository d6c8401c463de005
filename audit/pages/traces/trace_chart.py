"""Traces over time, above their list."""

from datetime import timedelta
from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from audit.pages.traces.forms import TraceFilterForm
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
    address = f"{reverse('trace_list')}?{request.GET.urlencode()}"
    context: dict[str, Any] = {"list_address": address}
    if form.is_valid():
        wanted = form.wanted()
        end = min(wanted.until or now, now)
        start = max(min(wanted.since or end - _USUAL, end - timedelta(minutes=1)), end - MAX_LENGTH)
        of = TimeRange(start, end, timezone.get_current_timezone())
        counted = traces_over_time(of, wanted.prefix)
        usual = "" if wanted.since else f"last {of.length_name}, "
        context |= {
            "chart": chart_of(counted, wanted.state, wanted.prefix, usual),
            "searched_until": counted.since,
            "requested": of,  # parts can be chosen as the range
        }
    return render_page(request, "components/list_chart.html", "list-chart", context)


def chart_of(counted: TracesOverTime, state: str, prefix: str, usual: str) -> Chart:
    """Return the chart: of one state, if the list shows only that."""
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
