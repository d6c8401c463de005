"""What pages and the API read of the index: named statements in, typed rows out.

Each function is one screen's question. The statements are in `audit/sql`; here they get
their parameters and their rows get names. All must run inside the tenant's scope.
What lies in the log is `audit.log.payload`'s.
"""

from typing import Any, cast

from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections
from psycopg.errors import QueryCanceled

from audit import sql
from config.postgresql.base import DatabaseWrapper
from tenants.scope import current_tenant_id

_TRIES = 20


def rows(name: str, parameters: dict[str, Any], *, conditions: str = "") -> list[tuple[Any, ...]]:
    """Run a named statement for the scope's tenant, which is its parameter `tenant_id`.

    `conditions` is what `audit.queries.call_conditions` wrote for a query of calls.
    """
    statement = sql.QUERIES[name]
    if conditions:
        statement = statement.replace(sql.CONDITIONS, conditions)
    with connection.cursor() as cursor:
        cursor.execute(statement, {"tenant_id": current_tenant_id(), **parameters})
        return cast(list[tuple[Any, ...]], cursor.fetchall())


def rows_within(
    name: str, parameters: dict[str, Any], timeout_ms: int, *, conditions: str = ""
) -> list[tuple[Any, ...]]:
    """The same, and TimeoutError if PostgreSQL has not answered after so many milliseconds."""
    before = connection.savepoint()
    assert before is not None, "a scope is a transaction"
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {int(timeout_ms)}")
        return rows(name, parameters, conditions=conditions)
    except OperationalError as error:
        if _is_late(error):
            raise TimeoutError(name) from error
        raise
    finally:
        _roll_back_to(before)


def _roll_back_to(savepoint: str) -> None:
    """Take the setting back, which is still in force for that: on a busy machine a few milliseconds
    pass within the ROLLBACK, too. `transaction.atomic` gives the whole transaction up then.
    """
    for tries_left in reversed(range(_TRIES)):
        try:
            connection.savepoint_rollback(savepoint)
        except OperationalError as error:
            if not tries_left or not _is_late(error):
                raise
        else:
            return


def _is_late(error: OperationalError) -> bool:
    return isinstance(error.__cause__, QueryCanceled)


def rows_of_all_days(name: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The same for a statement that names no days: planned once on a connection, not each time.

    Planning one for fifty partitions takes 5 ms and reading a few rows 0.5 (docs/adr/0009). The
    plan must be good for any parameters.
    """
    backend = cast(DatabaseWrapper, connections[DEFAULT_DB_ALIAS])
    values = {"tenant_id": current_tenant_id(), **parameters}
    with backend.preparing_cursor() as cursor:
        # Else it is planned five more times, and for ever if that seemed cheaper.
        cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        cursor.execute(sql.QUERIES[name], values)
        return cast(list[tuple[Any, ...]], cursor.fetchall())
