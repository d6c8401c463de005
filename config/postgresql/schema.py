"""Checks that process and database have the same migrations, and locks the database to migrate.

Code that is older than the schema writes rows that newer code reads as wrong sums, without an
error. So such a process does not start, and a running one stops writing: the intake checks inside
each transaction, as its last statement (`Schema.fence`). By then the transaction holds locks on all
tables it wrote to. A migration of these tables has either committed before, so that the check
fails, or commits after the transaction. There is no time in which an older process stores calls.
The worker has no such check: it stops seconds later, when it hears of the migration
(`config.postgresql.processes`), and may complete a task until then.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, OperationalError, ProgrammingError, connections
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader

LAST_WITH_REPLACED = "1e64a309"
"""The last commit that still has the migrations which each app's first migration replaces. Later
versions can only upgrade a database that has all of them."""
FENCE_STATE = "22012"
"""SQLSTATE with which `Schema.fence` ends a transaction: division by zero."""
DISTRIBUTING = ("citus", "distributing")
"""A row among the migrations while `config.postgresql.distribution` works: nobody may write."""
DISTRIBUTED = ("citus", "distributed")
"""A row there once that is done. Versions that know no cluster refuse the database."""
CLOSED = ("citus", "closed")
"""A row there while a distributed database is backed up: nobody may write."""
DONE_STEP = "done step"
"""The app of rows there for steps that a new database needs not (`config.postgresql.migrations`).
Each goes when its migration is applied: none is left when `migrate` ends."""
_LOCK = 7_402_020  # any number that no other advisory lock uses
_REFUSED_S = 2.0
_NAMED_MAX = 3
_APPLIED = "SELECT id, app, name FROM django_migrations WHERE app <> 'done step'"
# PostgreSQL must raise the error itself: the COMMIT is sent before the result arrives.
_FENCE = b"SELECT 1 / (max(id) = $1)::int FROM django_migrations"


class SchemaError(OperationalError):
    """This code does not fit the database's migrations. The message is one line for people."""


class DistributingError(SchemaError):
    """The database is being distributed, or backed up as a cluster: it takes no writes."""


def why_unavailable(error: BaseException | None) -> str:
    """Return one sentence that explains a 503 after a database error."""
    if isinstance(error, DistributingError):
        return "The database is closed while it is distributed or backed up."
    if isinstance(error, SchemaError):
        return "This server is older than its database."
    return "The database cannot be reached."


class Schema:
    """The state of the database's migrations as this process knows it."""

    def __init__(self) -> None:
        self._is_distributed: bool | None = None
        self._checked_id: int | None = None
        self._refused: tuple[float, SchemaError] | None = None

    def check(self, using: str = DEFAULT_DB_ALIAS) -> int:
        """Compare with the database. Return the id of the last applied migration, 0 for none.

        Raises SchemaError, and Django's errors if the database cannot be reached.
        """
        applied = _applied(using)
        names = {(app, name) for _, app, name in applied}
        _refuse_too_old(names)
        if not names.isdisjoint({DISTRIBUTING, CLOSED}):
            raise self._refuse(
                DistributingError("the database is being distributed or backed up; try again later")
            )
        self._is_distributed = DISTRIBUTED in names
        missing = names - known() - {DISTRIBUTED}
        unknown = sorted(missing - _tolerated(using)) if missing else []
        if unknown:
            more = f" and {len(unknown) - _NAMED_MAX} more" if len(unknown) > _NAMED_MAX else ""
            listed = ", ".join(f"{app}.{name}" for app, name in unknown[:_NAMED_MAX])
            message = (
                f"the database has migrations that this version does not know: {listed}{more};"
                " start the version that applied them"
            )
            raise self._refuse(SchemaError(message))
        self._refused = None
        self._checked_id = max((number for number, _, _ in applied), default=0)
        return self._checked_id

    @property
    def is_distributed(self) -> bool:
        """Whether the database is distributed over a cluster, at the last check.

        Before the first check, a query asks. Raises Django's errors.
        """
        if self._is_distributed is None:
            names = {(app, name) for _, app, name in _applied(DEFAULT_DB_ALIAS)}
            self._is_distributed = DISTRIBUTED in names
        return self._is_distributed

    def required(self) -> int:
        """Return what `check` returns, from memory. `fence` compares with it.

        A SchemaError is cached for 2 seconds, so that rejected requests cost no transaction.
        """
        if self._refused is not None:
            at, error = self._refused
            if time.monotonic() < at + _REFUSED_S:
                raise type(error)(str(error))
            return self.check()
        return self.check() if self._checked_id is None else self._checked_id

    def _refuse(self, error: SchemaError) -> SchemaError:
        self._refused = (time.monotonic(), error)
        return error

    @staticmethod
    def fence(connection: psycopg.Connection[Any], required: int) -> None:
        """End the open transaction with FENCE_STATE if a migration was applied since `required`.

        It must be the last statement before COMMIT.
        """
        psycopg.RawCursor(connection).execute(_FENCE, [required], binary=True, prepare=True)


