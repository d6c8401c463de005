"""The retention floor: the page, raising it, and requests to lower it with their approval."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from audit.models import FloorRequest, FloorState
from audit.pages.settings.acts import setting_of
from audit.pages.settings.hold_forms import ReasonField, ReasonForm
from audit.retention import floor
from audit.retention.floor import FLOOR_DAYS_MAX, FLOOR_DAYS_MIN, OPEN_FOR, FloorError
from config.http.ordering import Key, sorted_table
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.accounts.step_up import needs_fresh_factor
from tenants.actions import Person
from tenants.models import Membership, Role

_LISTED = 100
_REFUSED = 422
_ON_RECORD = "It becomes an entry of the ledger, which is never removed. Do not name persons."
_TONES = {FloorState.APPROVED: "violation", FloorState.REFUSED: "ok"}


def _days(label: str, help_text: str, *, required: bool) -> forms.IntegerField:
    return forms.IntegerField(
        label=label,
        help_text=help_text,
        required=required,
        min_value=FLOOR_DAYS_MIN,
        max_value=FLOOR_DAYS_MAX,
        widget=forms.NumberInput(attrs={"class": "form-control", "inputmode": "numeric"}),
    )


class RaiseForm(forms.Form):
    """A floor, or a higher one."""

    days = _days("Floor (days)", f"At least {FLOOR_DAYS_MIN}.", required=True)
    reason = ReasonField(help_text=_ON_RECORD)


class LowerForm(forms.Form):
    """A lower floor, or none."""

    to_days = _days("Lower floor (days)", "Leave empty to remove the floor.", required=False)
    reason = ReasonField(help_text=f"{_ON_RECORD} It is sent to all alert channels, too.")


class ListedRequest(NamedTuple):
    """A request, and the words for its state."""

    request: FloorRequest
    state: str
    tone: str


_COLUMNS: Mapping[str, Key[ListedRequest]] = {
    "request": lambda one: one.request.to_days or 0,
    "state": lambda one: one.state,
    "requested": lambda one: one.request.requested_at,
    "decided": lambda one: one.request.decided_at,
}
"""The columns by which requests are sorted."""


@require_safe
@tenant_page(role=Role.AUDITOR)
def floor_page(request: TenantRequest) -> HttpResponse:
    """Show the floor and the requests to lower it. Admins may raise it, and make a request."""
    return _page(request)


@require_POST
@tenant_page(role=Role.ADMIN)
def floor_raise(request: TenantRequest) -> HttpResponseBase:
    """Set the floor, or a higher one."""
    form = RaiseForm(request.POST, prefix="raise")
    if form.is_valid():
        given = form.cleaned_data
        try:
            floor.raise_floor(request.tenant, request.user, given["days"], given["reason"])
        except FloorError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, f"The retention floor is {given['days']:,} days now.")
            return redirect("floor_page")
    return _page(request, raising=form)


@require_POST
@tenant_page(role=Role.ADMIN)
@needs_fresh_factor
def floor_request(request: TenantRequest) -> HttpResponseBase:
    """Request a lower floor, or none."""
    form = LowerForm(request.POST, prefix="lower")
    if form.is_valid():
        given = form.cleaned_data
        try:
            floor.request_lower(
                request.tenant, _person(request), given["to_days"], given["reason"], timezone.now()
            )
        except FloorError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, "Requested. Another admin approves it within 7 days.")
            return redirect("floor_page")
    return _page(request, lowering=form)


@require_POST
@tenant_page(role=Role.ADMIN)
@needs_fresh_factor
def floor_approve(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Approve a request that another person made."""
    return _decide(request, pk, floor.approve, "Approved. The floor is as requested.")


@require_POST
@tenant_page(role=Role.ADMIN)
def floor_refuse(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Refuse a request, or withdraw one's own."""
    return _decide(request, pk, floor.refuse, "Refused. The floor stays as it is.")


def _decide(request: TenantRequest, pk: UUID, decide: Any, done: str) -> HttpResponseBase:
    if floor.find_request(pk) is None:
        raise Http404("no such request")
    form = ReasonForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Nothing changed. Enter a reason.")
        return redirect("floor_page")
    reason = form.cleaned_data["reason"]
    try:
        decide(request.tenant, _person(request), pk, reason, timezone.now())
    except FloorError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, done)
    return redirect("floor_page")


def _person(request: TenantRequest) -> Person:
    return Person(request.user, request.user)


def _page(
    request: TenantRequest,
    *,
    raising: RaiseForm | None = None,
    lowering: LowerForm | None = None,
) -> HttpResponse:
    listed = floor.all_requests()[:_LISTED]
    waiting = next((one for one in listed if one.state == FloorState.WAITING), None)
    admins = Membership.objects.filter(
        tenant=request.tenant, role=Role.ADMIN, is_service=False
    ).count()
    context = {
        "setting": setting_of(request.tenant),
        "waiting": waiting,
        "is_over": waiting is not None and waiting.expires_at <= timezone.now(),
        "is_own": waiting is not None and waiting.requested_person == request.user.pk,
        "is_alone": admins < 2,
        "may_decide": has_role(request.membership, Role.ADMIN),
        "requests": sorted_table(
            request,
            [
                ListedRequest(
                    one, FloorState(one.state).label, _TONES.get(FloorState(one.state), "")
                )
                for one in listed
                if one is not waiting
            ],
            _COLUMNS,
            "requested",
            page=reverse("floor_page"),
        ),
        "raising": raising or RaiseForm(prefix="raise"),
        "lowering": lowering or LowerForm(prefix="lower"),
        "reason": ReasonForm()["reason"],
        "minimum": FLOOR_DAYS_MIN,
        "open_days": OPEN_FOR.days,
    }
    status = _REFUSED if raising or lowering else 200
    return render(request, "settings/floor_page.html", context, status=status)
