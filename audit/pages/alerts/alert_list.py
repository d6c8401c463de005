"""Alerts: the list, one alert with its history, acknowledge and resolve."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from audit.alerts import life
from audit.alerts.events import SOURCES
from audit.alerts.rules import Condition, EventCondition, WindowCondition
from audit.alerts.shown import limit, number, sentence
from audit.alerts.stored import condition_of
from audit.models import Alert, AlertRule
from audit.pages.alerts.forms import NoteForm
from audit.pages.show.choice import choice
from audit.queries.alerts import AlertFilter, alert_page
from audit.queries.cursor import read_cursor
from audit.queries.price_lists import currency_used
from config.http.ordering import SORTED_MAX, Key, Order, page_in_order, requested_order
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.models import Role, User

PAGE_SIZE = 50
EDITS = Role.EDITOR
_COLUMNS: Mapping[str, Key[Alert]] = {
    "alert": lambda alert: alert.title.casefold(),
    "state": lambda alert: alert.state,
    "from": lambda alert: alert.held_from,
    "to": lambda alert: alert.held_to,
}
"""The columns by which alerts are sorted."""
_NEWEST = Order("from")


class Act(NamedTuple):
    """What happened to an alert."""

    at: datetime
    by: str
    what: str
    note: str = ""


@require_safe
@tenant_page()
def alert_list(request: TenantRequest) -> HttpResponseBase:
    """Show the alerts that nobody has resolved; `?state=all` shows all."""
    is_all = choice(request, "state", ["all"]) == "all"
    order = requested_order(request, _COLUMNS, "from")
    alerts, pager = _alerts(request, AlertFilter(only_unresolved=not is_all), order)
    context = {
        "alerts": alerts,
        "is_all": is_all,
        "order": order,
        **pager,
        "has_rules": AlertRule.objects.for_tenant(request.tenant.id).exists(),
        "may_edit": has_role(request.membership, EDITS),
    }
    return render(request, "alerts/alert_list.html", context)


def _alerts(
    request: TenantRequest, wanted: AlertFilter, order: Order
) -> tuple[list[Alert], dict[str, Any]]:
    """Return the alerts of the page that the address names, and the context of its pager."""
    place = request.GET.get("before", "")
    if order != _NEWEST:
        newest = alert_page(wanted, size=SORTED_MAX + 1).alerts
        page = page_in_order(
            newest, _COLUMNS, order, identify=lambda one: one.id, after=place, size=PAGE_SIZE
        )
        return page.rows, page.pager
    before = read_cursor(place, UUID)
    listed = alert_page(wanted, before=before, size=PAGE_SIZE)
    return listed.alerts, {"older": listed.older, "is_first_page": before is None}


@require_safe
@tenant_page()
def alert_detail(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Show one alert: what held, since when, and who did what."""
    alert = Alert.objects.for_tenant(request.tenant.id).filter(id=pk).first()
    if alert is None:
        raise Http404("no such alert")
    stored = AlertRule.objects.for_tenant(request.tenant.id).filter(id=alert.rule_id).first()
    condition = None if stored is None else condition_of(stored)
    currency = currency_used()
    context = {
        "alert": alert,
        "rule": stored,
        "page": _page(condition),
        "sentence": "" if condition is None else sentence(condition, currency),
        "value": _value(alert.value, condition, currency),
        "compared_with": _value(alert.compared_with, condition, currency),
        "threshold": _limit(alert, condition, currency),
        "history": _history(alert),
        "may_edit": has_role(request.membership, EDITS),
        "note": NoteForm()["note"],
    }
    return render(request, "alerts/alert_detail.html", context)


@require_POST
@tenant_page(role=EDITS)
def alert_acknowledge(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Take care of an alert, with a note."""
    return _done(request, pk, life.acknowledge, "Acknowledged.", "This alert is not open.")


@require_POST
@tenant_page(role=EDITS)
def alert_resolve(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Close an alert, with a note."""
    return _done(request, pk, life.resolve, "Resolved.", "This alert was already resolved.")


def _done(
    request: TenantRequest,
    pk: UUID,
    act: Callable[[Alert, User | str, str, datetime], bool],
    done: str,
    needless: str,
) -> HttpResponseBase:
    alert = life.find_alert(pk)
    if alert is None:
        raise Http404("no such alert")
    form = NoteForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Nothing was changed. Enter a note.")
    elif act(alert, request.user, form.cleaned_data["note"], timezone.now()):
        messages.success(request, done)
    else:
        messages.info(request, needless)
    return redirect("alert_detail", pk)


def _page(condition: Condition | None) -> str:
    """The route of the page that shows what a rule of events is about; '' for other rules."""
    if not isinstance(condition, EventCondition):
        return ""
    return SOURCES[condition.event].page


def _value(value: float | None, condition: Condition | None, currency: str) -> str:
    if value is None:
        return ""
    if not isinstance(condition, WindowCondition):
        return f"{value:,g}"
    return number(value, condition.measure, currency)


def _limit(alert: Alert, condition: Condition | None, currency: str) -> str:
    if alert.threshold is None:
        return ""
    if not isinstance(condition, WindowCondition):
        return f"{alert.threshold:,g}"
    return limit(condition, alert.threshold, currency)


def _history(alert: Alert) -> list[Act]:
    fired = f"Fired as {'an alert' if alert.severity == 'alert' else 'a warning'}"
    if alert.is_late:
        fired += ", late: its events arrived late, or no worker ran"
    history = [Act(alert.opened_at, "Tooltrail", fired)]
    if alert.acknowledged_at is not None:
        by, note = alert.acknowledged_by or "", alert.acknowledge_note or ""
        history.append(Act(alert.acknowledged_at, by, "Acknowledged", note))
    if alert.resolved_at is not None:
        by, note = alert.resolved_by or "", alert.resolve_note or ""
        history.append(Act(alert.resolved_at, by, "Resolved", note))
    return sorted(history, key=lambda each: each.at)
