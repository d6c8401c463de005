"""The Merkle tree of a tenant's ledger, read from its stored tiles."""

from collections.abc import Callable, Collection, Iterable, Sequence
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS
from tooltrail.ledger import (
    HASH_LENGTH,
    Subtree,
    Tile,
    consistency_proof,
    inclusion_proof,
    subtrees_in,
    tiles_of_consistency,
    tiles_of_inclusion,
    tiles_of_root,
    tiles_of_subtrees,
    tree_root,
)

from audit.sql import arrays
from audit.sql.run import run


class StoredTree:
    """The first `size` entries of a tenant's ledger. Needs the tenant's scope on `using`.

    Each call costs one query for at most two tiles of each level; 100 million entries have four
    levels. Tiles that were read are kept. Raises FormatError if a tile is missing or too narrow.
    Whether the hashes are right can be verified only with a signed root.
    """

    def __init__(self, tenant_id: UUID, size: int, *, using: str = DEFAULT_DB_ALIAS) -> None:
        self._tenant_id = tenant_id
        self.size = size
        self._using = using
        self._known: dict[tuple[int, int], bytes] = {}

    def root(self) -> bytes:
        """The RFC 6962 root."""
        return tree_root(self.size, self._subtrees(tiles_of_root(self.size)))

    def inclusion(self, index: int, *, height: int = 0) -> list[bytes]:
        """The proof that the tree has the entry at `index`. Raises ProofError beyond its end.

        With a `height` that it has the complete subtree of that height with the entry.
        """
        tiles = tiles_of_inclusion(index, self.size)
        return inclusion_proof(index, self.size, self._subtrees(tiles), height=height)

    def read_ahead(self, indexes: Iterable[int]) -> None:
        """Read the tiles for the inclusion proofs of several entries, in one query."""
        self._read(set().union(*(tiles_of_inclusion(index, self.size) for index in indexes)))

    def consistency(self, old: int) -> list[bytes]:
        """The proof that the tree extends that of its first `old` entries. Raises ProofError."""
        tiles = tiles_of_consistency(old, self.size)
        return consistency_proof(old, self.size, self._subtrees(tiles))

    def hashes(self, subtrees: Sequence[tuple[int, int]]) -> list[bytes]:
        """The roots of complete subtrees, given as level and index."""
        read = self._subtrees(tiles_of_subtrees(subtrees, self.size))
        return [read(*subtree) for subtree in subtrees]

    def leaf(self, index: int) -> bytes:
        """The leaf hash at `index`, which must be below the size."""
        return self._subtrees({self._tile_of(index)})(0, index)

    def tile(self, tile: Tile) -> bytes:
        """A tile's hashes, as wide as `tile`, which must not be wider than this tree's tile."""
        self._read({tile})
        return self._known[tile.level, tile.index][: tile.width * HASH_LENGTH]

    def _tile_of(self, index: int) -> Tile:
        number = index >> 8
        return Tile(0, number, min(256, self.size - (number << 8)))

    def _subtrees(self, tiles: Collection[Tile]) -> Subtree:
        self._read(tiles)
        read: Callable[[Tile], bytes] = self.tile
        return subtrees_in(read, self.size)

    def _read(self, tiles: Collection[Tile]) -> None:
        missing = [tile for tile in tiles if (tile.level, tile.index) not in self._known]
        if not missing:
            return
        rows = run(
            "tiles",
            tenant_id=self._tenant_id,
            using=self._using,
            levels=arrays.ints([tile.level for tile in missing]),
            indexes=arrays.bigints([tile.index for tile in missing]),
            widths=arrays.ints([tile.width for tile in missing]),
        )
        self._known |= {(tile.level, tile.index): b"" for tile in missing}
        self._known |= {(level, index): hashes for level, index, hashes in rows}
