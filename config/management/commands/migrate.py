"""`manage.py migrate`: Django's, by one process at a time and beside senders that go on."""

from typing import Any

import psycopg
from django.core.management.commands import migrate
from django.db import OperationalError

from config.postgresql import schema

_ATTEMPTS = 5


class Command(migrate.Command):
    """Take the lock of `config.postgresql.schema` around the whole command."""

    def handle(self, *args: Any, **options: Any) -> None:
        """As Django's. A migration that PostgreSQL ended for a sender's sake is applied again."""
        if options["check_unapplied"] or options["plan"]:
            super().handle(*args, **options)
            return

        def say() -> None:
            self.stderr.write("another process migrates this database: waiting")

        with schema.lock(options["database"], say):
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    super().handle(*args, **options)
                    return
                except OperationalError as error:
                    is_deadlock = isinstance(error.__cause__, psycopg.errors.DeadlockDetected)
                    if not is_deadlock or attempt == _ATTEMPTS:
                        raise
