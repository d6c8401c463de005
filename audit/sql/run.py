"""Run a named statement of `audit/sql` in the open tenant scope. There is no other way to run one.

Only this module binds the parameter `tenant_id` of each statement. Callers may pass it, too; then
it must be the scope's tenant. The functions differ in how they send values to PostgreSQL:

- `rows`: in the text of the statement. PostgreSQL plans for these values each time. For queries of
  pages and the API; with `timeout_ms`, for queries that may take too long.
- `rows_prepared`: planned once per connection, for statements whose planning costs most.
- `run`: in binary beside the text, not prepared. For payloads and whole columns
  (`audit.sql.arrays`), which would take megabytes as text.
- `Statements`: in binary and prepared, on one connection. For ingesting events.

All of them raise TenantScopeError without an open scope, and Django's database errors.
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
    with_unrun: bool = False,
    timeout_ms: int | None = None,
    using: str = DEFAULT_DB_ALIAS,
) -> list[Row]:
    """Run a statement. Returns its rows; an empty list if it returns none.

    `conditions` is the SQL that `audit.queries.call_conditions` made for a query of calls;
    `with_unrun`: the query is also about calls that were decided about and did not run. With
    `timeout_ms`, raises TimeoutError if PostgreSQL has not answered after that many milliseconds;
    the transaction stays usable.
    """
    statement = sql.QUERIES[name]
    if conditions:
        statement = statement.replace(sql.CONDITIONS, conditions)
    if with_unrun:
        statement = statement.replace(sql.CALLS, sql.PARTS["calls_and_unrun"])
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
    """Run a statement that does not name days. It is planned once per connection, not each time.

    Planning for fifty partitions takes 5 ms, reading a few rows 0.5 ms (docs/adr/0009). The plan
    must be good for all parameters. On a cluster it is planned each time, because Citus makes no
    plan without the values.
    """
    if SCHEMA.is_distributed:
        return rows(name, parameters)
    with cast(DatabaseWrapper, connection).preparing_cursor() as cursor:
        cursor.execute(sql.QUERIES[name], _bound(parameters))
        return cast(list[Row], cursor.fetchall())


def run(name: str, *, using: str = DEFAULT_DB_ALIAS, **parameters: Any) -> list[Row]:
    """Run a statement with binary values. Returns its rows; an empty list if it returns none."""
    django = connections[using]
    raw = _raw(using)
    with django.wrap_database_errors:
        # psycopg's own cursor, as Django's writes every byte of a tile into the statement's text.
        cursor = psycopg.Cursor(raw, row_factory=psycopg.rows.tuple_row)
        cursor.execute(sql.QUERIES[name], _bound(parameters), binary=True)
        return cursor.fetchall() if cursor.description else []


class Statements:
    """Runs prepared statements in the open scope, on the connection `using`. Binds `now`."""

    def __init__(self, now: datetime, *, using: str = DEFAULT_DB_ALIAS) -> None:
        self.using = using
        self._constants = _bound({"now": now})
        self._django = connections[using]
        self._connection = _raw(using)

    def run(self, name: str, **parameters: Any) -> list[Row]:
        """Run a statement and return its rows."""
        with self._django.wrap_database_errors:
            return self._execute(name, parameters).fetchall()

    def look_up(self, name: str, **parameters: Any) -> list[Row]:
        """Run a statement that reads rows in the order of an index, so that none is sorted.

        A new partition has no statistics in its first minute. PostgreSQL then expects one row from
        each index whose first columns match, takes the one with the fewest levels, reads the whole
        day for each row that is looked up, and sorts the result. One request with 512 spans took
        2.7 s. Other statements may need to sort: without it they read whole tables in order.
        """
        with self._django.wrap_database_errors:
            with self._connection.pipeline():
                self._connection.execute("SET LOCAL enable_sort = off", prepare=True)
                cursor = self._execute(name, parameters)
                self._connection.execute("SET LOCAL enable_sort = on", prepare=True)
            return cursor.fetchall()

    def send(self, name: str, **parameters: Any) -> psycopg.Cursor[Row]:
        """Run a statement without waiting for its result.

        In a pipeline (`tenant_scope`), an error is raised at the next wait for a result.
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
        # psycopg's own cursor, as Django's interpolates values into the text. The raw cursor, as
        # the normal one searches a long statement for parameters each time.
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
    """psycopg's connection, prepared for arrays of `audit.sql.arrays`."""
    raw = cast(psycopg.Connection[Any], connections[using].connection)
    arrays.adapt(raw)
    return raw


def _roll_back_to(savepoint: str, using: str) -> None:
    """Roll back to a savepoint, and so reset the timeout.

    The timeout still applies to the ROLLBACK itself, which may take a few milliseconds on a busy
    machine. So it is tried again; `transaction.atomic` would give up the whole transaction.
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
    """A statement with PostgreSQL's numbered parameters, and their names in order."""
    names: dict[str, int] = {}

    def number(parameter: re.Match[str]) -> str:
        return f"${names.setdefault(parameter[1], len(names) + 1)}"

    text = _PARAMETER.sub(number, _COMMENT.sub("", sql.QUERIES[name]))
    return text.encode(), tuple(names)
