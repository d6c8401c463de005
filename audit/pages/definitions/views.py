"""Definitions as served: the list of tools by server, one definition with its changes, approve."""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from audit.pages.definitions.forms import ApproveForm
from audit.pages.show.choice import choice
from audit.queries.call_query import quoted
from audit.queries.definitions import (
    COUNTED_MAX,
    DefinitionChange,
    DefinitionText,
    ServedDefinition,
    ServedTool,
    ToolFilter,
    definition_before,
    definition_history,
    definitions_of_server,
    find_definition,
    served_tools,
    unapproved_use,
    unapproved_use_in,
)
from audit.queries.time_range import TimeRange
from audit.show.figures import counted
from audit.work.definitions import approve, withdraw
from config.http.ordering import (
    SORTED_MAX,
    Key,
    Order,
    page_in_order,
    requested_order,
    sorted_table,
)
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.actions import storable_text
from tenants.models import Role, Tenant, User
from tools_registry.contract_diff import Side
from tools_registry.models import Tool
from tools_registry.served import Class, DefinitionDiff, compare_definitions, hidden_characters

PAGE_SIZE = 100
DIFFERENCES_SHOWN, VALUE_LENGTH = 200, 20_000
APPROVES = Role.EDITOR
USE_SHOWN = timedelta(hours=24)
_NAME_MAX = 256
_TONES = {
    Class.RISK: "failed",
    Class.BREAKING: "violation",
    Class.WORDING: "open",
    Class.COMPATIBLE: "ok",
    Class.COSMETIC: "ok",
}


_COLUMNS: Mapping[str, Key[ServedTool]] = {
    "tool": lambda one: one.tool_name,
    "server": lambda one: one.server,
    "since": lambda one: one.since,
    "calls": lambda one: one.unapproved_calls,
}
"""The columns by which tools of servers are sorted."""
_HISTORY: Mapping[str, Key[DefinitionChange]] = {
    "since": lambda one: one.seen_at,
    "definition": lambda one: one.digest,
    "state": lambda one: one.state,
    "server": lambda one: one.server_version,
    "client": lambda one: one.client,
    "entry": lambda one: one.ledger_index,
}
"""The columns by which the history of a definition is sorted."""


class ListedTool(NamedTuple):
    """A tool of a server, and the query for its calls under what is in force."""

    tool: ServedTool
    query: str


@require_safe
@tenant_page()
def definition_list(request: TenantRequest) -> HttpResponseBase:
    """Show the tools of all servers with the definition in force; `?state=unapproved` filters."""
    server, tool = (
        storable_text(request.GET.get(name, "")[:_NAME_MAX]) for name in ("server", "tool")
    )
    wanted = ToolFilter(server, tool, bool(choice(request, "state", ["unapproved"])))
    now = timezone.now()
    order = requested_order(request, _COLUMNS, "")
    tools, pager = _page(request, wanted, order)
    context = {
        "tools": [ListedTool(one, _query(one.tool_name, one.since)) for one in tools],
        "order": order,
        **pager,
        "wanted": wanted,
        "is_filtered": wanted != ToolFilter(),
        "counted_max": COUNTED_MAX,
        "may_approve": bool(server)
        and has_role(request.membership, APPROVES)
        and any(one.may_be_approved for one in tools),
        "reason": ApproveForm()["reason"],
        "use": unapproved_use_in(TimeRange(now - USE_SHOWN, now, UTC)),
    }
    return render(request, "definitions/definition_list.html", context)


def _page(
    request: TenantRequest, wanted: ToolFilter, order: Order
) -> tuple[list[ServedTool], dict[str, Any]]:
    """Return the tools of the page that the address names, and the context of its pager."""
    place = request.GET.get("after", "")
    if order.column:
        page = page_in_order(
            served_tools(wanted, size=SORTED_MAX + 1).tools,
            _COLUMNS,
            order,
            identify=lambda one: f"{one.server}\n{one.tool_name}",
            after=place,
            size=PAGE_SIZE,
        )
        return page.rows, page.pager | {"next": page.older and {"after": page.older}}
    after_server, after_tool = (
        storable_text(request.GET.get(name, "")[:_NAME_MAX]) for name in ("after", "after_tool")
    )
    listed = served_tools(wanted, after=(after_server, after_tool), size=PAGE_SIZE)
    following = listed.after and {"after": listed.after[0], "after_tool": listed.after[1]}
    return listed.tools, {"is_first_page": not after_server, "next": following}


