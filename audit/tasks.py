"""What the worker does for `audit`, on its own time."""

import logging
from uuid import UUID

from django.db import connections
from django.utils import timezone
from procrastinate.contrib.django import app

from audit import partitions, payload_search
from audit.log import LogPayloadError

_log = logging.getLogger(__name__)


# Hourly, though two weeks lie ahead: a worker that was away for long catches up soon.
@app.periodic(cron="7 * * * *")
@app.task(queueing_lock="keep_partitions_ahead")
def keep_partitions_ahead(timestamp: int) -> None:
    """Make the day partitions that should exist and do not. Needs the owner's address."""
    if "owner" not in connections:
        _log.warning("DATABASE_OWNER_URL is not set: partitions must be made by others")
        return
    missing = partitions.missing(timezone.now().date())
    partitions.apply(missing)
    if missing:
        _log.info("made %d partitions, up to %s", len(missing), missing[-1].day)


@app.task
def search_payloads(tenant_id: str, search_id: str) -> None:
    """Go on with a search of payloads for a few seconds, then let other tasks have their turn."""
    tenant, search = UUID(tenant_id), UUID(search_id)
    try:
        if payload_search.run_slice(tenant, search):
            search_payloads.defer(tenant_id=tenant_id, search_id=search_id)
    except LogPayloadError as error:
        _log.error("search %s stopped: a payload of the log %s", search_id, error)
        payload_search.fail_search(tenant, search)


# A worker that was killed leaves its task as under way for ever; each of ours can be run again.
@app.periodic(cron="* * * * *")
@app.task(queueing_lock="retry_stalled_jobs")
async def retry_stalled_jobs(timestamp: int) -> None:
    """Give the tasks of workers that are gone to those that are here."""
    for job in await app.job_manager.get_stalled_jobs():
        await app.job_manager.retry_job(job)
        _log.warning("task %s was left behind by a worker that is gone: again", job.task_name)
