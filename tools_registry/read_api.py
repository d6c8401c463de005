"""The registry over the API: the tools there are, and one with its versions."""

from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

from django.http import HttpRequest
from ninja import Path, Query

from config.problems import ProblemError
from tenants.api_auth import ApiRequest
from tenants.api_reads import Answer, Page, Paged, reads, seal, unseal
from tools_registry.api import router
from tools_registry.models import Tool, ToolVersion
from tools_registry.versions import current_versions

VERSIONS_MAX = 100
"""Of one tool, the newest."""


class ListedTool(Answer):
    """A tool and its current version."""

    id: UUID
    name: str
    version: int
    versions_url: str
    """Where all its versions are."""
    digest: str
    description: str
    trusted: bool
    ephemeral: bool
    published_at: datetime
    published_by: str
    """A user's name, or the id of an API key."""


class ToolPage(Page):
    """Tools by name."""

    tools: list[ListedTool]


class PublishedVersion(Answer):
    """An immutable contract of a tool."""

    version: int
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
    """A tool and its versions, the current one first; the newest 100."""

    id: UUID
    name: str
    notes: str
    created_at: datetime
    versions: list[PublishedVersion]


@reads(router, "/tools", ToolPage, tag="tools", problems=("cursor", "limit"))
def list_tools(request: HttpRequest, asked: Query[Paged]) -> dict[str, Any]:
    """List registered tools by name, each with its current version."""
    after = unseal("tools", asked.cursor, _read_name) or ""
    tenant_id = cast(ApiRequest, request).auth.tenant_id
    found = current_versions(tenant_id, after=after, size=asked.limit + 1)
    shown = found[: asked.limit]
    return {
        "tools": [
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
        "next": seal("tools", shown[-1].tool.name) if len(found) > asked.limit else None,
    }


@reads(router, "/tools/{uuid:tool_id}", ToolDetail, tag="tools", problems=("not_found",))
def read_tool(request: HttpRequest, tool_id: Path[UUID]) -> dict[str, Any]:
    """One tool with its versions: their descriptions, schemas and flags."""
    tenant_id = cast(ApiRequest, request).auth.tenant_id
    tool = Tool.objects.filter(tenant_id=tenant_id, pk=tool_id).first()
    if tool is None:
        raise ProblemError("not_found", "There is no such tool.")
    versions = ToolVersion.objects.filter(tenant_id=tenant_id, tool=tool).order_by("-number")
    return {
        "id": tool.id,
        "name": tool.name,
        "notes": tool.notes,
        "created_at": tool.created_at.astimezone(UTC),
        "versions": [
            {
                "version": one.number,
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
