"""`manage.py migrate`: Django's command, one process at a time, while senders continue."""

from typing import Any

import psycopg
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError

from config.postgresql import processes, schema

_ATTEMPTS = 5


class Command(migrate.Command):
    """Hold the lock of `config.postgresql.schema` during the whole command."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Run Django's command, without the migrations that wait for older processes to end.

        Raises CommandError if the migrations that were asked for include such a one.
        """
        if options["check_unapplied"] or options["plan"]:
            super().handle(*args, **options)
            return

        def report_wait() -> None:
            self.stderr.write("another process is migrating this database; waiting")

        with schema.lock(options["database"], report_wait):
            todo = processes.pending(options["database"])
            if todo.waits and options["app_label"]:
                raise CommandError("\n".join(todo.waits))
            for target in todo.targets:
                self._migrate(*args, **options | target)
            for line in todo.waits:
                self.stderr.write(line)
            if todo.waits:
                self.stderr.write("A worker applies what waits as soon as they have.")

    def _migrate(self, *args: Any, **options: Any) -> None:
        """Retry a migration that ended in a deadlock with a sender."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                super().handle(*args, **options)
                return
            except OperationalError as error:
                is_deadlock = isinstance(error.__cause__, psycopg.errors.DeadlockDetected)
                if not is_deadlock or attempt == _ATTEMPTS:
                    raise
