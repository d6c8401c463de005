"""Running the statements that take events in, `sql/ingest.sql`: prepared, and in binary."""

import re
from datetime import datetime
from functools import cache
from typing import Any, cast
from uuid import UUID

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections

from audit import sql
from audit.sql import arrays
from config.postgresql.schema import SCHEMA

_COMMENT = re.compile(r"--.*")
_PARAMETER = re.compile(r"%\((\w+)\)[bs]")


class Statements:
    """Runs statements for a tenant inside its open scope, `now`, on the connection `using`."""

    def __init__(self, tenant_id: UUID, now: datetime, *, using: str = DEFAULT_DB_ALIAS) -> None:
        self.using = using
        self._constants = {"tenant_id": tenant_id, "now": now}
        self._django = connections[using]
        self._connection = cast(psycopg.Connection[Any], self._django.connection)
        arrays.adapt(self._connection)

    def run(self, name: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement of `sql/ingest.sql`; its rows. Raises Django's database errors."""
        with self._django.wrap_database_errors:
            return self._execute(name, parameters).fetchall()

    def send(self, name: str, **parameters: Any) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run a statement whose result nobody waits for now. In a pipeline (`tenant_scope`), what
        goes wrong is raised where one is waited for.
        """
        with self._django.wrap_database_errors:
            return self._execute(name, parameters)

    def fence(self, required: int) -> None:
        """See `config.postgresql.schema.Schema.fence`."""
        with self._django.wrap_database_errors:
            SCHEMA.fence(self._connection, required)

    def _execute(self, name: str, parameters: dict[str, Any]) -> psycopg.Cursor[tuple[Any, ...]]:
        statement, names = _statement(name)
        values = self._constants | parameters
        # psycopg's own cursor, as Django's interpolates values into the text; and its raw one,
        # as the other looks for parameters in a long statement each time.
        cursor = psycopg.RawCursor(self._connection)
        return cursor.execute(
            statement, [values[name] for name in names], binary=True, prepare=True
        )


@cache
def _statement(name: str) -> tuple[bytes, tuple[str, ...]]:
    """A statement with numbered parameters, as PostgreSQL itself has them, and their names."""
    names: dict[str, int] = {}

    def number(parameter: re.Match[str]) -> str:
        return f"${names.setdefault(parameter[1], len(names) + 1)}"

    text = _PARAMETER.sub(number, _COMMENT.sub("", sql.QUERIES[name]))
    return text.encode(), tuple(names)
