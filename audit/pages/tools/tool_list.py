"""The list of tools: registered tools, and names that were only called."""

from django import forms
from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.queries.tools import OBSERVED, UNCALLED, ToolFilter, list_tools
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
    tools = []  # half a filter may match the opposite of what was meant
    if is_valid:
        tools = list_tools(wanted, timezone.now(), after=after, size=PAGE_SIZE + 1)
    context = {
        "form": form,
        "tools": tools[:PAGE_SIZE],
        "next_after": tools[PAGE_SIZE - 1].name if len(tools) > PAGE_SIZE else None,
        "after": after,
        "wanted": wanted,
        "states": STATES,
        "is_filtered": wanted != ToolFilter(),
        "may_edit": has_role(request.membership, Role.EDITOR),
    }
    return render(request, "tools/tool_list.html", context)
