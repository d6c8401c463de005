"""Reports: list, read, create, and the schedule of the worker's reports."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from audit.pages.reports.acts import save_schedule
from audit.pages.reports.forms import ScheduleForm
from audit.reports.clauses.answers import has_clauses, sources
from audit.reports.clauses.files import CLAUSE_FORMS
from audit.reports.clauses.texts import LIMITS, SOURCES
from audit.reports.compose import lay_out, warnings
from audit.reports.export import FORMS
from audit.reports.pdf import MISSING, is_installed
from audit.reports.periods import (
    SCHEDULED,
    in_words,
    last_whole,
    read_period,
    short_words,
    zone_words,
)
from audit.reports.queries import Report, find_report, report_page
from audit.reports.schedule import LEAST_DAYS, MOST_DAYS, schedule
from audit.reports.stored import create_report, of_one_moment, record_creation
from config.http.errors import not_installed
from config.http.ordering import SORTED_MAX, Key, Order, page_in_order, requested_order
from config.instants import local
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.actions import record_action
from tenants.models import Membership, Role

PAGE_SIZE = 30
_COLUMNS: Mapping[str, Key[Report]] = {
    "report": lambda report: report.of.start,
    "calls": lambda report: report.figures["volume"]["calls"],
    "failed": lambda report: report.figures["reliability"]["error_rate"],
    "violations": lambda report: report.figures["violations"]["violating"],
    "created": lambda report: report.created_at,
}
"""The columns by which reports are sorted."""
_NEWEST = Order("created")
_NAMES = {"day": "Daily", "week": "Weekly", "month": "Monthly"}


class ListedReport(NamedTuple):
    """A report and its period in short words."""

    report: Report
    period: str


def may_make(membership: Membership) -> bool:
    """Whether this member may create reports. Only viewers may not."""
    return has_role(membership, Role.EDITOR) or has_role(membership, Role.AUDITOR)


@require_safe
@tenant_page()
def report_list(request: TenantRequest) -> HttpResponse:
    """Show all reports, newest first, and the form to create one if the member may."""
    order = requested_order(request, _COLUMNS, "created")
    reports, pager = _page(request, order)
    now, zone = timezone.now(), timezone.get_current_timezone()
    decided = schedule()
    context: dict[str, Any] = {
        "reports": [ListedReport(one, short_words(one.kind, one.of)) for one in reports],
        "order": order,
        **pager,
        "exports": tuple(FORMS),
        "has_pdf": is_installed(),
        "may_have_evidence": has_role(request.membership, Role.AUDITOR),
        "sources": SOURCES,
        "may_make": may_make(request.membership),
        "may_schedule": has_role(request.membership, Role.ADMIN),
        "days": {kind: last_whole(kind, now, zone) for kind in SCHEDULED},
        "names": _NAMES,
        "zone_name": str(zone),
        "range_from": f"{local(now, zone):%Y-%m-%dT00:00}",
        "range_to": f"{local(now, zone):%Y-%m-%dT%H:%M}",
        "schedule": decided,
        "scheduled": [_NAMES[kind] for kind in decided.kinds],
        "least_days": LEAST_DAYS,
        "most_days": MOST_DAYS,
        # When the schedule is first switched on, the default is the tenant's or the user's zone.
        "schedule_zone": decided.time_zone
        if decided.kinds
        else request.tenant.time_zone or str(zone),
    }
    return render(request, "reports/report_list.html", context)


def _page(request: TenantRequest, order: Order) -> tuple[list[Report], dict[str, Any]]:
    """Return the reports of the page that the address names, and the context of its pager."""
    place = request.GET.get("before", "")
    if order != _NEWEST:
        newest = report_page(size=SORTED_MAX + 1).reports
        page = page_in_order(
            newest, _COLUMNS, order, identify=lambda one: one.id, after=place, size=PAGE_SIZE
        )
        return page.rows, page.pager
    before = _id(place)
    listed = report_page(before=before, size=PAGE_SIZE)
    pager = {"older": listed.older, "newer": listed.newer, "is_first_page": before is None}
    return listed.reports, pager


@require_safe
@tenant_page()
def report_detail(request: TenantRequest, pk: UUID) -> HttpResponse:
    """Show a report as it was created."""
    report = _report_or_404(pk)
    context = {
        "has_clauses": has_clauses(report),
        "report": report,
        "layout": lay_out(report, request.tenant.name),
        "exports": tuple(FORMS),
        "has_pdf": is_installed(),
        "may_have_evidence": has_role(request.membership, Role.AUDITOR),
        "may_make": may_make(request.membership),
        "again_of": report.again_of if report.again_of and find_report(report.again_of) else None,
    }
    return render(request, "reports/report_detail.html", context)


@require_safe
@tenant_page(role=Role.AUDITOR)
def report_clauses(request: TenantRequest, pk: UUID) -> HttpResponse:
    """Show the figures of a report clause by clause."""
    report = _report_or_404(pk)
    if not has_clauses(report):
        raise Http404("this report was made without clauses")
    context = {
        "report": report,
        "of": in_words(report.kind, report.of),
        "zone_name": zone_words(report.of),
        "sources": sources(report),
        "warnings": warnings(report),
        "limits": LIMITS,
        "exports": tuple(CLAUSE_FORMS),
        "has_pdf": is_installed(),
    }
    return render(request, "reports/report_clauses.html", context)


@require_safe
@tenant_page(role=Role.AUDITOR)
def clauses_export(request: TenantRequest, pk: UUID, kind: str) -> HttpResponse:
    """Export a clause report as a file. The audit log records it."""
    report = _report_or_404(pk)
    if kind not in CLAUSE_FORMS or not has_clauses(report):
        raise Http404("no such form of export")
    if kind == "pdf" and not is_installed():
        return not_installed(request, MISSING)
    if request.method != "HEAD":
        record_action(
            request.tenant,
            request.user,
            "report.export",
            kind,
            query=report.query,
            report=str(pk),
            of="clauses",
        )
    start = local(report.of.start, report.of.zone)
    name = f"clauses-{request.tenant.slug}-{report.kind}-{start:%Y-%m-%d}.{kind}"
    form = CLAUSE_FORMS[kind]
    return HttpResponse(
        form.write(report, request.tenant.name, request.build_absolute_uri("/")),
        content_type=form.content_type,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@require_safe
@tenant_page()
def report_export(request: TenantRequest, pk: UUID, kind: str) -> HttpResponse:
    """Export a report as a file. The audit log records it."""
    if kind not in FORMS:
        raise Http404("no such form of export")
    report = _report_or_404(pk)
    if kind == "pdf" and not is_installed():
        return not_installed(request, MISSING)
    if request.method != "HEAD":
        record_action(
            request.tenant, request.user, "report.export", kind, query=report.query, report=str(pk)
        )
    form = FORMS[kind]
    start = local(report.of.start, report.of.zone)
    name = f"report-{request.tenant.slug}-{report.kind}-{start:%Y-%m-%d}.{kind}"
    return HttpResponse(
        form.write(report, request.tenant.name),
        content_type=form.content_type,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@require_POST
@tenant_page()
def report_create(request: TenantRequest) -> HttpResponseBase:
    """Create a report of the form's range; with `clauses`, one with the figures of clauses."""
    now, with_clauses = _begin(request), _wants_clauses(request)
    try:
        kind, of = read_period(request.POST.dict(), now=now, zone=timezone.get_current_timezone())
    except ValueError as error:
        messages.error(request, f"No report created. {error}")
        return redirect("report_list")
    report = create_report(
        kind,
        of,
        now=now,
        made_by=request.user.get_username(),
        made_as="person",
        with_clauses=with_clauses,
    )
    return _record_and_open(request, report)


