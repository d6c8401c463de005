"""Tools about contracts: what changed, and what a tool promises."""

from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from pydantic import Field

from audit.effect.queries import version_before
from audit.mcp.caller import McpRequest
from audit.mcp.tool import Tool, ToolParams
from audit.models import DriftAnalysis, StoredDefinitionChange
from audit.pages.show.figure_page import FigurePage
from audit.pages.show.ranges import RangeParams
from audit.pages.tools.drift_api import ToolDrift, drift_of
from audit.pages.tools.effect_api import EffectMeasure, EffectParams, read_effect
from audit.queries.time_range import TimeRange
from audit.queries.violations import ViolationFilter, violations
from config.http.problems import ProblemError
from tenants.actions import storable_text
from tenants.api_reads import Answer, ListParams, Page, members_of, utc
from tools_registry import models
from tools_registry.read_api import (
    DiffParams,
    PublishedVersion,
    SchemaDifference,
    diff_tool,
    read_tool,
)

_LISTED: Final = 1_000
"""The newest changes of each kind that are listed."""


class WhatChangedParams(ToolParams, RangeParams, ListParams):
    """Which changes."""

    range: str = ""
    """How far back from now: minutes, hours or days, up to 400 days. Default: 7d."""
    tool: str | None = None
    """Only changes of this tool, by its exact name."""
    limit: int = Field(20, ge=1, le=100)
    """Maximum number of changes."""

    def read_range(self) -> TimeRange:
        """The requested range. Raises ProblemError."""
        if not (self.range or self.from_ or self.to):
            return self.model_copy(update={"range": "7d"}).read_range()
        return super().read_range()


class Change(Answer):
    """Something that changed about a tool."""

    at: datetime
    kind: Literal["version", "violation", "definition", "drift"]
    """A version was published; a kind of violation was seen for the first time; a server served
    another definition than before; calls were compared with the contract."""
    tool_name: str
    version: int | None
    """Number of the published version."""
    before_version: int | None
    """The version that was current before."""
    callers: Literal["compatible", "breaking", "unknown"] | None
    """Whether the version breaks callers: by its input schema."""
    consumers: Literal["compatible", "breaking", "unknown"] | None
    """Whether it breaks consumers of results: by its output schema."""
    changes: list[SchemaDifference]
    """The first differences between the contracts."""
    effect: list[EffectMeasure]
    """Failures, violations and durations of a week before and after, as far as there are any."""
    tool_version: str | None
    """Of a violation: the version that calls named."""
    path_pattern: str | None
    code: str | None
    calls: int | None
    """Calls of the range with this violation."""
    new_since: str | None
    """The version that introduced the violation."""
    server: str | None
    digest: str | None
    """Of the definition."""
    drift: ToolDrift | None
    """How calls differ from the contract: by the tool's last analysis in the range."""


class Changes(Page[Change]):
    """Changes, newest first."""

    from_: datetime = Field(alias="from")
    to: datetime


class ToolContractParams(ToolParams):
    """Which contract."""

    tool: str
    """The tool's exact name."""
    version: int | None = Field(None, ge=1, le=2**31 - 1)
    """Its number. Default: the current version."""


class ToolContract(Answer):
    """A version of a tool, and what it changed."""

    tool_name: str
    current_version: int
    version_numbers: list[int]
    """All versions, newest first; at most 100."""
    contract: PublishedVersion
    before_version: int | None
    """The version with the number before."""
    callers: Literal["compatible", "breaking", "unknown"] | None
    """Whether this version breaks callers of the version before."""
    consumers: Literal["compatible", "breaking", "unknown"] | None
    """Whether it breaks consumers of its results."""
    changes: list[SchemaDifference]


def _what_changed(request: McpRequest, params: WhatChangedParams) -> dict[str, Any]:
    page = FigurePage.read("changes", params)
    tool = None if params.tool is None else storable_text(params.tool)
    rows = [
        *_published(request, page.of, tool),
        *_new_violations(page.of, tool),
        *_served(request, page.of, tool),
        *_analyzed(request, page.of, tool),
    ]
    rows.sort(key=lambda one: (one["at"], one["kind"], one["tool_name"]), reverse=True)
    members = page.members(rows)
    return {
        "from": utc(page.of.start),
        "to": utc(page.of.end),
        **members,
        "items": [_described(request, one) for one in members["items"]],
    }


def _published(request: McpRequest, of: TimeRange, tool: str | None) -> list[dict[str, Any]]:
    versions = models.ToolVersion.objects.filter(
        tenant_id=request.auth.tenant_id,
        tool__tenant_id=request.auth.tenant_id,
        created_at__gte=of.start,
        created_at__lt=of.end,
        **({} if tool is None else {"tool__name": tool}),
    ).select_related("tool")
    return [
        {
            "at": utc(one.created_at),
            "kind": "version",
            "tool_name": one.tool.name,
            "version": one.number,
            "published": one,
        }
        for one in versions.defer("input_schema", "output_schema", "meta").order_by(
            "-created_at", "-number"
        )[:_LISTED]
    ]


