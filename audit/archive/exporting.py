"""An evidence bundle made of the archive alone: it needs the two buckets, and no database.

The leaves of all archived entries are there, so every proof can be made: the tree of the largest
archived checkpoint is computed from them.
"""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from uuid import UUID

import msgspec
from tooltrail.evidence import FORMAT, BundleWriter, Erased, Manifest, ProvedLine, Tree
from tooltrail.evidence.layout import COVERING
from tooltrail.evidence.statements import PUBLISHED
from tooltrail.ledger import (
    HASH_LENGTH,
    Kind,
    Subtree,
    Tile,
    consistency_proof,
    inclusion_proof,
    node_of,
    root_of,
    subtrees_in,
)
from tooltrail.ledger.frontier import subtrees_before, subtrees_behind

from audit.archive.layout import ArchiveError, Stub
from audit.archive.reading import entries_of, read_record, records_of
from audit.archive.storage import Storage
from config.http.bucket import NoObjectError
from config.instants import iso

_STATING = tuple(
    f'"verb":"{verb}"'.encode() for verb in (PUBLISHED, "erasure.confirm", "tenant.settings")
)
_README = """\
EVIDENCE OF TOOL CALLS, FROM AN ARCHIVE

This bundle was made from an archive of the tenant {tenant}, without the database. It contains the
archived entries {first} to {last} of the ledger {origin}, and everything
needed to verify that none was altered. Payloads whose keys were destroyed are missing; the entries
that declare it are there.

    pip install 'tooltrail[verify]'
    tooltrail verify FILE.zip --key KEY

KEY is the public key of the ledger, which you know from elsewhere. Versions of tools are not in
an archive. Events may contain personal data: protect this file accordingly.
"""


def find_tenant(storage: Storage, name: str) -> UUID:
    """The archived tenant with this slug or id. Raises ArchiveError, BucketError."""
    tenants = storage.tenants()
    for tenant_id in tenants:
        if str(tenant_id) == name.lower():
            return tenant_id
    named = [each for each in tenants if _slug_of(storage, each) == name]
    if len(named) != 1:
        raise ArchiveError(
            f"{len(named)} archived tenants are named {name!r}: enter the id instead."
            if named
            else f"No archived tenant is named {name!r}."
        )
    return named[0]


def export(
    storage: Storage, tenant_id: UUID, made_by: str, since: str | None, until: str | None
) -> Iterator[bytes]:
    """The bundle of the segments whose days are in a range (ISO dates, both included), in pieces.

    Raises ArchiveError if nothing is archived there, BucketError, BoxError.
    """
    archived = _Archived(storage, tenant_id)
    chosen = [
        record
        for record in archived.records
        if (since is None or record.segment.day >= since)
        and (until is None or record.segment.day <= until)
    ]
    if not chosen:
        raise ArchiveError("Nothing is archived of these days.")
    first, last = chosen[0].segment, chosen[-1].segment
    manifest = Manifest(
        format=FORMAT,
        origin=archived.largest.segment.origin,
        tenant=last.tenant,
        made_at=iso(datetime.fromtimestamp(time.time(), UTC)),
        made_by=made_by,
        first_index=first.first_index,
        end_index=last.end_index,
    )
    writer = BundleWriter()
    yield writer.begin(
        manifest,
        _README.format(
            tenant=last.tenant,
            first=first.first_index,
            last=last.end_index - 1,
            origin=manifest.origin,
        ),
    )
    yield from writer.entries(line for record in chosen for line in entries_of(storage, record))
    yield writer.end(
        versions=(),
        report=None,
        erasures=archived.proved(_declares),
        statements=archived.proved(_states),
        checkpoints=archived.checkpoints(manifest),
        tree=archived.tree(manifest),
        keys=archived.largest.keys,
    )


