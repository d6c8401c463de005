"""A second index beside the real one, in temporary tables, and what differs between the two.

Temporary tables come first in PostgreSQL's search path: the very statements that write the
index write the shadow here, on the owner's connection, as long as its tables exist. The real
one is named with its schema.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any, cast
from uuid import UUID

from django.db import connections

from audit import sql

KEYS: dict[str, tuple[str, ...]] = {
    "invocation": ("started_on", "invocation_id"),
    "violation": ("started_on", "invocation_id", "ordinal"),
    "violation_day": ("started_on", "kind"),
    "trace": ("started_on", "trace_id"),
    "quarter_rollup": ("started_on", "quarter_at", "tool_name", "tool_version"),
    "rollup": ("started_on", "hour_at", "tool_name", "tool_version"),
    "error_rollup": ("started_on", "hour_at", "tool_name", "tool_version", "error_type"),
    "producer": ("producer_id",),
    "gap": ("producer_id", "from_seq", "to_seq"),
}
"""The tables that follow from the log, in the order ingest locks them, and their keys."""

SHOWN_ROWS = 20
"""Differing rows of a table that are named one by one."""

_COUNTS_SOMETHING = {
    "quarter_rollup": "started_count <> 0",
    "rollup": "started_count <> 0",
    "error_rollup": "call_count <> 0",
}
"""Rows of which nothing is left, once a call was told more fully, are as good as none."""

_LOST = {
    "lost_place": "batch_id uuid, position integer",
    "kept_call": "started_on date, invocation_id uuid",
}
"""Events that cannot be read, and the calls that are kept because of them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that the index and the log tell differently.

    `index` and `log` are the members they differ in, as JSON values; None: there is no row.
    """

    table: str
    key: dict[str, Any]
    index: dict[str, Any] | None
    log: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many rows of each table differ, and some of them."""

    counts: dict[str, int]
    examples: list[Difference]

    @property
    def is_clean(self) -> bool:
        return not any(self.counts.values())


class Shadow:
    """The shadow of one tenant's index on a connection, while `open_shadow` lasts."""

    def __init__(self, tenant_id: UUID, using: str) -> None:
        self._tenant_id = tenant_id
        self._using = using

    def run(self, statement: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement, whose `tenant_id` is the tenant; its rows."""
        with connections[self._using].cursor() as cursor:
            cursor.execute(statement, {"tenant_id": self._tenant_id} | parameters)
            return list(cursor.fetchall()) if cursor.description else []

    def compare(self, tables: Sequence[str], days: Sequence[date]) -> Comparison:
        """Note every row of `tables` that differs, on these days."""
        counts: dict[str, int] = {}
        examples: list[Difference] = []
        for table in tables:
            self._about(table, "note_differing", days=list(days))
            noted = self.run(f"SELECT count(*) FROM differing_{table}")  # noqa: S608  of KEYS
            counts[table] = noted[0][0]
            examples += self._examples(table)
        return Comparison(counts, examples)

    def repair(self, tables: Sequence[str], days: Sequence[date]) -> None:
        """Make the rows that were noted the shadow's."""
        for table in tables:
            self._about(table, "delete_differing")
            self._about(table, "insert_differing", days=list(days))

    def lock_out_writers(self) -> None:
        """Wait for whoever writes to the index, and let nobody else until the transaction ends.

        In the order ingest comes to the tables, so that neither waits in a ring.
        """
        names = ", ".join(f"public.{table}" for table in KEYS)
        self.run(f"LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE")

    def _about(self, table: str, name: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement of `sql/shadow.sql` for one table."""
        key, columns = KEYS[table], self._columns(table)
        names = {
            "table": table,
            "key": ", ".join(key),
            "counts": _COUNTS_SOMETHING.get(table, "TRUE"),
            "within": "x.started_on = ANY(%(days)s)" if "started_on" in key else "TRUE",
            "index_columns": ", ".join(f"i.{column}" for column in columns),
            "log_columns": ", ".join(f"x.{column}" for column in columns),
            "same_in_index": " AND ".join(f"i.{name} = d.{name}" for name in key),
            "same_in_log": " AND ".join(f"x.{name} = d.{name}" for name in key),
        }
        return self.run(sql.QUERIES[name].format(**names), **parameters)

    def _columns(self, table: str) -> list[str]:
        """All but the key's, the tenant first: where a row is missing even this is NULL."""
        rows = self.run(
            "SELECT attname FROM pg_attribute WHERE attrelid = %(table)s::regclass AND attnum > 0"
            " AND NOT attisdropped AND attname <> ALL(%(key)s)"
            " ORDER BY attname <> 'tenant_id', attnum",
            table=f"public.{table}",
            key=list(KEYS[table]),
        )
        return [name for (name,) in rows]

    def _examples(self, table: str) -> Iterator[Difference]:
        for texts in self._about(table, "show_differing", shown=SHOWN_ROWS):
            key, index, log = (None if text is None else json.loads(text) for text in texts)
            yield Difference(table, cast(dict[str, Any], key), *_what_differs(index, log))


@contextmanager
def open_shadow(tenant_id: UUID, using: str) -> Iterator[Shadow]:
    """An empty shadow; until the block ends the connection's index is the shadow."""
    shadow = Shadow(tenant_id, using)
    _drop(shadow)
    try:
        for table, key in KEYS.items():
            shadow.run(f"CREATE TEMP TABLE {table} (LIKE public.{table} INCLUDING CONSTRAINTS)")
            shadow.run(f"ALTER TABLE pg_temp.{table} ADD PRIMARY KEY (tenant_id, {', '.join(key)})")
        for table, columns in _LOST.items():
            shadow.run(f"CREATE TEMP TABLE {table} ({columns})")
        yield shadow
    finally:
        _drop(shadow)


def _drop(shadow: Shadow) -> None:
    for table in (*KEYS, *(f"differing_{table}" for table in KEYS), *_LOST):
        shadow.run(f"DROP TABLE IF EXISTS pg_temp.{table}")


def _what_differs(
    index: dict[str, Any] | None, log: dict[str, Any] | None
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    if index is None or log is None:
        return index, log
    names = [name for name in log if log[name] != index.get(name)]
    return {name: index.get(name) for name in names}, {name: log[name] for name in names}
