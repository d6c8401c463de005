"""Tasks for the whole installation: partitions, migrations, and jobs of stopped workers."""

import logging
from datetime import timedelta

from django.core.management import call_command
from django.db import connections
from django.utils import timezone
from procrastinate.contrib.django import app
from procrastinate.exceptions import UniqueViolation
from procrastinate.jobs import Status

from audit.index import partitions
from config.postgresql import processes, schema
from config.postgresql.aliases import OWNER

_log = logging.getLogger(__name__)

_LEFT_BEHIND = timedelta(minutes=5)
_LEFT_BEHIND_MAX = timedelta(hours=1)


# Hourly, although partitions exist two weeks ahead: a worker that was down for long catches up.
@app.periodic(cron="7 * * * *")
@app.task(name="audit.tasks.keep_partitions_ahead", queueing_lock="keep_partitions_ahead")
def keep_partitions_ahead(timestamp: int) -> None:
    """Create the missing day partitions. Needs DATABASE_OWNER_URL."""
    if OWNER not in connections:
        _log.warning("DATABASE_OWNER_URL is not set: this worker creates no partitions")
        return
    missing = partitions.missing(timezone.now().date())
    if made := partitions.apply(missing):
        _log.info("created %d partitions, up to %s", len(made), made[-1].day)
    if len(made) < len(missing):
        _log.warning(
            "%s is in use: the other partitions are created later", missing[len(made)].table
        )


@app.periodic(cron="* * * * *")
@app.task(name="audit.tasks.apply_waiting_migrations", queueing_lock="apply_waiting_migrations")
def apply_waiting_migrations(timestamp: int) -> None:
    """Apply migrations that waited for older processes, once these are gone."""
    if schema.is_complete() or OWNER not in connections:
        return
    todo = processes.pending(OWNER)
    if todo.count and todo.is_late:  # others are the operator's
        call_command("migrate", database=OWNER, verbosity=0)
        _log.info("applied the migrations that waited for older processes")


# The task of a killed worker stays marked as running for ever. All our tasks can be run again.
@app.periodic(cron="* * * * *")
@app.task(name="audit.tasks.retry_stalled_jobs", queueing_lock="retry_stalled_jobs")
async def retry_stalled_jobs(timestamp: int) -> None:
    """Retry the tasks of workers that are gone.

    The delay grows with each attempt, up to an hour: the task itself may have killed the workers.
    """
    for job in await app.job_manager.get_stalled_jobs():
        try:
            again_at = timezone.now() + min(job.attempts * _LEFT_BEHIND, _LEFT_BEHIND_MAX)
            await app.job_manager.retry_job(job, again_at)
        except UniqueViolation:  # the same task is queued already
            await app.job_manager.finish_job(job, Status.ABORTED, delete_job=True)
        _log.warning("task %s was abandoned by a stopped worker: retrying it", job.task_name)
