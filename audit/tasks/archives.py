"""Tasks of archives: sealed days go to storage, and what is erased is destroyed there."""

import logging
from uuid import UUID

from django.utils import timezone
from procrastinate.contrib.django import app

from audit.archive import archiving
from audit.archive.storage import AWAY
from audit.retention.archived_calls import expire_archived
from audit.tasks.once import defer_once
from config.postgresql.retry import AGAIN
from tenants.models import Tenant
from tenants.scope import tenant_scope

_log = logging.getLogger(__name__)


# Once a day there is something to do, and after an erasure.
@app.periodic(cron="*/5 * * * *")
@app.task(name="audit.tasks.keep_archives", queue="reports", queueing_lock="keep_archives")
def keep_archives(timestamp: int) -> None:
    """Defer a task for each tenant with something to archive, or to destroy in its archive."""
    now = timezone.now()
    for tenant_id in Tenant.objects.order_by("id").values_list("id", flat=True):
        with tenant_scope(tenant_id):
            is_due = archiving.is_due(tenant_id, now)
        try:
            while expire_archived(tenant_id, now):
                pass
        except AWAY as error:
            _log.warning("archive of tenant %s: %s", tenant_id, error)
        if is_due:
            _archive_soon(str(tenant_id))


@app.task(name="audit.tasks.archive", queue="reports", retry=AGAIN)
def archive(tenant_id: str) -> None:
    """Archive the next segment of a tenant's ledger, then let other tasks run."""
    if archiving.run_slice(UUID(tenant_id), timezone.now()):
        _archive_soon(tenant_id)


def _archive_soon(tenant_id: str) -> None:
    defer_once(archive, f"archive {tenant_id}", tenant_id=tenant_id)