def _new_violations(of: TimeRange, tool: str | None) -> list[dict[str, Any]]:
    wanted = ViolationFilter.read({} if tool is None else {"tool": tool})
    return [
        {
            "at": utc(kind.first_ever_at),
            "kind": "violation",
            "tool_name": kind.tool_name,
            "tool_version": kind.tool_version or None,
            "path_pattern": kind.path_pattern,
            "code": kind.code,
            "calls": kind.calls,
            "new_since": kind.new_since,
        }
        for kind in violations(of, wanted).kinds
        if of.start <= kind.first_ever_at < of.end
    ]


def _served(request: McpRequest, of: TimeRange, tool: str | None) -> list[dict[str, Any]]:
    changes = StoredDefinitionChange.objects.for_tenant(request.auth.tenant_id).filter(
        seen_at__gte=of.start,
        seen_at__lt=of.end,
        **({} if tool is None else {"tool_name": tool}),
    )
    return [
        {
            "at": utc(one.seen_at),
            "kind": "definition",
            "tool_name": one.tool_name,
            "server": one.server,
            "digest": one.digest or None,
        }
        for one in changes.order_by("-seen_at")[:_LISTED]
    ]


def _analyzed(request: McpRequest, of: TimeRange, tool: str | None) -> list[dict[str, Any]]:
    analyses = DriftAnalysis.objects.for_tenant(request.auth.tenant_id).filter(
        created_at__gte=of.start,
        created_at__lt=of.end,
        read_count__gt=0,
        **({} if tool is None else {"tool_name": tool}),
    )
    newest = analyses.order_by("tool_id", "-id").distinct("tool_id")
    return [
        {
            "at": utc(one.created_at),
            "kind": "drift",
            "tool_name": one.tool_name,
            "analysis_id": one.id,
        }
        for one in newest.only("tenant_id", "id", "created_at", "tool_name")[:_LISTED]
    ]


def _described(request: McpRequest, row: dict[str, Any]) -> dict[str, Any]:
    """A change with all members of `Change`."""
    members: dict[str, Any] = dict.fromkeys(Change.model_fields) | {"changes": [], "effect": []}
    published, analysis_id = row.pop("published", None), row.pop("analysis_id", None)
    members |= row
    if analysis_id is not None:
        members["drift"] = _drift(request, analysis_id)
    if published is not None:
        members |= _of_version(request, published)
    return members


def _drift(request: McpRequest, analysis_id: UUID) -> dict[str, Any] | None:
    tenant_id = request.auth.tenant_id
    analysis = DriftAnalysis.objects.for_tenant(tenant_id).filter(id=analysis_id).first()
    if analysis is None:  # a newer one took its place meanwhile
        return None
    tool = models.Tool.objects.get(tenant_id=tenant_id, pk=analysis.tool_id)
    return drift_of(tool, analysis)


def _of_version(request: McpRequest, version: models.ToolVersion) -> dict[str, Any]:
    try:
        params = EffectParams(version=version.number, q="")
        effect = members_of(read_effect, request, tool_id=version.tool_id, params=params)
        number, measures = effect["before_version"], effect["measures"]
    except ProblemError:  # it was published less than a second ago
        before = version_before(version)
        number, measures = before.number if before else None, []
    return {
        "before_version": number,
        "effect": [one for one in measures if one["verdict"] != "not_enough_data"],
        **(_difference(request, version.tool_id, number, version.number) if number else {}),
    }


def _difference(request: McpRequest, tool_id: Any, before: int, number: int) -> dict[str, Any]:
    params = DiffParams.model_validate({"from": before, "to": number})
    difference = members_of(diff_tool, request, tool_id=tool_id, params=params)
    return {name: difference[name] for name in ("callers", "consumers", "changes")}


def _tool_contract(request: McpRequest, params: ToolContractParams) -> dict[str, Any]:
    tenant_id = request.auth.tenant_id
    name = storable_text(params.tool)
    tool = models.Tool.objects.filter(tenant_id=tenant_id, name=name).first()
    if tool is None:
        raise ProblemError("not_found", "No such tool is registered.")
    detail = members_of(read_tool, request, tool_id=tool.pk)
    versions = {one["version"]: one for one in detail["versions"]}
    number = params.version or tool.current_number
    if number not in versions:
        raise ProblemError("not_found", "The tool has no such version.")
    before = number - 1 if number - 1 in versions else None
    compared: dict[str, Any] = {"callers": None, "consumers": None, "changes": []}
    if before is not None:
        compared = _difference(request, tool.pk, before, number)
    return {
        "tool_name": tool.name,
        "current_version": tool.current_number,
        "version_numbers": list(versions),
        "contract": versions[number],
        "before_version": before,
        **compared,
    }


WHAT_CHANGED: Final = Tool(
    "what_changed",
    "What changed",
    "List what changed about tools, newest first: published versions with the differences of their"
    " contracts and their effect on calls, new kinds of violations, new definitions as served, and"
    " how calls drift from contracts.",
    WhatChangedParams,
    Changes,
    _what_changed,
)
TOOL_CONTRACT: Final = Tool(
    "tool_contract",
    "A tool's contract",
    "Get the registered contract of a tool: description, schemas, and what the version changed.",
    ToolContractParams,
    ToolContract,
    _tool_contract,
)
