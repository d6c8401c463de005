"""The database for an operator's command: it runs during the command, or one line says why not.

The embedded PostgreSQL is stopped whenever `up` does not run. A command then starts it, and stops
it at the end.
"""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import django
import psycopg
from django.db import DatabaseError, InterfaceError, OperationalError, connections

from config import env, instance
from config.postgresql import database
from config.postgresql.embedded import EmbeddedPostgresError
from config.postgresql.schema import SCHEMA, SchemaError, refuse_too_old
from config.process import command_line, interrupts

WRITES = {
    "apply",
    "changepassword",
    "export-config",
    "key",
    "ledger",
    "migrate",  # otherwise it would say that there is nothing to apply
    "partitions",
    "registry",
    "reindex",
    "removefactors",
    "tenant",
}
"""Commands that write. They reject a schema newer than the code."""
NEEDS_DATABASE = WRITES | {
    "procrastinate healthchecks",
    "shell",
    "showmigrations",
    "sqlmigrate",
}
_HELP = {"-h", "--help", "--version"}


class NoDatabaseError(Exception):
    """There is no database, or it does not start. The message is one line for people."""


def run(arguments: Sequence[str]) -> None:
    """Run a command line of manage.py. A database error ends it with one line."""
    name = arguments[1] if len(arguments) > 1 else ""
    if name == "procrastinate":  # its worker waits for the database; its checks answer at once
        name = " ".join(arguments[1:3])
    try:
        if name not in NEEDS_DATABASE or _HELP & set(arguments):
            command_line.run(list(arguments))
            return
        django.setup()
        interrupts.raise_again()  # a database that was started must be stopped
        with running():
            if name in WRITES:
                SCHEMA.check()
            else:
                refuse_too_old()
            command_line.run(list(arguments))
    except (NoDatabaseError, SchemaError) as error:
        sys.exit(f"tooltrail: {error}")
    except (OperationalError, InterfaceError, psycopg.OperationalError) as error:
        sys.exit(f"tooltrail: database: {_first_line(error)}")
    except DatabaseError as error:
        if not isinstance(error.__cause__, psycopg.errors.UndefinedTable):
            raise
        sys.exit(
            f"tooltrail: the database lacks migrations ({_first_line(error)}):"
            f" run {instance.COMMAND} up, or {instance.COMMAND} migrate --database owner"
        )


@contextmanager
def running() -> Iterator[None]:
    """Keep this installation's database running. Stop the embedded one again if we started it.

    Raises NoDatabaseError if there is no database or it does not start.
    """
    if env.text("DATABASE_URL", "") or instance.POSTGRES.running_pid() is not None:
        yield
        return
    if not instance.load_secrets():
        raise NoDatabaseError(
            f"no installation in {instance.VAR}: set TOOLTRAIL_VAR to its folder or DATABASE_URL to"
            f" its database, or run {instance.COMMAND} up to create one"
        )
    from config.process.up import UpError, lock  # it imports models, which need django.setup()

    before = signal.signal(signal.SIGTERM, _exit)
    try:
        held = lock()  # prevents an `up` on the database that we will stop
        try:
            instance.POSTGRES.start()
            database.initialise(instance.POSTGRES.admin_url, instance.load_secrets())
            yield
        finally:
            connections.close_all()
            instance.POSTGRES.stop()
            os.close(held)
    except (EmbeddedPostgresError, UpError) as error:
        raise NoDatabaseError(str(error)) from error
    finally:
        signal.signal(signal.SIGTERM, before)


def _exit(number: int, _frame: object) -> None:
    sys.exit(128 + number)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
