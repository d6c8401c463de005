"""A batch: events that travel together. What it is called, how much it holds, what ails it."""

import os
import secrets
import socket
import time
from dataclasses import dataclass, field

import uuid_utils

BATCH_EVENTS = 500
BATCH_BYTES = 1024 * 1024


class SpoolFullError(RuntimeError):
    """An event could not be kept, and the trail was told not to run tools unrecorded."""


class DamagedError(OSError):
    """A batch no longer is what was written: `Spool.mend` saves what can be saved."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Events that travel together under one idempotency key.

    `size` is bytes as spooled; `is_slim` says that payloads have been given up already.
    `order` grows with the time this process came to have it, `since` is when it was sealed, in
    seconds of the monotonic clock: the other one may have been set meanwhile. What replaces a
    batch keeps both.
    """

    id: str
    first_seq: int
    count: int
    size: int
    is_slim: bool = False
    order: int = 0
    since: float = field(default_factory=time.monotonic)


def new_batch_id() -> str:
    """A batch's idempotency key: a UUIDv7, whose time is the batch's."""
    return str(uuid_utils.uuid7())


def new_producer_id() -> str:
    """Name this process: host, pid and eight random digits, as pids come back."""
    host = "".join(c if c.isalnum() or c in ".-" else "_" for c in socket.gethostname())
    return f"{host[:60] or 'host'}-{os.getpid()}-{secrets.token_hex(4)}"
