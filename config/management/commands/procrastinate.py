"""`manage.py procrastinate`: the job queue's own command, for the worker with a check."""

import logging
import os
import signal
from typing import Any

from django.core.management.base import CommandError
from procrastinate.contrib.django.management.commands import procrastinate

from config import schema

_log = logging.getLogger(__name__)


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
        super().handle(*args, **options)


def _stop(reason: str) -> None:
    _log.error("the worker stops: %s", reason)
    os.kill(os.getpid(), signal.SIGTERM)
