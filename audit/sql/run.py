"""Running the statements of `sql/ledger.sql`, whole columns at a time."""

from typing import Any, cast
from uuid import UUID

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections

from audit import sql
from audit.sql import arrays

KEEPER, OWNER = "keeper", "owner"


def run(
    name: str, *, tenant_id: UUID | None = None, using: str = DEFAULT_DB_ALIAS, **parameters: Any
) -> list[tuple[Any, ...]]:
    """The rows of a named statement. Needs an open transaction, the tenant's scope for its rows.

    Raises Django's database errors.
    """
    django = connections[using]
    connection = cast(psycopg.Connection[Any], django.connection)
    arrays.adapt(connection)
    with django.wrap_database_errors:
        # psycopg's own cursor: Django's writes every byte of a tile into the statement's text.
        cursor = psycopg.Cursor(connection, row_factory=psycopg.rows.tuple_row)
        cursor.execute(sql.QUERIES[name], {"tenant_id": tenant_id, **parameters}, binary=True)
        return cursor.fetchall() if cursor.description else []
