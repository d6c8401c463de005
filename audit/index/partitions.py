"""Day partitions of the index: which must exist, which do, and making the missing ones.

Planning is pure; applying needs the owner's connection (`using=OWNER`). Dropping
expired days is retention's, not done here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

import psycopg
from django.db import OperationalError, connections, transaction

from config.postgresql.aliases import OWNER

PARTITIONED_TABLES = (
    "invocation",
    "violation",
    "trace",
    "rollup",
    "quarter_rollup",
    "error_rollup",
    "otlp_span",
    "violation_day",
)
_FILL = {"rollup": 70, "quarter_rollup": 50}
"""How full (%) pages are made of tables whose rows each request adds to: without room beside them
two in five new versions of a quarter's row went to another page, and the table was a third larger.
"""
LOCK_TIMEOUT = "2s"  # whoever writes waits for whoever waits to lock their table
DAYS_AHEAD = 14  # two weeks without a worker before new calls find no partition
DAYS_BACK = 35  # how late a call may arrive; older ones go to the inbox


@dataclass(frozen=True, order=True)
class Partition:
    """One day of one table."""

    day: date
    table: str

    @property
    def name(self) -> str:
        return f"{self.table}_{self.day:%Y%m%d}"


def wanted(today: date, *, back: int = DAYS_BACK, ahead: int = DAYS_AHEAD) -> list[Partition]:
    """Every partition that should exist today, oldest day first."""
    return [
        Partition(today + timedelta(days=offset), table)
        for offset in range(-back, ahead + 1)
        for table in PARTITIONED_TABLES
    ]


def existing(using: str = OWNER) -> set[Partition]:
    """The partitions the database has. One query."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT parent.relname, child.relname FROM pg_inherits"
            " JOIN pg_class parent ON parent.oid = inhparent"
            " JOIN pg_class child ON child.oid = inhrelid"
            " WHERE parent.relname = ANY(%s) AND parent.relkind = 'p' AND child.relkind = 'r'",
            [list(PARTITIONED_TABLES)],
        )
        return {
            Partition(date.fromisoformat(child.removeprefix(f"{parent}_")), parent)
            for parent, child in cursor.fetchall()
        }


def missing(today: date, using: str = OWNER, *, back: int = DAYS_BACK) -> list[Partition]:
    """What `apply` would make; from earlier on with a longer way `back`."""
    known = existing(using)
    return [partition for partition in wanted(today, back=back) if partition not in known]


def days_ahead(today: date, using: str = OWNER) -> int:
    """How many days after today have all their partitions, up to the first hole; -1: not today."""
    known = existing(using)
    days = 0
    while all(
        Partition(today + timedelta(days=days), table) in known for table in PARTITIONED_TABLES
    ):
        days += 1
    return days - 1


def apply(partitions: Iterable[Partition], using: str = OWNER) -> list[Partition]:
    """Make the partitions, as far as that goes just now; those made.

    One that exists by now is left as it is. While somebody reads the table for long, as a backup
    does, no more are made: waiting for that would stop the intake.
    """
    made = []
    for partition in partitions:
        try:
            _make(partition, using)
        except OperationalError as error:
            if not isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
                raise
            break
        made.append(partition)
    return made


def _make(partition: Partition, using: str) -> None:
    following = partition.day + timedelta(days=1)
    fill = _FILL.get(partition.table, 100)
    # The parent's policy does not guard a partition that is queried by its own name: there it is
    # closed, and never open in between. One transaction each, because making one locks its parent
    # against everybody.
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
        cursor.execute(
            f"CREATE TABLE IF NOT EXISTS {partition.name} PARTITION OF {partition.table}"
            f" FOR VALUES FROM ('{partition.day}') TO ('{following}')"
            f" WITH (fillfactor = {fill})"
        )
        cursor.execute(f"REVOKE ALL ON {partition.name} FROM tooltrail_app")
        cursor.execute(
            f"ALTER TABLE {partition.name} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
        )
