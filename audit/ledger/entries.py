"""Entries the server makes itself: a new epoch, a new key, and what others of their kind will say.

Each is a batch of one event (`batch.is_own`), in the order of the log like any other: raw is
canonical JSON with the members `type` (the kind's name in small letters), `event_id` and `at`.
They are no calls: `reindex` leaves them out, and retention lets them be.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import uuid_utils.compat
from tooltrail.ledger import NO_INVOCATION, SALT_LENGTH, Entry, Kind, commit_of, leaf_of

from audit.batch_ids import batch_day
from audit.instants import microseconds
from audit.ledger.statements import run
from audit.log import pack


def append_entry(tenant_id: UUID, kind: Kind, members: Mapping[str, Any], now: datetime) -> int:
    """Add an entry to the tenant's log; its index. Stands or falls with the open scope.

    `members` are JSON values. Takes the tenant's ledger head until the scope ends: last, please.
    """
    event_id = uuid_utils.compat.uuid7()
    raw = json.dumps(
        {"type": kind.name.lower(), "event_id": str(event_id), "at": now.isoformat(), **members},
        ensure_ascii=False,
        sort_keys=True,
        separators=(",", ":"),
    ).encode()
    salt = os.urandom(SALT_LENGTH)
    entry = Entry(kind, event_id, NO_INVOCATION, microseconds(now), len(raw), commit_of(salt, raw))
    ((size,),) = run("advance_ledger", tenant_id=tenant_id, event_count=1)
    batch_id = uuid_utils.compat.uuid7()
    run(
        "insert_own_batch",
        tenant_id=tenant_id,
        batch_on=batch_day(batch_id),
        batch_id=batch_id,
        now=now,
        first_index=size - 1,
        body_sha256=hashlib.sha256(raw).digest(),
        leaves=leaf_of(entry.to_bytes()),
        payload=pack([(salt, raw)]),
    )
    return int(size) - 1
