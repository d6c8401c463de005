"""Definitions as served over the API: list, read, approve and withdraw, as on the pages."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, cast
from uuid import UUID

import msgspec
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Path, Query
from pydantic import ConfigDict, Field, ValidationError

from audit.pages.show.router import router
from audit.queries.definitions import (
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
from audit.work.definitions import REASON_MAX, approve, withdraw
from config.http.problems import ProblemError, problem_responses
from config.http.request_bodies import json_body
from tenants.actions import storable_text
from tenants.api_auth import ApiKeyAuth, ApiRequest
from tenants.api_reads import Answer, ListParams, Page, Params, reads, seal, unseal, utc
from tenants.keys import actor_of
from tenants.models import Scope, Tenant
from tenants.scope import tenant_scope
from tools_registry.served import compare_definitions

_BODY_MAX_BYTES = 10_000
_CHANGES_MAX = 1_000
_APPROVED_MAX = 100

State = Literal["first", "pending", "approved", "unknown"]


class DefinitionListParams(ListParams):
    """Which tools."""

    server: str = ""
    """Only tools of this server."""
    tool: str = ""
    """Only tools with this name."""
    state: Literal["", "unapproved"] = ""
    """`unapproved`: only tools whose definition in force is pending or unknown."""


class ListedDefinition(Answer):
    """A tool of a server, with the definition in force."""

    server: str
    server_version: str | None
    tool: str
    state: State
    """`first`: in the server's first list. `unknown`: it changed too often to be recorded."""
    since: datetime
    id: UUID | None
    """The definition in force, or the last one that was recorded."""
    digest: str | None
    unapproved_calls: int
    """Calls since then, if the definition is pending or unknown; counted up to 10,000."""


class UnapprovedCalls(Answer):
    """Calls under definitions that were not approved when they started."""

    calls: int
    """Counted up to 10,000."""
    first_at: datetime | None
    last_at: datetime | None


class DefinitionPage(Page[ListedDefinition]):
    """Tools by server and name."""

    OLD_NAME = "definitions"

    unapproved_24h: UnapprovedCalls
    """Calls of the last 24 hours, of any tool, under definitions that were pending or unknown."""


class DefinitionStep(Answer):
    """From when on a definition was in force."""

    since: datetime
    id: UUID | None
    digest: str | None
    server_version: str | None
    client: str | None
    client_version: str | None
    ledger_index: int | None
    """Index of the entry of the ledger in which the change is."""


class DefinitionDifference(Answer):
    """One difference; `before` or `after` is missing if the value was added or removed."""

    pointer: str
    """JSON pointer (RFC 6901)."""
    kind: Literal["add", "remove", "replace"]
    before: Any = None
    after: Any = None


class OneDefinition(Answer):
    """A definition of a tool as its server served it."""

    id: UUID
    server: str
    tool: str
    digest: str
    state: Literal["first", "pending", "approved"]
    first_seen_at: datetime
    last_seen_at: datetime
    sightings: int
    approved_at: datetime | None
    approved_by: str | None
    approval_reason: str | None
    unapproved_calls: int
    """Calls made under it before it was approved; counted up to 10,000."""
    definition: Any
    """All its members, as served."""
    compared_with: UUID | None
    """The last definition of this tool that is approved or was first seen."""
    classes: list[Literal["risk-raising", "breaking", "compatible", "wording", "cosmetic"]]
    """What the changes since then mean."""
    risks: list[str]
    changes: list[DefinitionDifference]
    history: list[DefinitionStep]
    """Changes of the tool's definition on this server, the newest first."""


class Approval(Params):
    """An approval, or its withdrawal."""

    model_config = ConfigDict(use_attribute_docstrings=True, extra="forbid", strict=True)

    reason: str = Field(min_length=1, max_length=REASON_MAX)
    """Why. It stays in the ledger."""


class Approvals(Approval):
    """An approval of several definitions of one server."""

    server: str
    definitions: list[UUID] = Field(min_length=1, max_length=_APPROVED_MAX)
    """Their ids."""


