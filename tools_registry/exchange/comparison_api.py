"""Compares definitions with the published contracts, over the API. Nothing is stored.

The plan of an import says what each tool would become, and the registry's own comparison of
contracts whom that breaks.
"""

from typing import Any, Literal, cast
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse

from config.http.problems import problem, problem_responses
from tenants.api_auth import ApiKeyAuth, ApiRequest
from tenants.api_reads import Answer
from tenants.models import Scope
from tenants.scope import tenant_scope
from tools_registry.api import router
from tools_registry.contract_diff import diff_document
from tools_registry.exchange.planning import PlannedTool, plan_import
from tools_registry.exchange.reading import UnreadableError, open_document
from tools_registry.read_api import SchemaDifference

BODY_MAX_BYTES = 1_000_000
"""A contract with two schemas of the maximum size fits into it."""
TOOLS_MAX = 50
CHANGES_MAX, VALUE_LENGTH = 200, 500


class ComparedTool(Answer):
    """A definition, and what it changes of the tool's current version."""

    path: str
    """Path of the definition in the document."""
    name: str
    status: Literal["new", "changed", "unchanged", "refused"]
    """`new`: the tool has no published version. `refused`: the registry would not take it."""
    tool_id: UUID | None
    version: int | None
    """The current version; null without one."""
    callers: Literal["compatible", "breaking", "unknown"] | None
    """Effect of publishing the definition; null unless it is `changed`."""
    consumers: Literal["compatible", "breaking", "unknown"] | None
    change_count: int
    changes: list[SchemaDifference]
    """The first 200: inputs first, breaking changes before others."""
    problems: list[str]
    """Why it is refused, each with its path in the document."""
    notes: list[str]
    """Parts of it that are not compared."""
    input_schema: dict[str, Any] | None
    """Of the contract that it would become; null if it is refused."""
    output_schema: dict[str, Any] | None
    """Likewise. A definition without one keeps that of the current version."""


class ComparedTools(Answer):
    """Definitions, compared with the published contracts."""

    note: str
    """What the document lacks as a whole; empty if nothing."""
    tools: list[ComparedTool]
    """In the order of the document."""


@router.post(
    "/registry/compare",
    auth=ApiKeyAuth(Scope.READ),
    response=ComparedTools,
    operation_id="compare_definitions",
    summary="Compare definitions",
    tags=["tools"],
    openapi_extra={
        **problem_responses(
            (
                *("missing_key", "unknown_key", "missing_scope", "method_not_allowed"),
                *("unavailable", "malformed", "too_large", "too_many"),
            )
        ),
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"oneOf": [{"type": "object"}, {"type": "array", "items": {}}]}
                }
            },
        },
    },
)
def compare_definitions(request: HttpRequest) -> HttpResponse:
    """Compare definitions with the published contracts: whom would publishing them break?

    Takes what an import takes, up to 1 MB and 50 tools, and stores nothing. An invalid definition
    does not affect the others.
    """
    identity = cast(ApiRequest, request).auth
    body = request.read(BODY_MAX_BYTES + 1)
    if len(body) > BODY_MAX_BYTES:
        return problem("too_large", f"The body exceeds {BODY_MAX_BYTES:,} bytes.")
    try:
        document = open_document(body)
    except UnreadableError as error:
        return problem("malformed", str(error))
    if len(document.entries) > TOOLS_MAX:
        return problem("too_many", f"At most {TOOLS_MAX} tools per request.")
    read = [entry.read() for entry in document.entries]
    with tenant_scope(identity.tenant_id):
        plans = plan_import(identity.tenant_id, read, as_drafts=False)
    return JsonResponse({"note": document.note, "tools": [_compared(plan) for plan in plans]})


def _compared(plan: PlannedTool) -> dict[str, Any]:
    current = plan.stored.current if plan.stored else None
    diff = plan.diff
    compared: dict[str, Any] = (
        diff_document(diff, limit=CHANGES_MAX, value_length=VALUE_LENGTH)
        if diff
        else {"callers": None, "consumers": None, "change_count": 0, "changes": []}
    )
    contract = None if plan.problems else plan.becomes
    return {
        "path": plan.read.path,
        "name": plan.read.name,
        "status": _status(plan),
        "tool_id": plan.tool.pk if plan.tool else None,
        "version": current.number if current else None,
        **compared,
        "problems": plan.problems,
        "notes": plan.notes,
        "input_schema": contract and contract.input_schema,
        "output_schema": contract and contract.output_schema,
    }


def _status(plan: PlannedTool) -> Literal["new", "changed", "unchanged", "refused"]:
    if plan.problems:
        return "refused"
    if plan.stored is None or plan.stored.current is None:
        return "new"
    return "changed" if plan.diff else "unchanged"
