"""The record of one tenant, and everything that an attacker can do to it.

It is made once: calls, decisions, a registry, holds, erasures, members, keys, settings, reports, a
rotation and an epoch, all signed. An auditor has kept a key, checkpoints and a bundle. A tampering
changes the real database and the signer's real files; `restore` makes them what they were.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

import psycopg
import uuid_utils.compat
from django.utils import timezone
from tooltrail.evidence import Acknowledged
from tooltrail.ledger import Entry, Kind, Signer, VerifierKey, commit_of, leaf_of, root_of

from audit.events.batch_ids import BatchId
from audit.events.body import Line
from audit.events.instants import microseconds
from audit.ledger import keys, signer_state
from audit.log.payload import pack, unpack
from audit.queries.time_range import TimeRange
from audit.tasks import ledgers
from config import private_files
from tenants.models import Tenant
from tests.isolation.world import tenant_tables
from tests.support.batches import record_batch
from tests.support.factories import Cast, make_call

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
_BESIDE = {"ledger_key": "true", "app_user": "id = ANY(%(people)s)", "tenant": "id = %(tenant)s"}
"""Tables without tenant_id that are restored, and which of their rows."""
_TABLE = re.compile(r"\b(?:UPDATE|INTO|FROM|TABLE)\s+(?:ONLY\s+)?(\w+)", re.IGNORECASE)
_WORKERS = {
    *("batch", "ledger_head", "ledger_tile", "ledger_checkpoint", "ledger_signer"),
    *("ledger_check", "action", "invocation", "trace", "rollup", "quarter_rollup"),
    *("violation", "violation_day"),  # a tool whose contract was changed is judged by that
}
"""What the worker and one more call write after each tampering."""


class NothingChangedError(Exception):
    """A statement changed no row: row-level security shows it none."""


class Power(StrEnum):
    """What an attacker needs at least. Each can do what those before it can."""

    APPLICATION = "application role"
    OWNER = "owner"
    SUPERUSER = "superuser"
    HOST = "host without key"
    KEY = "host with key"
    FILE = "holder of a bundle"
    """Beside the others: somebody between the server and the auditor."""


@dataclass
class Batch:
    """A batch of the log, open to be altered. `events` are salts and bytes."""

    batch_id: UUID
    first_index: int
    leaves: list[bytes]
    events: list[tuple[bytes, bytes]] | None
    is_own: bool
    received_at: datetime

    @property
    def given(self) -> list[tuple[bytes, bytes]]:
        """The events of a batch that has them."""
        assert self.events is not None
        return self.events

    def forge(self, at: int, raw: bytes) -> None:
        """Another event in one's place, with the leaf that goes with it."""
        salt, _ = self.given[at]
        self.given[at] = (salt, raw)
        self.leaves[at] = self.leaf_for(salt, raw)

    def leaf_for(self, salt: bytes, raw: bytes) -> bytes:
        """The leaf that an event would have, had it come with this batch."""
        event = json.loads(raw)
        kind = Kind.START if event["type"] == "toolExecutionStart" else Kind.END
        ids = UUID(event["event_id"]), UUID(event["invocation_id"])
        received_us = microseconds(self.received_at)
        entry = Entry(kind, *ids, received_us, len(raw), commit_of(salt, raw))
        return leaf_of(entry.to_bytes())


