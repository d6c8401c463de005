"""A signed log of a tenant, and what an attacker without the private key can alter."""

import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import uuid_utils.compat
from django.utils import timezone
from tooltrail.evidence import Archive, Verdict, verify
from tooltrail.ledger import (
    Entry,
    Kind,
    SigningKey,
    VerifierKey,
    commit_of,
    leaf_of,
    root_of,
)
from tooltrail.ledger.lines import to_base64

from audit.events.batch_ids import BatchId
from audit.events.body import Line
from audit.events.instants import microseconds
from audit.evidence.bundling import Wanted, bundle
from audit.evidence.ledger_range import ledger_range_of
from audit.ledger import private_files
from audit.ledger.entries import append_entry
from audit.log.payload import pack, unpack
from audit.models import LedgerCheckpoint
from audit.queries.time_range import TimeRange
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tests.support.batches import record_batch
from tests.support.factories import make_call, make_cast
from tests.support.ledger_log import keep

SEED = 11
BATCHES = 14
ERASED = 4
TABLES = ("batch", "ledger_head", "ledger_tile", "ledger_checkpoint", "invocation")


@dataclass
class Case:
    """A tenant's log, all of it signed, and how it was to begin with."""

    tenant: Tenant
    of: TimeRange
    signing: SigningKey
    kept: dict[int, bytes]
    """The auditor's: checkpoints by size."""
    superuser: psycopg.Connection[Any]

    @property
    def key(self) -> VerifierKey:
        """The public key the auditor has."""
        return self.signing.verifier

    def run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Do as superuser."""
        cursor = self.superuser.execute(statement, values)
        return cursor.fetchall() if cursor.description else []

    def restore(self) -> None:
        """Make the database what it was."""
        for table in TABLES:
            self.run(f"DELETE FROM {table} WHERE tenant_id = %s", self.tenant.id)
            self.run(f"INSERT INTO {table} SELECT * FROM kept_{table}")
        self.run("DELETE FROM ledger_key WHERE public_key NOT IN (SELECT public_key FROM kept_key)")

    def remember(self) -> None:
        """Keep the database as it is, to be restored."""
        for table in TABLES:
            self.run(f"CREATE TEMP TABLE kept_{table} AS SELECT * FROM {table} WITH NO DATA")
            self.run(
                f"INSERT INTO kept_{table} SELECT * FROM {table} WHERE tenant_id = %s",
                self.tenant.id,
            )
        self.run("CREATE TEMP TABLE kept_key AS SELECT public_key FROM ledger_key")

    def batches(self) -> "list[Stored]":
        """The log in its order."""
        rows = self.run(
            "SELECT batch_id, first_index, leaves, payload, is_own, received_at FROM batch"
            " WHERE tenant_id = %s ORDER BY first_index",
            self.tenant.id,
        )
        return [
            Stored(batch_id, first, leaves, None if data is None else unpack(data), own, at)
            for batch_id, first, leaves, data, own, at in rows
        ]

    def write(self, stored: "Stored", batch_id: UUID | None = None) -> None:
        """Replace a batch."""
        self.run(
            "UPDATE batch SET batch_id = %s, first_index = %s, event_count = %s, leaves = %s,"
            " payload = %s WHERE tenant_id = %s AND batch_id = %s",
            stored.batch_id,
            stored.first_index,
            len(stored.leaves) // 32,
            stored.leaves,
            None if stored.events is None else pack(stored.events),
            self.tenant.id,
            batch_id or stored.batch_id,
        )

    def shift(self, above: int, by: int) -> None:
        """Move the indexes of what comes behind, so that no gap is left."""
        self.run(
            "UPDATE batch SET first_index = first_index + %s WHERE tenant_id = %s"
            " AND first_index > %s",
            by,
            self.tenant.id,
            above,
        )
        self.run("UPDATE ledger_head SET size = size + %s WHERE tenant_id = %s", by, self.tenant.id)

    def fold_anew(self) -> bytes:
        """Make the tiles of the leaves as they are now; the root. The log is one tile."""
        leaves = b"".join(stored.leaves for stored in self.batches())
        assert len(leaves) < 256 * 32
        self.run(
            "UPDATE ledger_tile SET hashes = %s WHERE tenant_id = %s AND level = 0",
            leaves,
            self.tenant.id,
        )
        return root_of(leaves[at : at + 32] for at in range(0, len(leaves), 32))

    def forget_behind(self, size: int) -> None:
        """The database as it was when the log had `size` entries."""
        for statement in (
            "DELETE FROM batch WHERE tenant_id = %s AND first_index >= %s",
            "DELETE FROM ledger_checkpoint WHERE tenant_id = %s AND size > %s",
        ):
            self.run(statement, self.tenant.id, size)
        self.run("UPDATE ledger_head SET size = %s WHERE tenant_id = %s", size, self.tenant.id)
        self.fold_anew()

    def publish(self, size: int, root: bytes, note: bytes) -> None:
        """Put a checkpoint among those that were signed."""
        self.run(
            "INSERT INTO ledger_checkpoint (tenant_id, epoch, size, origin, root, note, signed_at)"
            " VALUES (%s, 0, %s, %s, %s, %s, now()) ON CONFLICT (tenant_id, epoch, size)"
            " DO UPDATE SET root = excluded.root, note = excluded.note",
            self.tenant.id,
            size,
            self.key.name,
            root,
            note.decode(),
        )

    def judge(self, of: TimeRange, path: Path, *previous: bytes, trusts: bool = True) -> Verdict:
        """The verdict on the bundle the server makes now."""
        with tenant_scope(self.tenant.id):
            ledger_range = ledger_range_of(of)
        wanted = Wanted(self.tenant, ledger_range, of, "ada", of.end)
        path.write_bytes(b"".join(bundle(wanted)))
        with Archive(path) as archive:
            trusted = [self.key] if trusts else []
            return verify(archive, trusted=trusted, previous=previous)


@dataclass
class Stored:
    """A batch, open to be altered. `events` are salts and bytes."""

    batch_id: UUID
    first_index: int
    leaves: bytes
    events: list[tuple[bytes, bytes]] | None
    is_own: bool
    received_at: datetime

    @property
    def given(self) -> list[tuple[bytes, bytes]]:
        """The events of a batch that has them."""
        assert self.events is not None
        return self.events

    def leaf(self, position: int) -> bytes:
        """One leaf."""
        return self.leaves[position * 32 :][:32]

    def put_leaf(self, position: int, leaf: bytes) -> None:
        """Another in its place."""
        at = position * 32
        self.leaves = self.leaves[:at] + leaf + self.leaves[at + 32 :]

    def forge(self, position: int, raw: bytes) -> None:
        """Another event in one's place, with the leaf that goes with it."""
        salt, _ = self.given[position]
        self.given[position] = (salt, raw)
        self.put_leaf(position, self.leaf_for(salt, raw))

    def leaf_for(self, salt: bytes, raw: bytes) -> bytes:
        """What an event's leaf would be, had it come with this batch."""
        event = json.loads(raw)
        kind = Kind.START if event["type"] == "toolExecutionStart" else Kind.END
        entry = Entry(
            kind,
            UUID(event["event_id"]),
            UUID(event["invocation_id"]),
            microseconds(self.received_at),
            len(raw),
            commit_of(salt, raw),
        )
        return leaf_of(entry.to_bytes())


