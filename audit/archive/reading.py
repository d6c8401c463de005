"""Reads what is archived: from the storage alone, or through the database's list of segments."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from uuid import UUID

from django.db.models import Q
from tooltrail.evidence import EntryLine

from audit.archive.layout import (
    ArchiveError,
    Pack,
    Record,
    Segment,
    Stub,
    digest_of,
    pack_name,
    record_name,
)
from audit.archive.packs import Payload, unseal
from audit.archive.storage import AWAY, Storage, opened
from audit.log.payload import StoredEvent
from audit.models import ArchiveSegment
from tenants.scope import current_tenant_id, tenant_scope


def read_record(storage: Storage, tenant_id: UUID, place: tuple[int, int], digest: bytes) -> Record:
    """The record of a segment with this SHA-256. Raises BucketError, ArchiveError."""
    data = storage.get(tenant_id, place, record_name(digest))
    if sha256(data).digest() != digest:
        raise ArchiveError("A record of the archive was altered.")
    record = Record.read(data)
    stated = record.segment
    if (stated.tenant_id, stated.first_index, stated.end_index) != (tenant_id, *place):
        raise ArchiveError("A record is not where it says.")
    return record


def find_record(
    storage: Storage, tenant_id: UUID, place: tuple[int, int]
) -> tuple[bytes, Record] | None:
    """The record of a segment and its SHA-256, without the database; None if it has none yet.

    A worker that lost its right to write may have left another record. All prove the same entries,
    but only one has keys, unless all were destroyed. Raises BucketError, ArchiveError.
    """
    digests = [digest_of(name) for name in storage.names(tenant_id, place)]
    records = [(one, read_record(storage, tenant_id, place, one)) for one in digests if one]
    if len(records) > 1:
        records = [one for one in records if _has_keys(storage, one[1].segment)] or records
    return max(records, key=lambda one: one[1].segment.made_at, default=None)


def records_of(storage: Storage, tenant_id: UUID) -> Iterator[tuple[bytes, Record]]:
    """All records of a tenant from the first entry on, with the SHA-256 of each.

    Raises ArchiveError if one is missing between others, and what `find_record` raises.
    """
    segments, at = storage.segments(tenant_id), 0
    for segment in segments:
        record = find_record(storage, tenant_id, segment) if segment[0] == at else None
        if record is None:
            break
        yield record
        at = segment[1]
    if segments and at < segments[-1][0]:
        raise ArchiveError(f"The archive does not have the entries from {at:,} on.")


def payloads_of(
    storage: Storage, record: Record, indexes: Collection[int] | None = None
) -> dict[int, Payload]:
    """The payloads of a segment, or of some of its entries, by ledger index.

    Those without a key any more are left out. Raises BucketError, BoxError, and ArchiveError if a
    pack was altered.
    """
    segment, payloads = record.segment, dict[int, Payload]()
    begin = segment.first_index
    for pack in segment.packs:
        stubs = record.stubs[pack.first_index - begin : pack.end_index - begin]
        wanted = {
            stub.index
            for stub in stubs
            if has_payload(stub) and (indexes is None or stub.index in indexes)
        }
        if not wanted:
            continue
        opened_pack = enumerate(_opened(storage, record, pack), pack.first_index)
        payloads |= {
            index: one for index, one in opened_pack if one is not None and index in wanted
        }
    return payloads


def entries_of(storage: Storage, record: Record) -> Iterator[tuple[EntryLine, bytes]]:
    """The entries of a segment with their bytes, in order, as an evidence bundle has them.

    Those without a payload have only index and leaf. Raises what `payloads_of` raises.
    """
    payloads = payloads_of(storage, record)
    for stub in record.stubs:
        if stub.is_own:
            yield stub.line(), stub.raw
        elif (payload := payloads.get(stub.index)) is not None:
            yield stub.line(payload.event_id, payload.salt), payload.raw
        else:
            yield EntryLine(stub.index, stub.leaf), b""


def has_payload(stub: Stub) -> bool:
    """Whether a payload of the entry was archived, apart from its record."""
    return stub.kind is not None and not stub.is_own


def archived_events(tenant_id: UUID, indexes: Collection[int]) -> dict[int, bytes]:
    """The bytes of some events that are archived, by ledger index.

    Opens the tenant's scope, if it is not open. Raises BucketError, BoxError, ArchiveError.
    """
    with tenant_scope(tenant_id):
        segments = ArchiveSegment.objects.for_tenant(tenant_id)
        covering = {
            index: segments.filter(first_index__lte=index, end_index__gt=index).first()
            for index in indexes
        }
    places = {(one.place, bytes(one.record_sha256)) for one in covering.values() if one is not None}
    events: dict[int, bytes] = {}
    if places:
        with opened() as storage:
            for place, digest in sorted(places):
                record = read_record(storage, tenant_id, place, digest)
                read = payloads_of(storage, record, indexes)
                events |= {index: payload.raw for index, payload in read.items()}
    return events


def with_archived[Kind](
    stored: Mapping[Kind, StoredEvent],
) -> tuple[dict[Kind, StoredEvent], str]:
    """The events of a call with what the archive has of those that the log has no more.

    Also returns why it could not be read, or an empty text. Needs the scope.
    """
    gone = [event.ledger_index for event in stored.values() if event.raw is None]
    try:
        raws = archived_events(current_tenant_id(), gone)
    except AWAY as error:
        return dict(stored), str(error)
    if not raws:
        return dict(stored), "The keys of these payloads were destroyed."
    return {
        kind: event if event.raw is not None else replace(event, raw=raws.get(event.ledger_index))
        for kind, event in stored.items()
    }, ""


def has_archived(indexes: Collection[int]) -> bool:
    """Whether the payload of one of these events may be read from the archive. Needs the scope."""
    wanted = Q(pk__in=[])
    for index in indexes:
        wanted |= Q(first_index__lte=index, end_index__gt=index)
    segments = ArchiveSegment.objects.for_tenant(current_tenant_id())
    return segments.filter(wanted, keys_gone_at=None, payload_count__gt=0).exists()


def _has_keys(storage: Storage, segment: Segment) -> bool:
    return any(storage.has_keys(segment.tenant_id, pack) for pack in segment.packs)


def _opened(storage: Storage, record: Record, pack: Pack) -> list[Payload | None]:
    segment = record.segment
    place = (segment.first_index, segment.end_index)
    data = storage.get(segment.tenant_id, place, pack_name(pack))
    if sha256(data).digest() != pack.sha256:
        raise ArchiveError("A pack of the archive is not the one that its record names.")
    keys = storage.get_keys(segment.tenant_id, pack)
    return unseal(segment.tenant_id, pack.first_index, data, keys)
