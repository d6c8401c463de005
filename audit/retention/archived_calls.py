"""The archive forgets: the keys of erased calls, and of payloads whose time is over.

A payload in the archive has a key of its own, in storage that is not locked. The step `archive` of
an erasure finds the calls' entries by the stubs of each segment: what retention has removed from
the log is still there. Checking holds and destroying keys is one transaction with the lock of
`lock_record`, although it sends requests: nobody may set a hold meanwhile. It locks
the archive, too (`hold_archive`), and makes sure before it writes keys that it has not lost the
locks: the process may have stood still.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
from django.db.models import F
from django.db.models.expressions import Combinable
from django.utils import timezone
from tooltrail.ledger import Kind

from audit.archive.archives import hold_archive
from audit.archive.layout import Record, Stub
from audit.archive.packs import has_key
from audit.archive.reading import has_payload, payloads_of, read_record
from audit.archive.storage import Storage, opened
from audit.events.instants import EPOCH
from audit.ledger.missing import Run, runs_of
from audit.ledger.own_entries import own_entries
from audit.ledger.status import ledger_status
from audit.ledger.stored_batches import stored_batches
from audit.log.payload import LogPayloadError, unpack
from audit.models import Archive, ArchiveSegment, Erasure, LedgerErasure, LegalHold
from audit.retention.erasure_targets import Targets
from audit.retention.event_removal import declare
from audit.retention.hold_match import LoggedEvent, candidate_of, covers_event
from audit.retention.holds import held_calls, holds_in_force, lock_record
from audit.retention.proved_holds import holds_to_keep
from config.postgresql.aliases import KEEPER
from tenants.actions import THE_SERVER, record_action
from tenants.models import Tenant
from tenants.scope import tenant_scope

WAITS = "It waits for the archive."
"""How the problem of an erasure begins that cannot reach the storage."""


class _ErasureEntry(msgspec.Struct):
    ranges: list[tuple[int, int]]
    erasure: str = ""


def erase_archived(erasure: Erasure, targets: Targets) -> None:
    """Destroy the keys of an erasure's calls in the next segment, or end the step.

    Opens its own scopes. Raises one of `AWAY`, and HoldsAlteredError.
    """
    tenant_id = erasure.tenant_id
    with tenant_scope(tenant_id, using=KEEPER):
        # A worker that archives now may have read what is erased: it begins again.
        archives = Archive.objects.using(KEEPER).for_tenant(tenant_id)
        archives.update(claim=None, claimed_until=None)
        has_objects = any(each.has_objects for each in archives)
        segment = _next_segment(erasure)
    if not has_objects:
        _advance(erasure)
        return
    with opened() as storage:
        if segment is None:
            _end(erasure, storage)
            return
        record = read_record(storage, tenant_id, segment.place, bytes(segment.record_sha256))
        ours = _of_calls(record, targets)
        if ours:
            _forget(erasure, storage, segment, record, ours)
        else:
            _advance(erasure, segment.end_index)


def count_archived(erasure: Erasure, targets: Targets) -> None:
    """Count, for a preview, what only the archive has in the next segment, or end the step.

    Counts events that have a key and are under no hold. Opens its own scopes. Raises one of
    `AWAY`, and HoldsAlteredError.
    """
    tenant_id = erasure.tenant_id
    with tenant_scope(tenant_id, using=KEEPER):
        segment = _next_segment(erasure)
    if segment is None:
        _advance(erasure)
        return
    with opened() as storage:
        record = read_record(storage, tenant_id, segment.place, bytes(segment.record_sha256))
        ours = _with_keys(storage, record, _of_calls(record, targets))
        with tenant_scope(tenant_id, using=KEEPER):
            only = _gone_from_log(tenant_id, ours)
            holds = holds_to_keep(tenant_id, using=KEEPER) if only else []
            going = _not_held(tenant_id, holds, storage, record, only) if holds else only
    _advance(
        erasure,
        segment.end_index,
        event_count=F("event_count") + len(going),
        byte_count=F("byte_count") + sum(stub.length for stub in going),
    )


def expire_archived(tenant_id: UUID, now: datetime) -> bool:
    """Destroy the keys of the next segment whose payloads have expired. True if there may be more.

    Only of what retention has removed from the log, and never while a hold is in force. Opens its
    own scopes. Raises one of `AWAY`.
    """
    with tenant_scope(tenant_id):
        archive = Archive.objects.for_tenant(tenant_id).first()
        if archive is None or archive.payload_days is None:
            return False
        midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        before = midnight - timedelta(days=archive.payload_days)
        erased_to = lock_record(tenant_id)
        hold_archive(tenant_id)
        segments = ArchiveSegment.objects.for_tenant(tenant_id).filter(
            keys_gone_at=None, last_received_at__lt=before, end_index__lte=erased_to
        )
        segment = segments.order_by("first_index").first()
        if segment is None or holds_in_force(tenant_id):
            return False
        with opened() as storage:
            for first_index in segment.packs:
                storage.destroy_keys_at(tenant_id, first_index, lambda: hold_archive(tenant_id))
        ArchiveSegment.objects.for_tenant(tenant_id).filter(first_index=segment.first_index).update(
            keys_gone_at=now
        )
        record_action(
            Tenant(id=tenant_id),
            THE_SERVER,
            "archive.expire",
            f"{segment.day}, entries {segment.first_index:,} to {segment.end_index - 1:,}",
            received_before=before.isoformat(),
            first_index=segment.first_index,
            end_index=segment.end_index,
        )
    return True


def _forget(
    erasure: Erasure,
    storage: Storage,
    segment: ArchiveSegment,
    record: Record,
    ours: Sequence[Stub],
) -> None:
    """Destroy keys of a segment, unless a hold covers their calls, and declare what is gone."""
    tenant_id = erasure.tenant_id
    with tenant_scope(tenant_id, using=KEEPER):
        lock_record(tenant_id, using=KEEPER)
        hold_archive(tenant_id, using=KEEPER)
        holds = holds_to_keep(tenant_id, using=KEEPER)
        going = _not_held(tenant_id, holds, storage, record, ours) if holds else list(ours)
        indexes = [stub.index for stub in going]
        keyed = {stub.index: stub.length for stub in _with_keys(storage, record, going)}
        count = 0

        def may_write() -> None:
            hold_archive(tenant_id, using=KEEPER)

        for pack in record.segment.packs:
            own = [index for index in indexes if pack.first_index <= index < pack.end_index]
            if own:
                count += storage.destroy_keys(tenant_id, pack, own, may_write)
        known = _declared(erasure)
        gone = [each for each in indexes if not any(first <= each < last for first, last in known)]
        _advance(
            erasure,
            segment.end_index,
            erased_events=F("erased_events") + sum(index in keyed for index in gone),
            erased_bytes=F("erased_bytes") + sum(keyed.get(index, 0) for index in gone),
        )
        if not indexes:
            return
        if count:
            record_action(
                Tenant(id=tenant_id),
                THE_SERVER,
                "archive.erase",
                str(erasure.id),
                using=KEEPER,
                first_index=segment.first_index,
                end_index=segment.end_index,
                keys=count,
            )
        if gone:
            assert erasure.reason is not None and erasure.confirmed_by is not None
            declare(
                tenant_id=tenant_id,
                kind=Kind.ERASURE,
                ranges=runs_of(gone),
                reason=erasure.reason,
                actor=erasure.confirmed_by,
                now=timezone.now(),
                using=KEEPER,
                erasure_id=erasure.id,
            )


def _end(erasure: Erasure, storage: Storage) -> None:
    """End the step: keys of what was never committed go, and what was declared is archived."""
    tenant_id = erasure.tenant_id
    with tenant_scope(tenant_id, using=KEEPER):
        archives = Archive.objects.using(KEEPER).for_tenant(tenant_id)
        size = ledger_status(tenant_id, using=KEEPER).size
        # The row is locked from here on: no worker begins meanwhile, and one that writes must stop.
        archives.update(claim=None, claimed_until=None, at_once_to=size)
        next_index = archives.values_list("next_index", flat=True).get()
        storage.destroy_keys_from(
            tenant_id, next_index, lambda: hold_archive(tenant_id, using=KEEPER)
        )
        _advance(erasure)


def _next_segment(erasure: Erasure) -> ArchiveSegment | None:
    """The next segment that the erasure has not searched. Needs the scope of the keeper."""
    segments = ArchiveSegment.objects.using(KEEPER).for_tenant(erasure.tenant_id)
    left = segments.filter(end_index__gt=erasure.next_index, keys_gone_at=None)
    return left.order_by("first_index").first()


def _of_calls(record: Record, targets: Targets) -> list[Stub]:
    return [
        stub for stub in record.stubs if stub.invocation_id in targets.ids and has_payload(stub)
    ]


def _with_keys(storage: Storage, record: Record, stubs: Sequence[Stub]) -> list[Stub]:
    """Those of the stubs whose payloads have keys."""
    keyed: list[Stub] = []
    for pack in record.segment.packs:
        own = [stub for stub in stubs if pack.first_index <= stub.index < pack.end_index]
        if own:
            keys = storage.get_keys(record.segment.tenant_id, pack)
            keyed += [stub for stub in own if has_key(keys, stub.index - pack.first_index)]
    return keyed


def _gone_from_log(tenant_id: UUID, stubs: Sequence[Stub]) -> list[Stub]:
    """Those of the stubs, in order, whose events the log has no more. Needs the keeper's scope."""
    if not stubs:
        return []
    left = {stub.index: stub for stub in stubs}
    first, end = stubs[0].index, stubs[-1].index + 1
    for batch in stored_batches(tenant_id, first, end, using=KEEPER):
        behind = batch.first_index + batch.event_count
        here = [stub.index for stub in stubs if batch.first_index <= stub.index < behind]
        if here and batch.payload is not None:
            try:
                events = unpack(batch.payload, [each - batch.first_index for each in here])
            except LogPayloadError:  # it is damaged, and kept
                events = [(b"", b"damaged")] * len(here)
            for index, (_, raw) in zip(here, events, strict=True):
                if raw:
                    del left[index]
        if not left:
            break
    return list(left.values())


