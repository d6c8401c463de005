"""The calls of two queries side by side: two ranges, versions, agents, or anything else."""

from datetime import datetime
from typing import Any, NamedTuple

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from audit.apart.finding import CannotCompareError, find_between
from audit.effect.shown import OF_QUERIES, measure_rows
from audit.effect.sides import between
from audit.pages.apart.views import SHOWN
from audit.pages.show.range_bar import invalid_range, range_bar, requested_range
from audit.pages.show.requested_query import Mistake, mistakes, read_query
from audit.queries.apart import CALLS
from audit.queries.call_query import Query
from audit.queries.filter_names import FILTER_NAMES
from audit.queries.time_range import TimeRange
from audit.show.charts import range_query
from config.http.htmx import render_page
from tenants.access import TenantRequest, tenant_page

_OFFERED = ("version", "agent", "agent-version", "model", "environment", "service", "producer")
"""A query with one of these is also compared with the other values."""


class Side(NamedTuple):
    """The query of one side, as the form shows it."""

    name: str
    query: Query
    mistakes: list[Mistake]


@require_safe
@tenant_page()
def compare_page(request: TenantRequest) -> HttpResponse:
    """Compare the calls of two queries of the URL, `a` and `b`, each in its own time or the range.

    Without `b` it offers what `a` may be compared with.
    """
    now = timezone.now()
    requested = requested_range(request, now)
    if requested.problem:
        return invalid_range(request, requested, "apart/compare.html", "Compare")
    a, b = (read_query(request, request.GET.get(name, "")) for name in ("a", "b"))
    context: dict[str, Any] = {
        **range_bar(request, requested),
        "refresh_s": 0,
        "is_still": True,
        "sides": [Side("a", a, mistakes(a)), Side("b", b, mistakes(b))],
        "most_calls": CALLS,
        "swapped": {"a": b.text, "b": a.text},
    }
    if a.problems or b.problems:
        context["is_invalid"] = True
    elif not b.terms:
        context["offers"] = _offers(a, requested.range, now)
    else:
        try:
            context |= _compared(a, b, requested.range, now)
        except CannotCompareError as error:
            context["why_not"] = str(error)
    return render_page(request, "apart/compare.html", "compare", context)


def _compared(a: Query, b: Query, of: TimeRange, now: datetime) -> dict[str, Any]:
    finding = find_between(a, b, of, now)
    free = {each.name for each in finding.properties}
    compared = between(finding.read, free)
    return {
        "finding": finding,
        "verdict": finding.verdict,
        "between": compared,
        "measures": measure_rows(compared.measures, OF_QUERIES),
        "rows": finding.named[:SHOWN],
        "more": max(0, len(finding.named) - SHOWN),
        "compared": [each.title for each in finding.properties],
    }


def _offers(a: Query, of: TimeRange, now: datetime) -> list[tuple[str, str]]:
    """Names and addresses of what a query may be compared with; the query becomes `b`."""
    start, end = a.wanted.from_instant(now) or of.start, a.wanted.to_instant(now) or of.end
    offers = []
    if start < end:
        others = [each.closed for each in a.terms if each.name not in ("since", "until")]
        before = range_query(start - (end - start), start)
        sides = (" ".join([time, *others]) for time in (before, range_query(start, end)))
        offers.append(("the time before", _address(*sides)))
    for name in _OFFERED:
        value = a.value(name)
        if value:
            others = [each.closed for each in a.terms if each.name != name]
            anything = [f"{name}:*"] if FILTER_NAMES[name].takes_any else []
            other = " ".join([*others, *anything, f"NOT {name}:{value}"])
            offers.append(
                (f"every other {FILTER_NAMES[name].label.lower()}", _address(other, str(a)))
            )
    return offers


def _address(a: str, b: str) -> str:
    return f"{reverse('compare_page')}?{urlencode({'a': a, 'b': b})}"
