"""The audit log: the list of actions, and its export."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple
from uuid import UUID

from django.http import Http404, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.exports.actions import FORMS, chunks
from audit.pages.actions.forms import ActionFilterForm
from audit.queries.actions import (
    VERBS,
    ActionFilter,
    ActionKey,
    action_page,
    actions_with_keys,
    newest_keys,
)
from audit.queries.cursor import read_cursor
from config.http.htmx import render_page
from config.http.ordering import SORTED_MAX, Key, Order, page_in_order, requested_order
from config.http.streams import stream
from tenants.access import TenantRequest, tenant_page
from tenants.actions import record_view
from tenants.models import Action, Role

PAGE_SIZE = 50
_COLUMNS: Mapping[str, Key[ActionKey]] = {
    "time": lambda action: action.at,
    "actor": lambda action: action.user_name.casefold(),
    "action": lambda action: action.verb,
    "target": lambda action: action.subject.casefold(),
}
"""The columns by which actions are sorted."""
_NEWEST = Order("time")


class CallAddress(NamedTuple):
    """The parts of a call's URL."""

    day: date
    invocation_id: UUID


@dataclass(frozen=True, slots=True)
class ListedAction:
    """An action with its details as pairs of name and text, and the call it is about."""

    action: Action
    details: list[tuple[str, str]]
    call: CallAddress | None


@require_safe
@tenant_page(role=Role.AUDITOR)
def action_list(request: TenantRequest) -> HttpResponse:
    """Show a page of the actions that match the URL's filters, newest first."""
    form = ActionFilterForm(request.GET, timezone.now())
    is_valid = form.is_valid()
    wanted = form.wanted()
    order = requested_order(request, _COLUMNS, "time")
    page: list[Action] = []  # half a filter may match the opposite of what was meant
    pager: dict[str, Any] = {"is_first_page": True}
    if is_valid:
        page, pager = _page(request, wanted, order)
    context = {
        "form": form,
        "wanted": wanted,
        "verbs": VERBS,
        "actions": [ListedAction(one, _pairs(one), _call(one)) for one in page],
        "order": order,
        **pager,
        "is_filtered": wanted != ActionFilter(),
    }
    return render_page(request, "actions/action_list.html", "action-list", context)


def _page(
    request: TenantRequest, wanted: ActionFilter, order: Order
) -> tuple[list[Action], dict[str, Any]]:
    """Return the actions of the page that the address names, and the context of its pager."""
    place = request.GET.get("before", "")
    if order != _NEWEST:
        newest = newest_keys(wanted, size=SORTED_MAX + 1)
        page = page_in_order(
            newest, _COLUMNS, order, identify=lambda one: one.id, after=place, size=PAGE_SIZE
        )
        return actions_with_keys(page.rows), page.pager
    before = read_cursor(place, UUID)
    listed = action_page(wanted, before=before, size=PAGE_SIZE)
    return listed.actions, {"older": str(listed.older or ""), "is_first_page": before is None}


@require_safe
@tenant_page(role=Role.AUDITOR)
def action_export(request: TenantRequest, kind: str) -> HttpResponseBase:
    """Export all actions that match the URL's filters as NDJSON or CSV. It is recorded."""
    if kind not in FORMS:
        raise Http404("no such form of export")
    now = timezone.now()
    form = ActionFilterForm(request.GET, now)
    if not form.is_valid():  # an export must not hold more than was requested
        raise Http404("no such filter")
    if request.method != "HEAD":
        query = request.GET.urlencode()
        record_view(request.tenant.id, request.user, "action.export", kind, query=query)
    name = f"actions-{request.tenant.slug}-{now:%Y%m%dT%H%M%SZ}.{kind}"
    return stream(
        request.tenant.id,
        FORMS[kind].write(chunks(request.tenant.id, form.wanted())),
        FORMS[kind].content_type,
        file_name=name,
    )


def _pairs(action: Action) -> list[tuple[str, str]]:
    details: Any = action.details
    if not isinstance(details, dict):  # not written by this program
        return [("", json.dumps(details))]
    return [
        (name.replace("_", " "), value if isinstance(value, str) else json.dumps(value))
        for name, value in details.items()
        if value not in (None, "")
    ]


def _call(action: Action) -> CallAddress | None:
    if not action.verb.startswith("call.") or not isinstance(action.details, dict):
        return None
    try:
        return CallAddress(date.fromisoformat(action.details["day"]), UUID(action.subject))
    except (KeyError, TypeError, ValueError):
        return None
