"""Repeats: identical calls, loops, what a cache would save, and tools that poll on purpose."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from audit.exports.repeats import FORMS, documents
from audit.pages.repeats.acts import exclude_tool, include_tool
from audit.pages.repeats.forms import PollingToolForm
from audit.pages.show.active_filters import active_filters
from audit.pages.show.api_query import time_of, within
from audit.pages.show.figures_file import figures_file
from audit.pages.show.range_bar import invalid_range, range_bar, requested_range
from audit.pages.show.ranges import Span
from audit.pages.show.requested_query import invalid, mistakes, read_query
from audit.queries.among import ALL, Among
from audit.queries.call_query import Query, quoted
from audit.queries.latency import ToolFilter
from audit.queries.polling import (
    MAX_TOOLS,
    TooManyPollingToolsError,
    polling_tools,
)
from audit.queries.repeats import (
    COMPARED,
    RESULTS,
    Compared,
    Repeats,
    compare_results,
    find_repeats,
    newest_arguments,
)
from audit.queries.repetition import InTrace, Repeat
from audit.queries.time_range import LENGTHS, TimeRange
from audit.show.charts import range_query
from config.http.htmx import render_page
from config.http.ordering import in_order, requested_order
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.actions import record_view
from tenants.models import Role

LOOPS_SHOWN, REPEATS_SHOWN = 15, 20


@dataclass(frozen=True, slots=True)
class Row[R: InTrace | Repeat]:
    """A loop or a repeat as a row of the list, with the query for its calls."""

    one: R
    query: str
    arguments: str
    """Arguments of the newest call. Empty for members who may not see payloads."""

    @property
    def call_id(self) -> str:
        """The id that all calls of the row share."""
        return self.one.call_id


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A repeat whose results were compared, with the query for its calls."""

    one: Compared
    query: str
    arguments: str

    @property
    def call_id(self) -> str:
        """The id that all calls of the row share."""
        return self.one.repeat.call_id


@dataclass(frozen=True, slots=True)
class RepeatSelection:
    """The calls that the URL asks for: those of a tool, of a query, or all."""

    query: Query
    of: TimeRange
    tool: str | None
    polling: list[str]
    among: Among

    @classmethod
    def read(cls, request: TenantRequest, of: TimeRange, now: datetime) -> "RepeatSelection":
        """Those of a range. Of an invalid query, nothing may be searched."""
        query, among = read_query(request).of_index(), ALL
        if query.terms and not query.problems:
            wanted = within(query.wanted, Span(of.start, of.end), now)
            of, among = time_of(wanted, of, now), Among.those_of(wanted, now)
        return cls(query, of, ToolFilter.read(request.GET).tool, polling_tools(), among)

    def repeats(self) -> Repeats:
        """The identical calls among them."""
        return find_repeats(self.of, self.tool, self.polling, among=self.among)

    def arguments(
        self, request: TenantRequest, analysis: Repeats, calls: Sequence[InTrace | Repeat]
    ) -> Callable[[InTrace | Repeat], str]:
        """Return a function from a call to its arguments; '' if the member may not see payloads.

        The audit log records that arguments were shown.
        """
        texts: dict[tuple[str, str], str] = {}
        if request.membership.sees_payloads and calls:
            texts = newest_arguments(
                self.of, analysis, calls, self.tool, self.polling, among=self.among
            )
            query = request.GET.urlencode()
            record_view(request.tenant.id, request.user, "repeat.view", "arguments", query=query)
        return lambda one: texts.get((one.tool_name, one.call_id), "")

    def query_of(self, one: InTrace | Repeat, trace_id: str = "") -> str:
        """The query for the calls of a loop or of a repeat."""
        terms = [range_query(self.of.start, self.of.end), f"call:{quoted(one.call_id)}"]
        terms.append(f"tool:{quoted(one.tool_name)}")
        if trace_id:
            terms.append(f"trace:{quoted(trace_id)}")
        named = ("tool", "call", "trace") if trace_id else ("tool", "call")
        return " ".join(filter(None, [*terms, self.query.without("since", "until", *named)]))


_ORDERS: dict[str, Callable[[Any], Any]] = {
    "tool": lambda one: one.tool_name,
    "calls": lambda one: one.calls,
    "traces": lambda one: getattr(one, "traces", 1),
    "failed": lambda one: one.failed,
    "cache": lambda one: one.cache_hits,
    "time": lambda one: one.wasted_us,
    "tokens": lambda one: one.wasted_tokens,
    "last": lambda one: one.last_at,
}
"""The columns by which loops, and repeats, are sorted."""


class DiffParams(NamedTuple):
    """A tool with repeats that returned different results."""

    tool: str
    different: int
    compared: int


@require_safe
@tenant_page()
def repeat_page(request: TenantRequest) -> HttpResponse:
    """Show the identical calls of the URL's range."""
    now = timezone.now()
    requested, wanted = requested_range(request, now), ToolFilter.read(request.GET)
    if requested.problem:
        return invalid_range(request, requested, "repeats/repeats.html", "Repeats")
    selection = RepeatSelection.read(request, requested.range, now)
    context: dict[str, Any] = {
        **range_bar(request, requested),
        "query": selection.query,
        "mistakes": mistakes(selection.query),
        "filters": active_filters(wanted, {"tool": "Tool"}),
        "polling": selection.polling,
        "may_edit": has_role(request.membership, Role.EDITOR),
        "exports": tuple(FORMS),
    }
    if not selection.query.problems:
        context |= _analysis(request, selection)
    return render_page(request, "repeats/repeats.html", "repeats", context)


