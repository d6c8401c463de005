"""Maintenance windows: the list, with a form for a new one, and delete."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from audit.alerts.maintenance import Maintenance
from audit.alerts.quiet import (
    TooManyWindowsError,
    UnknownRuleError,
    all_windows,
    delete_window,
    find_window,
    maintenance_of,
    rule_names,
    save_window,
)
from audit.alerts.shown import length, recurrence
from audit.models import MaintenanceWindow
from audit.pages.alerts.alert_list import EDITS
from audit.pages.alerts.forms import MaintenanceForm
from config.http.ordering import Key, sorted_table
from tenants.access import TenantRequest, has_role, tenant_page


class ListedWindow(NamedTuple):
    """A maintenance window in words, and whether it is on."""

    stored: MaintenanceWindow
    window: Maintenance
    when: str
    length: str
    ends_at: datetime | None
    next_at: datetime | None


_COLUMNS: Mapping[str, Key[ListedWindow]] = {
    "window": lambda one: one.window.name.casefold(),
    "first": lambda one: one.window.starts_at,
    "often": lambda one: one.when,
    "rules": lambda one: len(one.window.rules) or None,
}
"""The columns by which maintenance windows are sorted."""


@require_safe
@tenant_page()
def maintenance_list(request: TenantRequest) -> HttpResponseBase:
    """Show all maintenance windows."""
    return _page(request, MaintenanceForm(), 200)


@require_POST
@tenant_page(role=EDITS)
def maintenance_new(request: TenantRequest) -> HttpResponseBase:
    """Make a maintenance window."""
    form = MaintenanceForm(request.POST)
    if form.is_valid() and form.window is not None and _save(request, form, form.window):
        messages.success(request, f"Maintenance window “{form.window.name}” saved.")
        return redirect("maintenance_list")
    return _page(request, form, 422)


@require_POST
@tenant_page(role=EDITS)
def maintenance_delete(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Delete a maintenance window. If it is on, it ends."""
    windows = MaintenanceWindow.objects.for_tenant(request.tenant.id).select_for_update()
    stored = windows.filter(id=pk).first()
    if stored is None:
        raise Http404("no such maintenance window")
    delete_window(request.tenant, request.user, stored)
    messages.success(request, f"Maintenance window “{stored.name}” deleted.")
    return redirect("maintenance_list")


def _save(request: TenantRequest, form: MaintenanceForm, window: Maintenance) -> bool:
    """Save the window; if it cannot be saved, the form says why."""
    if find_window(window.name) is not None:
        form.add_error("name", "Another maintenance window has this name.")
        return False
    try:
        save_window(request.tenant, request.user, window, timezone.now())
    except (TooManyWindowsError, UnknownRuleError) as error:
        form.add_error(None, str(error))
        return False
    return True


def _page(request: TenantRequest, form: MaintenanceForm, status: int) -> HttpResponseBase:
    now, names = timezone.now(), rule_names()
    listed = []
    for stored in all_windows():
        window = maintenance_of(stored, names)
        ends_at = window.ends_at(now)
        next_at = None if ends_at else window.next_at(now)
        listed.append(
            ListedWindow(
                stored, window, recurrence(window), length(window.minutes), ends_at, next_at
            )
        )
    listed.sort(key=lambda one: (one.ends_at is None, one.next_at is None, one.next_at or now))
    context: dict[str, Any] = {
        "windows": sorted_table(request, listed, _COLUMNS, "", page=reverse("maintenance_list")),
        "form": form,
        "may_edit": has_role(request.membership, EDITS),
    }
    return render(request, "alerts/maintenance_list.html", context, status=status)
