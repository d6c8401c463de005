"""Erasures by filter: the list, a dry run, its confirmation, and the progress."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from audit.models import Erasure, ErasureState, LedgerErasure
from audit.pages.settings.acts import setting_of
from audit.pages.settings.hold_forms import ReasonForm
from audit.pages.show.requested_query import mistakes, read_query
from audit.queries.call_query import MAX_LENGTH
from audit.retention import erasure
from audit.retention.erasure_targets import CallsAlteredError
from audit.retention.floor import FloorError, erasure_refusal
from audit.tasks.requested import erase_calls
from config.http.htmx import render_page
from config.http.ordering import Key, sorted_table
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.accounts.step_up import needs_fresh_factor
from tenants.models import Role
from tenants.slices import percent

_LISTED = 100
_ENTRIES = 50


class ListedErasure(NamedTuple):
    """An erasure and the label of its state."""

    erasure: Erasure
    state: str


_COLUMNS: Mapping[str, Key[ListedErasure]] = {
    "calls": lambda one: one.erasure.query,
    "state": lambda one: one.state,
    "erased": lambda one: one.erasure.erased_calls,
    "requested": lambda one: one.erasure.id,
}
"""The columns by which erasures are sorted. Their ids are in the order of time."""


@require_safe
@tenant_page(role=Role.AUDITOR)
def erasure_list(request: TenantRequest) -> HttpResponse:
    """Show the newest erasures and dry runs. Admins may start one for the query `q`."""
    return _list(request, request.GET.get("q", ""))


@require_POST
@tenant_page(role=Role.ADMIN)
def erasure_start(request: TenantRequest) -> HttpResponseBase:
    """Start a dry run for the calls that match `q`."""
    query = read_query(request, request.POST.get("q", ""))
    if query.problems or not query.terms:
        return _list(request, query.text, is_submitted=True)
    started = erasure.start_erasure(request.tenant, request.user, query, timezone.now())
    erase_calls.defer(tenant_id=str(request.tenant.id), erasure_id=str(started.id))
    return redirect("erasure_detail", started.id)


@require_safe
@tenant_page(role=Role.AUDITOR)
def erasure_detail(request: TenantRequest, pk: UUID) -> HttpResponse:
    """Show what a dry run counted, the progress of an erasure, and what was erased."""
    stored = _own(pk)
    entries = LedgerErasure.objects.for_tenant(stored.tenant_id).filter(erasure_id=pk)
    context: dict[str, Any] = {
        "erasure": stored,
        "state": ErasureState(stored.state).label,
        "is_under_way": stored.state in erasure.UNDER_WAY,
        "percent": _percent(stored),
        "entries": list(entries.order_by("entry_index")[: _ENTRIES + 1]),
        "entries_max": _ENTRIES,
        "reason": ReasonForm()["reason"],
        "may_erase": has_role(request.membership, Role.ADMIN),
        "refusal": erasure_refusal(
            setting_of(request.tenant).floor_days, stored.created_person, request.user
        ),
    }
    return render_page(request, "settings/erasure_detail.html", "erasure", context)


@require_POST
@tenant_page(role=Role.ADMIN)
@needs_fresh_factor
def erasure_confirm(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Erase the calls that a dry run counted."""
    _own(pk)
    form = ReasonForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Nothing erased. Enter a reason.")
        return redirect("erasure_detail", pk)
    try:
        is_confirmed = erasure.confirm_erasure(
            request.tenant, request.user, pk, form.cleaned_data["reason"], timezone.now()
        )
    except (CallsAlteredError, FloorError) as error:
        messages.error(request, str(error))
        is_confirmed = False
    if is_confirmed:
        erase_calls.defer(tenant_id=str(request.tenant.id), erasure_id=str(pk))
    return redirect("erasure_detail", pk)


@require_POST
@tenant_page(role=Role.ADMIN)
def erasure_cancel(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Cancel an erasure. What is already erased cannot be restored."""
    _own(pk)
    erasure.cancel_erasure(request.tenant, request.user, pk, timezone.now())
    return redirect("erasure_detail", pk)


def _list(request: TenantRequest, text: str, *, is_submitted: bool = False) -> HttpResponse:
    erasures = Erasure.objects.for_tenant(request.tenant.id).order_by("-id")
    query = read_query(request, text)
    problem = ""
    if is_submitted and not query.problems and not query.terms:
        problem = "Enter a query. An empty query would select all calls."
    listed = [ListedErasure(each, ErasureState(each.state).label) for each in erasures[:_LISTED]]
    context = {
        "erasures": sorted_table(
            request, listed, _COLUMNS, "requested", page=reverse("erasure_list")
        ),
        "q": text[:MAX_LENGTH],
        "mistakes": mistakes(query),
        "problem": problem,
        "hint": "The matching calls are counted first. Nothing is erased until you confirm.",
        "may_erase": has_role(request.membership, Role.ADMIN),
    }
    return render(request, "settings/erasure_list.html", context)


def _own(pk: UUID) -> Erasure:
    stored = erasure.find_erasure(pk)
    if stored is None:
        raise Http404("no such erasure")
    return stored


def _percent(of: Erasure) -> int:
    """Return the progress. Half of an erasure is its calls, the other half reading the log."""
    read = min(of.next_index, of.end_index) / of.end_index if of.end_index else 0.0
    read = {"find": 0.0, "calls": 0.0, "log": read}.get(of.step, 1.0)
    if of.state in erasure.DRY:
        return percent(read, 1)
    return percent(min(1.0, of.erased_calls / max(1, of.call_count)) + read, 2)
