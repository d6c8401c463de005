"""The registry as a whole over the API: taken out, brought in, and told as providers want it.

All of it for keys with the scope `registry`.
"""

from typing import Any, Literal, cast

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.http.response import StreamingHttpResponse
from ninja import Query
from pydantic import Field

from config.problems import ProblemError, problem, told
from tenants.api_auth import ApiKeyAuth, ApiRequest
from tenants.api_reads import Answer, Asked
from tenants.models import Scope, Tenant
from tenants.scope import tenant_scope
from tools_registry.api import router
from tools_registry.changes import REASON_MAX_LENGTH, Publisher
from tools_registry.exchange.applying import PlanChangedError, Way, apply_import
from tools_registry.exchange.export import current_contracts, export_registry
from tools_registry.exchange.planning import PlannedTool, plan_import
from tools_registry.exchange.providers import PROVIDERS, define
from tools_registry.exchange.reading import DOCUMENT_MAX_BYTES, UnreadableError, read_document
from tools_registry.schemas import check_text

_PROBLEMS = ("missing_key", "unknown_key", "missing_scope", "method_not_allowed", "unavailable")
_DOCUMENT: dict[str, Any] = {
    "type": "object",
    "required": ["format", "version", "tools", "count"],
    "properties": {
        "format": {"const": "tooltrail-registry"},
        "version": {"const": 1},
        "tools": {"type": "array", "items": {"type": "object"}},
        "count": {"type": "integer"},
    },
}


class ImportAsked(Asked):
    """How a file is to be taken over."""

    as_: Literal["drafts", "published"] = Field("drafts", alias="as")
    """`published`: versions, states and the current one are made alike; asks for a reason."""
    reason: str = Field("", max_length=REASON_MAX_LENGTH)
    """Goes on record with every change."""
    dry_run: bool = False
    """Only say what would be done."""


class ImportedTool(Answer):
    """What becomes of one tool."""

    path: str
    """Its place in the document."""
    name: str
    status: Literal["added", "changed", "unchanged", "refused"]
    steps: list[str]
    problems: list[str]
    """Why it is refused, each with its place in the document."""
    notes: list[str]
    """What of it is not taken over."""
    callers: Literal["compatible", "breaking", "unknown"] | None
    """Whom the contract that takes the place of the current one breaks; null: none does."""
    consumers: Literal["compatible", "breaking", "unknown"] | None


class Imported(Answer):
    """What an import did, or would do."""

    is_dry_run: bool
    forms: list[str]
    """What the tools are written as."""
    note: str
    added: int
    changed: int
    unchanged: int
    refused: int
    tools: list[ImportedTool]


class DefinitionsAsked(Asked):
    """Whose definitions, in which form."""

    provider: Literal["openai", "openai-responses", "anthropic", "mcp"]
    """OpenAI (chat completions or responses), Anthropic (messages), or MCP (`tools/list`)."""
    name: str = Field("", max_length=256)
    """Of one tool; left out, of all that are not retired."""


class Remark(Answer):
    """What a provider is told otherwise, not at all, or will not take."""

    name: str
    remark: str


class Definitions(Answer):
    """Definitions as a provider takes them."""

    provider: str
    definitions: Any
    """A list of tools; for MCP the result of `tools/list`."""
    remarks: list[Remark]
    lacks: str
    """What none of them can say."""


@router.get(
    "/registry",
    auth=ApiKeyAuth(Scope.REGISTRY),
    operation_id="export_registry",
    summary="Export the registry",
    tags=["tools"],
    openapi_extra={
        "responses": told(_PROBLEMS)["responses"]
        | {
            200: {
                "description": "OK",
                "content": {"application/json": {"schema": _DOCUMENT}},
            }
        }
    },
)
def export_the_registry(request: HttpRequest) -> HttpResponseBase:
    """All tools with their versions, states, tags and notes: what an import takes, streamed."""
    identity = cast(ApiRequest, request).auth
    return StreamingHttpResponse(
        export_registry(identity.tenant_id), content_type="application/json"
    )


