"""The one way to run a named statement of `audit/sql`, for the tenant whose scope is open.

The parameter `tenant_id` of every statement is bound here and nowhere else; who is given a tenant
may pass it on, and then it must be the scope's. The functions differ in how values reach
PostgreSQL:

- `rows`: in the text of the statement. PostgreSQL plans for these values each time. For what
  pages and the API ask; with `timeout_ms`, for what may take too long.
- `rows_prepared`: planned once on a connection, for statements whose planning costs most.
- `run`: in binary beside the text, not prepared. For payloads and whole columns
  (`audit.sql.arrays`), of which the text would take up megabytes.
- `Statements`: in binary and prepared, on one connection. For taking events in.

All of them raise TenantScopeError without that scope, and Django's database errors.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any, cast

import psycopg
from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections
from psycopg.errors import QueryCanceled

from audit import sql
from audit.sql import arrays
from config.postgresql.base import DatabaseWrapper
from config.postgresql.schema import SCHEMA
from tenants.scope import TenantScopeError, current_tenant_id

_ROLLBACK_TRIES = 20
_COMMENT = re.compile(r"--.*")
_PARAMETER = re.compile(r"%\((\w+)\)[bs]")

type Row = tuple[Any, ...]


def rows(
    name: str,
    parameters: Mapping[str, Any],
    *,
    conditions: str = "",
    timeout_ms: int | None = None,
    using: str = DEFAULT_DB_ALIAS,
) -> list[Row]:
    """The rows of a statement; none of one that returns nothing.

    `conditions` is what `audit.queries.call_conditions` wrote for a query of calls. With
    `timeout_ms`, raises TimeoutError if PostgreSQL has not answered after so many milliseconds;
    the transaction goes on.
    """
    statement = sql.QUERIES[name]
    if conditions:
        statement = statement.replace(sql.CONDITIONS, conditions)
    if timeout_ms is None:
        return _rows(statement, parameters, using)
    before = connections[using].savepoint()
    assert before is not None, "a scope is a transaction"
    try:
        with connections[using].cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {int(timeout_ms)}")
        return _rows(statement, parameters, using)
    except OperationalError as error:
        if _is_timeout(error):
            raise TimeoutError(name) from error
        raise
    finally:
        _roll_back_to(before, using)


def rows_prepared(name: str, parameters: Mapping[str, Any]) -> list[Row]:
    """The rows of a statement that names no days: planned once on a connection, not each time.

    Planning one for fifty partitions takes 5 ms and reading a few rows 0.5 (docs/adr/0009). The
    plan must be good for any parameters.
    """
    with cast(DatabaseWrapper, connection).preparing_cursor() as cursor:
        # Else it is planned five more times, and for ever if that seemed cheaper.
        cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        cursor.execute(sql.QUERIES[name], _bound(parameters))
        return cast(list[Row], cursor.fetchall())


def run(name: str, *, using: str = DEFAULT_DB_ALIAS, **parameters: Any) -> list[Row]:
    """The rows of a statement whose values are sent in binary; none of one that returns nothing."""
    django = connections[using]
    raw = _raw(using)
    with django.wrap_database_errors:
        # psycopg's own cursor: Django's writes every byte of a tile into the statement's text.
        cursor = psycopg.Cursor(raw, row_factory=psycopg.rows.tuple_row)
        cursor.execute(sql.QUERIES[name], _bound(parameters), binary=True)
        return cursor.fetchall() if cursor.description else []


class Statements:
    """Runs prepared statements inside the open scope, `now`, on the connection `using`."""

    def __init__(self, now: datetime, *, using: str = DEFAULT_DB_ALIAS) -> None:
        self.using = using
        self._constants = _bound({"now": now})
        self._django = connections[using]
        self._connection = _raw(using)

    def run(self, name: str, **parameters: Any) -> list[Row]:
        """The rows of a statement."""
        with self._django.wrap_database_errors:
            return self._execute(name, parameters).fetchall()

    def send(self, name: str, **parameters: Any) -> psycopg.Cursor[Row]:
        """Run a statement without waiting for its result.

        In a pipeline (`tenant_scope`), an error is raised where the next result is waited for.
        """
        with self._django.wrap_database_errors:
            return self._execute(name, parameters)

    def fence(self, required: int) -> None:
        """See `config.postgresql.schema.Schema.fence`."""
        with self._django.wrap_database_errors:
            SCHEMA.fence(self._connection, required)

    def _execute(self, name: str, parameters: dict[str, Any]) -> psycopg.Cursor[Row]:
        statement, names = _numbered(name)
        values = self._constants | parameters
        # psycopg's own cursor, as Django's interpolates values into the text; and its raw one,
        # as the other looks for parameters in a long statement each time.
        cursor = psycopg.RawCursor(self._connection)
        return cursor.execute(
            statement, [values[name] for name in names], binary=True, prepare=True
        )


def _bound(parameters: Mapping[str, Any]) -> dict[str, Any]:
    tenant_id = current_tenant_id()
    if parameters.get("tenant_id", tenant_id) != tenant_id:
        raise TenantScopeError("another tenant's scope is open")
    return {**parameters, "tenant_id": tenant_id}


def _rows(statement: str, parameters: Mapping[str, Any], using: str) -> list[Row]:
    with connections[using].cursor() as cursor:
        cursor.execute(statement, _bound(parameters))
        return cast(list[Row], cursor.fetchall()) if cursor.description else []


def _raw(using: str) -> psycopg.Connection[Any]:
    """psycopg's connection, which takes arrays of `audit.sql.arrays`."""
    raw = cast(psycopg.Connection[Any], connections[using].connection)
    arrays.adapt(raw)
    return raw


def _roll_back_to(savepoint: str, using: str) -> None:
    """Take the timeout back. It is still in force for the ROLLBACK itself, and on a busy machine
    a few milliseconds pass within that, too: `transaction.atomic` would then give the whole
    transaction up.
    """
    for tries_left in reversed(range(_ROLLBACK_TRIES)):
        try:
            connections[using].savepoint_rollback(savepoint)
        except OperationalError as error:
            if not tries_left or not _is_timeout(error):
                raise
        else:
            return


def _is_timeout(error: OperationalError) -> bool:
    return isinstance(error.__cause__, QueryCanceled)


@cache
def _numbered(name: str) -> tuple[bytes, tuple[str, ...]]:
    """A statement with numbered parameters, as PostgreSQL itself has them, and their names."""
    names: dict[str, int] = {}

    def number(parameter: re.Match[str]) -> str:
        return f"${names.setdefault(parameter[1], len(names) + 1)}"

    text = _PARAMETER.sub(number, _COMMENT.sub("", sql.QUERIES[name]))
    return text.encode(), tuple(names)
