"""Saving the schedule of reports, on record. Needs the tenant's scope."""

from audit.models import StoredReportSchedule
from audit.reports.schedule import Schedule, change_schedule
from tenants.actions import Actor, record_action
from tenants.models import Tenant


def save_schedule(tenant: Tenant, actor: Actor, wanted: Schedule) -> None:
    """Save which reports the worker makes, and how long all reports are kept."""
    change_schedule(wanted)
    record_action(
        tenant,
        actor,
        "report.schedule",
        ", ".join(wanted.kinds) or "none",
        time_zone=wanted.time_zone,
        keep_days=wanted.keep_days,
        rows=[StoredReportSchedule(tenant_id=tenant.pk)],
    )
