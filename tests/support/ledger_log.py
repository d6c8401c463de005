"""Logs for tests of the ledger: leaves written directly, and the expected tree."""

import json
import os
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
import uuid_utils.compat
from django.conf import settings
from django.db import connection
from tooltrail.ledger import Entry, SigningKey, commit_of, leaf_of, root_of
from tooltrail.ledger.lines import to_base64

from audit.events.batch_ids import batch_day
from audit.events.body import Line
from audit.events.candidates import read_logged
from audit.events.instants import microseconds
from audit.ledger import signer
from audit.ledger.cose import sign_root
from audit.ledger.folding import fold_slice
from audit.ledger.status import LedgerStatus, ledger_status
from audit.log.payload import pack
from audit.models import LedgerKey
from config import private_files
from tenants.models import Tenant
from tenants.scope import tenant_scope


def leaves(count: int, seed: bytes = b"") -> list[bytes]:
    """So many different hashes."""
    return [sha256(seed + number.to_bytes(8)).digest() for number in range(count)]


def append(tenant: Tenant, hashes: list[bytes]) -> None:
    """One batch of events of which only the leaves are there, as if its payload were erased."""
    batch_id = uuid_utils.compat.uuid7()
    with tenant_scope(tenant.id), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO ledger_head AS h (tenant_id, size) VALUES (%s, %s)"
            " ON CONFLICT (tenant_id) DO UPDATE SET size = h.size + excluded.size RETURNING size",
            [tenant.id, len(hashes)],
        )
        (size,) = cursor.fetchone()
        cursor.execute(
            "INSERT INTO batch (tenant_id, batch_on, batch_id, received_at, first_index,"
            " event_count, body_sha256, answer, leaves)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
            [
                *(tenant.id, batch_day(batch_id), batch_id, datetime.now(UTC)),
                *(size - len(hashes), len(hashes), secrets.token_bytes(32), "{}"),
                b"".join(hashes),
            ],
        )


def status_of(tenant: Tenant) -> LedgerStatus:
    """Return the status of the tenant's ledger."""
    with tenant_scope(tenant.id):
        return ledger_status(tenant.id)


def keep(tenant: Tenant, now: datetime) -> LedgerStatus:
    """Run the worker's task until nothing is left to fold; return the status."""
    while signer.keep(tenant.id, now, seconds=5.0):
        pass
    return status_of(tenant)


def as_owner(statement: str, parameters: list[Any]) -> int:
    """Run a statement as somebody with full access to the database; the number of rows."""
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as connection:
        return connection.execute(statement, parameters).rowcount


def restore_backup(tenant: Tenant, size: int) -> None:
    """The database as it was when the log had `size` entries, at the end of a batch."""
    scope = [tenant.id, size]
    as_owner("DELETE FROM batch WHERE tenant_id = %s AND first_index >= %s", scope)
    as_owner("DELETE FROM ledger_checkpoint WHERE tenant_id = %s AND size > %s", scope)
    as_owner("UPDATE ledger_head SET size = %s WHERE tenant_id = %s", [size, tenant.id])
    as_owner("DELETE FROM ledger_tile WHERE tenant_id = %s", [tenant.id])
    while fold_slice(tenant.id).has_more:
        pass


def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A worker's folder for one test, with a key of its own; others' public keys stay."""
    folder = tmp_path / "ledger"
    monkeypatch.setattr(settings, "LEDGER_DIR", folder)
    _ensure_key(folder)
    return folder


def sign(tenant: Tenant) -> LedgerStatus:
    """Sign everything that arrived, with the session's key. For tests of other things."""
    _ensure_key(settings.LEDGER_DIR)
    return keep(tenant, datetime.now(UTC))


def _ensure_key(folder: Path) -> None:
    # A worker makes the first key of a database, and in this one there are others.
    if not (folder / "signing-keys.json").exists():
        write_key(folder, os.urandom(32))


def give_key(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let the worker of a test have a key of its own, in a folder of its own."""
    monkeypatch.setattr(settings, "LEDGER_DIR", folder / "ledger")
    write_key(folder / "ledger", os.urandom(32))


def write_key(folder: Path, private: bytes) -> None:
    """Give a worker a private key of its own (32 bytes)."""
    key = {"private": to_base64(private), "created_at": "2026-11-01T00:00:00+00:00"}
    document = json.dumps([key | {"signs_until": None}])
    private_files.write(folder / "signing-keys.json", document.encode())


def signed_batch(
    batch_id: UUID, received_at: datetime, raws: Sequence[bytes], origin: str
) -> dict[str, Any]:
    """The columns of a batch with these events, and of the tile and the checkpoint above them.

    The key of the receipts is the same for all, and becomes a public key of this installation.
    """
    salts = [secrets.token_bytes(32) for _ in raws]
    lines = [Line(position, raw) for position, raw in enumerate(raws, 1)]
    read = read_logged(lines, batch_id, received_at).candidates
    hashes = [
        leaf_of(
            Entry(
                kind=one.kind,
                event_id=one.event_id,
                invocation_id=one.invocation_id,
                received_us=microseconds(received_at),
                raw_length=len(raw),
                commit=commit_of(salt, raw),
            ).to_bytes()
        )
        for one, salt, raw in zip(read, salts, raws, strict=True)
    ]
    key, root = SigningKey(origin, sha256(b"a signer").digest()), root_of(hashes)
    published = LedgerKey(key.verifier.public, received_at)
    LedgerKey.objects.using("keeper").bulk_create([published], ignore_conflicts=True)
    return {
        "batch.payload": pack(zip(salts, raws, strict=True)),
        "batch.leaves": b"".join(hashes),
        "ledger_tile.hashes": b"".join(hashes),
        "ledger_checkpoint.root": root,
        "ledger_checkpoint.origin": origin,
        "ledger_checkpoint.receipts": [sign_root(key, root, received_at)],
    }
