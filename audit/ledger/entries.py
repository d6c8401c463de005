"""Entries that the server itself adds to a ledger: new epochs, new keys, user actions and others.

Each is an event in a batch of the server (`batch.is_own`). It has its place in the order of the log
like any other event. Its raw bytes are canonical JSON with the members `type` (the kind's name in
lower case), `event_id` and `at`. These entries are not calls: `reindex` skips them, and retention
does not erase them.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS
from tooltrail.ledger import NO_INVOCATION, SALT_LENGTH, Entry, Kind, commit_of, leaf_of

from audit.events.batch_ids import batch_day
from audit.events.instants import microseconds
from audit.log.payload import pack
from audit.sql.run import run
from tenants.models import new_id


def append_entry(
    tenant_id: UUID,
    kind: Kind,
    members: Mapping[str, Any],
    now: datetime,
    *,
    using: str = DEFAULT_DB_ALIAS,
) -> int:
    """Add an entry to the tenant's log. Returns its index. Part of the open scope's transaction.

    `members` are JSON values. Locks the tenant's ledger head until the scope ends, so call it last.
    """
    event_id = new_id()
    raw = raw_of(kind, event_id, now, members)
    return append_batch(tenant_id, kind, [(event_id, raw)], now, using=using)


def append_batch(
    tenant_id: UUID,
    kind: Kind,
    events: Sequence[tuple[UUID, bytes]],
    now: datetime,
    *,
    using: str = DEFAULT_DB_ALIAS,
) -> int:
    """Add entries of one kind, each given as event id and raw bytes. Returns the first index.

    Otherwise like `append_entry`. `raw_of` makes the raw bytes.
    """
    salted = [(os.urandom(SALT_LENGTH), raw) for _, raw in events]
    received_us = microseconds(now)
    leaves = [
        leaf_hash(kind, event_id, NO_INVOCATION, received_us=received_us, salt=salt, raw=raw)
        for (event_id, _), (salt, raw) in zip(events, salted, strict=True)
    ]
    ((size,),) = run("advance_ledger", tenant_id=tenant_id, event_count=len(events), using=using)
    first_index = int(size) - len(events)
    batch_id = new_id()
    run(
        "insert_own_batch",
        tenant_id=tenant_id,
        batch_on=batch_day(batch_id),
        batch_id=batch_id,
        now=now,
        first_index=first_index,
        event_count=len(events),
        body_sha256=hashlib.sha256(b"\n".join(raw for _, raw in events)).digest(),
        leaves=b"".join(leaves),
        payload=pack(salted),
        using=using,
    )
    return first_index


def leaf_hash(
    kind: Kind, event_id: UUID, invocation_id: UUID, *, received_us: int, salt: bytes, raw: bytes
) -> bytes:
    """The leaf hash of an event's entry (32 bytes). `received_us` is microseconds since 1970."""
    # Positional arguments are faster, and this runs for each event that arrives.
    entry = Entry(kind, event_id, invocation_id, received_us, len(raw), commit_of(salt, raw))
    return leaf_of(entry.to_bytes())


def raw_of(kind: Kind, event_id: UUID, at: datetime, members: Mapping[str, Any]) -> bytes:
    """An entry's raw bytes. The same arguments always give the same bytes."""
    return json.dumps(
        {"type": kind.name.lower(), "event_id": str(event_id), "at": at.isoformat(), **members},
        ensure_ascii=False,
        sort_keys=True,
        separators=(",", ":"),
    ).encode()
