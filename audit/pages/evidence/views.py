"""Evidence bundles: the form and the file."""

from datetime import UTC

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.evidence.bundling import Wanted, bundle, file_name
from audit.evidence.ledger_range import NotSignedError, ledger_range_of
from audit.evidence.parameters import read_previous, report_named
from audit.models import LedgerCheckpoint
from audit.queries.time_range import LENGTHS, TimeRange, read
from config.http.streams import stream
from tenants.access import TenantRequest, tenant_page
from tenants.actions import record_view
from tenants.models import Role


@require_safe
@tenant_page(role=Role.AUDITOR)
def evidence_page(request: TenantRequest) -> HttpResponse:
    """Show the form for a range, and how to verify the file."""
    checkpoints = LedgerCheckpoint.objects.for_tenant(request.tenant.id)
    zone = timezone.get_current_timezone()
    context = {
        "newest": checkpoints.order_by("-epoch", "-size").first(),
        "lengths": [(name, label) for name, (label, _) in LENGTHS.items()],
        "zone_name": str(zone),
    }
    return render(request, "evidence/evidence.html", context)


@require_safe
@tenant_page(role=Role.AUDITOR)
def evidence_bundle(request: TenantRequest) -> HttpResponseBase:
    """Export the bundle of a time range or of a stored report. The audit log records it."""
    now = timezone.now()
    report = None
    if text := request.GET.get("report", ""):
        report = report_named(text)
        if report is None:
            raise Http404("no such report")
        of = TimeRange(report.of.start, report.of.end, UTC)
    else:
        requested = read(request.GET.dict(), now=now, zone=timezone.get_current_timezone())
        if requested.problem:
            return _refused(request, requested.problem)
        of = requested.range
    try:
        previous = read_previous(request.GET.get("previous", ""))
        ledger_range = ledger_range_of(of)
    except (NotSignedError, ValueError) as error:
        return _refused(request, str(error))
    wanted = Wanted(
        tenant=request.tenant,
        ledger_range=ledger_range,
        of=of,
        made_by=request.user.get_username(),
        now=now,
        report=report,
        previous=previous,
    )
    if request.method != "HEAD":
        apart = request.GET.urlencode()
        record_view(
            request.tenant.id, request.user, "evidence.export", apart=apart, **wanted.on_record()
        )
    name = file_name(request.tenant, of)
    return stream(request.tenant.id, bundle(wanted), "application/zip", file_name=name)


def _refused(request: TenantRequest, why: str) -> HttpResponse:
    messages.error(request, f"No bundle created. {why}")
    return redirect("evidence_page")