def _analysis(request: TenantRequest, selection: RepeatSelection) -> dict[str, Any]:
    analysis = selection.repeats()
    order = requested_order(request, _ORDERS, "time")
    order_of_repeats = requested_order(request, _ORDERS, "calls", "sort-repeats")
    looping = in_order(analysis.loops, _ORDERS, order)[:LOOPS_SHOWN]
    frequent = in_order(analysis.repeats, _ORDERS, order_of_repeats)[:REPEATS_SHOWN]
    arguments = selection.arguments(request, analysis, [*looping, *frequent])
    return {
        "analysis": analysis,
        "order": order,
        "order_of_repeats": order_of_repeats,
        "tool": selection.tool,
        "within": range_query(analysis.since, selection.of.end),
        "loops": [
            Row(one, selection.query_of(one, trace_id=one.trace_id), arguments(one))
            for one in looping
        ],
        "repeats": [Row(one, selection.query_of(one), arguments(one)) for one in frequent],
        "more_loops": analysis.loop_count - min(LOOPS_SHOWN, len(analysis.loops)),
        "more_repeats": analysis.repeated - min(REPEATS_SHOWN, len(analysis.repeats)),
        "wasted_us": sum(one.wasted_us for one in analysis.loops),
        "wasted_tokens": sum(one.wasted_tokens for one in analysis.loops),
        "is_part": analysis.loop_count > len(analysis.loops),
        "shows_arguments": request.membership.sees_payloads,
    }


@require_safe
@tenant_page()
def repeat_results(request: TenantRequest) -> HttpResponse:
    """Show whether the most frequent repeats gave equal results, so that a cache would help."""
    now = timezone.now()
    requested = requested_range(request, now)
    if requested.problem:
        heading = "Repeats: results"
        page = "repeats/repeat_results.html"
        return invalid_range(request, requested, page, heading, has_picker=False)
    selection = RepeatSelection.read(request, requested.range, now)
    if selection.query.problems:
        return HttpResponse(
            invalid(selection.query, "compared"), status=400, content_type="text/plain"
        )
    analysis = selection.repeats()
    compared = compare_results(
        selection.of, analysis, selection.tool, selection.polling, among=selection.among
    )
    by_tool: Counter[str] = Counter()
    differing: Counter[str] = Counter()
    for one in compared:
        by_tool[one.repeat.tool_name] += one.verdict != "unknown"
        differing[one.repeat.tool_name] += one.verdict == "different"
    arguments = selection.arguments(request, analysis, [one.repeat for one in compared])
    rows = [
        ComparedRow(one, selection.query_of(one.repeat), arguments(one.repeat)) for one in compared
    ]
    context: dict[str, Any] = {
        "range": requested.range,
        "requested": requested,
        "analysis": analysis,
        "same": [row for row in rows if row.one.verdict == "same"],
        "different": [row for row in rows if row.one.verdict == "different"],
        "unknown": sum(one.verdict == "unknown" for one in compared),
        "differing": [
            DiffParams(name, count, by_tool[name]) for name, count in differing.items() if count
        ],
        "compared": len(compared),
        "at_most": COMPARED,
        "results": RESULTS,
    }
    return render_page(request, "repeats/repeat_results.html", "results", context)


@require_safe
@tenant_page()
def repeat_export(request: TenantRequest, kind: str) -> HttpResponse:
    """Export the loops and repeats of the range as NDJSON or CSV. The audit log records it."""
    query = read_query(request).of_index()
    if query.problems:  # an export must not hold more than was requested
        return HttpResponse(invalid(query, "exported"), status=400, content_type="text/plain")
    return figures_file(
        request,
        kind,
        FORMS,
        lambda of: documents(RepeatSelection.read(request, of, timezone.now()).repeats()),
        of="repeats",
        action="repeat.export",
    )


@require_POST
@tenant_page(role=Role.EDITOR)
def polling_add(request: TenantRequest) -> HttpResponseBase:
    """Exclude a tool from the repeats, because it polls on purpose."""
    form = PollingToolForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Nothing was changed. Enter a tool name.")
        return _back(request)
    name = form.cleaned_data["tool"]
    try:
        exclude_tool(request.tenant, request.user, name)
    except TooManyPollingToolsError:
        messages.error(request, f"Nothing was changed. At most {MAX_TOOLS} tools can be excluded.")
    else:
        messages.success(request, f"{name} is excluded from repeats.")
    return _back(request)


@require_POST
@tenant_page(role=Role.EDITOR)
def polling_remove(request: TenantRequest) -> HttpResponseBase:
    """Include a tool in the repeats again."""
    form = PollingToolForm(request.POST)
    name = form.cleaned_data["tool"] if form.is_valid() else ""
    if not name or not include_tool(request.tenant, request.user, name):
        raise Http404("not a polling tool")
    messages.success(request, f"{name} is included in repeats again.")
    return _back(request)


def _back(request: TenantRequest) -> HttpResponseBase:
    """Redirect to the page with the range it had."""
    name = request.POST.get("range", "")
    address = reverse("repeat_page")
    return redirect(f"{address}?range={name}" if name in LENGTHS else address)
