"""The spans that arrived by OTLP and became no call, by name, and why."""

from collections.abc import Mapping

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from audit.pages.show.choice import choice
from audit.queries.skipped_spans import KEPT_FOR, Reason, SkippedSpans, skipped_spans
from config.http.ordering import Key, sorted_table
from tenants.access import TenantRequest, tenant_page

_SHOWN = {
    "": "All",
    Reason.UNMARKED.value: "Name a tool",
    Reason.REJECTED.value: "Rejected",
    Reason.NO_CALL.value: "No tool calls",
}

_COLUMNS: Mapping[str, Key[SkippedSpans]] = {
    "name": lambda one: one.kind.name,
    "scope": lambda one: one.kind.scope or None,
    "service": lambda one: one.kind.service or None,
    "why": lambda one: one.reason.value,
    "count": lambda one: one.count,
    "first": lambda one: one.first_at,
    "last": lambda one: one.last_at,
}
"""The columns by which skipped spans are sorted."""


@require_safe
@tenant_page()
def skipped_list(request: TenantRequest) -> HttpResponse:
    """Show what was skipped; `?reason=` filters."""
    wanted = choice(request, "reason", _SHOWN)
    everything = skipped_spans()
    shown = [one for one in everything if wanted in ("", one.reason)]
    context = {
        "skipped": sorted_table(request, shown, _COLUMNS, ""),
        "is_empty": not everything,
        "wanted": wanted,
        "reasons": _SHOWN,
        "days": KEPT_FOR.days,
    }
    return render(request, "skipped/skipped_list.html", context)