class Approved(Answer):
    """What became of several definitions."""

    approved: list[UUID]
    """Approved by this request."""
    unchanged: list[UUID]
    """Approved already, or needing no approval."""


@reads(
    router,
    "/definitions",
    DefinitionPage,
    tag="tools",
    problems=("cursor", "limit"),
)
def list_definitions(request: HttpRequest, params: Query[DefinitionListParams]) -> dict[str, Any]:
    """List the tools of all servers, each with the definition in force."""
    wanted = ToolFilter(
        storable_text(params.server), storable_text(params.tool), params.state == "unapproved"
    )
    after = unseal("definitions", params.cursor, _place)
    page = served_tools(wanted, after=after, size=params.limit)
    now = timezone.now()
    use = unapproved_use_in(TimeRange(now - timedelta(hours=24), now, UTC))
    return {
        "items": [_listed(one) for one in page.tools],
        "unapproved_24h": {
            "calls": use.calls,
            "first_at": use.first_at and utc(use.first_at),
            "last_at": use.last_at and utc(use.last_at),
        },
        "next": page.after and seal("definitions", msgspec.json.encode(page.after).decode()),
    }


@reads(
    router,
    "/definitions/{uuid:definition_id}",
    OneDefinition,
    tag="tools",
    problems=("not_found",),
)
def read_definition(request: HttpRequest, definition_id: Path[UUID]) -> dict[str, Any]:
    """Get a definition with its content, its changes, what they mean, and the tool's history."""
    return _document(_definition(definition_id))


_POST_PROBLEMS = problem_responses(
    ["missing_key", "unknown_key", "missing_scope", "malformed", "not_found"]
)


@router.post(
    "/definitions/approve",
    auth=ApiKeyAuth(Scope.REGISTRY),
    response={200: Approved},
    operation_id="approve_definitions",
    summary="Approve definitions",
    tags=["tools"],
    openapi_extra=json_body(Approvals.model_json_schema()) | _POST_PROBLEMS,
)
def approve_definitions(request: HttpRequest) -> HttpResponse:
    """Approve several definitions of one server with one reason: an entry of the ledger each.

    If one of them is not a definition of this server, nothing is approved.
    """
    identity = cast(ApiRequest, request).auth
    with tenant_scope(identity.tenant_id):
        wanted = _body(request, Approvals)
        definitions = definitions_of_server(storable_text(wanted.server), wanted.definitions)
        if unknown := set(wanted.definitions) - {one.id for one in definitions}:
            raise ProblemError("not_found", f"Definition {min(unknown)} not found on this server.")
        tenant, now = Tenant.objects.get(pk=identity.tenant_id), timezone.now()
        answer: dict[str, list[UUID]] = {"approved": [], "unchanged": []}
        for one in definitions:
            is_new = approve(tenant, actor_of(identity), one, wanted.reason, now)
            answer["approved" if is_new else "unchanged"].append(one.id)
    return HttpResponse(msgspec.json.encode(answer), content_type="application/json")


@router.post(
    "/definitions/{uuid:definition_id}/approve",
    auth=ApiKeyAuth(Scope.REGISTRY),
    response={200: OneDefinition},
    operation_id="approve_definition",
    summary="Approve definition",
    tags=["tools"],
    openapi_extra=json_body(Approval.model_json_schema()) | _POST_PROBLEMS,
)
def approve_definition(request: HttpRequest, definition_id: Path[UUID]) -> HttpResponse:
    """Approve a definition that changed, for calls from now on. The approval is in the ledger.

    A definition that is approved already, or needs no approval, stays as it is.
    """
    return _decided(request, definition_id, approve)


@router.post(
    "/definitions/{uuid:definition_id}/withdraw",
    auth=ApiKeyAuth(Scope.REGISTRY),
    response={200: OneDefinition},
    operation_id="withdraw_definition_approval",
    summary="Withdraw approval of definition",
    tags=["tools"],
    openapi_extra=json_body(Approval.model_json_schema()) | _POST_PROBLEMS,
)
def withdraw_approval(request: HttpRequest, definition_id: Path[UUID]) -> HttpResponse:
    """Withdraw the approval of a definition, for calls from now on. This, too, is in the ledger.

    A definition that is not approved stays as it is.
    """
    return _decided(request, definition_id, withdraw)


