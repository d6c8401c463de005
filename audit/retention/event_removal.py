"""Removes events from the log, as the keeper: salt and bytes go, positions and leaves stay.

A ledger entry in the same transaction declares what was removed. Without it, a verifier reports
the events as removed secretly.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from tooltrail.ledger import Kind

from audit.events.batch_ids import batch_day
from audit.events.instants import days_since_epoch
from audit.ledger.entries import append_entry
from audit.ledger.missing import Run, runs_of
from audit.ledger.recompute import StoredBatch
from audit.log.payload import (
    LogPayloadError,
    pack,
    unpack,
    without,
)
from audit.retention.hold_match import LoggedEvent, read_batch
from audit.sql import arrays
from audit.sql.run import run

type Keeping = Callable[[StoredBatch, Sequence[LoggedEvent]], Collection[int]]
"""Returns the positions of those of a batch's events that stay."""


@dataclass(slots=True)
class Removed:
    """What was removed, or would be in a dry run."""

    ranges: list[Run] = field(default_factory=list)
    """Of ledger indexes: sorted, neither overlapping nor adjacent."""
    event_count: int = 0
    byte_count: int = 0
    """The events' size as received."""
    unread: list[UUID] = field(default_factory=list)
    """Batches left unchanged because their payload is damaged."""


def remove_events(
    tenant_id: UUID,
    batch_ids: Collection[UUID],
    keeping: Keeping,
    *,
    using: str,
    is_dry: bool = False,
) -> Removed:
    """Remove all events from some executors' batches except those that `keeping` names.

    Needs the scope, and a call of `declare` in the same transaction. Two statements; unpacks,
    reads and packs each batch.
    """
    removed = Removed()
    days: list[int] = []
    ids: list[UUID] = []
    payloads: list[bytes | None] = []
    for batch in batches_at(tenant_id, batch_ids, using=using):
        try:
            events = read_batch(batch)
        except LogPayloadError:
            removed.unread.append(batch.batch_id)
            continue
        stay = set(keeping(batch, events))
        going = [event for event in events if event.position not in stay]
        if not going:
            continue
        removed.ranges += runs_of([batch.first_index + event.position for event in going])
        removed.event_count += len(going)
        removed.byte_count += sum(event.size for event in going)
        days.append(days_since_epoch(batch_day(batch.batch_id)))
        ids.append(batch.batch_id)
        payloads.append(_left(batch, {event.position for event in going}))
    removed.ranges = merged(removed.ranges)
    if ids and not is_dry:
        run(
            "replace_payloads",
            using=using,
            days=arrays.days(days),
            batch_ids=arrays.uuids(ids),
            payloads=arrays.blobs(payloads),
        )
    return removed


def batches_at(
    tenant_id: UUID, batch_ids: Collection[UUID], *, using: str
) -> Iterable[StoredBatch]:
    """Those of the batches that executors sent, in the order of the log. One query."""
    days = {days_since_epoch(batch_day(each)) for each in batch_ids}
    if not batch_ids:
        return
    for row in run(
        "batches_at",
        tenant_id=tenant_id,
        using=using,
        days=arrays.days(list(days)),
        batch_ids=arrays.uuids(list(batch_ids)),
    ):
        yield StoredBatch(*row)


def declare(
    tenant_id: UUID,
    kind: Kind,
    ranges: Sequence[Run],
    reason: str,
    actor: str,
    now: datetime,
    *,
    using: str,
    erasure_id: UUID | None = None,
) -> int:
    """Append the ledger entry that declares what is gone. Returns its index.

    Locks the ledger's head, so call it last in the transaction.
    """
    members = {"ranges": [list(each) for each in ranges], "reason": reason, "actor": actor}
    if erasure_id is not None:
        members["erasure"] = str(erasure_id)
    index = append_entry(tenant_id, kind, members, now, using=using)
    run(
        "note_ledger_erasure",
        using=using,
        entry_index=index,
        begin_index=ranges[0][0],
        end_index=ranges[-1][1],
        erasure_id=erasure_id,
    )
    return index


def merged(ranges: Iterable[Run]) -> list[Run]:
    """The same ranges sorted, with overlapping and adjacent ones joined."""
    joined: list[Run] = []
    for begin, end in sorted(ranges):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined


def _left(batch: StoredBatch, positions: Collection[int]) -> bytes | None:
    """A batch's payload without the events at some positions; None if no event is left."""
    assert batch.payload is not None
    events = without(unpack(batch.payload), positions)
    return pack(events) if any(raw for _, raw in events) else None
