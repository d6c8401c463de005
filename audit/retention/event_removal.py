"""Taking events out of the log: salt and bytes go, their places and leaves stay. As the keeper.

What is taken out is declared by an entry of the ledger in the same transaction, without which
whoever verifies takes it for removed by stealth.
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
"""Of a batch's events, the positions of those that stay."""


@dataclass(slots=True)
class Removed:
    """What was taken out, or would be."""

    ranges: list[Run] = field(default_factory=list)
    """Of ledger indexes, in order and apart."""
    event_count: int = 0
    byte_count: int = 0
    """Of the events as they were received."""
    unread: list[UUID] = field(default_factory=list)
    """Batches left as they are, because their payload is damaged."""


def remove_events(
    tenant_id: UUID,
    batch_ids: Collection[UUID],
    keeping: Keeping,
    *,
    using: str,
    is_dry: bool = False,
) -> Removed:
    """Take all events out of some batches of executors but those that `keeping` names.

    Needs the scope, and `declare` in the same transaction. Two statements; inflates, reads and
    packs each batch.
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
    """Those of executors, in the order of the log. One query."""
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
    """Append the entry that says what is gone; its index. Takes the ledger's head: last, please."""
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
    """The same ranges in order, neighbours as one."""
    found: list[Run] = []
    for begin, end in sorted(ranges):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


def _left(batch: StoredBatch, positions: Collection[int]) -> bytes | None:
    """A batch's payload without the events at some positions; None if none is left."""
    assert batch.payload is not None
    events = without(unpack(batch.payload), positions)
    return pack(events) if any(raw for _, raw in events) else None
