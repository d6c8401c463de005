"""Actions of editors: create a tool, describe it, and change the states of its versions.

Drafts have pages of their own.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from tenants.access import TenantRequest, tenant_page
from tenants.models import Role
from tools_registry import states
from tools_registry.changes import Publisher
from tools_registry.forms import DescriptionForm, NameForm, ReasonForm
from tools_registry.models import State, Tool
from tools_registry.schemas import compile_for_arrival
from tools_registry.tools import (
    DESCRIBING,
    NameTakenError,
    check_on_arrival,
    create_tool,
    describe_tool,
)
from tools_registry.versions import find_version

ACTIONS: dict[str, tuple[Callable[..., None], str, str]] = {
    "make-current": (states.set_current, "Make current", "is now current"),
    "deprecate": (states.deprecate, "Deprecate", "is deprecated"),
    "retire": (states.retire, "Retire", "is retired"),
    "restore": (states.restore, "Restore", "is restored"),
}
"""By the word in the URL: the function, the button's label, and the end of the message."""


def possible_actions(state: State, *, is_current: bool) -> list[tuple[str, str]]:
    """Words and labels of the actions that are possible in a version's state."""
    possible = {
        State.PUBLISHED: ["make-current", "deprecate", "retire"],
        State.DEPRECATED: ["make-current", "restore", "retire"],
        State.RETIRED: ["restore"],
    }[state]
    return [
        (action, ACTIONS[action][1])
        for action in possible
        if not (is_current and action == "make-current")
    ]


@require_POST
@tenant_page(role=Role.EDITOR)
def version_action(request: TenantRequest, pk: UUID, number: int, action: str) -> HttpResponseBase:
    """Change a version's state, or make it current, with the given reason."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    version = find_version(tool, number) if number < 2**31 else None
    if version is None or action not in ACTIONS:
        raise Http404("no such version or action")
    form = ReasonForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Nothing was changed. The reason is too long.")
        return redirect(version)
    do, _, result = ACTIONS[action]
    try:
        do(version, Publisher(request.user), reason=form.cleaned_data["reason"])
    except states.StateError as error:
        messages.error(request, f"Nothing was changed. {error}")
    else:
        messages.success(request, f"Version {version.number} {result}.")
    return redirect(version)


@require_POST
@tenant_page(role=Role.EDITOR)
def tool_create(request: TenantRequest) -> HttpResponseBase:
    """Create a tool without a version, for its first draft; an existing one is shown."""
    form = NameForm(request.POST)
    if not form.is_valid():
        messages.error(request, f"Tool not created: the name {form.problem}.")
        return redirect("tool_list")
    try:
        tool = create_tool(request.tenant, form.cleaned_data["name"], Publisher(request.user))
    except NameTakenError as error:
        tool = error.tool
    return redirect(tool)


@require_POST
@tenant_page(role=Role.EDITOR)
def tool_describe(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Store a tool's description."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    form = DescriptionForm(request.POST)
    if not form.is_valid():
        [(name, errors), *_] = form.errors.items()
        messages.error(
            request, f"Nothing was changed. {name.capitalize()}: {' '.join(map(str, errors))}"
        )
        return redirect(tool)
    description: dict[str, Any] = {name: form.cleaned_data[name] for name in DESCRIBING}
    describe_tool(tool, description, Publisher(request.user))
    messages.success(request, "Details saved.")
    return redirect(tool)


@require_POST
@tenant_page(role=Role.EDITOR)
def tool_arrivals(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Turn the validation of outputs on arrival on (`on`) or off, with the given reason."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    form, is_on = ReasonForm(request.POST), "on" in request.POST
    version = find_version(tool, tool.current_number) if tool.current_number else None
    try:
        if is_on:
            compile_for_arrival(version.output_schema if version else None)
    except ValueError as error:
        messages.error(request, f"Nothing was changed. Outputs {error}.")
        return redirect(tool)
    if not form.is_valid():
        messages.error(request, "Nothing was changed. The reason is too long.")
        return redirect(tool)
    by = Publisher(request.user)
    check_on_arrival(tool, by, is_on=is_on, reason=form.cleaned_data["reason"])
    outcome = "now validated" if is_on else "no longer validated"
    messages.success(request, f"Outputs are {outcome} on arrival.")
    return redirect(tool)
