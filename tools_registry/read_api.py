"""The registry over the API: the list of tools, one tool with its versions, and diffs."""

from datetime import UTC, datetime
from typing import Any, Literal, cast
from uuid import UUID

from django.http import HttpRequest
from ninja import Path, Query
from pydantic import Field

from config.http.problems import ProblemError
from tenants.api_auth import ApiRequest
from tenants.api_reads import Answer, ListParams, Page, Params, reads, seal, unseal
from tools_registry.api import router
from tools_registry.changes import version_states
from tools_registry.contract_diff import compare_contracts, diff_document
from tools_registry.models import State, Tool, ToolVersion
from tools_registry.versions import contract_of, current_versions, find_version

DIFFERENCES_MAX, VALUE_LENGTH = 1_000, 10_000
VERSIONS_MAX = 100
"""Of one tool, the newest."""


class ListedTool(Answer):
    """A tool and its current version."""

    id: UUID
    name: str
    version: int
    versions_url: str
    """URL of the tool with all its versions."""
    digest: str
    description: str
    trusted: bool
    ephemeral: bool
    published_at: datetime
    published_by: str
    """Name of a user, or id of an API key."""


class ToolPage(Page[ListedTool]):
    """Tools by name."""

    OLD_NAME = "tools"


class PublishedVersion(Answer):
    """An immutable contract of a tool."""

    version: int
    state: Literal["published", "deprecated", "retired"]
    digest: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    trusted: bool
    ephemeral: bool
    on_collision: str
    meta: dict[str, Any]
    published_at: datetime
    published_by: str


class ToolDetail(Answer):
    """A tool and its newest 100 versions, newest first."""

    id: UUID
    name: str
    notes: str
    created_at: datetime
    owner: str
    link: str
    tags: list[str]
    meta: dict[str, Any]
    """Labels set by people."""
    current_version: int
    """The version that outputs are validated against; 0 if nothing is published yet."""
    versions: list[PublishedVersion]


class DiffParams(Params):
    """Two versions of a tool, by their numbers."""

    from_: int = Field(alias="from", ge=1, le=2**31 - 1, examples=[1])
    """Number of the old version."""
    to: int = Field(ge=1, le=2**31 - 1, examples=[2])
    """Number of the new version."""


class SchemaDifference(Answer):
    """One difference and its effect. Members without a value are omitted."""

    side: Literal["input", "output", "contract"]
    """`input` affects callers, `output` affects consumers, `contract` affects neither."""
    path: str
    """Path in the arguments or results, such as `$.rows[*].id`."""
    keyword: str
    before: Any = None
    after: Any = None
    verdict: Literal["compatible", "breaking", "unknown"]
    """`unknown`: the effect cannot be decided."""
    reason: str


class JSONDifference(Answer):
    """One place in which two contracts differ as JSON documents."""

    pointer: str
    kind: Literal["add", "remove", "replace"]
    before: Any
    after: Any


class VersionDifference(Answer):
    """The differences between two versions."""

    callers: Literal["compatible", "breaking", "unknown"]
    consumers: Literal["compatible", "breaking", "unknown"]
    change_count: int
    changes: list[SchemaDifference]
    """The first 1,000: inputs first, breaking changes before others."""
    json_diff: list[JSONDifference]
    """The first 1,000."""


@reads(router, "/tools", ToolPage, tag="tools", problems=("cursor", "limit"))
def list_tools(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List registered tools by name, each with its current version."""
    after = unseal("tools", params.cursor, _read_name) or ""
    tenant_id = cast(ApiRequest, request).auth.tenant_id
    versions = current_versions(tenant_id, after=after, size=params.limit + 1)
    shown = versions[: params.limit]
    return {
        "items": [
            {
                "id": one.tool.id,
                "name": one.tool.name,
                "version": one.number,
                "versions_url": f"/api/v1/tools/{one.tool.id}",
                "digest": one.digest,
                "description": one.description,
                "trusted": one.trusted,
                "ephemeral": one.ephemeral,
                **_published(one),
            }
            for one in shown
        ],
        "next": seal("tools", shown[-1].tool.name) if len(versions) > params.limit else None,
    }


@reads(router, "/tools/{uuid:tool_id}", ToolDetail, tag="tools", problems=("not_found",))
def read_tool(request: HttpRequest, tool_id: Path[UUID]) -> dict[str, Any]:
    """Get a tool with its versions: descriptions, schemas and flags."""
    tenant_id = cast(ApiRequest, request).auth.tenant_id
    tool = Tool.objects.filter(tenant_id=tenant_id, pk=tool_id).first()
    if tool is None:
        raise ProblemError("not_found", "Tool not found.")
    versions = ToolVersion.objects.filter(tenant_id=tenant_id, tool=tool).order_by("-number")
    states = version_states(tenant_id, [tool.pk])
    return {
        "id": tool.id,
        "name": tool.name,
        "notes": tool.notes,
        "created_at": tool.created_at.astimezone(UTC),
        "owner": tool.owner,
        "link": tool.link,
        "tags": tool.tags,
        "meta": tool.meta,
        "current_version": tool.current_number,
        "versions": [
            {
                "version": one.number,
                "state": states.get((tool.pk, one.number), State.PUBLISHED).value,
                "digest": one.digest,
                "description": one.description,
                "input_schema": one.input_schema,
                "output_schema": one.output_schema,
                "trusted": one.trusted,
                "ephemeral": one.ephemeral,
                "on_collision": one.on_collision,
                "meta": one.meta,
                **_published(one),
            }
            for one in versions[:VERSIONS_MAX]
        ],
    }


@reads(
    router,
    "/tools/{uuid:tool_id}/diff",
    VersionDifference,
    tag="tools",
    problems=("not_found",),
)
def diff_tool(
    request: HttpRequest, tool_id: Path[UUID], params: Query[DiffParams]
) -> dict[str, Any]:
    """Compare two versions of a tool: differences, and their effect on callers and consumers."""
    tenant_id = cast(ApiRequest, request).auth.tenant_id
    tool = Tool.objects.filter(tenant_id=tenant_id, pk=tool_id).first()
    old = find_version(tool, params.from_) if tool else None
    new = find_version(tool, params.to) if tool else None
    if old is None or new is None:
        raise ProblemError("not_found", "Tool or version not found.")
    diff = compare_contracts(contract_of(old), contract_of(new))
    document = diff_document(diff, limit=DIFFERENCES_MAX, value_length=VALUE_LENGTH)
    return {
        **document,
        "json_diff": [
            {
                "pointer": one.pointer,
                "kind": one.kind,
                "before": one.before,
                "after": one.after,
            }
            for one in diff.raw[:DIFFERENCES_MAX]
        ],
    }


def _published(version: ToolVersion) -> dict[str, Any]:
    return {
        "published_at": version.created_at.astimezone(UTC),
        "published_by": version.created_by or version.created_by_key,
    }


def _read_name(place: list[str]) -> str:
    name = "\n".join(place)
    if "\x00" in name:
        raise ValueError("no name of a tool")
    return name
