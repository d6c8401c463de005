"""Drift of a tool, over the API: the findings of the last analysis of its calls."""

from datetime import UTC, datetime
from typing import Any, Literal, cast
from uuid import UUID

from django.http import HttpRequest
from ninja import Path
from pydantic import Field

from audit.models import DriftAnalysis
from audit.pages.show.router import router
from audit.queries.callers import NamedVersion, callers
from audit.work.drift.declared import Declared
from audit.work.drift.findings import Finding, compare
from audit.work.drift.job import calls_of, declared_by, last_analysis
from audit.work.drift.shape import SIDES, loads
from config.http.problems import ProblemError
from tenants.api_auth import ApiRequest
from tenants.api_reads import Answer, reads
from tools_registry.models import Tool


class SampleCall(Answer):
    """A call with this difference."""

    started_on: str
    """Its UTC day."""
    invocation_id: UUID


class Difference(Answer):
    """One difference between observed and declared. It contains no values."""

    side: Literal["args", "output"]
    kind: Literal["undeclared", "unseen", "type", "value"]
    path: str
    """With `[*]` for items, and `*` for the members of a map."""
    calls: int
    of: int
    """Calls in which it could occur."""
    share: float
    declared: str
    seen: str
    samples: list[SampleCall]


class CalledVersion(Answer):
    """A version name used by calls."""

    named: str
    """Empty for calls without a version."""
    version: int | None
    """Number of the matching version; null if none matches."""
    is_current: bool
    calls: int
    failed: int
    last_at: datetime | None
    executors: list[str]
    """Producers that called it, most recently active first."""


class DifferingFlag(Answer):
    """A flag whose value at an executor differs from the registered one."""

    flag: str
    registered: str
    reported: str
    version: int | None
    """Number of the called version; null if it comes from a rejected contract."""


class ToolDrift(Answer):
    """Findings of the last analysis. Editors start one on the tool's page."""

    state: Literal["waiting", "running", "done", "cancelled", "failed"]
    against_version: int | None
    from_: datetime = Field(alias="from")
    to: datetime
    analyzed_at: datetime
    query: str | None
    """Which calls were read, without times; null: all calls of the tool."""
    calls: int
    """Number of calls read: the newest in the range."""
    differences: list[Difference]
    versions: list[CalledVersion]
    flags: list[DifferingFlag]


@reads(router, "/tools/{uuid:tool_id}/drift", ToolDrift, tag="tools", problems=("not_found",))
def read_drift(request: HttpRequest, tool_id: Path[UUID]) -> dict[str, Any]:
    """Compare a tool's calls with its registered contract, and list which versions are called.

    Returns the findings of the last analysis: undeclared fields, fields never seen, other types
    and values that are not listed, each with sample calls.
    """
    tenant_id = cast(ApiRequest, request).auth.tenant_id
    tool = Tool.objects.filter(tenant_id=tenant_id, pk=tool_id).first()
    analysis = last_analysis(tool) if tool else None
    if tool is None or analysis is None:
        raise ProblemError("not_found", "Tool not found, or its calls were never analyzed.")
    return drift_of(tool, analysis)


def drift_of(tool: Tool, analysis: DriftAnalysis) -> dict[str, Any]:
    """The members of `ToolDrift` about one analysis of a tool."""
    observed, declared = loads(analysis.shape), declared_by(analysis)
    usage = callers(tool, calls_of(analysis))
    return {
        "state": analysis.state,
        "against_version": analysis.base_number,
        "from": analysis.since.astimezone(UTC),
        "to": analysis.until.astimezone(UTC),
        "analyzed_at": analysis.created_at.astimezone(UTC),
        "query": analysis.query or None,
        "calls": analysis.read_count,
        "differences": [
            {"side": side, **_difference(finding)}
            for side in SIDES
            if isinstance(schema := declared[side], Declared)
            for finding in compare(observed[side].shape, schema)
        ],
        "versions": [_version(one) for one in usage.versions],
        "flags": [
            {
                "flag": one.flag,
                "registered": one.registered,
                "reported": one.observed,
                "version": one.number,
            }
            for one in usage.flags
        ],
    }


def _difference(one: Finding) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "path": one.path.encode(errors="replace").decode(),
        "calls": one.calls,
        "of": one.of,
        "share": one.share,
        "declared": one.declared,
        "seen": one.seen,
        "samples": [{"started_on": day, "invocation_id": pk} for day, pk in one.samples],
    }


def _version(one: NamedVersion) -> dict[str, Any]:
    return {
        "named": one.name,
        "version": one.number,
        "is_current": one.is_current,
        "calls": one.calls,
        "failed": one.failed,
        "last_at": one.last_at.astimezone(UTC) if one.last_at else None,
        "executors": [each.producer_id for each in one.executors if each.producer_id],
    }
