"""Logs for tests of the ledger: leaves written directly, and the expected tree."""

import json
import os
import secrets
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
import pytest
import uuid_utils.compat
from django.conf import settings
from django.db import connection
from tooltrail.ledger.lines import to_base64

from audit.events.batch_ids import batch_day
from audit.ledger import signer
from audit.ledger.folding import fold_slice
from audit.ledger.status import LedgerStatus, ledger_status
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


def write_key(folder: Path, private: bytes) -> None:
    """Give a worker a private key of its own (32 bytes)."""
    key = {"private": to_base64(private), "created_at": "2026-11-01T00:00:00+00:00"}
    document = json.dumps([key | {"signs_until": None}])
    private_files.write(folder / "signing-keys.json", document.encode())
