"""Tasks that keep each tenant's data in order: tools, units, uses of MCP, and retention."""

import logging
from uuid import UUID

from django.db import connections
from django.utils import timezone
from procrastinate.contrib.django import app

from audit.alerts import trying
from audit.deliveries import delivering
from audit.incidents import making
from audit.ledger import actions
from audit.prices import units
from audit.queries import skipped_spans
from audit.retention import floor, retention
from audit.retention.proved_holds import HoldsAlteredError
from audit.tasks.once import defer_once
from audit.work import argument_comparison, mcp_uses, payload_search
from audit.work.sightings import expire_ephemeral, note_tools
from config.postgresql.aliases import OWNER
from config.postgresql.retry import AGAIN
from tenants.models import Tenant
from tenants.scope import tenant_scope

_log = logging.getLogger(__name__)


@app.periodic(cron="*/5 * * * *")
@app.task(name="audit.tasks.keep_tools", queueing_lock="keep_tools")
def keep_tools(timestamp: int) -> None:
    """Record which tools are called, and retire ephemeral tools that nobody calls any more."""
    now = timezone.now()
    for tenant_id in Tenant.objects.filter(suspended_at=None).values_list("id", flat=True):
        with tenant_scope(tenant_id):
            note_tools(now)
            retired = expire_ephemeral(now)
        if retired:
            _log.info("retired %d ephemeral tools of tenant %s", retired, tenant_id)


# A call's units are in its costs within seconds.
@app.periodic(cron="* * * * * */10")
@app.task(name="audit.tasks.keep_units_counted", queueing_lock="keep_units_counted")
def keep_units_counted(timestamp: int) -> None:
    """Defer a task for each tenant with events whose units are not counted yet."""
    for tenant_id in Tenant.objects.filter(suspended_at=None).values_list("id", flat=True):
        with tenant_scope(tenant_id):
            is_behind = units.is_behind()
        if is_behind:
            _count_units_soon(str(tenant_id))


@app.task(name="audit.tasks.count_units", retry=AGAIN)
def count_units(tenant_id: str) -> None:
    """Count the units of a tenant's calls for a few seconds, then let other tasks run."""
    if units.run_slice(UUID(tenant_id)):
        _count_units_soon(tenant_id)


def _count_units_soon(tenant_id: str) -> None:
    defer_once(count_units, f"units {tenant_id}", tenant_id=tenant_id)


@app.periodic(cron="* * * * *")
@app.task(name="audit.tasks.record_mcp_uses", queueing_lock="record_mcp_uses")
def record_mcp_uses(timestamp: int) -> None:
    """Record what each tenant's keys and people used of `/mcp` in the minutes that are over."""
    for tenant_id in Tenant.objects.order_by("id").values_list("id", flat=True):
        mcp_uses.record_uses(tenant_id, timezone.now())


# Hourly, although limits are whole days: work that was not finished continues.
@app.periodic(cron="37 * * * *")
@app.task(name="audit.tasks.keep_to_retention", queueing_lock="keep_to_retention")
def keep_to_retention(timestamp: int) -> None:
    """Defer a task to erase each tenant's expired data; drop days that expired for all tenants.

    Whatever the settings are, also deletes payload searches, comparisons of arguments and
    trials of alert rules older than a day, the names of skipped spans that have not arrived for a
    month, deliveries of alerts older than 90 days, and incidents that nothing holds any more. Ends
    requests to lower the retention floor that nobody approved.
    """
    now = timezone.now()
    for tenant_id in _tenant_ids():
        with tenant_scope(tenant_id):
            payload_search.forget_old(now)
            argument_comparison.forget_old(now)
            trying.forget_old(now)
            skipped_spans.forget_old(now)
            delivering.forget_old(tenant_id, now)
            floor.expire_request(now)
            making.forget_old(tenant_id, now)
        _expire_soon(str(tenant_id))
    if OWNER in connections and (dropped := retention.drop_empty_days()):
        _log.info("dropped %d partitions, up to %s", len(dropped), dropped[-1].day)


def _tenant_ids() -> list[UUID]:
    return list(Tenant.objects.order_by("id").values_list("id", flat=True))


@app.task(name="audit.tasks.expire")
def expire(tenant_id: str) -> None:
    """Erase a tenant's expired data for a few seconds, then let other tasks run."""
    actions.enter_all_actions(UUID(tenant_id))
    try:
        if retention.run_slice(UUID(tenant_id), timezone.now()):
            _expire_soon(tenant_id)
    except (retention.CannotExpireError, HoldsAlteredError) as error:
        _log.warning("tenant %s: %s", tenant_id, error)


def _expire_soon(tenant_id: str) -> None:
    defer_once(expire, f"expire {tenant_id}", tenant_id=tenant_id)