@require_safe
@tenant_page()
def definition_detail(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Show one definition: what changed, what is in force when, its text.

    It is compared with the last approved one, or with another of the same tool (`?from=<id>`).
    """
    one = _definition(pk)
    served = one.served
    old = _compared(request, one)
    diff = None if old is None else compare_definitions(old.value, one.value)
    contract = None if diff is None else diff.contract
    history = definition_history(served.server, served.tool_name)
    use = unapproved_use(served)
    context = {
        "definition": served,
        "value": one.value,
        "old": None if old is None else old.served,
        "diff": diff,
        "classes": [] if diff is None else [(each, _TONES[each]) for each in diff.classes],
        "rows": [] if diff is None else _rows(diff),
        "more": 0 if diff is None else max(0, len(diff.differences) - DIFFERENCES_SHOWN),
        "hidden": sorted(f"U+{ord(each):04X}" for each in hidden_characters(one.value))[:20],
        "history": sorted_table(request, history, _HISTORY, "since"),
        "in_force": history[0] if history else None,
        "use": use,
        "use_query": use.first_at and _query(served.tool_name, use.first_at, "is:unapproved"),
        "counted_max": COUNTED_MAX,
        "may_approve": has_role(request.membership, APPROVES),
        "reason": ApproveForm()["reason"],
        "is_registered": Tool.objects.filter(
            tenant=request.tenant, name=served.tool_name, current_number__gt=0
        ).exists(),
        "calls_query": f"tool:{quoted(served.tool_name)}",
        "callers": contract and contract.verdict(Side.INPUT),
        "consumers": contract and contract.verdict(Side.OUTPUT),
    }
    return render(request, "definitions/definition_detail.html", context)


@require_POST
@tenant_page(role=APPROVES)
def definition_approve(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Approve a definition, with a reason."""
    return _decided(
        request,
        pk,
        approve,
        invalid="Not approved. Enter a reason.",
        done="The definition is approved for calls from now on.",
        needless="This definition needs no approval.",
    )


@require_POST
@tenant_page(role=APPROVES)
def definition_withdraw(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Withdraw the approval of a definition, with a reason."""
    return _decided(
        request,
        pk,
        withdraw,
        invalid="Not withdrawn. Enter a reason.",
        done="The approval is withdrawn for calls from now on.",
        needless="This definition has no approval to withdraw.",
    )


def _decided(
    request: TenantRequest,
    pk: UUID,
    decide: Callable[[Tenant, User, ServedDefinition, str, datetime], bool],
    *,
    invalid: str,
    done: str,
    needless: str,
) -> HttpResponseBase:
    """Approve a definition, or withdraw its approval. The texts say what came of it."""
    one = _definition(pk).served
    form = ApproveForm(request.POST)
    if not form.is_valid():
        messages.error(request, invalid)
    elif decide(request.tenant, request.user, one, form.cleaned_data["reason"], timezone.now()):
        messages.success(request, done)
    else:
        messages.info(request, needless)
    return redirect("definition_detail", pk)


@require_POST
@tenant_page(role=APPROVES)
def definitions_approve(request: TenantRequest) -> HttpResponseBase:
    """Approve several definitions of one server with one reason: an entry of the ledger each."""
    form = ApproveForm(request.POST)
    server = storable_text(request.POST.get("server", "")[:_NAME_MAX])
    chosen = _chosen(request.POST.getlist("definition")[:PAGE_SIZE])
    if not form.is_valid() or not chosen:
        messages.error(request, "Not approved. Choose definitions, and enter a reason.")
    else:
        now, reason = timezone.now(), form.cleaned_data["reason"]
        approved = sum(
            approve(request.tenant, request.user, one, reason, now)
            for one in definitions_of_server(server, chosen)
        )
        message = f"Approved for calls from now on: {counted(approved, 'definition')}."
        messages.success(request, message)
    query = urlencode({"server": server, "state": "unapproved"})
    return redirect(f"{reverse('definition_list')}?{query}")


def _chosen(texts: Iterable[str]) -> list[UUID]:
    chosen = []
    for text in texts:
        with suppress(ValueError):
            chosen.append(UUID(text))
    return chosen


def _definition(pk: UUID) -> DefinitionText:
    one = find_definition(pk)
    if one is None:
        raise Http404("no such definition")
    return one


def _compared(request: TenantRequest, one: DefinitionText) -> DefinitionText | None:
    text = request.GET.get("from", "")
    if not text:
        return definition_before(one.served)
    try:
        other = _definition(UUID(text))
    except ValueError:
        raise Http404("no such definition") from None
    if (other.served.server, other.served.tool_name) != (one.served.server, one.served.tool_name):
        raise Http404("a definition of another tool")
    return other


def _query(tool_name: str, since: datetime, *terms: str) -> str:
    moment = f"since:{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return " ".join((f"tool:{quoted(tool_name)}", *terms, moment))


def _rows(diff: DefinitionDiff) -> list[dict[str, Any]]:
    """The differences as rows: pointer, and before and after as pieces or as cut JSON."""
    return [
        {
            "pointer": each.change.pointer or "/",
            "before": each.before,
            "after": each.after,
            "removed": None if each.before else _shown(each.change.before),
            "added": None if each.after else _shown(each.change.after),
        }
        for each in diff.differences[:DIFFERENCES_SHOWN]
    ]


def _shown(value: Any) -> str | None:
    if value is None:
        return None
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_LENGTH else f"{text[:VALUE_LENGTH]}…"
