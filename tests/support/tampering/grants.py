"""What the roles may do to a table, asked of the database: the weakest power that can."""

from functools import cache

from django.db import connections

from config.postgresql.roles import APP
from tests.support.tampering.record import Power


@cache
def columns_of(table: str) -> frozenset[str]:
    """All columns."""
    return frozenset(
        name
        for (name,) in _rows(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
            " AND NOT attisdropped",
            table,
        )
    )


@cache
def writable(table: str) -> frozenset[str]:
    """The columns that the application may update."""
    return frozenset(
        name
        for name in columns_of(table)
        if _rows("SELECT 1 WHERE has_column_privilege(%s, %s, %s, 'UPDATE')", APP, table, name)
    )


@cache
def may(verb: str, table: str) -> bool:
    """Whether the application may INSERT into a table, or DELETE whatever it likes from it."""
    if not _rows("SELECT 1 WHERE has_table_privilege(%s, %s, %s)", APP, table, verb):
        return False
    return not _rows(
        "SELECT 1 FROM pg_policies WHERE tablename = %s AND permissive = 'RESTRICTIVE'"
        " AND cmd = %s",
        table,
        verb,
    )


def changer(table: str, columns: frozenset[str]) -> tuple[Power, frozenset[str]]:
    """Who can change some of these columns, and which of them they can."""
    if within := columns & writable(table):
        return Power.APPLICATION, within
    return Power.OWNER, columns


def deleter(table: str) -> Power:
    """Who can delete a row: of one that others refer to, only who can switch foreign keys off."""
    referred = _rows(
        "SELECT 1 FROM pg_constraint WHERE contype = 'f' AND confrelid = %s::regclass"
        " AND confdeltype = 'a' AND conparentid = 0",
        table,
    )
    if referred:
        return Power.SUPERUSER
    return Power.APPLICATION if may("DELETE", table) else Power.OWNER


def inserter(table: str) -> Power:
    """Who can insert a row."""
    return Power.APPLICATION if may("INSERT", table) else Power.OWNER


@cache
def tables() -> frozenset[str]:
    """Our tables, without partitions and without those of Django and Procrastinate."""
    return frozenset(
        name
        for (name,) in _rows(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            " AND relkind IN ('r', 'p') AND NOT relispartition"
            r" AND relname !~ '^(auth|django|procrastinate)_'"
        )
    )


def _rows(statement: str, *values: str) -> list[tuple[str, ...]]:
    with connections["owner"].cursor() as cursor:
        cursor.execute(statement, values)
        rows: list[tuple[str, ...]] = cursor.fetchall()
        return rows
