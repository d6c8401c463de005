"""The spans that arrived by OTLP and became no call, by name, and why."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from audit.pages.show.choice import choice
from audit.queries.skipped_spans import KEPT_FOR, Reason, skipped_spans
from tenants.access import TenantRequest, tenant_page

_SHOWN = {
    "": "All",
    Reason.UNMARKED.value: "Name a tool",
    Reason.REJECTED.value: "Rejected",
    Reason.NO_CALL.value: "No tool calls",
}


@require_safe
@tenant_page()
def skipped_list(request: TenantRequest) -> HttpResponse:
    """Show what was skipped; `?reason=` filters."""
    wanted = choice(request, "reason", _SHOWN)
    everything = skipped_spans()
    context = {
        "skipped": [one for one in everything if wanted in ("", one.reason)],
        "is_empty": not everything,
        "wanted": wanted,
        "reasons": _SHOWN,
        "days": KEPT_FOR.days,
    }
    return render(request, "skipped/skipped_list.html", context)