SCHEMA = Schema()
"""The instance of this process."""


def refuse_too_old(using: str = DEFAULT_DB_ALIAS) -> None:
    """Raise SchemaError if steps are missing between the database's migrations and ours.

    Raises Django's errors if the database cannot be reached.
    """
    _refuse_too_old({(app, name) for _, app, name in _applied(using)})


def is_complete(using: str = DEFAULT_DB_ALIAS) -> bool:
    """Whether all our migrations are applied. Raises Django's errors."""
    return disk_migrations().keys() <= {(app, name) for _, app, name in _applied(using)}


@contextmanager
def lock(using: str, waiting: Callable[[], None]) -> Iterator[None]:
    """Let one process at a time prepare this database; `waiting` is called if another one does.

    A transaction on a separate connection holds the lock. This works with a pooler in transaction
    mode.
    """
    parameters = connections[using].get_connection_params()
    for name in ("pool", "context", "cursor_factory"):
        parameters.pop(name, None)
    with psycopg.connect(**parameters) as connection:
        connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        taken = connection.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK]).fetchone()
        if taken is None or not taken[0]:
            waiting()
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        yield


@cache
def disk_migrations() -> dict[tuple[str, str], Migration]:
    """Return the migrations on disk by app and name. They are read once."""
    return MigrationLoader(None).disk_migrations


def known() -> set[tuple[str, str]]:
    """Return the migrations on disk, and those that one on disk replaces."""
    return set(disk_migrations()).union(*(each.replaces for each in disk_migrations().values()))


def _refuse_too_old(applied: set[tuple[str, str]]) -> None:
    # Django continues if all or none of them are applied. Otherwise it needs the missing ones.
    for migration in disk_migrations().values():
        replaced = [each for each in migration.replaces if each not in disk_migrations()]
        already = [each for each in replaced if each in applied]
        if already and len(already) < len(replaced):
            app, name = already[-1]
            raise SchemaError(
                f"this database is at {app}.{name}, too old for this version: upgrade it with"
                f" Tooltrail at commit {LAST_WITH_REPLACED} first, then start this version again"
            )


def _applied(using: str) -> list[tuple[int, str, str]]:
    try:
        with connections[using].cursor() as cursor:
            cursor.execute(_APPLIED)
            return list(cursor.fetchall())
    except ProgrammingError as error:
        if isinstance(error.__cause__, psycopg.errors.UndefinedTable):
            return []  # no migration was ever applied
        raise


def _tolerated(using: str) -> set[tuple[str, str]]:
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT to_regclass('tolerated_migration') IS NOT NULL")
        if not cursor.fetchone()[0]:
            return set()
        cursor.execute("SELECT app, name FROM tolerated_migration")
        return set(cursor.fetchall())
