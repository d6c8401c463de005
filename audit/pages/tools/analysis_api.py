"""Starting and cancelling drift analyses, over the API."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone
from ninja import Path
from pydantic import Field

from audit.models import DriftAnalysis
from audit.pages.show.api_query import checked
from audit.pages.show.router import router
from audit.pages.tools.acts import (
    begin_analysis,
)
from audit.pages.tools.wanted_calls import CallsBody, JobName
from audit.queries.call_query import Reader, parse
from audit.work.drift import job as drift
from config.http.problems import ProblemError
from tenants.api_acts import Act, acts
from tenants.api_reads import Answer, utc
from tenants.models import Scope
from tools_registry.act_api import found_tool
from tools_registry.models import Tool


class DriftBody(CallsBody):
    """Which calls are analyzed: the newest of a range, all or those that match a query."""

    q: str = Field("", examples=["agent:planner environment:live"])
    """As in the list of calls, without terms on payloads. Free text is not searched in messages."""


class Analysis(Answer):
    """A drift analysis. `/tools/{tool_id}/drift` has the findings of the last one."""

    id: UUID
    state: JobName
    against_version: int | None
    from_: datetime = Field(alias="from")
    to: datetime
    query: str | None
    """Which calls, without times; null: all calls of the tool."""
    calls: int
    of: int
    problem: str


@acts(
    router,
    "POST",
    "/tools/{uuid:tool_id}/drift",
    Analysis,
    scope=Scope.REGISTRY,
    tag="tools",
    body=DriftBody,
    status=201,
    problems=("not_found", "range", "query"),
)
def start_drift_analysis(act: Act, tool_id: Path[UUID]) -> dict[str, Any]:
    """Compare stored calls with the tool's contract: few at once, more in the background."""
    tool = found_tool(act.identity.tenant_id, tool_id)
    body = act.read(DriftBody)
    query = checked(parse(body.q, Reader(sees_payloads=True)).of_index())
    started = begin_analysis(tool, act.actor, body.time_range(), body.limit, query)
    return _analysis(_found_analysis(tool, started.id))


@acts(
    router,
    "POST",
    "/tools/{uuid:tool_id}/drift/{uuid:analysis_id}/cancel",
    Analysis,
    scope=Scope.REGISTRY,
    tag="tools",
    problems=("not_found",),
)
def cancel_drift_analysis(act: Act, tool_id: Path[UUID], analysis_id: Path[UUID]) -> dict[str, Any]:
    """Cancel an analysis. Its findings stay."""
    tool = found_tool(act.identity.tenant_id, tool_id)
    _found_analysis(tool, analysis_id)
    drift.cancel_analysis(tool.pk, analysis_id, timezone.now())
    return _analysis(_found_analysis(tool, analysis_id))


def _found_analysis(tool: Tool, pk: UUID) -> DriftAnalysis:
    analyses = DriftAnalysis.objects.for_tenant(tool.tenant_id)
    stored = analyses.filter(tool_id=tool.pk, id=pk).first()
    if stored is None:
        raise ProblemError("not_found", "Analysis not found.")
    return stored


def _analysis(one: DriftAnalysis) -> dict[str, Any]:
    return {
        "id": one.id,
        "state": one.state,
        "against_version": one.base_number,
        "from": utc(one.since),
        "to": utc(one.until),
        "query": one.query or None,
        "calls": one.read_count,
        "of": one.call_count,
        "problem": one.problem,
    }
