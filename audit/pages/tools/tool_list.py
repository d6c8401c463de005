"""The list of tools: registered tools, and names that were only called."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.queries.tools import OBSERVED, UNCALLED, ListedTool, ToolFilter, list_tools
from config.http.ordering import SORTED_MAX, Key, Order, page_in_order, requested_order
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.actions import storable_text
from tenants.models import Role
from tools_registry.models import State

PAGE_SIZE = 50
STATES = {
    "": "All",
    **dict(State.choices),
    "draft": "With a draft",
    OBSERVED: "Seen in calls, not registered",
    UNCALLED: "Registered, never asked for",
}


_COLUMNS: Mapping[str, Key[ListedTool]] = {
    "tool": lambda tool: tool.name,
    "state": lambda tool: tool.state.label if tool.state else None,
    "version": lambda tool: tool.current_number or None,
    "calls": lambda tool: tool.called.calls if tool.called else 0,
    "last": lambda tool: tool.last_seen_at,
}
"""The columns by which tools are sorted."""
_BY_NAME = Order("tool")


class ToolFilterForm(forms.Form):
    """Which tools are listed. None if a value is invalid."""

    q = forms.CharField(max_length=256, required=False, strip=True)
    state = forms.ChoiceField(choices=list(STATES.items()), required=False)
    tag = forms.CharField(max_length=50, required=False, strip=False)


@require_safe
@tenant_page()
def tool_list(request: TenantRequest) -> HttpResponseBase:
    """Show tools by name, filtered by the URL. `?after=<name>` continues the list."""
    form = ToolFilterForm(request.GET)
    is_valid = form.is_valid()
    read = form.cleaned_data
    wanted = ToolFilter(read.get("q", ""), read.get("state", ""), read.get("tag", ""))
    after = storable_text(request.GET.get("after", ""))
    order = requested_order(request, _COLUMNS, "tool")
    tools: list[ListedTool] = []  # half a filter may match the opposite of what was meant
    pager: dict[str, Any] = {}
    if is_valid:
        tools, pager = _page(wanted, order, after)
    context = {
        "form": form,
        "tools": tools,
        "order": order,
        **pager,
        "after": after,
        "wanted": wanted,
        "states": STATES,
        "is_filtered": wanted != ToolFilter(),
        "may_edit": has_role(request.membership, Role.EDITOR),
    }
    return render(request, "tools/tool_list.html", context)


def _page(wanted: ToolFilter, order: Order, after: str) -> tuple[list[ListedTool], dict[str, Any]]:
    """Return the tools that follow the one of this name, and the context of the links to others."""
    now = timezone.now()
    if order != _BY_NAME:
        all_tools = list_tools(wanted, now, after="", size=SORTED_MAX + 1)
        page = page_in_order(
            all_tools, _COLUMNS, order, identify=lambda one: one.name, after=after, size=PAGE_SIZE
        )
        return page.rows, {"next_after": page.older, "sorted_max": page.pager["sorted_max"]}
    tools = list_tools(wanted, now, after=after, size=PAGE_SIZE + 1)
    shown = tools[:PAGE_SIZE]
    return shown, {"next_after": shown[-1].name if len(tools) > PAGE_SIZE else ""}