@dataclass
class Record:
    """One tenant's record, and what the auditor kept of it."""

    cast: Cast
    other: Tenant
    """Another tenant of the server."""
    folder: Path
    """The signer's folder."""
    watched: Path
    """The auditor's folder of checkpoints (`tooltrail watch`)."""
    bundle: Path
    """An evidence bundle of everything."""
    of: TimeRange
    """Of the bundle."""
    superuser: psycopg.Connection[Any]
    kept: dict[int, bytes] = field(default_factory=dict)
    """The auditor's checkpoints by size."""
    acknowledged: Acknowledged | None = None
    """What an executor's SDK has kept of the server's answers."""
    report_id: UUID | None = None
    is_thorough: bool = True
    """Whether finders also look where nothing was touched."""
    explain: Callable[[str], None] = print
    """Takes what finders say."""
    _changed: int = 0
    """The number of rows that the last statement changed."""
    _touched: set[str] = field(default_factory=set)
    _acknowledged: Acknowledged | None = None
    _undo: list[str] = field(default_factory=list)
    _connections: dict[Power, psycopg.Connection[Any]] = field(default_factory=dict)

    @property
    def tenant_id(self) -> UUID:
        return self.cast.tenant.id

    @property
    def sample(self) -> Path:
        """The evidence bundle of a sample."""
        return self.bundle.with_name("sample.zip")

    @property
    def incident(self) -> Path:
        """The evidence bundle of an incident."""
        return self.bundle.with_name("incident.zip")

    @property
    def key(self) -> VerifierKey:
        """The public key that the auditor has kept since the first checkpoint."""
        return VerifierKey.parse((self.watched / "keys.txt").read_text().split()[0])

    @property
    def signing(self) -> Signer:
        """The server's own private key: for who has the host."""
        newest = max(keys.load(), key=lambda key: key.created_at)
        (origin,) = self.run(
            "SELECT max(origin) FROM ledger_checkpoint WHERE tenant_id = %(tenant)s"
        )
        return newest.signer(origin[0])

    @property
    def people(self) -> list[int]:
        """The ids of the tenant's members."""
        members = (self.cast.admin, self.cast.editor, self.cast.auditor, self.cast.viewer)
        return [each.pk for each in members]

    def run(
        self, statement: str, power: Power = Power.SUPERUSER, **values: Any
    ) -> list[tuple[Any, ...]]:
        """Run a statement with a role's rights. `%(tenant)s` is the tenant. Returns its rows.

        Raises psycopg.Error; then nothing is changed.
        """
        self._touched.update(_TABLE.findall(statement))
        cursor = self._connected(power).execute(statement, {"tenant": self.tenant_id, **values})
        self._changed = cursor.rowcount
        return cursor.fetchall() if cursor.description else []

    def change(self, statement: str, power: Power, **values: Any) -> None:
        """Run a statement that must change a row. Raises NothingChangedError, psycopg.Error."""
        self.run(statement, power, **values)
        if not self._changed:
            raise NothingChangedError(statement)

    def touch(self, *tables: str) -> None:
        """Note tables that change without `run`, to be restored."""
        self._touched.update(tables)

    def undo(self, statement: str) -> None:
        """Note what takes a change of the schema back."""
        self._undo.append(statement)

    @property
    def touched(self) -> frozenset[str]:
        """The tables that statements have named since the last `restore`."""
        return frozenset(self._touched)

    @contextmanager
    def without_triggers(self, power: Power) -> Iterator[None]:
        """Of a superuser: let foreign keys be violated while the block lasts."""
        if power is Power.SUPERUSER:
            self.superuser.execute("SET session_replication_role = replica")
        try:
            yield
        finally:
            self.superuser.execute("RESET session_replication_role")

    def go_on(self) -> None:
        """One more call arrives, and the worker does what it does every ten seconds."""
        now, tampered = timezone.now(), set(self._touched)
        send(self, now - 5 * MINUTE, make_call(case_id="later"))
        keep_ledger(self, now)
        self._touched = tampered  # what the worker writes is restored anyway (`_WORKERS`)

    def batches(self) -> list[Batch]:
        """The log in its order."""
        rows = self.run(
            "SELECT batch_id, first_index, leaves, payload, is_own, received_at FROM batch"
            " WHERE tenant_id = %(tenant)s ORDER BY first_index"
        )
        return [
            Batch(
                batch_id,
                first,
                [leaves[at : at + 32] for at in range(0, len(leaves), 32)],
                None if data is None else unpack(data),
                is_own,
                received_at,
            )
            for batch_id, first, leaves, data, is_own, received_at in rows
        ]

    def write(self, batch: Batch) -> None:
        """Replace a batch."""
        self.run(
            "UPDATE batch SET first_index = %(first)s, event_count = %(count)s,"
            " leaves = %(leaves)s, payload = %(payload)s"
            " WHERE tenant_id = %(tenant)s AND batch_id = %(batch)s",
            Power.OWNER,
            batch=batch.batch_id,
            first=batch.first_index,
            count=len(batch.leaves),
            leaves=b"".join(batch.leaves),
            payload=None if batch.events is None else pack(batch.events),
        )

    def fold_again(self) -> bytes:
        """Make the tiles of the leaves as they are now; the root."""
        leaves = [leaf for batch in self.batches() for leaf in batch.leaves]
        assert len(leaves) < 256, "more than one tile"
        self.run(
            "UPDATE ledger_tile SET hashes = %(hashes)s WHERE tenant_id = %(tenant)s AND level = 0",
            Power.OWNER,
            hashes=b"".join(leaves),
        )
        return root_of(leaves)

    def remember(self) -> None:
        """Keep database and files as they are, to be restored."""
        for table, condition in self._restored().items():
            self.superuser.execute(
                f"CREATE TEMP TABLE kept_{table} AS SELECT * FROM {table} WHERE {condition}",
                self._whose(),
            )
        self._acknowledged = self.acknowledged
        shutil.copytree(self.folder, self._copy(self.folder))
        shutil.copytree(self.watched, self._copy(self.watched))

    def restore(self) -> None:
        """Make database and files what they were."""
        while self._undo:
            self.superuser.execute(self._undo.pop())
        conditions = self._restored()
        touched = (self._touched | _WORKERS) & conditions.keys()
        with self.superuser.transaction():
            # Without triggers, and so without foreign keys.
            self.superuser.execute("SET LOCAL session_replication_role = replica")
            for table in sorted(touched):
                where = conditions[table]
                self.superuser.execute(f"DELETE FROM {table} WHERE {where}", self._whose())
                self.superuser.execute(f"INSERT INTO {table} SELECT * FROM kept_{table}")
            self.superuser.execute("DELETE FROM batch WHERE tenant_id = %s", [self.other.id])
        self._touched = set()
        self.acknowledged = self._acknowledged
        for folder in (self.folder, self.watched):
            shutil.rmtree(folder)
            shutil.copytree(self._copy(folder), folder)

    def _restored(self) -> dict[str, str]:
        return dict.fromkeys(tenant_tables(), "tenant_id = %(tenant)s") | _BESIDE

    def _whose(self) -> dict[str, Any]:
        return {"tenant": self.tenant_id, "people": self.people}

    @staticmethod
    def _copy(folder: Path) -> Path:
        return folder.with_name(f"{folder.name}-kept")

    def _connected(self, power: Power) -> psycopg.Connection[Any]:
        variable = {Power.APPLICATION: "DATABASE_URL", Power.OWNER: "DATABASE_OWNER_URL"}.get(power)
        if variable is None:
            return self.superuser
        if power not in self._connections:
            connection = psycopg.connect(os.environ[variable], autocommit=True)
            connection.execute(f"SET tooltrail.tenant_id = '{self.tenant_id}'")
            self._connections[power] = connection
        return self._connections[power]

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()


