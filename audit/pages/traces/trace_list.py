"""The list of traces, newest first, with what went wrong in each."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.http import HttpResponseBase, QueryDict
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.pages.show.columns import column_choices, shown_columns
from audit.pages.show.saved_views import default_address, kept_query, view_address
from audit.pages.show.texts import record_texts
from audit.pages.traces.forms import TraceFilterForm
from audit.queries.cursor import read_cursor, read_place
from audit.queries.saved_views import page_choice
from audit.queries.trace_order import FIGURES, sorted_traces
from audit.queries.traces import Reason, TraceDay, TraceFilter, trace_page
from audit.queries.withheld import without_message
from audit.show import reasons
from config.http.htmx import render_page
from config.http.ordering import Order, requested_order
from config.instants import iso_exact
from tenants.access import TenantRequest, tenant_page

PAGE = "traces"
PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class TraceRow:
    """A trace as a row of the list."""

    trace: TraceDay
    reason_tool: str
    reason: str
    tokens: str

    @property
    def tone(self) -> str:
        """Colour of the reason."""
        if self.trace.failed_count:
            return "failed"
        if self.trace.violation_count:
            return "violation"
        return "open" if self.trace.open_count else "ok"


@require_safe
@tenant_page()
def trace_list(request: TenantRequest) -> HttpResponseBase:
    """Show a page of the tenant's traces that match the URL's filters."""
    now = timezone.now()
    choice = page_choice(request.user, PAGE)
    if default := default_address(request, PAGE, choice):
        return redirect(default)
    form = TraceFilterForm(request.GET, now)
    form.is_valid()
    wanted = form.wanted()
    order = requested_order(request, ("started", *FIGURES), "started")
    listed = _Listed([], {}, {}) if form.errors else _listed(request, wanted, now, order)
    why = listed.reasons
    if not request.membership.sees_payloads:
        why = {trace_id: without_message(reason) for trace_id, reason in why.items()}
    record_texts(request, "traces", (reason.error_message for reason in why.values()))
    columns = shown_columns(PAGE, choice)
    context = {
        "form": form,
        "wanted": wanted,
        "rows": [_row(trace, why.get(trace.trace_id), now) for trace in listed.traces],
        "is_first_page": not ("before" in request.GET or "after" in request.GET),
        "is_filtered": bool(wanted.state or wanted.prefix or wanted.since),
        "order": order,
        "columns": columns,
        "choices": column_choices(PAGE, columns),
        "is_usual": choice is None or choice.columns is None,
        "kept_query": kept_query(request),
        "pinned": "" if form.errors else _pinned(request, wanted),
        **listed.context,
    }
    return render_page(request, "traces/trace_list.html", "trace-list", context)


class _Listed(NamedTuple):
    """The traces of a page, and the context of where it is in the list."""

    traces: list[TraceDay]
    reasons: dict[str, Reason]
    context: dict[str, Any]


def _listed(request: TenantRequest, wanted: TraceFilter, now: datetime, order: Order) -> _Listed:
    """The page by time, or by a figure."""
    context: dict[str, Any]
    if order.column in FIGURES:
        place = read_place(request.GET.get("before", ""), str)
        by_figure = sorted_traces(
            wanted,
            order.column,
            now=now,
            place=place,
            is_smallest_first=order.is_reversed,
            size=PAGE_SIZE,
        )
        context = {"older": str(by_figure.next or ""), "sorted_since": by_figure.since}
        return _Listed(by_figure.traces, by_figure.reasons, context)
    before = read_cursor(request.GET.get("before", ""), str)
    after = read_cursor(request.GET.get("after", ""), str)
    page = trace_page(wanted, before=before, after=after, size=PAGE_SIZE)
    context = {
        "newer": str(page.newer or ""),
        "older": str(page.older or ""),
        "searched_until": page.searched_until,
        "is_first_page": not before and not after,
    }
    return _Listed(page.traces, page.reasons, context)


def _pinned(request: TenantRequest, wanted: TraceFilter) -> str:
    """The address of this list with its range as instants."""
    params = QueryDict(kept_query(request), mutable=True)
    if wanted.since:
        params.pop("range", None)
        params["from"] = iso_exact(wanted.since)
        if wanted.until:
            params["to"] = iso_exact(wanted.until)
    return view_address(PAGE, params.urlencode())


def _row(trace: TraceDay, reason: Reason | None, now: datetime) -> TraceRow:
    return TraceRow(
        trace=trace,
        reason_tool=reason.tool_name if reason else "",
        reason=reasons.of_trace(reason, now) if reason else "",
        tokens=reasons.tokens(trace.prompt_tokens, trace.completion_tokens),
    )
