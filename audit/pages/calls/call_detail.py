"""One call: its panel in the trace, its own page, and its events as they were received."""

from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from audit.archive.reading import with_archived
from audit.log.payload import LogPayloadError
from audit.pages.calls import panel
from audit.pages.show.reveal import RevealForm, is_shown, reveal, reveals
from audit.queries.call_events import read_call_events
from audit.queries.call_list import call_day
from audit.queries.calls import Beside, CallDetail, call_of_span
from audit.queries.calls import call_detail as find_call
from audit.queries.decisions import decided_day
from config.http.htmx import render_page
from tenants.access import TenantRequest, tenant_page
from tenants.accounts.step_up import needs_fresh_factor
from tenants.actions import record_view
from tenants.models import Role


@require_safe
@tenant_page()
def call_detail(request: TenantRequest, started_on: date, invocation_id: UUID) -> HttpResponse:
    """Show arguments, output, error, violations, context and log of one call.

    The member sees what their role allows. With `?from=archive`, payloads that left the log are
    read from the archive. A call that was merged into another redirects there.
    """
    call = find_call(started_on, invocation_id)
    if call is None:
        moved = call_of_span(started_on, invocation_id) or _where_now(started_on, invocation_id)
        if moved is None:
            raise Http404("no such call")
        return redirect("call_detail", *moved)
    from_archive = request.GET.get("from") == "archive"
    context = panel_context(request, call, timezone.now(), from_archive=from_archive)
    return render_page(request, "calls/call_detail.html", "call-panel", context)


def _where_now(started_on: date, invocation_id: UUID) -> tuple[date, UUID] | None:
    """The day and id of a call known from decisions: it ran since, or there is a newer decision."""
    decided = decided_day(invocation_id)
    if decided is None:
        return None
    day = call_day(invocation_id, now=timezone.now()) or decided
    return None if day == started_on else (day, invocation_id)


@require_POST
@tenant_page(role=Role.AUDITOR)
@needs_fresh_factor
def call_reveal(request: TenantRequest, started_on: date, invocation_id: UUID) -> HttpResponseBase:
    """Show the member this call's payloads for an hour. The audit log records their reason."""
    call = find_call(started_on, invocation_id)
    if call is None:
        raise Http404("no such call")
    form = RevealForm(request.POST)
    if form.is_valid():
        reveal(
            request,
            "call.reveal",
            str(invocation_id),
            form.cleaned_data["reason"],
            tool=call.tool_name,
            day=f"{started_on}",
        )
    else:
        messages.error(request, "Nothing was revealed. Enter a reason of at least 3 characters.")
    return redirect("call_detail", started_on, invocation_id)


@require_safe
@tenant_page(needs_payloads=True)
def call_event(
    request: TenantRequest, started_on: date, invocation_id: UUID, kind: str
) -> HttpResponse:
    """Return the exact bytes of the call's start, interim event or end, as plain text.

    With `?from=archive`, an event that left the log is read from the archive.
    """
    call = find_call(started_on, invocation_id)
    if call is None:
        raise Http404("no such call")
    if not is_shown(request, "call.reveal", str(invocation_id), timezone.now()):
        raise PermissionDenied("Reveal the payload on the call's page first.")
    try:
        events = {str(kind): event for kind, event in read_call_events(call).items()}
    except LogPayloadError as error:
        raise Http404(f"the payload in the log is damaged: it {error}") from error
    event = events.get(kind)
    if event is not None and event.raw is None and request.GET.get("from") == "archive":
        _record_view(request, call, "call.raw", apart="archive", event=kind, archived=True)
        read, problem = with_archived({kind: event})
        if problem:
            raise Http404(f"not read from the archive: {problem}")
        event = read[kind]
    elif event is not None and event.raw is not None:
        _record_view(request, call, "call.raw", event=kind)
    if event is None or event.raw is None:
        raise Http404("no such event, or it was erased")
    return HttpResponse(event.raw, content_type="text/plain; charset=utf-8")


def panel_context(
    request: TenantRequest,
    call: CallDetail,
    now: datetime,
    beside: Beside | None = None,
    *,
    from_archive: bool = False,
) -> dict[str, Any]:
    """Return the panel with what this member may see. The audit log records shown payloads."""
    subject = str(call.invocation_id)
    with_payloads = is_shown(request, "call.reveal", subject, now)
    if with_payloads:
        if from_archive:
            _record_view(request, call, apart="archive", archived=True)
        else:
            _record_view(request, call)
    gathered = panel.gather(
        call, now, beside, with_payloads=with_payloads, from_archive=from_archive
    )
    return {
        "panel": gathered,
        "may_reveal": request.membership.may_reveal and not with_payloads,
        "reveals": reveals(request, "call.reveal", subject),
    }


def _record_view(
    request: TenantRequest, call: CallDetail, verb: str = "call.view", **details: Any
) -> None:
    record_view(
        request.tenant.id,
        request.user,
        verb,
        str(call.invocation_id),
        tool=call.tool_name,
        day=f"{call.started_on}",
        **details,
    )