def send(record: Record, at: datetime, *events: list[dict[str, Any]]) -> Acknowledged:
    """Store calls in one request that arrived at a time. Returns what the executor keeps of it."""
    record.touch("batch")
    flat = [event for each in events for event in each]
    raws = [json.dumps(event).encode() for event in flat]
    lines = [Line(position, raw) for position, raw in enumerate(raws, 1)]
    batch_id = BatchId(uuid_utils.compat.uuid7())
    place = record_batch(record.tenant_id, b"\n".join(raws), lines, batch_id, at)["ledger"]
    return Acknowledged(
        at=at - 5 * MINUTE,
        first_index=place["first_index"],
        size=place["size"],
        event_ids=[UUID(event["event_id"]) for event in flat if "event_id" in event],
    )


def keep_ledger(record: Record, now: datetime) -> None:
    """What the worker does every ten seconds; then ten minutes pass for the signer."""
    with patch("audit.tasks.ledgers.timezone.now", return_value=now):
        ledgers.keep_ledger(str(record.tenant_id))
    with suppress(private_files.PrivateFileError):
        state = signer_state.load(record.tenant_id)
        if state is not None and state.signed_at is not None:
            earlier = state.signed_at - 10 * MINUTE
            signer_state.save(record.tenant_id, replace(state, signed_at=earlier))
