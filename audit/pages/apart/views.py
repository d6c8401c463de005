"""What sets the calls of a query apart from the other calls of a range."""

from datetime import datetime, timedelta
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from audit.apart.finding import CannotCompareError, Finding, find_apart, tool_beside
from audit.pages.show.range_bar import OF_THE_RANGE, invalid_range, range_bar, requested_range
from audit.pages.show.requested_query import mistakes, read_query
from audit.queries.apart import CALLS
from audit.queries.call_query import Query
from audit.queries.time_range import LENGTHS, MAX_LENGTH
from audit.show.charts import range_query
from config.http.htmx import render_page
from config.instants import iso_exact
from tenants.access import TenantRequest, tenant_page

SHOWN = 30
_AROUND = 6
"""A bare range of time is compared with this many times its length on each side."""
_AROUND_MIN = timedelta(hours=1)


@require_safe
@tenant_page()
def apart_page(request: TenantRequest) -> HttpResponse:
    """Compare the calls of the URL's query with the other calls of its range.

    A link from a list has no range. Then the times in its query are the range; if the query has
    nothing else, they are the selection, and the range is the time around them.
    """
    now, query = timezone.now(), read_query(request)
    if not query.problems and not request.GET.keys() & OF_THE_RANGE:
        params = _range_of(query, now)
        if params:
            return redirect(f"{reverse('apart_page')}?{urlencode(params)}")
    requested = requested_range(request, now)
    heading = "What sets these calls apart"
    if requested.problem:
        return invalid_range(request, requested, "apart/apart.html", heading)
    beside_all = request.GET.get("beside") == "all"
    context: dict[str, Any] = {
        **range_bar(request, requested),
        "refresh_s": 0,
        "is_still": True,
        "query": query,
        "mistakes": mistakes(query),
        "most_calls": CALLS,
        "beside_all": beside_all,
    }
    if not query.problems:
        context["tool_beside"] = tool_beside(query)
        try:
            finding = find_apart(query, requested.range, now, beside_all=beside_all)
        except CannotCompareError as error:
            context["why_not"] = str(error)
        else:
            context |= _shown(finding)
    return render_page(request, "apart/apart.html", "apart", context)


def _shown(finding: Finding) -> dict[str, Any]:
    return {
        "finding": finding,
        "verdict": finding.verdict,
        "rows": finding.named[:SHOWN],
        "more": max(0, len(finding.named) - SHOWN),
        "compared": [each.title for each in finding.properties],
    }


def _range_of(query: Query, now: datetime) -> dict[str, str]:
    """The parameters of a query with times, with a range instead; empty if it has no times."""
    since, until = query.value("since"), query.value("until")
    rest = " ".join(each.closed for each in query.terms if each.name not in ("since", "until"))
    start, end = query.wanted.from_instant(now), query.wanted.to_instant(now)
    if start is None:
        return {}
    end = min(end or now, now)
    if end - start > MAX_LENGTH or end <= start:
        return {}
    if rest:
        if since in LENGTHS and not until:
            return {"q": rest, "range": since}
        return {"q": rest, "from": iso_exact(start), "to": iso_exact(end)}
    around = min(max(_AROUND * (end - start), _AROUND_MIN), (MAX_LENGTH - (end - start)) / 2)
    return {
        "q": range_query(start, end),
        "from": iso_exact(start - around),
        "to": iso_exact(min(end + around, now)),
    }