type _Decision = Callable[[Tenant, str, ServedDefinition, str, datetime], bool]


def _decided(request: HttpRequest, definition_id: UUID, decide: _Decision) -> HttpResponse:
    identity = cast(ApiRequest, request).auth
    with tenant_scope(identity.tenant_id):
        one, reason = _definition(definition_id), _body(request, Approval).reason
        tenant = Tenant.objects.get(pk=identity.tenant_id)
        decide(tenant, actor_of(identity), one.served, reason, timezone.now())
        members = _document(_definition(definition_id))
    return HttpResponse(msgspec.json.encode(members), content_type="application/json")


def _definition(definition_id: UUID) -> DefinitionText:
    one = find_definition(definition_id)
    if one is None:
        raise ProblemError("not_found", "Definition not found.")
    return one


def _document(one: DefinitionText) -> dict[str, Any]:
    """A definition as in the answer of `read_definition`."""
    old = definition_before(one.served)
    diff = None if old is None else compare_definitions(old.value, one.value)
    changes = [] if diff is None else [each.change for each in diff.differences[:_CHANGES_MAX]]
    return {
        **_members(one.served),
        "unapproved_calls": unapproved_use(one.served).calls,
        "definition": msgspec.Raw(one.content.encode()),
        "compared_with": None if old is None else old.served.id,
        "classes": [] if diff is None else diff.classes,
        "risks": [] if diff is None else diff.risks,
        "changes": [
            {
                "pointer": each.pointer,
                "kind": each.kind,
                **({} if each.kind == "add" else {"before": each.before}),
                **({} if each.kind == "remove" else {"after": each.after}),
            }
            for each in changes
        ],
        "history": [
            {
                "since": utc(each.seen_at),
                "id": each.id,
                "digest": each.digest or None,
                "server_version": each.server_version,
                "client": each.client,
                "client_version": each.client_version,
                "ledger_index": each.ledger_index,
            }
            for each in definition_history(one.served.server, one.served.tool_name)
        ],
    }


def _body[Body: Approval](request: HttpRequest, body: type[Body]) -> Body:
    """The request's body; its reason is storable and not empty."""
    try:
        wanted = body.model_validate_json(request.read(_BODY_MAX_BYTES))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ProblemError(
            "malformed",
            f"{where}: {first['msg']}." if where else "The body is not valid JSON.",
        ) from error
    wanted.reason = storable_text(wanted.reason).strip()
    if not wanted.reason:
        raise ProblemError("malformed", "reason: must not be empty.")
    return wanted


def _place(place: list[str]) -> tuple[str, str]:
    server, tool = msgspec.json.decode(place[0], type=tuple[str, str])
    if "\0" in server + tool:
        raise ValueError("no column can hold it")
    return server, tool


def _listed(one: ServedTool) -> dict[str, Any]:
    definition = one.definition
    return {
        "server": one.server,
        "server_version": one.server_version,
        "tool": one.tool_name,
        "state": "unknown" if one.is_unknown or definition is None else definition.state,
        "since": utc(one.since),
        "id": definition and definition.id,
        "digest": None if one.is_unknown or definition is None else definition.digest,
        "unapproved_calls": one.unapproved_calls,
    }


def _members(one: ServedDefinition) -> dict[str, Any]:
    return {
        "id": one.id,
        "server": one.server,
        "tool": one.tool_name,
        "digest": one.digest,
        "state": one.state,
        "first_seen_at": utc(one.first_seen_at),
        "last_seen_at": utc(one.last_seen_at),
        "sightings": one.sighting_count,
        "approved_at": one.approved_at and utc(one.approved_at),
        "approved_by": one.approved_by,
        "approval_reason": one.approval_reason,
    }
