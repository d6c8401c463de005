"""What editors do with tools and versions over the API. Drafts have a module of their own."""

import json
from collections.abc import Callable
from typing import Any, Literal
from uuid import UUID

from ninja import Path
from pydantic import Field

from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, Stripped, acts, checked, invalid
from tenants.api_reads import Answer
from tenants.models import Scope
from tools_registry import states
from tools_registry.api import router
from tools_registry.changes import REASON_MAX_LENGTH, Publisher
from tools_registry.forms import DescriptionForm, NameForm
from tools_registry.models import State, Tool, ToolVersion
from tools_registry.schemas import compile_for_arrival
from tools_registry.tools import (
    DESCRIBING,
    NameTakenError,
    check_on_arrival,
    create_tool,
    describe_tool,
)
from tools_registry.versions import find_version

_CHANGES: dict[str, Callable[..., None]] = {
    "make-current": states.set_current,
    "deprecate": states.deprecate,
    "retire": states.retire,
    "restore": states.restore,
}


class ToolSummary(Answer):
    """A tool as people describe it."""

    id: UUID
    name: str
    current_version: int
    """0 if nothing is published yet."""
    is_checked_on_arrival: bool
    """Whether the server validates outputs that no guard has validated."""
    owner: str
    link: str
    tags: list[str]
    notes: str
    meta: dict[str, Any]


class NameBody(Body):
    """The name of a new tool."""

    name: str = Field(min_length=1, max_length=256)


class DescriptionBody(Body):
    """A tool's description for people. A member that is absent does not change."""

    owner: str = ""
    link: str = ""
    tags: list[str] = []
    notes: str = ""
    meta: dict[str, Any] = {}


class ArrivalBody(Body):
    """Whether outputs are validated on arrival, and why."""

    is_on: bool
    reason: Stripped = Field("", max_length=REASON_MAX_LENGTH)


class VersionState(Answer):
    """A version and its state."""

    tool_id: UUID
    version: int
    state: Literal["published", "deprecated", "retired"]
    is_current: bool


class StateBody(Body):
    """The change of a version's state, and why."""

    change: Literal["make-current", "deprecate", "retire", "restore"]
    reason: Stripped = Field("", max_length=REASON_MAX_LENGTH)


@acts(
    router,
    "POST",
    "/tools/create",
    ToolSummary,
    scope=Scope.REGISTRY,
    tag="tools",
    body=NameBody,
    status=201,
    problems=("name_taken",),
)
def create_empty_tool(act: Act) -> dict[str, Any]:
    """Create a tool without a version, for its first draft."""
    form = checked(NameForm(act.read(NameBody).model_dump()))
    try:
        return _summary(create_tool(act.tenant, form.cleaned_data["name"], publisher(act)))
    except NameTakenError as error:
        raise ProblemError("name_taken", str(error)) from error


@acts(
    router,
    "PATCH",
    "/tools/{uuid:tool_id}/description",
    ToolSummary,
    scope=Scope.REGISTRY,
    tag="tools",
    body=DescriptionBody,
    problems=("not_found",),
)
def describe_the_tool(act: Act, tool_id: Path[UUID]) -> dict[str, Any]:
    """Change a tool's description for people: owner, link, tags, notes, labels."""
    tool = found_tool(act.identity.tenant_id, tool_id)
    given = act.read(DescriptionBody).model_dump(exclude_unset=True)
    values = {name: getattr(tool, name) for name in DESCRIBING} | given
    values["meta"] = json.dumps(values["meta"])
    form = checked(DescriptionForm(values))
    describe_tool(tool, {name: form.cleaned_data[name] for name in DESCRIBING}, publisher(act))
    return _summary(tool)


@acts(
    router,
    "PUT",
    "/tools/{uuid:tool_id}/arrivals",
    ToolSummary,
    scope=Scope.REGISTRY,
    tag="tools",
    body=ArrivalBody,
    problems=("not_found",),
)
def check_arrivals(act: Act, tool_id: Path[UUID]) -> dict[str, Any]:
    """Turn on or off that the server validates outputs which no guard has validated."""
    tool = found_tool(act.identity.tenant_id, tool_id)
    body = act.read(ArrivalBody)
    version = find_version(tool, tool.current_number) if tool.current_number else None
    try:
        if body.is_on:
            compile_for_arrival(version.output_schema if version else None)
    except ValueError as error:
        raise invalid("is_on", f"Outputs {error}.") from error
    check_on_arrival(tool, publisher(act), is_on=body.is_on, reason=body.reason)
    return _summary(tool)


@acts(
    router,
    "POST",
    "/tools/{uuid:tool_id}/versions/{int:number}/state",
    VersionState,
    scope=Scope.REGISTRY,
    tag="tools",
    body=StateBody,
    problems=("not_found", "conflict"),
)
def change_version_state(act: Act, tool_id: Path[UUID], number: Path[int]) -> dict[str, Any]:
    """Make a version current, deprecate, retire or restore it. The version itself never changes."""
    tool = found_tool(act.identity.tenant_id, tool_id)
    version = find_version(tool, number) if number < 2**31 else None
    if version is None:
        raise ProblemError("not_found", "Version not found.")
    body = act.read(StateBody)
    try:
        _CHANGES[body.change](version, publisher(act), reason=body.reason)
    except states.StateError as error:
        raise ProblemError("conflict", str(error)) from error
    return version_state(version)


def publisher(act: Act) -> Publisher:
    """Who changes a tool by this request."""
    return Publisher(key_id=act.identity.key_id)


def found_tool(tenant_id: UUID, tool_id: UUID) -> Tool:
    """The tenant's tool with this id. Raises ProblemError."""
    tool = Tool.objects.filter(tenant_id=tenant_id, pk=tool_id).first()
    if tool is None:
        raise ProblemError("not_found", "Tool not found.")
    return tool


def version_state(version: ToolVersion) -> dict[str, Any]:
    """The members of `VersionState`."""
    state: State = states.state_of(version)
    return {
        "tool_id": version.tool_id,
        "version": version.number,
        "state": state.value,
        "is_current": version.tool.current_number == version.number,
    }


def _summary(tool: Tool) -> dict[str, Any]:
    return {
        "id": tool.pk,
        "name": tool.name,
        "current_version": tool.current_number,
        "is_checked_on_arrival": tool.is_checked_on_arrival,
        **{name: getattr(tool, name) for name in DESCRIBING},
    }