@require_POST
@tenant_page()
def report_again(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Create a new report of the same range. It lists what arrived since."""
    now, with_clauses = _begin(request), _wants_clauses(request)
    again = _report_or_404(pk)
    report = create_report(
        again.kind,
        again.of,
        now=now,
        made_by=request.user.get_username(),
        made_as="person",
        again=again,
        with_clauses=with_clauses,
    )
    return _record_and_open(request, report)


@require_POST
@tenant_page(role=Role.ADMIN)
def report_schedule(request: TenantRequest) -> HttpResponseBase:
    """Save which reports the worker makes, and how long all reports are kept."""
    form = ScheduleForm(request.POST)
    if not form.is_valid():
        problems = " ".join(f"{name}: {each[0]}" for name, each in form.errors.items())
        messages.error(request, f"Nothing changed. {problems}")
        return redirect("report_list")
    save_schedule(request.tenant, request.user, form.schedule)
    messages.success(request, "Saved. Reports that are due are created within minutes.")
    return redirect("report_list")


def _begin(request: TenantRequest) -> datetime:
    """Return the moment of a new report. Raises PermissionDenied for viewers."""
    if not may_make(request.membership):
        raise PermissionDenied("Viewers can't create reports.")
    of_one_moment()
    return timezone.now()


def _wants_clauses(request: TenantRequest) -> bool:
    """Whether the form asks for clauses. Raises PermissionDenied if the member may not."""
    wants = request.POST.get("clauses") == "on"
    if wants and not has_role(request.membership, Role.AUDITOR):
        raise PermissionDenied("Auditors and admins create clause reports.")
    return wants


def _record_and_open(request: TenantRequest, report: Report | None) -> HttpResponseBase:
    assert report is not None, "only scheduled ones have a period to clash with"
    record_creation(request.tenant, request.user, report)
    return redirect("report_clauses" if has_clauses(report) else "report_detail", report.id)


def _report_or_404(pk: UUID) -> Report:
    report = find_report(pk)
    if report is None:
        raise Http404("no such report")
    return report


def _id(text: str) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None
