"""An evidence bundle made of the archive alone: it needs the two buckets, and no database.

The leaves of all archived entries are there, so every proof can be made: the tree of the largest
archived checkpoint is computed from them.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from uuid import UUID

import msgspec
from tooltrail.evidence import FORMAT, BundleWriter, EntryLine, Erased, Manifest, ProvedLine, Tree
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

from audit.archive.layout import ArchiveError, Record, Segment, Stub
from audit.archive.reading import entries_of, find_record, read_record, records_of
from audit.archive.storage import Storage
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


class _Baseline(msgspec.Struct):
    versions: list[msgspec.Raw] = []


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
        (digest, segment)
        for digest, segment in archived.segments
        if (since is None or segment.day >= since) and (until is None or segment.day <= until)
    ]
    if not chosen:
        raise ArchiveError("Nothing is archived of these days.")
    first, last = chosen[0][1], chosen[-1][1]
    manifest = Manifest(
        format=FORMAT,
        origin=archived.largest.segment.origin,
        tenant=last.tenant,
        made_at=iso(datetime.fromtimestamp(time.time(), UTC)),
        made_by=made_by,
        first_index=first.first_index,
        end_index=last.end_index,
        versions_left_out=sum(_versions(stub) for stub in archived.own),
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
    yield from writer.entries(_entries(storage, chosen))
    yield writer.end(
        versions=(),
        report=None,
        erasures=archived.proved(_declares),
        statements=archived.proved(_states),
        checkpoints=archived.checkpoints(manifest),
        tree=archived.tree(manifest),
        keys=archived.largest.keys,
    )


def _entries(
    storage: Storage, segments: Sequence[tuple[bytes, Segment]]
) -> Iterator[tuple[EntryLine, bytes]]:
    """The entries of segments with their payloads. Reads each record again, one at a time."""
    for digest, segment in segments:
        place = (segment.first_index, segment.end_index)
        yield from entries_of(storage, read_record(storage, segment.tenant_id, place, digest))


class _Archived:
    """All records of a tenant, and the tree of the largest checkpoint that they prove.

    Keeps 32 bytes of each entry, and the server's own entries that bundles have.
    """

    def __init__(self, storage: Storage, tenant_id: UUID) -> None:
        self.segments: list[tuple[bytes, Segment]] = []
        """Each with the SHA-256 of its record."""
        self._notes: dict[tuple[int, int], bytes] = {}
        """Of the checkpoints that cover segments, by epoch and size."""
        self.own: list[Stub] = []
        """The server's own entries that bundles have."""
        self._leaves = bytearray()
        largest: Record | None = None
        for digest, largest in records_of(storage, tenant_id):
            segment = largest.segment
            self.segments.append((digest, segment))
            self._leaves += b"".join(stub.leaf for stub in largest.stubs)
            self.own += [one for one in largest.stubs if _declares(one) or _states(one)]
            if segment.size in largest.checkpoints:
                note = largest.checkpoints[segment.size]
                self._notes[segment.epoch, segment.size] = note
        if largest is None:
            raise ArchiveError("Nothing is archived of this tenant.")
        self.largest = largest
        self.size, self._end = largest.segment.size, largest.segment.end_index
        behind = subtrees_behind(self._end, self.size)
        if self.size not in largest.checkpoints or len(behind) != len(largest.tree.behind):
            raise ArchiveError("The last record has no checkpoint, or no proof of it.")
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
            return bytes(self._leaves[begin : begin + tile.width * HASH_LENGTH])
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
        for stub in self.own:
            if is_wanted(stub):
                proof = inclusion_proof(stub.index, self.size, self._subtree)
                yield ProvedLine(stub.line(), stub.raw, proof)

    def checkpoints(self, manifest: Manifest) -> dict[int, bytes]:
        """The signed notes in and around the range, and the largest one."""
        newest = self.largest.segment.epoch
        return {
            size: note
            for (epoch, size), note in self._notes.items()
            if size == self.size or (epoch == newest and manifest.first_index < size <= self._end)
        }

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
    if not stub.is_own or stub.kind not in COVERING:
        return False
    try:
        msgspec.json.decode(stub.raw, type=Erased)
    except (msgspec.MsgspecError, ValueError):
        return False
    return True


def _states(stub: Stub) -> bool:
    if not stub.is_own:
        return False
    is_action = stub.kind == Kind.ACTION and any(verb in stub.raw for verb in _STATING)
    return is_action or stub.kind in (Kind.BASELINE, Kind.EPOCH, Kind.KEY)


def _versions(stub: Stub) -> int:
    """How many versions of tools an entry of the server's own says were published."""
    if stub.kind == Kind.BASELINE:
        return len(msgspec.json.decode(stub.raw, type=_Baseline).versions)
    return int(stub.kind == Kind.ACTION and f'"verb":"{PUBLISHED}"'.encode() in stub.raw)


def _slug_of(storage: Storage, tenant_id: UUID) -> str | None:
    """The slug in the newest record of a tenant."""
    for segment in reversed(storage.segments(tenant_id)):
        newest = find_record(storage, tenant_id, segment)
        if newest is not None:  # else the worker is archiving it
            return newest[1].segment.tenant
    return None
