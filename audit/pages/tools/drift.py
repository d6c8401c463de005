"""Drift of a tool: what it really takes and returns, and who calls which version."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe
from pydantic import ValidationError

from audit.events.outputs import Side, Value, read_args, read_output
from audit.log.payload import LogPayloadError, read_events
from audit.models import DriftAnalysis
from audit.pages.show.requested_query import reader_of
from audit.pages.tools.acts import begin_analysis, draft_what_was_observed
from audit.pages.tools.forms import DriftForm
from audit.pages.tools.skipped import skipped_reasons
from audit.queries.callers import EXECUTORS_SHOWN, DifferingFlag, NamedVersion, callers
from audit.queries.listed_call import ListedCall
from audit.queries.replays import sampled_calls
from audit.work.drift import job
from audit.work.drift.declared import Declared
from audit.work.drift.findings import (
    Finding,
    Steps,
    compare,
)
from audit.work.drift.shape import SIDES, Observed, loads
from config.http.htmx import render_page
from config.http.ordering import Key, Order, in_order, requested_order, sorted_table
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.actions import record_view
from tenants.models import Role
from tenants.slices import UNDER_WAY, JobState, percent
from tools_registry.changes import Publisher
from tools_registry.drafts import DraftExistsError, find_draft
from tools_registry.models import Tool
from tools_registry.schemas import explain

FINDINGS_SHOWN = 100
READ_MAX = 20
"""Maximum of calls that are read from the log to show values that the schema does not list."""
VALUE_LENGTH = 120

_SIDES: dict[Side, str] = {"args": "Arguments", "output": "Outputs"}
_KINDS = {
    "type": "Wrong type",
    "value": "Wrong value",
    "undeclared": "Undeclared",
    "unseen": "Never seen",
}


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A finding with sample calls. Unlisted values are for members who may see payloads."""

    finding: Finding
    what: str
    samples: list[ListedCall]
    values: list[str]


@dataclass(frozen=True, slots=True)
class SideView:
    """The observations of the arguments, or of the outputs."""

    side: Side
    name: str
    observed: Observed
    rows: list[FindingRow]
    is_cut: bool
    """Whether there are more findings than are shown."""
    skipped: list[tuple[str, int]]
    order: Order
    why_not: str
    """Why the schema cannot be compared."""
    has_schema: bool

    @property
    def calls(self) -> int:
        """Number of calls whose value was read."""
        return self.observed.shape.seen.calls


def _status(one: NamedVersion) -> str | None:
    if one.is_current:
        return "current"
    return f"old version {one.number:9}" if one.is_old else "not registered" if one.name else None


_FINDINGS: Mapping[str, Key[Finding]] = {
    "path": lambda one: one.path,
    "difference": lambda one: _KINDS[one.kind],
    "calls": lambda one: one.calls,
    "share": lambda one: one.share,
}
_VERSIONS: Mapping[str, Key[NamedVersion]] = {
    "version": lambda one: one.name or None,
    "status": _status,
    "calls": lambda one: one.calls,
    "failed": lambda one: one.failed,
    "last": lambda one: one.last_at,
    "executors": lambda one: len(one.executors),
}
_FLAGS: Mapping[str, Key[DifferingFlag]] = {
    "flag": lambda one: one.flag,
    "registered": lambda one: one.registered,
    "executor": lambda one: one.observed,
}
"""The columns by which findings, callers and flags are sorted."""


@require_safe
@tenant_page()
def drift_page(request: TenantRequest, pk: UUID) -> HttpResponse:
    """Show the findings of the last analysis of the tool's calls, and who calls it."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    analysis = job.last_analysis(tool)
    form = DriftForm(now=timezone.now(), reader=reader_of(request))
    context: dict[str, Any] = {
        "tool": tool,
        "form": form,
        "draft": find_draft(tool),
        "may_edit": has_role(request.membership, Role.EDITOR),
        "executors_shown": EXECUTORS_SHOWN,
    }
    if analysis is not None:
        context |= _analysis_context(request, analysis, tool)
        if any(row.values for side in context["sides"] for row in side.rows):
            record_view(request.tenant.id, request.user, "tool.show-values", tool.name)
    return render_page(request, "tools/drift.html", "drift", context)


@require_POST
@tenant_page(role=Role.EDITOR)
def drift_start(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Analyze the newest calls of a range: few in this request, more in the worker."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    form = DriftForm(request.POST, now=timezone.now(), reader=reader_of(request))
    if not form.is_valid():
        problems = " ".join(str(text) for texts in form.errors.values() for text in texts)
        messages.error(request, f"Nothing was analyzed. {problems}")
        return redirect("tool_drift", tool.pk)
    begin_analysis(tool, request.user, form.wanted, form.cleaned_data["limit"], form.query)
    return redirect("tool_drift", tool.pk)


@require_POST
@tenant_page(role=Role.EDITOR)
def drift_cancel(request: TenantRequest, pk: UUID, analysis_id: UUID) -> HttpResponseBase:
    """Cancel an analysis. Its findings stay."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    analyses = DriftAnalysis.objects.for_tenant(tool.tenant_id).filter(tool_id=tool.id)
    if not analyses.filter(id=analysis_id).exists():
        raise Http404("no such analysis")
    job.cancel_analysis(tool.id, analysis_id, timezone.now())
    return redirect("tool_drift", tool.pk)


