"""Pages of incidents: the list with its form, one incident with its timeline, and its evidence."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from audit.evidence.bundling import bundle
from audit.evidence.ledger_range import NotSignedError
from audit.incidents.bundled import evidence_of, is_signed
from audit.incidents.making import (
    CALLS_MAX,
    TRACES_MAX,
    CannotBeginError,
    Wanted,
    all_incidents,
    done_percent,
    find_incident,
    rows_of,
)
from audit.models import Incident
from audit.pages.incidents.acts import begin_incident
from audit.pages.incidents.forms import IncidentForm
from audit.pages.show.requested_query import mistakes
from audit.queries.call_query import MAX_LENGTH, Query, Reader, parse
from config.http.htmx import render_page
from config.http.ordering import Key, sorted_table
from config.http.streams import stream
from tenants.access import TenantRequest, tenant_page
from tenants.actions import record_view
from tenants.models import Role
from tenants.slices import UNDER_WAY, JobState

_LISTED = 100
_ROWS = 500
_REFUSED = HTTPStatus.UNPROCESSABLE_ENTITY  # the name that Python 3.12 has
_TONES = {JobState.DONE: "ok", JobState.FAILED: "failed"}


class ListedIncident(NamedTuple):
    """An incident and the words for its state."""

    incident: Incident
    state: str
    tone: str


_COLUMNS: Mapping[str, Key[ListedIncident]] = {
    "incident": lambda one: one.incident.title.casefold(),
    "state": lambda one: one.state,
    "traces": lambda one: len(one.incident.trace_ids),
    "calls": lambda one: one.incident.call_count,
    "begun": lambda one: one.incident.created_at,
}
"""The columns by which incidents are sorted."""
_TRACES: Mapping[str, Key[dict[str, Any]]] = {
    "trace": itemgetter("trace_id"),
    **{name: itemgetter(name) for name in ("calls", "failed", "violations", "decisions")},
}
"""The columns by which the traces of an incident are sorted."""


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(role=Role.AUDITOR)
def incident_list(request: TenantRequest) -> HttpResponseBase:
    """Show the incidents, and begin one."""
    if request.method != "POST":
        return _list(request, IncidentForm(), _query(request.GET.get("q", "")))
    form, query = IncidentForm(request.POST), _query(request.POST.get("q", ""))
    if not query.terms:
        form.add_error(None, "Enter a query: an empty one would select all calls.")
    if not form.is_valid() or query.problems:
        return _list(request, form, query)
    wanted = Wanted(form.cleaned_data["title"], form.cleaned_data["reason"], query)
    try:
        incident = begin_incident(request.tenant, request.user, wanted)
    except CannotBeginError as error:
        form.add_error(None, str(error))
        return _list(request, form, query)
    return redirect("incident_detail", incident.id)


@require_safe
@tenant_page(role=Role.AUDITOR)
def incident_detail(request: TenantRequest, pk: UUID) -> HttpResponse:
    """Show an incident: how far it is, and its timeline."""
    incident = _own(pk)
    is_under_way = incident.state in UNDER_WAY
    is_made = incident.state == JobState.DONE and not incident.is_erased
    timeline: dict[str, Any] = json.loads(incident.timeline) if is_made else {}
    items = timeline.get("items", [])
    context: dict[str, object] = {
        "incident": incident,
        "state": JobState(incident.state).label,
        "tone": _tone(incident),
        "is_under_way": is_under_way,
        "is_signed": is_made and is_signed(incident),
        "is_made": is_made,
        "percent": done_percent(incident),
        "traces": sorted_table(request, timeline.get("traces", []), _TRACES, ""),
        "rows": rows_of(items[:_ROWS]),
        "more": max(0, len(items) - _ROWS),
    }
    return render_page(request, "incidents/incident_detail.html", "incident", context)


@require_safe
@tenant_page(role=Role.AUDITOR)
def incident_evidence(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Export the evidence bundle of an incident. The audit log records it."""
    incident = _own(pk)
    made_by = request.user.get_username()
    try:
        wanted = evidence_of(request.tenant, incident, made_by, timezone.now())
    except NotSignedError as error:
        messages.error(request, f"No bundle created. {error}")
        return redirect("incident_detail", pk)
    if request.method != "HEAD":
        record_view(
            request.tenant.id,
            request.user,
            "evidence.export",
            apart=str(pk),
            incident=str(pk),
            **wanted.on_record(),
        )
    name = f"incident-{request.tenant.slug}-{pk}.zip"
    return stream(request.tenant.id, bundle(wanted), "application/zip", file_name=name)


def _query(text: str) -> Query:
    """The query of the calls: of the index, whoever asks, as the worker reads it."""
    return parse(text, Reader(timezone.get_current_timezone())).of_index()


def _own(pk: UUID) -> Incident:
    incident = find_incident(pk)
    if incident is None:
        raise Http404("no such incident")
    return incident


def _list(request: TenantRequest, form: IncidentForm, query: Query) -> HttpResponse:
    listed = [
        ListedIncident(each, JobState(each.state).label, _tone(each))
        for each in all_incidents()[:_LISTED]
    ]
    context = {
        "form": form,
        "q": query.text[:MAX_LENGTH],
        "mistakes": mistakes(query),
        "hint": (
            "Without values of payloads. The whole trace of each call is held and in the timeline:"
            f" at most {TRACES_MAX} traces with {CALLS_MAX:,} calls."
        ),
        "incidents": sorted_table(request, listed, _COLUMNS, "begun"),
    }
    status = _REFUSED if form.is_bound else HTTPStatus.OK
    return render(request, "incidents/incident_list.html", context, status=status)


def _tone(incident: Incident) -> str:
    return _TONES.get(JobState(incident.state), "open")
