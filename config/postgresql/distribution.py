"""Distribute a database over the nodes of a Citus cluster: each tenant's rows lie on one node.

Tables with a `tenant_id` are distributed by it. Tables that these refer to (tenants, users) are
copied to every node. All others stay on the coordinator. Which is which follows from pg_catalog, so
a new table needs no entry here; `tests/schema` holds the rules that make each table distributable.

Everything runs as a superuser or the owner: a role that row-level security binds would lose rows
when shards move.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from config.postgresql import roles
from config.postgresql.schema import CLOSED, DISTRIBUTED, DISTRIBUTING

type Connection = psycopg.Connection[Any]

SHARDS = 32
"""Shards of each table: more than a cluster will ever have nodes, few enough for day partitions."""
_ANCHOR = "ledger_head"
"""The table that the others are placed beside."""

_TABLES = """
    SELECT c.relname, EXISTS (
        SELECT FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
    )
    FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
      AND NOT c.relispartition
    ORDER BY c.relname
"""
_KEYS = """
    SELECT conname, conrelid::regclass::text, confrelid::regclass::text,
           pg_get_constraintdef(oid)
    FROM pg_constraint
    WHERE contype = 'f' AND connamespace = 'public'::regnamespace AND conparentid = 0
    ORDER BY conname
"""
_FUNCTIONS = """
    SELECT p.oid::regprocedure::text FROM pg_proc p
    WHERE p.pronamespace = 'public'::regnamespace AND p.provolatile = 'i' AND NOT EXISTS (
        SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e'
    )
    ORDER BY 1
"""
_DISTRIBUTE_FIRST = "SELECT create_distributed_table(%s, 'tenant_id', shard_count => %s)"
_DISTRIBUTE_BESIDE = "SELECT create_distributed_table(%s, 'tenant_id', colocate_with => %s)"
_PLACED = "SELECT table_name::text, citus_table_type FROM citus_tables"
_PLACED_WHOLE = """
    SELECT t.table_name::text FROM citus_tables t JOIN pg_class c ON c.oid = t.table_name
    WHERE t.citus_table_type IN ('distributed', 'reference') AND NOT c.relispartition
"""
_APPLIED = "INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, now())"
_IS_GUARDED = """
    SELECT relrowsecurity AND relforcerowsecurity AND EXISTS (
        SELECT FROM pg_policy WHERE polrelid = c.oid AND polname = 'tenant_isolation'
    )
    FROM pg_class c WHERE c.oid = '%s'::regclass
"""


class DistributionError(Exception):
    """The database was not distributed, or not wholly. The message is for people."""


@dataclass(frozen=True)
class Key:
    """A foreign key between two distributed tables."""

    name: str
    table: str
    refers_to: str
    definition: str


@dataclass(frozen=True)
class Group:
    """Tables that refer to each other, with the keys by which they do.

    A group is distributed in one transaction: Citus accepts such a key only while both tables are
    distributed, so it is dropped before and added again after.
    """

    tables: tuple[str, ...]
    keys: tuple[Key, ...]


@dataclass(frozen=True)
class Plan:
    """What is left to be done. Without tables once the database is distributed."""

    references: tuple[str, ...]
    groups: tuple[Group, ...]
    functions: tuple[str, ...]

    @property
    def tables(self) -> list[str]:
        """Tables to distribute."""
        return [table for group in self.groups for table in group.tables]


def is_distributed(connection: Connection) -> bool:
    """Whether the database has the extension, so that new tables must be distributed, too."""
    row = connection.execute("SELECT FROM pg_extension WHERE extname = 'citus'").fetchone()
    return row is not None


def plan(connection: Connection) -> Plan:
    """Read from pg_catalog what is not yet distributed."""
    placed = dict(connection.execute(_PLACED).fetchall()) if is_distributed(connection) else {}
    tables: dict[str, bool] = dict(connection.execute(_TABLES).fetchall())
    keys = [Key(*row) for row in connection.execute(_KEYS)]
    of_tenants = [name for name, has_tenant in tables.items() if has_tenant]
    functions = [name for (name,) in connection.execute(_FUNCTIONS)]
    return Plan(
        tuple(each for each in _references(of_tenants, keys) if each not in placed),
        tuple(_groups([each for each in of_tenants if placed.get(each) != "distributed"], keys)),
        tuple(functions),
    )


def _references(of_tenants: Sequence[str], keys: Sequence[Key]) -> list[str]:
    """Tables that tenants' tables refer to, and those that these refer to, which come first."""
    ordered: list[str] = []

    def visit(table: str) -> None:
        for key in keys:
            if key.table == table and key.refers_to not in (table, *of_tenants, *ordered):
                visit(key.refers_to)
                ordered.append(key.refers_to)

    for table in of_tenants:
        visit(table)
    return ordered


def _groups(tables: Sequence[str], keys: Sequence[Key]) -> Iterable[Group]:
    """Group tables by the keys between them. The anchor's group comes first."""
    rest = sorted(tables, key=lambda table: (table != _ANCHOR, table))
    while rest:
        group = [rest.pop(0)]
        for table in group:  # grows while it is walked
            for key in keys:
                ends = {key.table, key.refers_to}
                for other in ends - {table} if table in ends else ():
                    if other in rest:
                        rest.remove(other)
                        group.append(other)
        inner = tuple(key for key in keys if {key.table, key.refers_to} <= set(group))
        yield Group(tuple(group), inner)