@require_POST
@tenant_page(role=Role.EDITOR)
def drift_draft(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Create a draft that allows what the last analysis observed."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    try:
        if draft_what_was_observed(tool, Publisher(request.user)) is None:
            messages.error(request, "No draft created: no calls have been analyzed yet.")
            return redirect("tool_drift", tool.pk)
    except ValidationError as error:
        messages.error(request, f"No draft created: {explain(error)}")
        return redirect("tool_drift", tool.pk)
    except DraftExistsError as error:
        messages.warning(request, str(error))
    return redirect("draft_edit", tool.pk)


def _analysis_context(
    request: TenantRequest, analysis: DriftAnalysis, tool: Tool
) -> dict[str, Any]:
    is_under_way = analysis.state in UNDER_WAY
    sees_payloads = request.membership.sees_payloads
    sides = _sides(request, analysis, with_values=sees_payloads and not is_under_way)
    called = callers(tool, job.calls_of(analysis))
    return {
        "analysis": analysis,
        "is_under_way": is_under_way,
        "state": JobState(analysis.state).label,
        "percent": percent(analysis.read_count, analysis.call_count),
        "is_of_current": analysis.base_number == (tool.current_number or None),
        "sides": sides,
        "has_findings": any(side.rows for side in sides),
        "callers": called,
        "versions": sorted_table(request, called.versions, _VERSIONS, "", "sort-callers"),
        "flags": sorted_table(request, called.flags, _FLAGS, "", "sort-flags"),
        "is_withheld": not sees_payloads,
    }


def _sides(request: TenantRequest, analysis: DriftAnalysis, *, with_values: bool) -> list[SideView]:
    observed, declared = loads(analysis.shape), job.declared_by(analysis)
    all_findings: dict[Side, list[Finding]] = {}
    for side in SIDES:
        schema = declared[side]
        all_findings[side] = (
            compare(observed[side].shape, schema) if isinstance(schema, Declared) else []
        )
    orders = {side: requested_order(request, _FINDINGS, "", f"sort-{side}") for side in SIDES}
    shown = {
        side: in_order(all_findings[side], _FINDINGS, orders[side])[:FINDINGS_SHOWN]
        for side in SIDES
    }
    calls = sampled_calls(
        [
            (date.fromisoformat(day), UUID(pk))
            for findings in shown.values()
            for finding in findings
            for day, pk in finding.samples
        ]
    )
    values = _values(analysis, shown, calls) if with_values else {}
    views = []
    for side in SIDES:
        schema = declared[side]
        rows = [
            FindingRow(
                finding,
                _KINDS[finding.kind],
                [calls[UUID(pk)] for _, pk in finding.samples if UUID(pk) in calls],
                values.get((side, finding.steps), []) if finding.kind == "value" else [],
            )
            for finding in shown[side]
        ]
        views.append(
            SideView(
                side=side,
                name=_SIDES[side],
                observed=observed[side],
                rows=rows,
                is_cut=len(all_findings[side]) > FINDINGS_SHOWN,
                skipped=skipped_reasons(observed[side].skipped),
                order=orders[side],
                why_not=schema if isinstance(schema, str) else "",
                has_schema=schema is not None,
            )
        )
    return views


def _values(
    analysis: DriftAnalysis, shown: dict[Side, list[Finding]], calls: dict[UUID, ListedCall]
) -> dict[tuple[Side, Steps], list[str]]:
    """Return the values of the first samples that the schema does not list, from the log."""
    wanted: dict[tuple[UUID, int], list[tuple[Side, Steps]]] = {}
    for side, findings in shown.items():
        for finding in findings:
            for _, pk in finding.samples if finding.kind == "value" else ():
                call = calls.get(UUID(pk))
                place = None if call is None else call.place_of(side)
                if place is not None and (place in wanted or len(wanted) < READ_MAX):
                    wanted.setdefault(place, []).append((side, finding.steps))
    try:
        events = read_events(analysis.tenant_id, wanted)
    except LogPayloadError:
        return {}
    declared = job.declared_by(analysis)
    texts_by_steps: dict[tuple[Side, Steps], dict[str, None]] = {}
    for place, event in events.items():
        for side, steps in wanted[place]:
            schema = declared[side]
            read = read_args(event.raw) if side == "args" else read_output(event.raw)
            if isinstance(read, Value) and not read.is_missing and isinstance(schema, Declared):
                texts = texts_by_steps.setdefault((side, steps), {})
                for value in schema.unlisted(read.value, steps):
                    texts[_text(value)] = None
    return {key: list(texts)[:3] for key, texts in texts_by_steps.items()}


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_LENGTH else f"{text[:VALUE_LENGTH]}…"
