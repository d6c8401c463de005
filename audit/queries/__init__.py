"""What pages and the API read of the index: named statements in, typed rows out.

Each function is one screen's question. The statements are in `audit/sql`; here they get
their parameters and their rows get names. All must run inside the tenant's scope.
What lies in the log is `audit.log`'s.
"""

from typing import Any, cast

from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections, transaction
from psycopg.errors import QueryCanceled

from audit import sql
from config.postgresql.base import DatabaseWrapper
from tenants.scope import current_tenant_id


def rows(name: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Run a named statement for the scope's tenant, which is its parameter `tenant_id`."""
    with connection.cursor() as cursor:
        cursor.execute(sql.QUERIES[name], {"tenant_id": current_tenant_id(), **parameters})
        return cast(list[tuple[Any, ...]], cursor.fetchall())


def rows_within(name: str, parameters: dict[str, Any], timeout_ms: int) -> list[tuple[Any, ...]]:
    """The same, and TimeoutError if PostgreSQL has not answered after so many milliseconds."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {int(timeout_ms)}")
            found = rows(name, parameters)
            transaction.set_rollback(True)  # which takes the setting back
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise TimeoutError(name) from error
        raise
    return found


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
