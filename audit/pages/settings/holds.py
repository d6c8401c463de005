"""Legal holds: the list, create and release."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from audit.models import LegalHold
from audit.pages.settings.hold_forms import HoldForm, ReasonForm
from audit.queries.call_query import quoted
from audit.retention import holds
from config.http.ordering import Key, sorted_table
from tenants.access import TenantRequest, tenant_page
from tenants.accounts.step_up import needs_fresh_factor
from tenants.models import Role

_form_methods = require_http_methods(["GET", "HEAD", "POST"])


@dataclass(frozen=True, slots=True)
class ListedHold:
    """A hold with the query for the calls it covers."""

    hold: LegalHold
    query: str


_COLUMNS: Mapping[str, Key[ListedHold]] = {
    "hold": lambda one: one.hold.name.casefold(),
    "created": lambda one: one.hold.set_at,
    "released": lambda one: one.hold.released_at,
}
"""The columns by which holds are sorted."""


@_form_methods
@tenant_page(role=Role.AUDITOR)
def hold_list(request: TenantRequest) -> HttpResponseBase:
    """Show the holds, active ones first, and create a new one."""
    form = HoldForm(request.POST or None)
    if form.is_valid():
        hold = holds.set_hold(
            tenant=request.tenant,
            actor=request.user,
            name=form.cleaned_data["name"],
            reason=form.cleaned_data["reason"],
            covered=form.covered,
            now=timezone.now(),
        )
        messages.success(request, f"{hold.name} is in force. Calls that it covers can't be erased.")
        return redirect("hold_list")
    listed = [ListedHold(hold, _query(hold)) for hold in holds.all_holds()]
    context = {
        "form": form,
        "holds": sorted_table(request, listed, _COLUMNS, ""),
        "reason": ReasonForm()["reason"],
    }
    return render(request, "settings/hold_list.html", context)


@require_POST
@tenant_page(role=Role.AUDITOR)
@needs_fresh_factor
def hold_release(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Release a hold, with a reason."""
    form = ReasonForm(request.POST)
    if not LegalHold.objects.for_tenant(request.tenant.id).filter(id=pk).exists():
        raise Http404("no such hold")
    if not form.is_valid():
        messages.error(request, "Hold not released. Enter a reason.")
    elif hold := holds.release_hold(
        request.tenant, request.user, pk, form.cleaned_data["reason"], timezone.now()
    ):
        messages.success(
            request, f"{hold.name} was released. Retention erases expired data within an hour."
        )
    else:
        messages.info(request, "This hold was already released.")
    return redirect("hold_list")


def _query(hold: LegalHold) -> str:
    terms = [
        f"{name}:{quoted(value)}"
        for name, value in (
            ("trace", hold.trace_id),
            ("case", hold.case_id),
            ("tool", hold.tool_name),
        )
        if value is not None
    ]
    terms += [
        f"{name}:{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        for name, moment in (("since", hold.since), ("until", hold.until))
        if moment is not None
    ]
    return " ".join(terms)
