"""Archives what is sealed: a segment at a time, in the order of the ledger, by the worker.

A segment is a UTC day, or a part of a large one. Its end is stored before anything is written, so a
worker that takes over archives the same entries again. It counts as archived when its row and
the new `next_index` are committed, together with the action that says so. Until then its payloads
have no keys that count: the next worker destroys them first. No transaction is open while
something is sent.

A worker may stand still before any request, and go on when another has taken its claim. What it
sends then harms nothing: no two workers give an object the same name, keys cannot be read unless
the claim held after the first half of them was stored, and it deletes only what it listed before
it last held the claim.
"""

import logging
from datetime import datetime, timedelta
from hashlib import sha256
from uuid import UUID

from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce
from django.utils import timezone
from tooltrail.evidence import Tree
from tooltrail.ledger import NO_INVOCATION, LedgerError
from tooltrail.ledger.frontier import subtrees_before, subtrees_behind

from audit.archive import packs
from audit.archive.facts import facts_of, parquet_of
from audit.archive.layout import (
    FACTS,
    FORMAT,
    ArchiveError,
    Pack,
    Record,
    Segment,
    Stub,
    pack_name,
    record_name,
)
from audit.archive.packs import Payload
from audit.archive.storage import Storage, opened
from audit.events.instants import microseconds
from audit.ledger.proofs import newest_checkpoint, public_keys
from audit.ledger.recompute import Remade, StoredBatch, remake
from audit.ledger.status import ledger_status
from audit.ledger.stored_batches import stored_batches
from audit.ledger.tree import StoredTree
from audit.ledger.witnesses.states import cosigned_notes
from audit.log.payload import LogPayloadError
from audit.models import Archive, ArchiveSegment, TenantQuerySet
from audit.queries.archives import midnight_after, sealed_at
from audit.sql.run import Row, run
from config.boxes import BoxError
from config.http.bucket import BucketError
from config.instants import iso
from tenants.actions import THE_SERVER, record_action, storable_text
from tenants.models import Tenant, new_id
from tenants.scope import tenant_scope

_log = logging.getLogger(__name__)

ENTRIES_MAX = 100_000
"""Entries of a segment: its record is held in memory, 150 bytes for each."""
LEASE = timedelta(minutes=10)
"""How long a claim holds, from the last object that was stored."""
FIRST_DELAY = timedelta(seconds=30)
"""Before the second attempt. It doubles with each attempt, up to `DELAY_MAX`."""
DELAY_MAX = timedelta(minutes=30)
_CHECKPOINTS_WITHIN = 50
_FAILURE_MAX = 500
_SALT_MAX = 64
_UNKNOWN = 0


class _LostError(Exception):
    """Another worker archives this tenant now, an erasure began, or an operator stopped it."""


def is_due(tenant_id: UUID, now: datetime) -> bool:
    """Whether there is something to archive, and it may be tried. Needs the scope."""
    archive = _due(tenant_id, now).first()
    try:
        return archive is not None and (archive.end_index or _next_end(archive, now)) is not None
    except ArchiveError:
        return True  # so that the reason is noted


def run_slice(tenant_id: UUID, now: datetime) -> bool:
    """Archive the next segment. True if there may be more; what fails is noted.

    Opens its own scopes, so no scope may be open.
    """
    claim = new_id()
    with tenant_scope(tenant_id):
        if not _due(tenant_id, now).update(claim=claim, claimed_until=timezone.now() + LEASE):
            return False
        archive = Archive.objects.for_tenant(tenant_id).get()
        tenant = Tenant.objects.get(pk=tenant_id)
    try:
        with tenant_scope(tenant_id):
            end = archive.end_index or _next_end(archive, now)
            rest = {} if end else {"claim": None, "claimed_until": None}
            is_mine = _mine(tenant_id, claim).update(end_index=end, **rest)
        if end is None or not is_mine:
            return False
        with opened() as storage:
            _Writing(tenant, archive.next_index, end, claim).run(storage, now)
    except _LostError:
        return True
    except (ArchiveError, BucketError, BoxError, LogPayloadError, LedgerError) as error:
        _fail(tenant_id, claim, str(error))
        return False
    except Exception:
        _fail(tenant_id, claim, "An error of this server; its log says more.")
        raise
    return True


