"""Day partitions of the index: which must exist, which do, and creating the missing ones.

Planning is pure. Creating needs the owner's connection (`using=OWNER`). Retention, not this module,
drops expired days.
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
    "decision",
)
_FILL = {"rollup": 70, "quarter_rollup": 50}
"""Fill factor (%) of tables whose rows nearly every request updates. Without free room in the page,
two in five new versions of a quarter's row went to another page, and the table was a third larger.
"""
_LOCK = 7_402_021  # any number that no other advisory lock uses
LOCK_TIMEOUT = "2s"  # short, because writers queue behind a lock request that waits
DAYS_AHEAD = 14  # days without a worker before new calls have no partition
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
    """The partitions that `apply` should create, from `back` days before today."""
    known = existing(using)
    return [partition for partition in wanted(today, back=back) if partition not in known]


def days_ahead(today: date, using: str = OWNER) -> int:
    """How many days after today have all partitions, up to the first gap; -1 if today has not."""
    known = existing(using)
    days = 0
    while all(
        Partition(today + timedelta(days=days), table) in known for table in PARTITIONED_TABLES
    ):
        days += 1
    return days - 1


def apply(partitions: Iterable[Partition], using: str = OWNER) -> list[Partition]:
    """Create the partitions, as far as is possible now. Returns the created ones.

    An existing partition stays as it is. If a lock is not free, because somebody reads the table
    for long (a backup does), it stops there: waiting would block the intake.
    """
    created = []
    for partition in partitions:
        try:
            _make(partition, using)
        except OperationalError as error:
            if not isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
                raise
            break
        created.append(partition)
    return created


def _make(partition: Partition, using: str) -> None:
    following = partition.day + timedelta(days=1)
    fill = _FILL.get(partition.table, 100)
    # The parent's policy does not protect a partition that is queried by its own name. So the
    # partition itself is closed, in the transaction that creates it. One transaction for each
    # partition, because creating one locks its parent against everybody.
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
        # Two that create the same one at once would both not find it, in spite of IF NOT EXISTS.
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        cursor.execute(
            f"CREATE TABLE IF NOT EXISTS {partition.name} PARTITION OF {partition.table}"
            f" FOR VALUES FROM ('{partition.day}') TO ('{following}')"
            f" WITH (fillfactor = {fill})"
        )
        cursor.execute(f"REVOKE ALL ON {partition.name} FROM tooltrail_app")
        cursor.execute(
            f"ALTER TABLE {partition.name} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
        )