class _Archived:
    """All records of a tenant, and the tree of the largest checkpoint that they prove."""

    def __init__(self, storage: Storage, tenant_id: UUID) -> None:
        self.records = list(records_of(storage, tenant_id))
        if not self.records:
            raise ArchiveError("Nothing is archived of this tenant.")
        self._end = self.records[-1].segment.end_index
        self._leaves = b"".join(stub.leaf for record in self.records for stub in record.stubs)
        self.largest = self.records[-1]
        self.size = self.largest.segment.size
        behind = subtrees_behind(self._end, self.size)
        self._behind = dict(zip(behind, self.largest.tree.behind, strict=True))
        self._roots: dict[tuple[int, int], bytes] = {}
        self._of_leaves = subtrees_in(self._tile, self._end)

    def _subtree(self, level: int, index: int) -> bytes:
        """A complete subtree of the largest checkpoint, also of entries behind the archived."""
        if (index + 1) << level <= self._end:
            return self._of_leaves(level, index)
        known = self._behind.get((level, index))
        if known is not None:
            return known
        if not level:
            raise ArchiveError("The proof needs entries that are not archived yet.")
        return node_of(self._subtree(level - 1, 2 * index), self._subtree(level - 1, 2 * index + 1))

    def _tile(self, tile: Tile) -> bytes:
        if tile.level == 0:
            begin = (tile.index << 8) * HASH_LENGTH
            return self._leaves[begin : begin + tile.width * HASH_LENGTH]
        return b"".join(
            self._root(tile.level - 1, (tile.index << 8) + at) for at in range(tile.width)
        )

    def _root(self, level: int, index: int) -> bytes:
        """The root of a full tile."""
        if (level, index) not in self._roots:
            full = Tile(level, index, 256)
            self._roots[level, index] = root_of(full.hashes(self._tile(full)))
        return self._roots[level, index]

    def proved(self, is_wanted: Callable[[Stub], bool]) -> Iterator[ProvedLine]:
        """The server's own entries that are wanted, each with its proof."""
        for record in self.records:
            for stub in record.stubs:
                if stub.is_own and is_wanted(stub):
                    proof = inclusion_proof(stub.index, self.size, self._subtree)
                    yield ProvedLine(stub.line(), stub.raw, proof)

    def checkpoints(self, manifest: Manifest) -> dict[int, bytes]:
        """The signed notes in and around the range, and the largest one."""
        segment = self.largest.segment
        notes = {segment.size: self.largest.checkpoints[segment.size]}
        for record in self.records:
            within = record.segment.end_index > manifest.first_index
            if within and record.segment.epoch == segment.epoch:
                notes |= {
                    size: note
                    for size, note in record.checkpoints.items()
                    if size == record.segment.size and size <= self._end
                }
        return notes

    def tree(self, manifest: Manifest) -> Tree:
        """The hashes from the range to the largest root, and from each other checkpoint."""
        subtree: Subtree = self._subtree
        first, end = manifest.first_index, manifest.end_index
        others = [at for at in self.checkpoints(manifest) if at < self.size]
        return Tree(
            [subtree(*each) for each in subtrees_before(first)],
            [subtree(*each) for each in subtrees_behind(end, self.size)],
            {
                str(at): consistency_proof(at, self.size, subtree)
                for at in sorted(others)
                if not first <= at <= end
            },
        )


def _declares(stub: Stub) -> bool:
    if stub.kind not in COVERING:
        return False
    try:
        msgspec.json.decode(stub.raw, type=Erased)
    except (msgspec.MsgspecError, ValueError):
        return False
    return True


def _states(stub: Stub) -> bool:
    is_action = stub.kind == Kind.ACTION and any(verb in stub.raw for verb in _STATING)
    return is_action or stub.kind in (Kind.BASELINE, Kind.EPOCH, Kind.KEY)


def _slug_of(storage: Storage, tenant_id: UUID) -> str | None:
    """The slug in the newest record of a tenant."""
    for segment in reversed(storage.segments(tenant_id)):
        try:
            return read_record(storage, tenant_id, segment).segment.tenant
        except NoObjectError:  # the worker is archiving it
            continue
    return None
