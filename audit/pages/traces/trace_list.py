"""The list of traces, newest first, with what went wrong in each."""

from dataclasses import dataclass
from datetime import datetime

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.pages.show.texts import record_texts
from audit.pages.traces.forms import TraceFilterForm
from audit.queries.cursor import read_cursor
from audit.queries.traces import NO_TRACES, Reason, TraceDay, TraceFilter, trace_page
from audit.queries.withheld import without_message
from audit.show import reasons
from config.http.htmx import render_page
from tenants.access import TenantRequest, tenant_page

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
def trace_list(request: TenantRequest) -> HttpResponse:
    """Show a page of the tenant's traces that match the URL's filters."""
    form = TraceFilterForm(request.GET)
    is_valid = form.is_valid()
    now = timezone.now()
    wanted = TraceFilter(
        state=form.cleaned_data.get("state", ""),
        prefix=form.cleaned_data.get("trace", ""),
        since=now - form.since if form.since else None,
    )
    before = read_cursor(request.GET.get("before", ""), str)
    after = read_cursor(request.GET.get("after", ""), str)
    page = NO_TRACES  # half a filter may match the opposite of what was meant
    if is_valid:
        page = trace_page(wanted, before=before, after=after, size=PAGE_SIZE)
    why = page.reasons
    if not request.membership.sees_payloads:
        why = {trace_id: without_message(reason) for trace_id, reason in why.items()}
    record_texts(request, "traces", (reason.error_message for reason in why.values()))
    context = {
        "form": form,
        "wanted": wanted,
        "rows": [_row(trace, why.get(trace.trace_id), now) for trace in page.traces],
        "newer": str(page.newer or ""),
        "older": str(page.older or ""),
        "searched_until": page.searched_until,
        "is_first_page": not before and not after,
        "is_filtered": bool(wanted.state or wanted.prefix or wanted.since),
    }
    return render_page(request, "traces/trace_list.html", "trace-list", context)


def _row(trace: TraceDay, reason: Reason | None, now: datetime) -> TraceRow:
    return TraceRow(
        trace=trace,
        reason_tool=reason.tool_name if reason else "",
        reason=reasons.of_trace(reason, now) if reason else "",
        tokens=reasons.tokens(trace.prompt_tokens, trace.completion_tokens),
    )
