"""Drafts of a tool's next version over the API: read, begin, save, check, discard.

A draft is published by `audit.pages.tools.draft_api`, because replays decide with it.
"""

import json
from datetime import datetime
from typing import Any, Literal, cast
from uuid import UUID

from django.http import HttpRequest
from ninja import Path
from pydantic import Field

from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, Stripped, acts, checked
from tenants.api_auth import ApiRequest
from tenants.api_reads import Answer, reads, utc
from tenants.models import Scope
from tools_registry.act_api import found_tool, publisher
from tools_registry.api import router
from tools_registry.changes import REASON_MAX_LENGTH
from tools_registry.contract_check import Checked
from tools_registry.contract_diff import Side
from tools_registry.draft_form import CONTRACT, DraftForm
from tools_registry.drafts import (
    DraftExistsError,
    StaleDraftError,
    begin_draft,
    compare_with_current,
    discard_draft,
    find_draft,
    store_draft,
)
from tools_registry.models import Tool, ToolDraft
from tools_registry.versions import contracts_in_use

_DOCUMENTS = ("input_schema", "output_schema", "meta")


class Draft(Answer):
    """A draft of a tool's next version."""

    revision: int
    """Saving, discarding and publishing name the revision that was read."""
    base_version: int
    """The version that it is based on; 0 without one."""
    saved_at: datetime
    saved_by: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    trusted: bool
    ephemeral: bool
    on_collision: Literal["throw", "replace", "keep"]
    meta: dict[str, Any]
    callers: Literal["compatible", "breaking", "unknown"] | None
    """Effect on callers of publishing it; null if there is no current version."""
    consumers: Literal["compatible", "breaking", "unknown"] | None


class BeginBody(Body):
    """From which version a draft begins."""

    version: int = Field(0, ge=0)
    """Default: the current one, or an empty contract if there is none."""


class ContractBody(Body):
    """A contract, as in a draft."""

    description: str = ""
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    trusted: bool = False
    ephemeral: bool = False
    on_collision: Literal["throw", "replace", "keep"] = "throw"
    meta: dict[str, Any] = {}


class DraftBody(ContractBody):
    """The contract to save."""

    revision: int = Field(ge=0)
    """The revision that was read; 0: the tool has no draft yet."""


class CheckBody(ContractBody):
    """A contract, and example values to validate against it. Nothing is stored."""

    args_examples: list[Any] = []
    output_examples: list[Any] = []


class DiscardBody(Body):
    """Which revision of the draft is discarded, and why."""

    revision: int = Field(ge=1)
    reason: Stripped = Field("", max_length=REASON_MAX_LENGTH)


class ContractProblem(Answer):
    """A problem of a member of a contract."""

    member: str
    pointer: str
    """JSON pointer into the member's document; empty: the whole document."""
    message: str
    is_warning: bool
    """Whether the contract can be saved and published anyway."""


class CheckedExample(Answer):
    """An example and the result of its validation."""

    member: str
    """The schema that it was validated against."""
    number: int
    fits: bool
    problem: str
    """Why it could not be validated; else empty."""
    violations: list[str]


class ContractCheck(Answer):
    """What is wrong with a contract."""

    can_be_saved: bool
    problems: list[ContractProblem]
    examples: list[CheckedExample]


@reads(router, "/tools/{uuid:tool_id}/draft", Draft, tag="tools", problems=("not_found",))
def read_draft(request: HttpRequest, tool_id: Path[UUID]) -> dict[str, Any]:
    """Get the draft of a tool's next version, and what publishing it would break."""
    draft = find_draft(found_tool(cast(ApiRequest, request).auth.tenant_id, tool_id))
    if draft is None:
        raise ProblemError("not_found", "The tool has no draft.")
    return draft_document(draft)


@acts(
    router,
    "POST",
    "/tools/{uuid:tool_id}/draft/begin",
    Draft,
    scope=Scope.REGISTRY,
    tag="tools",
    body=BeginBody,
    status=201,
    problems=("not_found", "conflict"),
)
def begin_the_draft(act: Act, tool_id: Path[UUID]) -> dict[str, Any]:
    """Create a draft from a version."""
    tool = found_tool(act.identity.tenant_id, tool_id)
    number = act.read(BeginBody).version
    try:
        return draft_document(begin_draft(tool, publisher(act), number=number))
    except LookupError as error:
        raise ProblemError("not_found", "Version not found.") from error
    except DraftExistsError as error:
        raise ProblemError("conflict", str(error)) from error