def write_key(folder: Path, private: bytes) -> None:
    """Give a worker a key of its own; the public keys of others stay."""
    key = {"private": to_base64(private), "created_at": timezone.now().isoformat()}
    document = json.dumps([key | {"signs_until": None}])
    private_files.write(folder / "signing-keys.json", document.encode())


def new_case(folder: Path) -> Iterator[Case]:
    tenant, now = make_cast("tampered").tenant, timezone.now()
    write_key(folder, bytes(32))
    rng, kept = random.Random(SEED), dict[int, bytes]()
    began = now - timedelta(hours=BATCHES)
    for number in range(BATCHES):
        at = began + timedelta(hours=number, seconds=rng.random())
        calls = [make_call(started_at=at) for _ in range(rng.randint(1, 4))]
        raws = [json.dumps(event).encode() for call in calls for event in call]
        batch_id = BatchId(uuid_utils.compat.uuid7())
        lines = [Line(position, raw) for position, raw in enumerate(raws, 1)]
        record_batch(tenant.id, b"\n".join(raws), lines, batch_id, at)
        if number == 1:
            with tenant_scope(tenant.id):
                append_entry(tenant.id, Kind.RETENTION, {"ranges": [[0, ERASED]]}, at)
        if number % 2:
            keep(tenant, now + timedelta(minutes=number))
            with tenant_scope(tenant.id):
                newest = LedgerCheckpoint.objects.for_tenant(tenant.id).latest("size")
            kept[newest.size] = newest.note.encode()
    signing = SigningKey(newest.origin, bytes(32))
    of = TimeRange(began - timedelta(hours=1), now + timedelta(hours=1), UTC)
    with psycopg.connect(os.environ["TEST_SUPERUSER_URL"], autocommit=True) as superuser:
        case = Case(tenant, of, signing, kept, superuser)
        for stored in case.batches():
            if stored.events and not stored.is_own:
                events = [
                    (b"", b"") if stored.first_index + at < ERASED else event
                    for at, event in enumerate(stored.events)
                ]
                stored.events = events if any(salt for salt, _ in events) else None
                case.write(stored)
        case.remember()
        yield case