@router.post(
    "/registry",
    auth=ApiKeyAuth(Scope.REGISTRY),
    response=Imported,
    operation_id="import_registry",
    summary="Import tools",
    tags=["tools"],
    openapi_extra={
        **told((*_PROBLEMS, "malformed", "too_large", "parameter", "name_taken")),
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"type": ["object", "array"]}}},
        },
    },
)
def import_registry(request: HttpRequest, asked: Query[ImportAsked]) -> HttpResponse:
    """Take over an export of a registry, or definitions of OpenAI, Anthropic or MCP.

    The form is detected. What is here already changes nothing; a bad tool costs that tool. With
    `dry_run` nothing is done. At most 10 MB.
    """
    identity = cast(ApiRequest, request).auth
    _refuse_unknown(request, ImportAsked)
    body = request.read(DOCUMENT_MAX_BYTES + 1)
    if len(body) > DOCUMENT_MAX_BYTES:
        return problem("too_large", f"The body exceeds {DOCUMENT_MAX_BYTES:,} bytes.")
    as_drafts = asked.as_ == "drafts"
    try:
        reason = check_text(asked.reason).strip()
    except ValueError as error:
        raise ProblemError("parameter", f"reason {error}.", parameter="reason") from None
    if not (as_drafts or asked.dry_run or reason):
        raise ProblemError("parameter", "Publishing asks for a reason.", parameter="reason")
    try:
        document = read_document(body)
    except UnreadableError as error:
        return problem("malformed", str(error))
    with tenant_scope(identity.tenant_id):
        if asked.dry_run:
            plan = plan_import(identity.tenant_id, document.tools, as_drafts=as_drafts)
        else:
            tenant = Tenant.objects.get(pk=identity.tenant_id)
            way = Way(as_drafts, Publisher(key_id=identity.key_id), reason)
            try:
                plan = apply_import(tenant, document, way)
            except PlanChangedError as error:
                raise ProblemError("name_taken", str(error)) from None
    counts = dict.fromkeys(("added", "changed", "unchanged", "refused"), 0)
    for one in plan:
        counts[one.status] += 1
    return JsonResponse(
        {
            "is_dry_run": asked.dry_run,
            "forms": document.forms,
            "note": document.note,
            **counts,
            "tools": [_row(one) for one in plan],
        }
    )


@router.get(
    "/registry/definitions",
    auth=ApiKeyAuth(Scope.REGISTRY),
    response=Definitions,
    operation_id="define_tools",
    summary="Define tools for a provider",
    tags=["tools"],
    openapi_extra=told((*_PROBLEMS, "parameter", "not_found")),
)
def define_tools(request: HttpRequest, asked: Query[DefinitionsAsked]) -> HttpResponse:
    """The current contracts as OpenAI, Anthropic or MCP have them, and what these cannot say."""
    identity = cast(ApiRequest, request).auth
    _refuse_unknown(request, DefinitionsAsked)
    with tenant_scope(identity.tenant_id):
        contracts = current_contracts(identity.tenant_id)
    if asked.name:
        contracts = [one for one in contracts if one.name == asked.name]
        if not contracts:
            raise ProblemError("not_found", "There is no such tool, or it is retired.")
    provider = PROVIDERS[asked.provider]
    defined = define(contracts, provider)
    return JsonResponse(
        {
            "provider": asked.provider,
            "definitions": provider.wrap([one.document for one in defined]),
            "remarks": [
                {"name": one.name, "remark": remark} for one in defined for remark in one.remarks
            ],
            "lacks": provider.lacks,
        }
    )


def _refuse_unknown(request: HttpRequest, asked: type[Asked]) -> None:
    known = {field.alias or name for name, field in asked.model_fields.items()}
    if unknown := sorted(request.GET.keys() - known):
        raise ProblemError(
            "parameter",
            f"There is no parameter {unknown[0]!r}. There are: {', '.join(sorted(known))}.",
            parameter=unknown[0],
        )


def _row(one: PlannedTool) -> dict[str, Any]:
    return {
        "path": one.read.path,
        "name": one.read.name,
        "status": one.status,
        "steps": [step.said for step in one.steps] if not one.problems else [],
        "problems": one.problems,
        "notes": one.notes,
        **one.verdicts,
    }