def apply(
    connection: Connection, todo: Plan, *, shards: int = SHARDS, report: Callable[[str], None]
) -> None:
    """Distribute what is left, a transaction for each group of tables.

    `connection` is a superuser's in autocommit mode. Meanwhile the server takes no events and
    answers 503; senders repeat. After an interruption this stays so until it is run again, with the
    plan of then. Raises DistributionError if rows are missing afterwards, which undoes that group,
    and psycopg.Error.
    """
    _mark(connection, DISTRIBUTING)
    for function in todo.functions:
        connection.execute("SELECT create_distributed_function(%s::regprocedure)", [function])
    for table in todo.references:
        with connection.transaction():
            _counted(connection, table, "SELECT create_reference_table(%s)", [table])
        report(f"{table}: copied to every node")
    for group in todo.groups:
        with connection.transaction():
            for key in group.keys:
                _alter(connection, key.table, "DROP CONSTRAINT {}", sql.Identifier(key.name))
            for table in group.tables:
                if table == _ANCHOR:
                    _counted(connection, table, _DISTRIBUTE_FIRST, [table, shards])
                else:
                    _counted(connection, table, _DISTRIBUTE_BESIDE, [table, _ANCHOR])
            for key in group.keys:
                definition = sql.SQL(key.definition)  # as PostgreSQL printed it
                add = "ADD CONSTRAINT {} {}"
                _alter(connection, key.table, add, sql.Identifier(key.name), definition)
        report(f"{', '.join(group.tables)}: distributed")
    _verify(connection)
    for table, _ in connection.execute(_PLACED).fetchall():  # those of an interrupted run, too
        # Citus leaves the rows of before, which nobody sees any more, in the coordinator's table.
        connection.execute("SELECT truncate_local_data_after_distributing_table(%s)", [table])
    # Connections read the settings of join_nodes when they are opened. Older ones see no rows.
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND usename = ANY(%s)",
        [list(roles.ROLES)],
    )
    _mark(connection, DISTRIBUTED)


def _verify(connection: Connection) -> None:
    """Raise DistributionError for a shard that row-level security does not guard."""
    open_shards = connection.execute(
        "SELECT t.table_name::text, p.nodename, p.nodeport FROM citus_tables t"
        " CROSS JOIN LATERAL run_command_on_placements(t.table_name, %s) p"
        " WHERE t.citus_table_type = 'distributed' AND (NOT p.success OR p.result <> 't')"
        " AND NOT (SELECT relispartition FROM pg_class WHERE oid = t.table_name)",
        [_IS_GUARDED],
    ).fetchall()
    if open_shards:
        named = ", ".join(f"{table} on {host}:{port}" for table, host, port in open_shards[:5])
        raise DistributionError(f"row-level security does not guard every shard: {named}")


def _mark(connection: Connection, state: tuple[str, str]) -> None:
    """Replace the mark among the migrations; each process reads their last id before a commit."""
    with connection.transaction():
        connection.execute("DELETE FROM django_migrations WHERE app = %s", [state[0]])
        connection.execute(_APPLIED, state)


@contextmanager
def closed(connection: Connection) -> Iterator[None]:
    """Let nobody write to a distributed database until the block ends; others get 503.

    Transactions on several nodes have no common snapshot: this takes its place. `connection` is the
    owner's in autocommit mode. If the process is killed meanwhile, the database stays closed until
    this, or `apply`, is run again. Raises psycopg.Error.
    """
    forget = "DELETE FROM django_migrations WHERE app = %s AND name = %s"
    connection.execute(forget, CLOSED)
    connection.execute(_APPLIED, CLOSED)
    try:
        tables = connection.execute(_PLACED_WHOLE).fetchall()
        names = sql.SQL(", ").join(sql.Identifier(table) for (table,) in tables)
        with connection.transaction():  # waits for those that write now
            connection.execute(sql.SQL("LOCK TABLE {} IN SHARE MODE").format(names))
            yield
    finally:
        connection.execute(forget, CLOSED)


def row_counts(connection: Connection, tables: Sequence[str]) -> dict[str, int]:
    """Count the rows of these tables."""
    return {table: _count(connection, table) for table in tables}


def _counted(
    connection: Connection, table: str, command: LiteralString, parameters: Sequence[Any]
) -> None:
    """Run a command that must keep the number of rows of this table."""
    before = _count(connection, table)
    connection.execute(command, parameters)
    after = _count(connection, table)
    if before != after:
        raise DistributionError(f"{table}: {before:,} rows before, {after:,} after")


def _count(connection: Connection, table: str) -> int:
    query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
    (count,) = connection.execute(query).fetchone() or (0,)
    return int(count)


def _alter(connection: Connection, table: str, change: str, *parts: sql.Composable) -> None:
    command = sql.SQL("ALTER TABLE {} ").format(sql.Identifier(table))
    connection.execute(command + sql.SQL(change).format(*parts))