def _advance(erasure: Erasure, next_index: int | None = None, **counts: Combinable) -> None:
    """Note up to where the archive was searched, and counts; without an index, that it was."""
    changed: dict[str, object] = {"step": "inbox", "cursor_at": None, "cursor_id": None}
    if next_index is not None:
        changed = {"next_index": next_index, **counts}
    with tenant_scope(erasure.tenant_id, using=KEEPER):
        rows = Erasure.objects.using(KEEPER).for_tenant(erasure.tenant_id).filter(id=erasure.id)
        rows.filter(problem__startswith=WAITS).update(problem="")
        rows.filter(step="archive").update(**changed)


def _not_held(
    tenant_id: UUID,
    holds: Sequence[LegalHold],
    storage: Storage,
    record: Record,
    ours: Sequence[Stub],
) -> list[Stub]:
    """Those that no hold covers, by their call in the index or by their own members."""
    payloads = payloads_of(storage, record, {stub.index for stub in ours})
    events = []
    for stub in ours:
        payload = payloads.get(stub.index)
        received_at = EPOCH + timedelta(microseconds=stub.received_us)
        candidate = None if payload is None else candidate_of(payload.raw, received_at)
        events.append(LoggedEvent(stub.index, stub.invocation_id, stub.length, candidate))
    held = held_calls(tenant_id, holds, events, using=KEEPER)
    return [
        stub
        for stub, event in zip(ours, events, strict=True)
        if stub.index not in payloads  # it has no key any more
        or not (stub.invocation_id in held or covers_event(holds, event.candidate))
    ]


def _declared(erasure: Erasure) -> list[Run]:
    """The ranges that entries of this erasure declare."""
    tenant_id = erasure.tenant_id
    entries = LedgerErasure.objects.using(KEEPER).for_tenant(tenant_id)
    first = entries.filter(erasure_id=erasure.id).order_by("entry_index").first()
    if first is None:
        return []
    ranges: list[Run] = []
    for entry in own_entries(
        tenant_id, {Kind.ERASURE}, first_index=first.entry_index, using=KEEPER
    ):
        decoded = msgspec.json.decode(entry.raw, type=_ErasureEntry)
        if decoded.erasure == str(erasure.id):
            ranges += decoded.ranges
    return ranges
