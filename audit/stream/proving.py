"""Proofs of neighbouring entries in one checkpoint, as the JSON that records contain.

Entries of a tile share the upper part of their proofs, and neighbours more than that: so the proofs
of a tile are written at once, from the top down. Each tile is verified against the signed root
before it is used.
"""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from uuid import UUID

from tooltrail.ledger import LedgerError, Tile, node_of, verify_inclusion
from tooltrail.ledger.tiles import FULL, HEIGHT

from audit.ledger.tree import StoredTree
from audit.models import LedgerCheckpoint


def levels_of(leaves: Sequence[bytes]) -> list[Sequence[bytes]]:
    """The nodes of a tree (RFC 6962) level by level, from the leaves to the root."""
    levels = [leaves]
    while len(below := levels[-1]) > 1:
        pairs = zip(below[::2], below[1::2], strict=False)
        above = [node_of(left, right) for left, right in pairs]
        levels.append([*above, *below[2 * len(above) :]])
    return levels


def proofs_of(levels: Sequence[Sequence[bytes]], above: Iterable[bytes] = ()) -> list[bytes]:
    """The inclusion proof of each leaf, as a JSON list. `above`: what follows in all of them."""
    texts = [b"".join([b',"%b"' % b64encode(each) for each in above])]
    for level in reversed(levels[:-1]):
        own = [b',"%b"' % b64encode(each) for each in level]
        texts = [
            # A node without a neighbour moved up.
            own[at ^ 1] + texts[at >> 1] if at ^ 1 < len(own) else texts[at >> 1]
            for at in range(len(own))
        ]
    return [b"[%b]" % text[1:] for text in texts]


class Proofs:
    """Makes the proofs of entries of one checkpoint. Needs the tenant's scope."""

    def __init__(self, tenant_id: UUID, checkpoint: LedgerCheckpoint) -> None:
        self._size, self._root = checkpoint.size, bytes(checkpoint.root)
        self._tree = StoredTree(tenant_id, checkpoint.size)
        self._number = -1
        self._leaves: Sequence[bytes] = ()
        self._proofs: Sequence[bytes] = ()

    def read_ahead(self, indexes: Iterable[int]) -> None:
        """Read what the proofs of these entries need, in one query."""
        self._tree.read_ahead({index & -FULL for index in indexes})

    def proof(self, index: int, leaf: bytes) -> bytes | None:
        """The inclusion proof of an entry as a JSON list; None if the tiles do not prove it.

        Cheap for indexes of the same tile in a row.
        """
        try:
            if (index >> HEIGHT) + 1 << HEIGHT > self._size:  # of the last tile, which is not full
                hashes = self._tree.inclusion(index)
                verify_inclusion(leaf, index, self._size, hashes, self._root)
                return proofs_of([[leaf]], hashes)[0]
            if index >> HEIGHT != self._number:
                self._load(index >> HEIGHT)
        except LedgerError:
            return None
        at = index & FULL - 1
        return self._proofs[at] if self._leaves[at] == leaf else None

    def _load(self, number: int) -> None:
        """Read a full tile of leaves, and verify that the signed root has it."""
        self._number = -1
        tile, first = Tile(0, number), number << HEIGHT
        levels = levels_of(tile.hashes(self._tree.tile(tile)))
        above = self._tree.inclusion(first, height=HEIGHT)
        proof = [*(each[1] for each in levels[:-1]), *above]
        verify_inclusion(levels[0][0], first, self._size, proof, self._root)
        self._number, self._leaves = number, levels[0]
        self._proofs = proofs_of(levels, above)
