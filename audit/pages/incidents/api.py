"""Incidents over the API, as on their pages. Their evidence is `GET evidence?incident=`."""

import json
from datetime import datetime
from typing import Any, Literal, cast
from uuid import UUID

from django.http import HttpRequest
from ninja import Path, Query
from pydantic import Field

from audit.incidents.bundled import is_signed
from audit.incidents.making import CannotBeginError, Wanted, find_incident
from audit.models import Incident
from audit.pages.incidents import acts as incidents
from audit.pages.incidents.forms import REASON_MAX, TITLE_MAX
from audit.pages.show.api_query import checked, parsed_terms
from audit.pages.show.router import router
from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, Stripped, acts
from tenants.api_auth import ApiRequest
from tenants.api_reads import Answer, ListParams, Page, newest_first, reads, utc
from tenants.models import Scope
from tenants.scope import current_tenant_id
from tenants.slices import JobState


class IncidentSummary(Answer):
    """Calls under legal holds, with a timeline of their traces."""

    id: UUID
    title: str
    reason: str
    query: str
    """Of the calls."""
    state: Literal["waiting", "running", "done", "failed"]
    created_at: datetime
    created_by: str
    traces: int
    """Those that are held so far."""
    calls: int
    """Those in the timeline so far."""
    is_erased: bool
    """Whether the timeline was erased with calls of its traces."""
    problem: str
    """Why it failed; else empty. Holds that were set stay in force."""


class IncidentPage(Page[IncidentSummary]):
    """Incidents, the newest first."""


class IncidentDetail(IncidentSummary):
    """An incident with its holds and its timeline."""

    trace_ids: list[str]
    hold_ids: list[UUID]
    is_signed: bool
    """Whether the entry with the timeline's digest is signed: then its evidence can be made."""
    sha256: str
    """Of `timeline.json` in the evidence; empty before it is made."""
    timeline: dict[str, Any] | None
    """`timeline.json`; null before it is made, and if it is withheld."""
    withheld: bool
    """Whether the timeline is left out, because the key lacks the scope `payloads`."""


class IncidentBody(Body):
    """An incident to begin. Title and reason become entries of the ledger."""

    title: Stripped = Field(min_length=1, max_length=TITLE_MAX)
    reason: Stripped = Field(min_length=1, max_length=REASON_MAX)
    q: str = Field(examples=["trace:checkout-7"])
    """A query as in the list of calls, without values of payloads. It must not be empty."""


@reads(
    router,
    "/incidents",
    IncidentPage,
    scope=Scope.HOLDS,
    tag="retention",
    problems=("cursor",),
)
def list_incidents(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List the incidents, the newest first."""
    stored = Incident.objects.for_tenant(current_tenant_id()).defer("timeline", "page")
    return newest_first("incidents", stored, params, _summary)


@reads(
    router,
    "/incidents/{uuid:incident_id}",
    IncidentDetail,
    scope=Scope.HOLDS,
    tag="retention",
    problems=("not_found",),
)
def read_incident(request: HttpRequest, incident_id: Path[UUID]) -> dict[str, Any]:
    """Get an incident with its progress and its timeline."""
    incident = find_incident(incident_id)
    if incident is None:
        raise ProblemError("not_found", "Incident not found.")
    return _detail(incident, sees_payloads=cast(ApiRequest, request).auth.sees_payloads)


@acts(
    router,
    "POST",
    "/incidents",
    IncidentDetail,
    scope=Scope.HOLDS,
    tag="retention",
    body=IncidentBody,
    status=201,
    problems=("query",),
)
def begin_incident(act: Act) -> dict[str, Any]:
    """Set a legal hold on each trace of the calls, and make the timeline of these traces.

    The worker makes it within seconds. Its evidence can be downloaded once its entry is signed.
    """
    body = act.read(IncidentBody)
    query = checked(parsed_terms(act.request, body.q).of_index())
    try:
        wanted = Wanted(body.title, body.reason, query)
        incident = incidents.begin_incident(act.tenant, act.actor, wanted)
    except CannotBeginError as error:
        raise ProblemError("query", str(error), position=0, length=len(query.text)) from error
    return _detail(incident, sees_payloads=act.identity.sees_payloads)


def _summary(one: Incident) -> dict[str, Any]:
    named = ("id", "title", "reason", "query", "state", "created_by", "is_erased", "problem")
    return {
        **{name: getattr(one, name) for name in named},
        "created_at": utc(one.created_at),
        "traces": len(one.trace_ids),
        "calls": one.call_count,
    }


def _detail(one: Incident, *, sees_payloads: bool) -> dict[str, Any]:
    is_made = one.state == JobState.DONE and not one.is_erased
    return {
        **_summary(one),
        "trace_ids": one.trace_ids,
        "hold_ids": one.hold_ids,
        "is_signed": is_signed(one),
        "sha256": one.sha256,
        "timeline": json.loads(one.timeline) if is_made and sees_payloads else None,
        "withheld": not sees_payloads,
    }
