"""The audit log: the list of actions, and its export."""

import json
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple
from uuid import UUID

from django.http import Http404, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.exports.actions import FORMS, chunks
from audit.pages.actions.forms import ActionFilterForm
from audit.queries.actions import NO_ACTIONS, VERBS, ActionFilter, action_page
from audit.queries.cursor import read_cursor
from config.http.htmx import render_page
from config.http.streams import stream
from tenants.access import TenantRequest, tenant_page
from tenants.actions import record_view
from tenants.models import Action, Role

PAGE_SIZE = 50


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
    form = ActionFilterForm(request.GET)
    is_valid = form.is_valid()
    wanted = form.wanted(timezone.now())
    before = read_cursor(request.GET.get("before", ""), UUID)
    page = NO_ACTIONS  # half a filter may match the opposite of what was meant
    if is_valid:
        page = action_page(wanted, before=before, size=PAGE_SIZE)
    context = {
        "form": form,
        "wanted": wanted,
        "verbs": VERBS,
        "actions": [ListedAction(one, _pairs(one), _call(one)) for one in page.actions],
        "older": page.older and str(page.older),
        "is_first_page": before is None,
        "is_filtered": wanted != ActionFilter(),
    }
    return render_page(request, "actions/action_list.html", "action-list", context)


@require_safe
@tenant_page(role=Role.AUDITOR)
def action_export(request: TenantRequest, kind: str) -> HttpResponseBase:
    """Export all actions that match the URL's filters as NDJSON or CSV. It is recorded."""
    if kind not in FORMS:
        raise Http404("no such form of export")
    form = ActionFilterForm(request.GET)
    if not form.is_valid():  # an export must not hold more than was requested
        raise Http404("no such filter")
    now = timezone.now()
    if request.method != "HEAD":
        query = request.GET.urlencode()
        record_view(request.tenant.id, request.user, "action.export", kind, query=query)
    name = f"actions-{request.tenant.slug}-{now:%Y%m%dT%H%M%SZ}.{kind}"
    return stream(
        request.tenant.id,
        FORMS[kind].write(chunks(request.tenant.id, form.wanted(now))),
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
