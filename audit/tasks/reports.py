"""Tasks of reports."""

import logging
from uuid import UUID

from django.utils import timezone
from procrastinate.contrib.django import app

from audit.models import StoredReport
from audit.reports.schedule import create_due, due, forget_old
from audit.reports.stored import of_one_moment, record_creation
from audit.tasks.once import defer_once
from tenants.actions import THE_SERVER, record_action
from tenants.models import Tenant
from tenants.scope import tenant_scope

_log = logging.getLogger(__name__)


# Not only at midnight: tenants have their own midnights, and a worker may have been down.
@app.periodic(cron="*/5 * * * *")
@app.task(name="audit.tasks.keep_reports", queueing_lock="keep_reports")
def keep_reports(timestamp: int) -> None:
    """Delete old reports, and defer a task for each report that is due."""
    now = timezone.now()
    for tenant_id in Tenant.objects.filter(suspended_at=None).values_list("id", flat=True):
        with tenant_scope(tenant_id):
            forgotten = forget_old(now)
            if forgotten:
                record_action(
                    Tenant(id=tenant_id),
                    THE_SERVER,
                    "report.forget",
                    f"{len(forgotten)} old reports",
                    rows=[StoredReport(id=each) for each in forgotten],
                )
            kinds = list(due(now))
        for kind in kinds:
            lock = f"report {kind} {tenant_id}"
            defer_once(make_report, lock, tenant_id=str(tenant_id), kind=kind)


@app.task(name="audit.tasks.make_report", queue="reports")
def make_report(tenant_id: str, kind: str) -> None:
    """Make the report of this kind that is due by the tenant's schedule."""
    with tenant_scope(UUID(tenant_id)):
        of_one_moment()
        made = create_due(kind, timezone.now())
        if made is not None:
            tenant = Tenant.objects.get(pk=tenant_id)
            record_creation(tenant, THE_SERVER, made)
    if made is not None:
        _log.info("created report %s for tenant %s", made.id, tenant_id)
