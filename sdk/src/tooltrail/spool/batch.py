"""A batch of events that are sent together: its id, its limits, and its errors."""

import os
import secrets
import socket
import time
from dataclasses import dataclass, field

import uuid_utils

BATCH_EVENTS = 500
BATCH_BYTES = 1024 * 1024


class SpoolFullError(RuntimeError):
    """An event could not be kept, and the trail must not run tools unrecorded.

    Raised before the tool runs, only with `when_full="raise"`.
    """


class DamagedError(OSError):
    """A batch differs from what was written. `Spool.mend` saves what can be saved."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Events that are sent together under one idempotency key.

    `size` is in bytes as spooled. `is_slim` is True if payloads have been removed. `order` is
    the order in which this process got its batches. `since` is when the batch was sealed, in
    seconds of the monotonic clock, because the wall clock may be set meanwhile. The replacements
    of a batch keep both.
    """

    id: str
    first_seq: int
    count: int
    size: int
    is_slim: bool = False
    order: int = 0
    since: float = field(default_factory=time.monotonic)


def new_batch_id() -> str:
    """Make a batch's idempotency key: a UUIDv7 with the batch's time."""
    return str(uuid_utils.uuid7())


def new_producer_id() -> str:
    """Name this process by host, pid and eight random digits, because pids are reused."""
    host = "".join(c if c.isalnum() or c in ".-" else "_" for c in socket.gethostname())
    return f"{host[:60] or 'host'}-{os.getpid()}-{secrets.token_hex(4)}"
