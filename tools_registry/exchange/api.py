"""The whole registry over the API: export, import, and definitions in providers' formats.

All operations need a key with the scope `registry`.
"""

from typing import Any, Literal, cast
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils import timezone
from ninja import Query
from pydantic import Field

from config.http.problems import ProblemError, problem, problem_responses
from config.http.streams import stream
from tenants.api_auth import ApiKeyAuth, ApiRequest
from tenants.api_reads import Answer, Params
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


class ImportParams(Params):
    """How a file is imported."""

    as_: Literal["drafts", "published"] = Field("drafts", alias="as")
    """`published` also sets versions, states and the current version; it needs a reason."""
    reason: str = Field("", max_length=REASON_MAX_LENGTH)
    """Recorded with every change."""
    dry_run: bool = False
    """Only return what would change."""


class ImportedTool(Answer):
    """The result for one tool."""

    path: str
    """Path of the tool in the document."""
    name: str
    status: Literal["added", "changed", "unchanged", "refused"]
    steps: list[str]
    problems: list[str]
    """Why it is rejected, each with its path in the document."""
    notes: list[str]
    """Parts of it that are not imported."""
    callers: Literal["compatible", "breaking", "unknown"] | None
    """Effect of replacing the current contract; null if it is not replaced."""
    consumers: Literal["compatible", "breaking", "unknown"] | None


class Imported(Answer):
    """The result of an import or of a dry run."""

    id: UUID | None
    """Id of the import, kept for a day; null if it finished immediately."""
    state: Literal["previewing", "previewed", "importing", "done", "cancelled"]
    """`previewing` and `importing` run in the background. A dry run ends with `previewed`."""
    progress: int
    """Number of tools previewed or imported so far."""
    of: int
    """Number of tools in the file."""
    is_dry_run: bool
    forms: list[str]
    """Formats of the tools in the file."""
    note: str
    added: int
    changed: int
    unchanged: int
    refused: int
    tools: list[ImportedTool]
    """Tools processed so far."""


class DefinitionParams(Params):
    """Which definitions, in which format."""

    provider: Literal["openai", "openai-responses", "anthropic", "mcp"]
    """OpenAI (chat completions or responses), Anthropic (messages), or MCP (`tools/list`)."""
    name: str = Field("", max_length=256)
    """Name of one tool. Default: all tools that are not retired."""


class Remark(Answer):
    """Something that is changed, omitted, or not accepted by the provider."""

    name: str
    remark: str


class Definitions(Answer):
    """Definitions in a provider's format."""

    provider: str
    definitions: Any
    """A list of tools; for MCP the result of `tools/list`."""
    remarks: list[Remark]
    lacks: str
    """What the provider's format does not support."""


@router.get(
    "/registry",
    auth=ApiKeyAuth(Scope.REGISTRY),
    operation_id="export_registry",
    summary="Export the registry",
    tags=["tools"],
    openapi_extra={
        "responses": problem_responses((*_PROBLEMS, "overloaded"))["responses"]
        | {
            200: {
                "description": "OK",
                "content": {"application/json": {"schema": _DOCUMENT}},
            }
        }
    },
)
def export_the_registry(request: HttpRequest) -> HttpResponseBase:
    """Export all tools with versions, states, tags and notes as a stream that can be imported."""
    identity = cast(ApiRequest, request).auth
    return stream(identity.tenant_id, export_registry(identity.tenant_id), "application/json")


@router.post(
    "/registry",
    auth=ApiKeyAuth(Scope.REGISTRY),
    response={200: Imported, 202: Imported},
    operation_id="import_registry",
    summary="Import tools",
    tags=["tools"],
    openapi_extra={
        **problem_responses((*_PROBLEMS, "malformed", "too_large", "parameter")),
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
def import_registry(request: HttpRequest, params: Query[ImportParams]) -> HttpResponse:
    """Import an export of a registry, or definitions of OpenAI, Anthropic or MCP.

    The format is detected. Existing versions do not change. An invalid tool does not affect the
    others. With `dry_run` nothing changes. At most 10 MB. Above 256 KiB or 50 tools, the response
    is 202 and the import runs in the background: read its progress by `id` or at `Location`.
    """
    identity = cast(ApiRequest, request).auth
    _refuse_unknown(request, ImportParams)
    body = request.read(DOCUMENT_MAX_BYTES + 1)
    if len(body) > DOCUMENT_MAX_BYTES:
        return problem("too_large", f"The body exceeds {DOCUMENT_MAX_BYTES:,} bytes.")
    as_drafts = params.as_ == "drafts"
    try:
        reason = check_text(params.reason).strip()
    except ValueError as error:
        raise ProblemError("parameter", f"reason {error}.", parameter="reason") from None
    if not (as_drafts or params.dry_run or reason):
        raise ProblemError("parameter", "Publishing requires a reason.", parameter="reason")
    try:
        document = open_document(body)
    except UnreadableError as error:
        return problem("malformed", str(error))
    way = None if params.dry_run else Way(as_drafts, Publisher(key_id=identity.key_id), reason)
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
    openapi_extra=problem_responses((*_PROBLEMS, "not_found")),
)
def read_import(request: HttpRequest, import_id: UUID) -> HttpResponse:
    """Get the progress of an import and its result for each tool. Kept for a day."""
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
    openapi_extra=problem_responses((*_PROBLEMS, "not_found")),
)
def cancel_import(request: HttpRequest, import_id: UUID) -> HttpResponse:
    """Cancel an import. Tools already imported stay changed and are listed."""
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
    openapi_extra=problem_responses((*_PROBLEMS, "parameter", "not_found")),
)
def define_tools(request: HttpRequest, params: Query[DefinitionParams]) -> HttpResponse:
    """Get the current contracts in the format of OpenAI, Anthropic or MCP, with its limits."""
    identity = cast(ApiRequest, request).auth
    _refuse_unknown(request, DefinitionParams)
    with tenant_scope(identity.tenant_id):
        contracts = current_contracts(identity.tenant_id)
    if params.name:
        contracts = [one for one in contracts if one.name == params.name]
        if not contracts:
            raise ProblemError("not_found", "Tool not found or retired.")
    provider = PROVIDERS[params.provider]
    defined = define(contracts, provider)
    return JsonResponse(
        {
            "provider": params.provider,
            "definitions": provider.wrap([one.document for one in defined]),
            "remarks": [
                {"name": one.name, "remark": remark} for one in defined for remark in one.remarks
            ],
            "lacks": provider.lacks,
        }
    )


def _refuse_unknown(request: HttpRequest, params: type[Params]) -> None:
    known = {field.alias or name for name, field in params.model_fields.items()}
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
