"""Proofs out of tiles, and what was signed: for pages, API and files. All need the scope.

A proof is checked against the signed root before it is given away: tiles that were altered give
none. Whether the root is the one everybody else was shown, only who keeps checkpoints can tell.
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
    """There is no signed checkpoint of that; the message says what is missing."""


class AlteredError(Exception):
    """Tiles and signed roots do not agree; the message says where."""


@dataclass(frozen=True, slots=True)
class Inclusion:
    """That the log of a checkpoint has this leaf at this index."""

    index: int
    leaf: bytes
    hashes: list[bytes]
    checkpoint: LedgerCheckpoint

    def to_file(self, extra: bytes | None) -> bytes:
        """As C2SP `.tlog-proof`; `extra` is the entry, if it is known."""
        note = self.checkpoint.note.encode()
        return ProofFile(self.index, tuple(self.hashes), note, extra).to_bytes()


@dataclass(frozen=True, slots=True)
class Consistency:
    """That the log of one checkpoint begins with that of an older one."""

    old: LedgerCheckpoint
    new: LedgerCheckpoint
    hashes: list[bytes]


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key as signed notes name it, and the times between which it signs."""

    vkey: str
    created_at: datetime
    signs_until: datetime | None
    is_past: bool


@dataclass(frozen=True, slots=True)
class CheckpointPage:
    """Checkpoints, the newest first, and where the next page begins."""

    checkpoints: list[LedgerCheckpoint]
    older: tuple[int, int] | None
    """Epoch and size."""
    behind: LedgerCheckpoint | None
    """The first of the next page."""


def newest_checkpoint() -> LedgerCheckpoint | None:
    """The last that was signed of the tenant's log."""
    found = LedgerCheckpoint.objects.for_tenant(current_tenant_id())
    return found.order_by("-epoch", "-size").first()


def checkpoint_of(size: int) -> LedgerCheckpoint:
    """The checkpoint of a size, in the newest epoch that has one. Raises UnsignedError."""
    for of_epoch in _epochs():
        if (checkpoint := of_epoch.filter(size=size).first()) is not None:
            return checkpoint
    raise UnsignedError(f"No checkpoint of {size:,} entries was signed.")


def checkpoint_page(before: tuple[int, int] | None, size: int) -> CheckpointPage:
    """Those behind an epoch and size; from the newest without."""
    found = LedgerCheckpoint.objects.for_tenant(current_tenant_id())
    if before is not None:
        epoch, at = before
        # Two ranges of the key, as rows cannot be compared by the ORM.
        same, earlier = found.filter(epoch=epoch, size__lt=at), found.filter(epoch__lt=epoch)
        page = list(same.order_by("-size")[: size + 1])
        if len(page) <= size:
            page += earlier.order_by("-epoch", "-size")[: size + 1 - len(page)]
    else:
        page = list(found.order_by("-epoch", "-size")[: size + 1])
    shown = page[:size]
    older = (shown[-1].epoch, shown[-1].size) if len(page) > size else None
    return CheckpointPage(shown, older, page[size] if older else None)


def inclusion(index: int, *, size: int | None = None) -> Inclusion:
    """The proof of one entry against the newest checkpoint, or that of `size` entries.

    Raises UnsignedError where no checkpoint has the entry, AlteredError.
    """
    checkpoint = newest_checkpoint() if size is None else checkpoint_of(size)
    if checkpoint is None or not 0 <= index < checkpoint.size:
        what = "nothing was signed yet" if checkpoint is None else f"it has {checkpoint.size:,}"
        raise UnsignedError(f"The checkpoint does not have the entry {index:,}: {what}.")
    tree = StoredTree(current_tenant_id(), checkpoint.size)
    try:
        leaf, hashes = tree.leaf(index), tree.inclusion(index)
        verify_inclusion(leaf, index, checkpoint.size, hashes, bytes(checkpoint.root))
    except LedgerError as error:
        raise AlteredError(f"The ledger is not what was signed: {error}.") from error
    return Inclusion(index, leaf, hashes, checkpoint)


def consistency(old_size: int, new_size: int) -> Consistency:
    """The proof that the newer of two checkpoints only added. Raises UnsignedError, AlteredError.

    Between epochs there may be none: what was signed last before a restore is gone.
    """
    old, new = checkpoint_of(old_size), checkpoint_of(new_size)
    if new.size < old.size:
        raise UnsignedError("The older of two checkpoints is the smaller one.")
    try:
        hashes = StoredTree(current_tenant_id(), new.size).consistency(old.size)
        verify_consistency(old.size, bytes(old.root), new.size, bytes(new.root), hashes)
    except LedgerError as error:
        raise AlteredError(f"The ledger is not what was signed: {error}.") from error
    return Consistency(old, new, hashes)


def tile(wanted: Tile) -> bytes | None:
    """A tile's hashes, None if the newest signed log does not have it as wide.

    Raises AlteredError where it is lost.
    """
    checkpoint = newest_checkpoint()
    size = 0 if checkpoint is None else checkpoint.size
    there = (size >> (8 * wanted.level)) - (wanted.index << 8)
    if there < wanted.width:
        return None
    data = StoredTree(current_tenant_id(), size).tile(wanted)
    if len(data) != wanted.width * 32:
        raise AlteredError(f"{wanted.path} is lost, or a part of it.")
    return data


def public_keys(origin: str, now: datetime) -> list[PublicKey]:
    """The keys of a log by name, the newest first."""
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
    """The names of the tenant's log, of each epoch in which something was signed, newest first."""
    firsts = [of_epoch.order_by("size").first() for of_epoch in _epochs()]
    return [first.origin for first in firsts if first is not None]


def _epochs() -> Iterator[QuerySet[LedgerCheckpoint]]:
    """The checkpoints by epoch, the newest first: each asked with the whole of the key."""
    newest = newest_checkpoint()
    found = LedgerCheckpoint.objects.for_tenant(current_tenant_id())
    for epoch in range(-1 if newest is None else newest.epoch, -1, -1):
        yield found.filter(epoch=epoch)
