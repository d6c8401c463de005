"""The timeline of a trace, with one of its calls open beside it."""

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from secrets import token_hex
from urllib.parse import urlencode

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.pages.calls.call_detail import panel_context
from audit.pages.show.texts import record_texts
from audit.pages.traces import trace_text, waterfall
from audit.pages.traces.forms import TimelineForm
from audit.queries.call_filter import OPEN, UNRUN
from audit.queries.calls import TraceDetail, detail_of, failures_beside_in
from audit.queries.calls import trace_detail as find_trace
from audit.queries.costs import cost_of_trace
from audit.queries.price_lists import prices_held
from audit.queries.token_costs import token_costs_of
from audit.queries.withheld import without_messages, without_reasons
from audit.show import reasons
from audit.show.costs import cost_facts
from config.http.htmx import render_page, wants_partial
from tenants.access import TenantRequest, tenant_page


@require_safe
@tenant_page()
def trace_detail(request: TenantRequest, trace_id: str) -> HttpResponse:
    """Show all calls of a trace on one time axis. `?call=` opens one of them.

    One window of rows is drawn at a time. `?row=` selects it; htmx requests get only the rows.
    """
    detail = _trace_or_404(request, trace_id)
    now = timezone.now()
    form = TimelineForm(request.GET)
    form.is_valid()  # an invalid value is reported, and everything is shown
    view = form.view()
    shown = waterfall.build(detail, view, now)
    filters = {
        name: request.GET.get(name) for name in ("only", "find", "tool", "zoom_from", "zoom_to")
    }
    kept = {name: value for name, value in filters.items() if value}
    context: dict[str, object] = {
        "waterfall": shown,
        "kept": f"{urlencode(kept)}&" if kept else "",
        "kept_call": f"call={view.selected}&" if view.selected else "",
    }
    if not wants_partial(request):
        around = _around(request, detail, shown, now)
        context |= around | {"view": view, "form": form}
    return render_page(request, "traces/trace_detail.html", "trace-rows", context)


def _around(
    request: TenantRequest, detail: TraceDetail, shown: waterfall.Waterfall, now: datetime
) -> dict[str, object]:
    """Return the context besides rows: the facts above them and the open call's panel."""
    opened = shown.selected
    call = detail_of(opened) if opened else None
    panel: dict[str, object] = {"panel": None}
    if call is not None:
        panel = panel_context(request, call, now, failures_beside_in(detail, call))
    held = prices_held()
    states: Counter[str] = Counter([call.state for call in detail.calls])
    return {
        **panel,
        "trace": detail.summary,
        "is_cut": detail.is_cut,
        "shown_count": len(detail.calls),
        "other_states": [
            (state, states[state])
            for state in ("waiting", "working", "cancelled", *UNRUN)
            if states[state]
        ],
        "open_states": OPEN,
        "tool_count": len({call.tool_name for call in detail.calls}),
        "cache_hits": sum(call.cache_hit is True for call in detail.calls),
        "tokens": reasons.tokens(detail.summary.prompt_tokens, detail.summary.completion_tokens),
        "costs": cost_facts(
            cost_of_trace(held, detail.summary.trace_id),
            token_costs_of(held, trace_id=detail.summary.trace_id),
        ),
        "idle_share": shown.idle_us / shown.span_us * 100,
        "highlight_offset_us": (shown.highlight.started_at - detail.summary.first_started_at)
        // timedelta(microseconds=1),
        "is_call_unknown": opened is None,
    }


@require_safe
@tenant_page()
def trace_as_text(request: TenantRequest, trace_id: str) -> HttpResponse:
    """Return the trace as plain text, for pasting into other tools."""
    detail = _trace_or_404(request, trace_id)
    address = request.build_absolute_uri(reverse("trace_detail", args=[trace_id]))
    text = trace_text.write(detail, address, timezone.now(), token_hex(4))
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


def _trace_or_404(request: TenantRequest, trace_id: str) -> TraceDetail:
    """Return the trace with what the member may see, and put that on record.

    Raises Http404 if there is none.
    """
    detail = find_trace(trace_id)
    if detail is None:
        raise Http404("no such trace")
    if not request.membership.sees_payloads:
        decisions = without_reasons(detail.decisions)
        detail = replace(detail, calls=without_messages(detail.calls), decisions=decisions)
    texts = chain(
        (call.error_message for call in detail.calls),
        (one.reason for one in detail.decisions.values()),
    )
    record_texts(request, "calls of a trace", texts)
    return detail
