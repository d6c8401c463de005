"""Write log and inbox, with one statement each for all batches of a transaction."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from psycopg.types.numeric import Int8

from audit.events.batch_ids import batch_day
from audit.events.candidates import Rejection
from audit.events.instants import days_since_epoch
from audit.events.limits import RAW_KEPT_BYTES
from audit.sql import arrays
from audit.sql.run import Statements
from tenants.models import new_id


class NewBatch(NamedTuple):
    """A row for the log."""

    batch_id: UUID
    event_count: int
    body_sha256: bytes
    answer: str
    """JSON without the place in the ledger, which is in the row itself."""
    leaves: bytes
    payload: bytes


def write_rejections(statements: Statements, refused: Sequence[tuple[UUID, Rejection]]) -> None:
    """Write rejected lines to the inbox, each with the id of its batch."""
    if not refused:
        return
    rejections = [rejection for _, rejection in refused]
    statements.send(
        "insert_rejected",
        id=arrays.uuids([new_id() for _ in rejections]),
        batch_id=arrays.uuids([batch_id for batch_id, _ in refused]),
        line=arrays.ints([each.line for each in rejections]),
        event_id=arrays.uuids([each.event_id for each in rejections]),
        code=arrays.texts([each.code for each in rejections]),
        message=arrays.texts([each.message for each in rejections]),
        raw=arrays.blobs([each.raw[:RAW_KEPT_BYTES] for each in rejections]),
        raw_length=arrays.ints([each.raw_length for each in rejections]),
    )


def append_batches(
    statements: Statements, batches: Sequence[NewBatch]
) -> psycopg.Cursor[tuple[Any, ...]]:
    """Append batches to the log, in order.

    The cursor returns each batch's id, its first index in the ledger and its number of entries.
    If an id is already stored, django.db.IntegrityError is raised.
    """
    counts = [batch.event_count for batch in batches]
    lengths = [len(batch.payload) for batch in batches]
    return statements.send(
        "append_batches",
        event_count=Int8(sum(counts)),
        batch_on=arrays.days([days_since_epoch(batch_day(each.batch_id)) for each in batches]),
        batch_id=arrays.uuids([each.batch_id for each in batches]),
        events_before=arrays.ints(_sums_before(counts)),
        event_counts=arrays.ints(counts),
        body_sha256=arrays.blobs([each.body_sha256 for each in batches]),
        answer=arrays.texts([each.answer for each in batches]),
        leaves=b"".join(each.leaves for each in batches),
        bytes_before=arrays.ints(_sums_before(lengths)),
        byte_counts=arrays.ints(lengths),
        payloads=b"".join(each.payload for each in batches),
    )


def _sums_before(numbers: Sequence[int]) -> list[int]:
    """The sum of the numbers before each."""
    return [0, *accumulate(numbers[:-1])]
