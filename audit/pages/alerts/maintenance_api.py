"""Maintenance windows over the API."""

from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query
from pydantic import Field, ValidationError

from audit.alerts.maintenance import Maintenance, Recurrence
from audit.alerts.quiet import (
    WINDOWS_MAX,
    TooManyWindowsError,
    UnknownRuleError,
    all_windows,
    delete_window,
    maintenance_of,
    rule_names,
    save_window,
)
from audit.models import MaintenanceWindow
from audit.pages.show.router import router
from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, acts
from tenants.api_reads import Answer, ListParams, Page, paged, reads
from tenants.models import Scope
from tenants.scope import current_tenant_id


class OneWindow(Answer):
    """A planned time, or one that repeats, in which nobody is notified of alerts."""

    id: UUID
    name: str
    reason: str
    starts_at: datetime
    """When it begins, or begins for the first time."""
    minutes: int
    repeats: Recurrence
    time_zone: str
    """By whose clock it repeats."""
    rules: list[str]
    """Names of the rules whose alerts nobody is notified of; empty: all rules."""
    on_until: datetime | None
    """When it ends; null if it is not on."""
    changed_at: datetime
    changed_by: str


class WindowList(Page[OneWindow]):
    """All maintenance windows of the tenant, by name."""


class WindowSet(Body):
    """Maintenance windows to be saved, each under its name."""

    windows: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=WINDOWS_MAX)]
    """Each with `name`, `reason`, `starts_at`, `minutes`, `repeats`, `time_zone` and `rules`, as
    they are listed.
    """


@reads(router, "/maintenance-windows", WindowList, tag="alerts", problems=("cursor", "limit"))
def list_maintenance_windows(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List the maintenance windows of the tenant. PUT takes `name` to `rules`."""
    return _windows(params)


@acts(
    router,
    "PUT",
    "/maintenance-windows",
    WindowList,
    scope=Scope.OPERATE,
    tag="alerts",
    body=WindowSet,
)
def save_maintenance_windows(act: Act) -> dict[str, Any]:
    """Create each of these maintenance windows, or replace the one of its name.

    One that is like this already stays as it is. Others stay, too. If one is invalid, nothing is
    saved. Returns all windows of the tenant.
    """
    wanted = [_read(members) for members in act.read(WindowSet).windows]
    for window in wanted:
        try:
            save_window(act.tenant, act.actor, window, timezone.now())
        except (TooManyWindowsError, UnknownRuleError) as error:
            raise ProblemError("invalid", str(error), parameter="windows") from error
    return _windows(ListParams(limit=WINDOWS_MAX))


@acts(
    router,
    "DELETE",
    "/maintenance-windows/{uuid:window_id}",
    OneWindow,
    scope=Scope.OPERATE,
    tag="alerts",
    problems=("not_found",),
)
def delete_maintenance_window(act: Act, window_id: Path[UUID]) -> dict[str, Any]:
    """Delete a maintenance window and return it. If it is on, it ends."""
    windows = MaintenanceWindow.objects.for_tenant(current_tenant_id()).select_for_update()
    stored = windows.filter(id=window_id).first()
    if stored is None:
        raise ProblemError("not_found", "Maintenance window not found.")
    members = _window(stored, rule_names(), timezone.now())
    delete_window(act.tenant, act.actor, stored)
    return members


def _read(members: dict[str, Any]) -> Maintenance:
    try:
        return Maintenance.model_validate(members)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(each) for each in ("windows", *first["loc"]))
        message = first["msg"].removeprefix("Value error, ").rstrip(".")
        raise ProblemError("malformed", f"{where}: {message}.") from error


def _windows(params: ListParams) -> dict[str, Any]:
    names, now = rule_names(), timezone.now()
    shown, after = paged("maintenance-windows", all_windows(), params, lambda one: one.name)
    return {"items": [_window(one, names, now) for one in shown], "next": after}


def _window(stored: MaintenanceWindow, names: dict[UUID, str], now: datetime) -> dict[str, Any]:
    window = maintenance_of(stored, names)
    return window.model_dump(mode="json") | {
        "id": stored.id,
        "on_until": window.ends_at(now),
        "changed_at": stored.changed_at.astimezone(UTC),
        "changed_by": stored.changed_by,
    }
