"""Proofs of neighbouring entries in one checkpoint, as the JSON that records contain.

All entries of a tile share the upper part of their proofs, so a record costs eight hashes of base64
and no query. Each tile's part is verified against the signed root before it is used.
"""

from collections.abc import Sequence
from uuid import UUID

from tooltrail.ledger import HASH_LENGTH, LedgerError, Tile, node_of, verify_inclusion
from tooltrail.ledger.lines import to_base64
from tooltrail.ledger.tiles import FULL, HEIGHT

from audit.ledger.tree import StoredTree
from audit.models import LedgerCheckpoint


class Proofs:
    """Makes the proofs of entries of one checkpoint. Needs the tenant's scope."""

    def __init__(self, tenant_id: UUID, checkpoint: LedgerCheckpoint) -> None:
        self._size, self._root = checkpoint.size, bytes(checkpoint.root)
        self._tree = StoredTree(tenant_id, checkpoint.size)
        self._number = -1
        self._leaves: Sequence[bytes] = ()
        self._levels: list[list[str]] = []
        self._above = ""

    def proof(self, index: int, leaf: bytes) -> bytes | None:
        """The inclusion proof of an entry as a JSON list; None if the tiles do not prove it.

        Cheap for indexes of the same tile in a row.
        """
        try:
            if (index >> HEIGHT) + 1 << HEIGHT > self._size:  # of the last tile, which is not full
                hashes = self._tree.inclusion(index)
                verify_inclusion(leaf, index, self._size, hashes, self._root)
                return _list([to_base64(each) for each in hashes])
            if index >> HEIGHT != self._number:
                self._load(index >> HEIGHT)
        except LedgerError:
            return None
        at = index & FULL - 1
        if self._leaves[at] != leaf:
            return None
        own = [level[at >> height ^ 1] for height, level in enumerate(self._levels)]
        return b'["' + '","'.join(own).encode() + self._above.encode()

    def _load(self, number: int) -> None:
        """Read a full tile of leaves, and verify that the signed root has it."""
        self._number = -1
        first = number << HEIGHT
        data = self._tree.tile(Tile(0, number, FULL))
        level = [data[at : at + HASH_LENGTH] for at in range(0, len(data), HASH_LENGTH)]
        leaves, levels = level, []
        while len(level) > 1:
            levels.append(level)
            level = [
                node_of(left, right) for left, right in zip(level[::2], level[1::2], strict=True)
            ]
        above = self._tree.inclusion(first)[HEIGHT:]
        proof = [*(each[1] for each in levels), *above]
        verify_inclusion(leaves[0], first, self._size, proof, self._root)
        self._number, self._leaves = number, leaves
        self._levels = [[to_base64(each) for each in one] for one in levels]
        self._above = "".join(f'","{to_base64(each)}' for each in above) + '"]'


def _list(texts: Sequence[str]) -> bytes:
    return ('["' + '","'.join(texts) + '"]').encode() if texts else b"[]"
