"""A second index in temporary tables, the shadow, and its comparison with the real index.

Temporary tables come first in PostgreSQL's search path. So the statements that write the index
write the shadow instead, on the owner's connection and as long as the shadow's tables exist.
Statements for the real index name its schema.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db import connections

from audit.sql.run import Row, rows

KEYS: dict[str, tuple[str, ...]] = {
    "invocation": ("started_on", "invocation_id"),
    "decision": ("started_on", "decision_id"),
    "violation": ("started_on", "invocation_id", "ordinal"),
    "violation_day": ("started_on", "kind"),
    "trace": ("started_on", "trace_id"),
    "quarter_rollup": ("started_on", "quarter_at", "tool_name", "tool_version"),
    "rollup": ("started_on", "hour_at", "tool_name", "tool_version"),
    "error_rollup": ("started_on", "hour_at", "tool_name", "tool_version", "error_type"),
    "producer": ("producer_id",),
    "gap": ("producer_id", "from_seq", "to_seq"),
}
"""The tables that can be rebuilt from the log, in the order ingest locks them, and their keys."""

OF_EVENTS = ("invocation", "decision", "violation")
"""The tables whose rows are of single events; the others have sums, producers and gaps."""

SHOWN_ROWS = 20
"""How many differing rows of a table are listed one by one."""


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of the statements of `sql/shadow.sql` for one table."""

    note: str
    show: str
    delete: str
    insert: str


_STATEMENTS = {
    "invocation": _Names(
        note="note_differing_invocation",
        show="show_differing_invocation",
        delete="delete_differing_invocation",
        insert="insert_differing_invocation",
    ),
    "decision": _Names(
        note="note_differing_decision",
        show="show_differing_decision",
        delete="delete_differing_decision",
        insert="insert_differing_decision",
    ),
    "violation": _Names(
        note="note_differing_violation",
        show="show_differing_violation",
        delete="delete_differing_violation",
        insert="insert_differing_violation",
    ),
    "violation_day": _Names(
        note="note_differing_violation_day",
        show="show_differing_violation_day",
        delete="delete_differing_violation_day",
        insert="insert_differing_violation_day",
    ),
    "trace": _Names(
        note="note_differing_trace",
        show="show_differing_trace",
        delete="delete_differing_trace",
        insert="insert_differing_trace",
    ),
    "quarter_rollup": _Names(
        note="note_differing_quarter_rollup",
        show="show_differing_quarter_rollup",
        delete="delete_differing_quarter_rollup",
        insert="insert_differing_quarter_rollup",
    ),
    "rollup": _Names(
        note="note_differing_rollup",
        show="show_differing_rollup",
        delete="delete_differing_rollup",
        insert="insert_differing_rollup",
    ),
    "error_rollup": _Names(
        note="note_differing_error_rollup",
        show="show_differing_error_rollup",
        delete="delete_differing_error_rollup",
        insert="insert_differing_error_rollup",
    ),
    "producer": _Names(
        note="note_differing_producer",
        show="show_differing_producer",
        delete="delete_differing_producer",
        insert="insert_differing_producer",
    ),
    "gap": _Names(
        note="note_differing_gap",
        show="show_differing_gap",
        delete="delete_differing_gap",
        insert="insert_differing_gap",
    ),
}

_NOTES = {
    "lost_place": "tenant_id uuid, batch_id uuid, position integer",
    "kept_call": "started_on date, invocation_id uuid",
    "kept_decision": "started_on date, decision_id uuid",
    "expired_invocation": "started_on date, invocation_id uuid",
    "expired_decision": "started_on date, decision_id uuid",
    "expired_violation": "started_on date, invocation_id uuid, ordinal integer",
}
"""Events that cannot be read, what is kept because of them, and rebuilt rows that have expired."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that differs between the index and the log.

    `index` and `log` have the columns that differ, as JSON values. None means there is no row.
    """

    table: str
    key: dict[str, Any]
    index: dict[str, Any] | None
    log: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The number of differing rows of each table, and examples."""

    counts: dict[str, int]
    examples: list[Difference]

    @property
    def is_clean(self) -> bool:
        return not any(self.counts.values())


class Shadow:
    """The shadow of one tenant's index on a connection, while `open_shadow` lasts."""

    def __init__(self, using: str) -> None:
        self._using = using

    def rows(self, name: str, **parameters: Any) -> list[Row]:
        """The rows of a named statement, in the tenant's scope."""
        return rows(name, parameters, using=self._using)

    def set_up(self, statement: str) -> None:
        """Create or drop a table of the shadow, or configure its transaction."""
        with connections[self._using].cursor() as cursor:
            cursor.execute(statement)

    def analyze(self) -> None:
        """Let PostgreSQL count the shadow's rows, which it never does by itself in such tables.

        Otherwise it reads and sorts all calls for each next five thousand: 0.8 s among three
        million.
        """
        for table in KEYS:
            self.set_up(f"ANALYZE pg_temp.{table}")

    def compare(self, days: Mapping[str, Sequence[date]]) -> Comparison:
        """Find and note every row that differs, in each table on its `days`."""
        self.analyze()
        counts: dict[str, int] = {}
        examples: list[Difference] = []
        for table, compared in days.items():
            self.rows(_STATEMENTS[table].note, days=list(compared))
            shown = self.rows(_STATEMENTS[table].show, shown=SHOWN_ROWS)
            counts[table] = shown[0][-1] if shown else 0
            examples += (_difference(table, *texts) for *texts, _ in shown)
        return Comparison(counts, examples)

    def repair(self, days: Mapping[str, Sequence[date]]) -> None:
        """Replace the noted rows of the index by those of the shadow."""
        for table, compared in days.items():
            self.rows(_STATEMENTS[table].delete)
            self.rows(_STATEMENTS[table].insert, days=list(compared))

    def lock_out_writers(self) -> None:
        """Wait for writers of the index, then lock out all others until the transaction ends.

        Locks the tables in the same order as ingest, so that no deadlock arises.
        """
        names = ", ".join(f"public.{table}" for table in KEYS)
        self.set_up(f"LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE")


@contextmanager
def open_shadow(using: str) -> Iterator[Shadow]:
    """Create an empty shadow. Until the block ends, it replaces the index on this connection."""
    shadow = Shadow(using)
    _drop(shadow)
    try:
        for table, key in KEYS.items():
            shadow.set_up(f"CREATE TEMP TABLE {table} (LIKE public.{table} INCLUDING CONSTRAINTS)")
            shadow.set_up(
                f"ALTER TABLE pg_temp.{table} ADD PRIMARY KEY (tenant_id, {', '.join(key)})"
            )
        for table, columns in _NOTES.items():
            shadow.set_up(f"CREATE TEMP TABLE {table} ({columns})")
        yield shadow
    finally:
        _drop(shadow)


def _drop(shadow: Shadow) -> None:
    for table in (*KEYS, *(f"differing_{table}" for table in KEYS), *_NOTES):
        shadow.set_up(f"DROP TABLE IF EXISTS pg_temp.{table}")


def _difference(table: str, key: str, index: str | None, log: str | None) -> Difference:
    in_index, in_log = (None if text is None else json.loads(text) for text in (index, log))
    return Difference(table, json.loads(key), *_what_differs(in_index, in_log))


def _what_differs(
    index: dict[str, Any] | None, log: dict[str, Any] | None
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    if index is None or log is None:
        return index, log
    names = [name for name in log if log[name] != index.get(name)]
    return {name: index.get(name) for name in names}, {name: log[name] for name in names}
