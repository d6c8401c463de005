"""`manage.py procrastinate`: the job queue's command, with a check before the worker."""

import logging
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any, cast

import psycopg
from django.conf import settings
from django.core.management.base import CommandError
from django.db import connection
from procrastinate import JobContext
from procrastinate.contrib.django import app
from procrastinate.contrib.django.management.commands import procrastinate
from procrastinate.contrib.django.utils import connector_params
from procrastinate.psycopg_connector import PsycopgConnector

from config.http.request_ids import begin
from config.instance import QUEUES
from config.postgresql import processes, schema
from config.postgresql.base import is_pooled
from config.version import VERSION

_log = logging.getLogger(__name__)
_POLLING_S = 1.0
_POOL_IDLE_S = 60.0


class Command(procrastinate.Command):
    """A worker that is older than the schema does not start. A running one stops."""

    requires_system_checks = []  # they import all pages: half a second

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command.

        Raises CommandError with the reason if the worker is too old, or has a queue without tasks.
        """
        if options.get("command") == "worker":
            if unknown := sorted(set(options.get("queues") or ()) - QUEUES):
                raise CommandError(
                    f"there is no queue {unknown[0]!r}, only {', '.join(sorted(QUEUES))}"
                )
            try:
                schema.SCHEMA.check()
            except schema.SchemaError as error:
                raise CommandError(str(error)) from error
            processes.announce("worker", VERSION, _stop)
            if is_pooled(cast(psycopg.Connection[Any], connection.connection)):
                # LISTEN needs its own session, which a pooler does not provide.
                options |= {"listen_notify": False, "fetch_job_polling_interval": _POLLING_S}
            app.worker_defaults["worker_middleware"] = [with_id]
            if settings.TELEMETRY:
                from config.telemetry import trace_job, trace_statements  # loads OTLP's classes

                app.worker_defaults["worker_middleware"].append(trace_job)
                app.worker_defaults["task_middleware"].append(trace_statements)
            with app.replace_connector(_connector()):
                super().handle(*args, **options | {"app": app})
        else:
            super().handle(*args, **options)


async def with_id(
    call_next: Callable[[], Awaitable[Any]], context: JobContext, _worker: object
) -> Any:
    """Run a job so that its log lines have its id. A worker middleware of Procrastinate."""
    begin(f"job-{context.job.id}")
    return await call_next()


def _connector() -> PsycopgConnector:
    # psycopg's pool keeps four connections unless told otherwise. One is used when no task runs,
    # and each takes 5 MB of PostgreSQL's memory.
    return PsycopgConnector(
        kwargs=connector_params(), min_size=1, max_size=4, max_idle=_POOL_IDLE_S
    )


def _stop(reason: str) -> None:
    _log.error("stopping the worker: %s", reason)
    os.kill(os.getpid(), signal.SIGTERM)
