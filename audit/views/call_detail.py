"""One call: a panel inside its trace, a page of its own, and its events as they came."""

from datetime import date
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit import call_panel
from audit.log import LogPayloadError
from audit.queries.calls import CallDetail, call_of_span
from audit.queries.calls import call_detail as find_call
from config.htmx import render_page
from tenants.access import TenantRequest, tenant_page
from tenants.actions import record_look


@require_safe
@tenant_page()
def call_detail(request: TenantRequest, started_on: date, invocation_id: UUID) -> HttpResponse:
    """Arguments, output, error, violations, context and log of one call, as far as one sees.

    The address of one that was merged into another leads there.
    """
    call = find_call(started_on, invocation_id)
    if call is None:
        merged_into = call_of_span(started_on, invocation_id)
        if merged_into is None:
            raise Http404("no such call")
        return redirect("call_detail", *merged_into)
    with_payloads = request.membership.sees_payloads
    panel = call_panel.gather(call, timezone.now(), with_payloads=with_payloads)
    if with_payloads:
        record_view(request, call)
    context: dict[str, object] = {"panel": panel}
    return render_page(request, "audit/call_detail.html", "call-panel", context)


@require_safe
@tenant_page(needs_payloads=True)
def call_event(
    request: TenantRequest, started_on: date, invocation_id: UUID, kind: str
) -> HttpResponse:
    """The very bytes of the call's start or end, as plain text."""
    call = find_call(started_on, invocation_id)
    if call is None:
        raise Http404("no such call")
    try:
        events = {str(kind): event for kind, event in call_panel.read_call_events(call).items()}
    except LogPayloadError as error:
        raise Http404(f"the log's payload {error}") from error
    event = events.get(kind)
    if event is None or event.raw is None:
        raise Http404("no such event, or it was erased")
    record_view(request, call, "call.raw", event=kind)
    return HttpResponse(event.raw, content_type="text/plain; charset=utf-8")


def record_view(
    request: TenantRequest, call: CallDetail, verb: str = "call.view", **details: str
) -> None:
    """Put on record that a member is shown a call's payloads."""
    record_look(
        request.tenant.id,
        request.user,
        verb,
        str(call.invocation_id),
        tool=call.tool_name,
        day=f"{call.started_on}",
        **details,
    )
