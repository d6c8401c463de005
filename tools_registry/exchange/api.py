"""The whole registry over the API: export, import, and definitions in providers' formats.

All operations need a key with the scope `registry`.
"""

from typing import Any, Literal, cast
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.http.response import StreamingHttpResponse
from django.utils import timezone
from ninja import Query
from pydantic import Field

from config.http.problems import ProblemError, problem, told
from tenants.api_auth import ApiKeyAuth, ApiRequest
from tenants.api_reads import Answer, Asked
from tenants.keys import actor_of
from tenants.models import Scope, Tenant
from tenants.scope import tenant_scope
from tools_registry.api import router
from tools_registry.changes import REASON_MAX_LENGTH, Publisher
from tools_registry.exchange import job
from tools_registry.exchange.applying import Way
from tools_registry.exchange.export import current_contracts, export_registry
from tools_registry.exchange.providers import PROVIDERS, define
from tools_registry.exchange.reading import DOCUMENT_MAX_BYTES, UnreadableError, open_document
from tools_registry.exchange.summary import count
from tools_registry.models import ToolImport
from tools_registry.schemas import check_text
from tools_registry.tasks import import_tools

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

    id: UUID | None
    """To ask for it, for a day; null if it was done at once."""
    state: Literal["looking", "looked_at", "importing", "done", "cancelled"]
    """`looking` and `importing` go on in the background. A dry run ends with `looked_at`."""
    progress: int
    """Tools that were looked at, or carried out."""
    of: int
    """Tools there are in the file."""
    is_dry_run: bool
    forms: list[str]
    """What the tools are written as."""
    note: str
    added: int
    changed: int
    unchanged: int
    refused: int
    tools: list[ImportedTool]
    """Those of which something is known by now."""


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
    response={200: Imported, 202: Imported},
    operation_id="import_registry",
    summary="Import tools",
    tags=["tools"],
    openapi_extra={
        **told((*_PROBLEMS, "malformed", "too_large", "parameter")),
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
def import_registry(request: HttpRequest, asked: Query[ImportAsked]) -> HttpResponse:
    """Take over an export of a registry, or definitions of OpenAI, Anthropic or MCP.

    The form is detected. What is here already changes nothing; a bad tool costs that tool. With
    `dry_run` nothing is done. At most 10 MB. More than 256 KiB, or 50 tools, is answered with 202
    and goes on in the background, tool by tool: ask for it by its `id`, or at `Location`.
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
        raise ProblemError("parameter", "Publishing requires a reason.", parameter="reason")
    try:
        document = open_document(body)
    except UnreadableError as error:
        return problem("malformed", str(error))
    way = None if asked.dry_run else Way(as_drafts, Publisher(key_id=identity.key_id), reason)
    with tenant_scope(identity.tenant_id):
        tenant = Tenant.objects.get(pk=identity.tenant_id)
        kept = job.start_import(tenant, document, actor_of(identity), as_drafts=as_drafts, way=way)
        if kept.is_large:
            import_tools.defer(tenant_id=str(tenant.pk), import_id=str(kept.pk))
            address = f"{request.path}/imports/{kept.pk}"
            return JsonResponse(_imported(kept), status=202, headers={"Location": address})
        job.run_at_once(kept)
        answer = _imported(kept)
        ToolImport.objects.filter(tenant=tenant, pk=kept.pk).delete()
    return JsonResponse({**answer, "id": None})


@router.get(
    "/registry/imports/{uuid:import_id}",
    auth=ApiKeyAuth(Scope.REGISTRY),
    response=Imported,
    operation_id="read_import",
    summary="Read an import",
    tags=["tools"],
    openapi_extra=told((*_PROBLEMS, "not_found")),
)
def read_import(request: HttpRequest, import_id: UUID) -> HttpResponse:
    """How far an import is, what it did to each tool, and what it refused; kept for a day."""
    identity = cast(ApiRequest, request).auth
    with tenant_scope(identity.tenant_id):
        return JsonResponse(_imported(_own(identity.tenant_id, import_id)))


@router.delete(
    "/registry/imports/{uuid:import_id}",
    auth=ApiKeyAuth(Scope.REGISTRY),
    response=Imported,
    operation_id="cancel_import",
    summary="Cancel an import",
    tags=["tools"],
    openapi_extra=told((*_PROBLEMS, "not_found")),
)
def cancel_import(request: HttpRequest, import_id: UUID) -> HttpResponse:
    """Stop an import; what was done to tools by then is done, and told."""
    identity = cast(ApiRequest, request).auth
    with tenant_scope(identity.tenant_id):
        kept = _own(identity.tenant_id, import_id)
        job.cancel_import(kept, timezone.now())
        kept.refresh_from_db()
        return JsonResponse(_imported(kept))


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
            raise ProblemError("not_found", "Tool not found or retired.")
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
            f"Unknown parameter {unknown[0]!r}. Available parameters: {', '.join(sorted(known))}.",
            parameter=unknown[0],
        )


def _own(tenant_id: UUID, import_id: UUID) -> ToolImport:
    kept = ToolImport.objects.filter(tenant_id=tenant_id, pk=import_id).first()
    if kept is None:
        raise ProblemError("not_found", "Import not found or expired.")
    return kept


def _imported(kept: ToolImport) -> dict[str, Any]:
    rows = job.outcomes(kept, as_drafts=kept.as_drafts)
    tools = [one for one, _ in rows if one is not None]
    return {
        "id": kept.pk,
        "state": kept.state,
        "progress": kept.done_count,
        "of": kept.tool_count,
        "is_dry_run": not kept.is_confirmed,
        "forms": kept.forms,
        "note": kept.note,
        **count(tools),
        "tools": [{name: one[name] for name in ImportedTool.model_fields} for one in tools],
    }