@acts(
    router,
    "PUT",
    "/tools/{uuid:tool_id}/draft",
    Draft,
    scope=Scope.REGISTRY,
    tag="tools",
    body=DraftBody,
    problems=("not_found", "conflict"),
)
def save_the_draft(act: Act, tool_id: Path[UUID]) -> dict[str, Any]:
    """Save the draft, if nobody has saved it since the given revision was read."""
    tool = found_tool(act.identity.tenant_id, tool_id)
    body = act.read(DraftBody)
    contract = checked(_form(tool, body, {})).checked.contract
    assert contract is not None, "a valid form has one"
    try:
        store_draft(tool, contract, publisher(act), expected_revision=body.revision)
    except (StaleDraftError, DraftExistsError) as error:
        raise ProblemError("conflict", str(error)) from error
    stored = find_draft(tool)
    assert stored is not None, "just stored"
    return draft_document(stored)


@acts(
    router,
    "POST",
    "/tools/{uuid:tool_id}/draft/check",
    ContractCheck,
    scope=Scope.REGISTRY,
    tag="tools",
    body=CheckBody,
    problems=("not_found",),
)
def check_contract(act: Act, tool_id: Path[UUID]) -> dict[str, Any]:
    """Check a contract and validate examples against it. Nothing is stored."""
    tool = found_tool(act.identity.tenant_id, tool_id)
    body = act.read(CheckBody)
    examples = {
        name: "\n---\n".join(json.dumps(one) for one in getattr(body, name))
        for name in ("args_examples", "output_examples")
    }
    form = _form(tool, body, examples)
    form.is_valid()
    return _check(form.checked)


@acts(
    router,
    "POST",
    "/tools/{uuid:tool_id}/draft/discard",
    Draft,
    scope=Scope.REGISTRY,
    tag="tools",
    body=DiscardBody,
    problems=("not_found", "conflict"),
)
def discard_the_draft(act: Act, tool_id: Path[UUID]) -> dict[str, Any]:
    """Delete the draft, if it has not changed since the given revision was read."""
    tool = found_tool(act.identity.tenant_id, tool_id)
    body = act.read(DiscardBody)
    if (draft := find_draft(tool)) is None:
        raise ProblemError("not_found", "The tool has no draft.")
    discarded = draft_document(draft)
    try:
        discard_draft(draft, publisher(act), expected_revision=body.revision, reason=body.reason)
    except StaleDraftError as error:
        raise ProblemError("conflict", str(error)) from error
    return discarded


def draft_document(draft: ToolDraft) -> dict[str, Any]:
    """The members of `Draft`. One query."""
    diff = compare_with_current(draft)
    return {
        "revision": draft.revision,
        "base_version": draft.base_number,
        "saved_at": utc(draft.saved_at),
        "saved_by": draft.saved_by,
        **{name: getattr(draft, name) for name in CONTRACT},
        "callers": diff and diff.verdict(Side.INPUT).value,
        "consumers": diff and diff.verdict(Side.OUTPUT).value,
    }


def _form(tool: Tool, body: ContractBody, examples: dict[str, str]) -> DraftForm:
    """The page's form with this contract: the same rules apply."""
    texts = {name: getattr(body, name) for name in CONTRACT}
    for name in _DOCUMENTS:
        texts[name] = "" if texts[name] is None else json.dumps(texts[name])
    return DraftForm(texts | examples, name=tool.name, known=contracts_in_use(tool))


def _check(result: Checked) -> dict[str, Any]:
    return {
        "can_be_saved": result.contract is not None,
        "problems": [
            {
                "member": one.member,
                "pointer": one.pointer,
                "message": one.message,
                "is_warning": one.is_warning,
            }
            for one in result.problems
        ],
        "examples": [
            {
                "member": one.member,
                "number": one.number,
                "fits": one.fits,
                "problem": one.problem,
                "violations": [f"{each.path}: {each.code}" for each in one.violations],
            }
            for one in result.examples
        ],
    }