class _Writing:
    """One segment while it is archived."""

    def __init__(self, tenant: Tenant, first_index: int, end_index: int, claim: UUID) -> None:
        self._tenant, self._claim = tenant, claim
        self._first, self._end = first_index, end_index
        self._stubs: list[Stub] = []
        self._payloads: list[Payload | None] = []
        """Of the next pack."""
        self._bytes = 0
        self._packs: list[Pack] = []
        self._payload_count = self._sent = 0
        self._epoch = self._size = 0

    def run(self, storage: Storage, now: datetime) -> None:
        """Write all objects, and commit. Raises _LostError, and whatever the parts raise."""
        storage.check()
        try:
            # Of a worker that did not finish.
            storage.destroy_keys_from(self._tenant.id, self._first, self._renew)
            first_at, last_at = self._write_entries(storage, now)
            self._write_facts(storage, first_at, last_at, now)
            record = self._record(first_at, now)
            self._put(storage, record_name(sha256(record).digest()), record, now)
            self._commit(record, first_at, last_at)
        except _LostError:
            for pack in self._packs:  # nobody else writes the keys of these packs
                storage.destroy_pack_keys(self._tenant.id, pack)
            raise

    def _write_entries(self, storage: Storage, now: datetime) -> tuple[datetime, datetime]:
        """Write the packs; when the first and the last entry were received."""
        times: list[datetime] = []
        for batch in stored_batches(self._tenant.id, self._first, self._end):
            times = [times[0] if times else batch.received_at, batch.received_at]
            for index, one in enumerate(remake(batch), batch.first_index):
                if self._first <= index < self._end:
                    self._add(index, one, batch)
                    is_full = len(self._payloads) >= packs.ENTRIES_MAX
                    if is_full or self._bytes >= packs.BYTES_MAX:
                        self._write_pack(storage, now)
        self._write_pack(storage, now)
        if len(self._stubs) != self._end - self._first:
            raise ArchiveError(
                f"The log does not have each entry from {self._first:,} to {self._end:,} once."
            )
        return times[0], times[1]

    def _add(self, index: int, one: Remade, batch: StoredBatch) -> None:
        """Add an entry: of an executor's event a stub, and its payload apart."""
        stub = Stub(index, one.leaf)
        self._stubs.append(stub)
        if not one.raw and not one.salt:
            self._payloads.append(None)
            return
        entry, salt = one.entry, one.salt[:_SALT_MAX]
        stub.kind = _UNKNOWN if entry is None else entry.kind
        stub.received_us, stub.length = microseconds(batch.received_at), len(one.raw)
        if entry is not None and entry.invocation_id != NO_INVOCATION:
            stub.invocation_id = entry.invocation_id
        event_id = None if entry is None else entry.event_id
        if batch.is_own:
            stub.event_id, stub.salt, stub.raw = event_id, salt, one.raw
            self._payloads.append(None)
            return
        self._payloads.append(Payload(event_id, salt, one.raw))
        self._payload_count += 1
        self._bytes += len(one.raw)

    def _write_pack(self, storage: Storage, now: datetime) -> None:
        begin = self._first + sum(each.end_index - each.first_index for each in self._packs)
        payloads, self._payloads, self._bytes = self._payloads, [], 0
        if not payloads:
            return
        sealed = packs.seal(self._tenant.id, begin, payloads)
        pack = Pack(begin, sealed.end_index, sha256(sealed.data).digest())
        self._packs.append(pack)
        if any(payloads):
            self._put(storage, pack_name(pack), sealed.data, now)
            storage.put_keys(self._tenant.id, pack, sealed.keys, self._renew)

    def _write_facts(
        self, storage: Storage, first_at: datetime, last_at: datetime, now: datetime
    ) -> None:
        ids = {stub.invocation_id for stub in self._stubs if stub.invocation_id is not None}
        with tenant_scope(self._tenant.id):
            facts = facts_of(ids, first_at.date(), last_at.date())
        data = parquet_of(facts)
        if data is not None:
            self._put(storage, FACTS, data, now)

    def _record(self, first_at: datetime, now: datetime) -> bytes:
        """The record, by the newest checkpoint. Needs the tiles."""
        tenant_id = self._tenant.id
        with tenant_scope(tenant_id):
            checkpoint = newest_checkpoint()
            if checkpoint is None or checkpoint.size < self._end:
                raise ArchiveError("The checkpoint that covered the segment is gone.")
            tree, size = StoredTree(tenant_id, checkpoint.size), checkpoint.size
            notes: list[Row] = run(
                "evidence_checkpoints",
                epoch=checkpoint.epoch,
                size=size,
                first_index=self._first,
                end_index=self._end,
                count=_CHECKPOINTS_WITHIN,
            )
            listed = [(checkpoint.epoch, at, note) for at, note in notes]
            cosigned = cosigned_notes(tenant_id, listed)
            proofs = Tree(
                tree.hashes(subtrees_before(self._first)),
                tree.hashes(subtrees_behind(self._end, size)),
                {str(at): tree.consistency(at) for at, _ in notes if at < size},
            )
            keys = [key.vkey for key in public_keys(checkpoint.origin, now)]
        self._size, self._epoch = size, checkpoint.epoch
        segment = Segment(
            format=FORMAT,
            tenant_id=tenant_id,
            tenant=self._tenant.slug,
            origin=checkpoint.origin,
            epoch=checkpoint.epoch,
            size=size,
            first_index=self._first,
            end_index=self._end,
            day=f"{first_at:%Y-%m-%d}",
            made_at=iso(now),
            packs=self._packs,
        )
        return Record(
            segment=segment,
            stubs=self._stubs,
            checkpoints={at: note.encode() for (_, at), note in cosigned.items()},
            receipts=[bytes(each) for each in checkpoint.receipts],
            tree=proofs,
            keys=keys,
        ).to_bytes()

    def _commit(self, record: bytes, first_at: datetime, last_at: datetime) -> None:
        tenant_id = self._tenant.id
        with tenant_scope(tenant_id):
            mine = _mine(tenant_id, self._claim)
            if not mine.update(
                next_index=self._end,
                end_index=None,
                failure="",
                failing_since=None,
                attempt_count=0,
                claim=None,
                claimed_until=None,
            ):
                raise _LostError
            archives = Archive.objects.for_tenant(tenant_id)
            archives.filter(at_once_to__lte=self._end).update(at_once_to=None)
            segment = ArchiveSegment.objects.create(
                tenant_id=tenant_id,
                first_index=self._first,
                end_index=self._end,
                day=first_at.date(),
                last_received_at=last_at,
                epoch=self._epoch,
                size=self._size,
                packs=[each.first_index for each in self._packs],
                payload_count=self._payload_count,
                byte_count=self._sent,
                record_sha256=sha256(record).digest(),
                archived_at=timezone.now(),
            )
            record_action(
                self._tenant,
                THE_SERVER,
                "archive.segment",
                f"{segment.day}, entries {self._first:,} to {self._end - 1:,}",
                day=str(segment.day),
                first_index=self._first,
                end_index=self._end,
                payloads=self._payload_count,
                record_sha256=segment.record_sha256.hex(),
            )

    def _put(self, storage: Storage, name: str, data: bytes, now: datetime) -> None:
        self._renew()
        storage.put(self._tenant.id, (self._first, self._end), name, data, now)
        self._sent += len(data)

    def _renew(self) -> None:
        """Raise _LostError unless this worker still archives."""
        with tenant_scope(self._tenant.id):
            mine = _mine(self._tenant.id, self._claim)
            if not mine.update(claimed_until=timezone.now() + LEASE):
                raise _LostError


