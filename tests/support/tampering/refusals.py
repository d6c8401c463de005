"""What the database refuses: grants of the application role, and row-level security."""

import random
from collections.abc import Iterator

from audit.index.partitions import PARTITIONED_TABLES
from tests.isolation.world import tenant_tables
from tests.support.tampering.finders import Finder
from tests.support.tampering.grants import columns_of, may, tables, writable
from tests.support.tampering.kinds import Act, Tampering, kind
from tests.support.tampering.record import Power, Record

DATABASE = Finder.DATABASE
APPLICATION, OWNER = Power.APPLICATION, Power.OWNER
_SCHEMA = "the tests of a release compare grants and policies, a running server does not"


def kinds() -> Iterator[Tampering]:
    """A kind for each table and verb that the application has no right to, and others."""
    yield from (value for value in globals().values() if isinstance(value, Tampering))
    for table in sorted(tables()):
        rows = "tenant_id = %(tenant)s" if "tenant_id" in columns_of(table) else "true"
        kept = sorted(columns_of(table) - writable(table))
        if kept:
            yield _refused("UPDATE", table, _update(table, kept, rows))
        if not may("DELETE", table):
            yield _refused("DELETE", table, _run(f"DELETE FROM {table} WHERE {rows}"))
        if not may("INSERT", table):
            yield _refused("INSERT", table, _run(f"INSERT INTO {table} SELECT * FROM {table}"))
    for verb, text in (
        ("UPDATE", "UPDATE {table} SET tenant_id = tenant_id WHERE tenant_id <> %(tenant)s"),
        ("DELETE", "DELETE FROM {table} WHERE tenant_id <> %(tenant)s"),
        ("INSERT", "INSERT INTO {table} (tenant_id) VALUES (gen_random_uuid())"),
    ):
        yield Tampering(
            f"{verb} of a row of another tenant",
            "any table of tenants",
            APPLICATION,
            frozenset({DATABASE}),
            _anywhere(text),
        )


@kind("row-level security was switched off", OWNER, why=_SCHEMA)
def switch_off(record: Record, rng: random.Random) -> None:
    table = rng.choice(tenant_tables())
    record.run(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY", OWNER)
    record.undo(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")


@kind("the application role was given more rights", OWNER, why=_SCHEMA)
def grant(record: Record, _: random.Random) -> None:
    record.run("GRANT DELETE ON batch TO tooltrail_app", OWNER)
    record.undo("REVOKE DELETE ON batch FROM tooltrail_app")


def _refused(verb: str, table: str, act: Act) -> Tampering:
    return Tampering(f"{verb} without the right to", table, APPLICATION, frozenset({DATABASE}), act)


def _update(table: str, columns: list[str], rows: str) -> Act:
    def act(record: Record, rng: random.Random) -> None:
        column = f'"{rng.choice(columns)}"'  # a name may be a reserved word
        record.change(f"UPDATE {table} SET {column} = {column} WHERE {rows}", APPLICATION)

    return act


def _run(statement: str) -> Act:
    def act(record: Record, _: random.Random) -> None:
        record.change(statement, APPLICATION)

    return act


def _anywhere(statement: str) -> Act:
    def act(record: Record, rng: random.Random) -> None:
        # A row of nothing but the tenant has no partition.
        whole = [each for each in tenant_tables() if each not in PARTITIONED_TABLES]
        record.change(statement.format(table=rng.choice(whole)), APPLICATION)

    return act
