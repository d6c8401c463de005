"""`manage.py procrastinate`: the job queue's own command, for the worker with a check."""

import logging
import os
import signal
from typing import Any, cast

import psycopg
from django.core.management.base import CommandError
from django.db import connection
from procrastinate.contrib.django.management.commands import procrastinate

from config.postgresql import schema
from config.postgresql.base import is_pooled

_log = logging.getLogger(__name__)
_POLLING_S = 1.0


class Command(procrastinate.Command):
    """A worker that is older than the schema does not start, and one that runs stops."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError with the reason."""
        if options.get("command") == "worker":
            try:
                schema.SCHEMA.check()
            except schema.SchemaError as error:
                raise CommandError(str(error)) from error
            schema.watch(_stop)
            if is_pooled(cast(psycopg.Connection[Any], connection.connection)):
                # LISTEN needs a session of its own, which a pooler does not give.
                options |= {"listen_notify": False, "fetch_job_polling_interval": _POLLING_S}
        super().handle(*args, **options)


def _stop(reason: str) -> None:
    _log.error("the worker stops: %s", reason)
    os.kill(os.getpid(), signal.SIGTERM)
