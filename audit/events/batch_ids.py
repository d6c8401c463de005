"""Batch ids: UUIDv7s that identify a request and contain its day.

Pure. The producer chooses the id before the first send (`Idempotency-Key`), so that a retry of the
request is recognised. A missing or unusable key is replaced by an id made here.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from uuid import UUID

from audit.events.instants import EPOCH
from tenants.models import new_id

WINDOW_BACK = timedelta(days=35)  # longer than any spool keeps a batch
WINDOW_AHEAD = timedelta(days=1)  # clocks differ


@dataclass(frozen=True, slots=True)
class BatchId:
    """The id a request is stored under. `warning` says why the sender's key was not used."""

    id: UUID
    warning: str | None = None


def batch_day(batch_id: UUID) -> date:
    """The UTC date in a UUIDv7. Raises ValueError if it is beyond the calendar."""
    milliseconds = batch_id.int >> 80
    try:
        return (EPOCH + timedelta(milliseconds=milliseconds)).date()
    except OverflowError:
        raise ValueError("the time in the id is out of range") from None


def choose_batch_id(key: str | None, now: datetime) -> BatchId:
    """The id in an `Idempotency-Key` if it is usable, else a new id with a warning."""
    if not key:
        return _replaced("no Idempotency-Key was sent")
    try:
        batch_id = UUID(key.strip())
    except ValueError:
        return _replaced("the Idempotency-Key is not a UUID")
    if batch_id.version != 7:
        return _replaced("the Idempotency-Key is not a UUIDv7")
    since_epoch = timedelta(milliseconds=batch_id.int >> 80)
    age = (now - EPOCH) - since_epoch
    if not -WINDOW_AHEAD <= age <= WINDOW_BACK:
        return _replaced("the time in the Idempotency-Key is not within the last 35 days")
    return BatchId(batch_id)


def _replaced(reason: str) -> BatchId:
    return BatchId(
        new_id(),
        f"{reason}: a retry of this request is checked event by event",
    )