def _next_end(archive: Archive, now: datetime) -> int | None:
    """Where the next segment ends; None if its day is not over, or its entries are not signed.

    Raises ArchiveError. Needs the scope.
    """
    begin, status = archive.next_index, ledger_status(archive.tenant_id)
    signed = status.signed_size or 0
    if begin > status.size:
        raise ArchiveError(
            f"The ledger has {status.size:,} entries, and {begin:,} are archived: the database was"
            " restored from an older backup."
        )
    if begin >= signed:
        return None
    most = begin + ENTRIES_MAX
    if archive.at_once_to is not None and begin < archive.at_once_to <= signed:
        return min(signed, most)
    if archive.stopped_at is not None:  # only what an erasure declared is archived
        return None
    ((received_at,),) = run("archive_begin", index=begin)
    if now < sealed_at(received_at):
        return None
    ((end, size),) = run("archive_day_end", index=begin, midnight=midnight_after(received_at))
    end = min(size if end is None else end, most)
    return end if end <= signed else None


def _due(tenant_id: UUID, now: datetime) -> TenantQuerySet[Archive]:
    archives = Archive.objects.for_tenant(tenant_id)
    return archives.filter(
        Q(claimed_until=None) | Q(claimed_until__lt=timezone.now()),
        Q(stopped_at=None) | Q(at_once_to__isnull=False),
        next_attempt_at__lte=now,
    )


def _mine(tenant_id: UUID, claim: UUID) -> TenantQuerySet[Archive]:
    return Archive.objects.for_tenant(tenant_id).filter(claim=claim)


def _fail(tenant_id: UUID, claim: UUID, failure: str) -> None:
    """Note why it failed, and when it is tried again."""
    with tenant_scope(tenant_id):
        mine = _mine(tenant_id, claim)
        row = mine.select_for_update().first()
        if row is None:
            return
        now = timezone.now()
        mine.update(
            claim=None,
            claimed_until=None,
            failure=storable_text(failure)[:_FAILURE_MAX],
            failing_since=Coalesce("failing_since", Value(now)),
            attempt_count=F("attempt_count") + 1,
            next_attempt_at=now + min(FIRST_DELAY * 2 ** min(row.attempt_count, 10), DELAY_MAX),
        )
