"""Proofs and checkpoints for pages, API and files. All functions need the tenant's scope.

Each proof is verified against the signed root before it is returned, so altered tiles give no
proof. Whether everybody was shown the same root can be verified only with checkpoints that were
kept elsewhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from tooltrail.ledger import (
    LedgerError,
    ProofFile,
    Tile,
    VerifierKey,
    verify_consistency,
    verify_inclusion,
)

from audit.ledger.tree import StoredTree
from audit.models import LedgerCheckpoint, LedgerKey
from tenants.scope import current_tenant_id


class UnsignedError(Exception):
    """No signed checkpoint covers the request; the message says what is missing."""


class AlteredError(Exception):
    """Tiles and signed roots disagree; the message says where."""


@dataclass(frozen=True, slots=True)
class Inclusion:
    """Proof that the log of a checkpoint has this leaf at this index."""

    index: int
    leaf: bytes
    hashes: list[bytes]
    checkpoint: LedgerCheckpoint

    def to_file(self, extra: bytes | None) -> bytes:
        """The proof as a C2SP `.tlog-proof` file. `extra` is the entry, if known."""
        note = self.checkpoint.note.encode()
        return ProofFile(self.index, tuple(self.hashes), note, extra).to_bytes()


@dataclass(frozen=True, slots=True)
class Consistency:
    """Proof that the log of one checkpoint begins with the log of an older one."""

    old: LedgerCheckpoint
    new: LedgerCheckpoint
    hashes: list[bytes]


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key as signed notes name it, and the period in which it signs."""

    vkey: str
    created_at: datetime
    signs_until: datetime | None
    is_past: bool


@dataclass(frozen=True, slots=True)
class CheckpointPage:
    """A page of checkpoints, newest first, and where the next page begins."""

    checkpoints: list[LedgerCheckpoint]
    older: tuple[int, int] | None
    """Cursor for the next page (epoch and size); None on the last page."""
    behind: LedgerCheckpoint | None
    """The first checkpoint of the next page."""


def newest_checkpoint() -> LedgerCheckpoint | None:
    """The newest signed checkpoint of the tenant's log; None without one."""
    checkpoints = LedgerCheckpoint.objects.for_tenant(current_tenant_id())
    return checkpoints.order_by("-epoch", "-size").first()


def checkpoint_of(size: int) -> LedgerCheckpoint:
    """The checkpoint of this size, in the newest epoch that has one. Raises UnsignedError."""
    for of_epoch in _epochs():
        if (checkpoint := of_epoch.filter(size=size).first()) is not None:
            return checkpoint
    raise UnsignedError(f"No signed checkpoint has {size:,} entries.")


def checkpoint_page(before: tuple[int, int] | None, size: int) -> CheckpointPage:
    """A page of checkpoints older than `before` (epoch, size); without it, the newest."""
    checkpoints = LedgerCheckpoint.objects.for_tenant(current_tenant_id())
    if before is not None:
        epoch, at = before
        # Two ranges of the key, as the ORM cannot compare rows.
        same, earlier = (
            checkpoints.filter(epoch=epoch, size__lt=at),
            checkpoints.filter(epoch__lt=epoch),
        )
        page = list(same.order_by("-size")[: size + 1])
        if len(page) <= size:
            page += earlier.order_by("-epoch", "-size")[: size + 1 - len(page)]
    else:
        page = list(checkpoints.order_by("-epoch", "-size")[: size + 1])
    shown = page[:size]
    older = (shown[-1].epoch, shown[-1].size) if len(page) > size else None
    return CheckpointPage(shown, older, page[size] if older else None)


def inclusion(index: int, *, size: int | None = None) -> Inclusion:
    """The proof of one entry against the newest checkpoint, or the one of `size` entries.

    Raises UnsignedError if the checkpoint does not include the entry, AlteredError.
    """
    checkpoint = newest_checkpoint() if size is None else checkpoint_of(size)
    if checkpoint is None or not 0 <= index < checkpoint.size:
        if checkpoint is None:
            raise UnsignedError("The ledger is not signed yet.")
        raise UnsignedError(
            f"Entry {index:,} is not in the signed checkpoint of {checkpoint.size:,} entries."
        )
    tree = StoredTree(current_tenant_id(), checkpoint.size)
    try:
        leaf, hashes = tree.leaf(index), tree.inclusion(index)
        verify_inclusion(leaf, index, checkpoint.size, hashes, bytes(checkpoint.root))
    except LedgerError as error:
        raise AlteredError(f"The ledger differs from what was signed: {error}.") from error
    return Inclusion(index, leaf, hashes, checkpoint)


def consistency(old_size: int, new_size: int) -> Consistency:
    """The proof that the log only grew between two checkpoints. Raises UnsignedError, AlteredError.

    Between epochs there may be no proof: entries signed before a restore may be gone.
    """
    old, new = checkpoint_of(old_size), checkpoint_of(new_size)
    if new.size < old.size:
        raise UnsignedError("The older checkpoint must be the smaller one.")
    try:
        hashes = StoredTree(current_tenant_id(), new.size).consistency(old.size)
        verify_consistency(old.size, bytes(old.root), new.size, bytes(new.root), hashes)
    except LedgerError as error:
        raise AlteredError(f"The ledger differs from what was signed: {error}.") from error
    return Consistency(old, new, hashes)


def tile(wanted: Tile) -> bytes | None:
    """A tile's hashes; None if the tile is not that wide in the newest signed log.

    Raises AlteredError if the tile is lost.
    """
    checkpoint = newest_checkpoint()
    size = 0 if checkpoint is None else checkpoint.size
    there = (size >> (8 * wanted.level)) - (wanted.index << 8)
    if there < wanted.width:
        return None
    data = StoredTree(current_tenant_id(), size).tile(wanted)
    if len(data) != wanted.width * 32:
        raise AlteredError(f"{wanted.path} is missing or incomplete.")
    return data


def public_keys(origin: str, now: datetime) -> list[PublicKey]:
    """The public keys under the name of a log, newest first."""
    return [
        PublicKey(
            str(VerifierKey(origin, bytes(key.public_key))),
            key.created_at,
            key.signs_until,
            key.signs_until is not None and key.signs_until <= now,
        )
        for key in LedgerKey.objects.order_by("-created_at", "public_key")
    ]


def origins() -> list[str]:
    """The log's names, one for each epoch with a signed checkpoint, newest first."""
    firsts = [of_epoch.order_by("size").first() for of_epoch in _epochs()]
    return [first.origin for first in firsts if first is not None]


def _epochs() -> Iterator[QuerySet[LedgerCheckpoint]]:
    """The checkpoints of each epoch, newest epoch first, so that queries use the whole key."""
    newest = newest_checkpoint()
    checkpoints = LedgerCheckpoint.objects.for_tenant(current_tenant_id())
    for epoch in range(-1 if newest is None else newest.epoch, -1, -1):
        yield checkpoints.filter(epoch=epoch)
