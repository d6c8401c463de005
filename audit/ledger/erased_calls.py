"""The calls of an erasure, held to the entries that say which ones they are.

A preview lists calls (`erasure_call`), and its action `erasure.preview` states their number and
digest. The confirmation `erasure.confirm` states the same again. So whoever adds a call to the list
in between, or afterwards, changes what is listed and not what is stated.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, Self
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS

from audit.events.instants import microseconds
from audit.sql.run import run

PREVIEWED, CONFIRMED = "erasure.preview", "erasure.confirm"

type ListedCall = tuple[datetime, UUID]
"""When a call started, and its invocation id."""


class Stated(NamedTuple):
    """What an entry states of an erasure's calls."""

    calls: int
    digest: str
    """SHA-256, hexadecimal, of each call's start (microseconds since 1970, 8 bytes) and id."""

    @classmethod
    def of(cls, calls: Sequence[ListedCall]) -> Self:
        """The number and digest of calls in the order of `listed_calls`."""
        digest = hashlib.sha256()
        for started_at, invocation_id in calls:
            digest.update(microseconds(started_at).to_bytes(8, signed=True) + invocation_id.bytes)
        return cls(len(calls), digest.hexdigest())

    @classmethod
    def read(cls, details: dict[str, Any]) -> Self | None:
        """What an action's details state; None: it is of an older release."""
        calls, digest = details.get("calls"), details.get("digest")
        return cls(calls, digest) if isinstance(calls, int) and isinstance(digest, str) else None


def listed_calls(
    tenant_id: UUID, erasure_id: UUID, *, using: str = DEFAULT_DB_ALIAS
) -> list[ListedCall]:
    """The calls that an erasure's preview found, by start and id. One query; needs the scope."""
    rows = run("erasure_listed_calls", tenant_id=tenant_id, erasure_id=erasure_id, using=using)
    return [(started_at, invocation_id) for started_at, invocation_id in rows]
