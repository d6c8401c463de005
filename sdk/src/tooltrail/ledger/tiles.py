"""The tree cut into tiles of 256 hashes: https://c2sp.org/tlog-tiles.

Tile N of level L holds the roots of complete subtrees of 256^L leaves each; the first one starts
at leaf N·256^(L + 1). Only the last tile of a level can be partial; only full tiles are hashed
into the level above. A full tile never changes, so it can be stored and served forever.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tooltrail.ledger.errors import FormatError
from tooltrail.ledger.lines import HASH_LENGTH, shown
from tooltrail.ledger.tree import (
    Span,
    Subtree,
    consistency_spans,
    inclusion_spans,
    root_of,
    subtrees_of,
)

HEIGHT = 8
FULL = 1 << HEIGHT
"""How many hashes a full tile has."""

_PATH = re.compile(r"tile/([0-9]{1,2})/((?:x[0-9]{3}/){0,6}[0-9]{3})(?:\.p/([0-9]{1,3}))?")


@dataclass(frozen=True, slots=True, order=True)
class Tile:
    """Names a tile: its level, its index in the level, and how many hashes it has, 1 to 256."""

    level: int
    index: int
    width: int = FULL

    @property
    def path(self) -> str:
        """Its path below the log's prefix: `tile/0/x001/x234/067`, a partial one `….p/9`."""
        digits = str(self.index)
        digits = digits.zfill(-(-len(digits) // 3) * 3)
        parts = [digits[at : at + 3] for at in range(0, len(digits), 3)]
        number = "/".join([*(f"x{part}" for part in parts[:-1]), parts[-1]])
        return f"tile/{self.level}/{number}" + (f".p/{self.width}" if self.width < FULL else "")

    @classmethod
    def from_path(cls, path: str) -> "Tile":
        """Read a path. Raises FormatError if `path` is not exactly as `Tile.path` writes it."""
        if match := _PATH.fullmatch(path):
            level, number, width = match.groups()
            index = int(number.replace("x", "").replace("/", ""))
            tile = cls(int(level), index, int(width or FULL))
            if tile.level < 64 and 0 < tile.width <= FULL and tile.path == path:
                return tile
        raise FormatError(f"not a tile path: {shown(path)}")

    def hashes(self, data: bytes) -> list[bytes]:
        """Split the tile's content into hashes. Raises FormatError if its length is wrong."""
        if len(data) != self.width * HASH_LENGTH:
            raise FormatError(
                f"{self.path} has {len(data):,} bytes, not {self.width * HASH_LENGTH:,}"
            )
        return [data[at : at + HASH_LENGTH] for at in range(0, len(data), HASH_LENGTH)]


def tiles_between(old: int, new: int) -> Iterator[Tile]:
    """The tiles that a log of `new` leaves has and a log of `old` leaves lacks, or has narrower.

    Level by level, so that each full tile comes before the tile with its root. From 0: all.
    """
    level = 0
    while new:
        for index in range(old >> HEIGHT, -(-new >> HEIGHT) if new > old else 0):
            yield Tile(level, index, min(FULL, new - index * FULL))
        level, old, new = level + 1, old >> HEIGHT, new >> HEIGHT


def tiles_of_inclusion(index: int, size: int) -> set[Tile]:
    """The tiles needed for an inclusion proof. Raises ProofError as `inclusion_proof` does."""
    return _tiles_of(inclusion_spans(index, size), size)


def tiles_of_consistency(old: int, new: int) -> set[Tile]:
    """The tiles of the new log needed for a consistency proof. Raises ProofError, as it does."""
    return _tiles_of(consistency_spans(old, new), new)


def tiles_of_root(size: int) -> set[Tile]:
    """The tiles needed for the root of the first `size` leaves."""
    return _tiles_of([Span(0, size)], size)


def tiles_of_subtrees(subtrees: Iterable[tuple[int, int]], size: int) -> set[Tile]:
    """The tiles needed for these complete subtrees, given as level and index."""
    return {_place(level, index, size)[0] for level, index in subtrees}


def subtrees_in(read: Callable[[Tile], bytes], size: int) -> Subtree:
    """Make a `Subtree` function for a log of `size` leaves that reads the log's tiles.

    `read` gets each tile once, as wide as it is in a log of that size, and returns its content.
    If the stored tile is wider, `read` must cut it. Raises FormatError if the length is wrong.
    """
    known: dict[Tile, list[bytes]] = {}

    def subtree(level: int, index: int) -> bytes:
        tile, first, count = _place(level, index, size)
        if tile not in known:
            known[tile] = tile.hashes(read(tile))
        return root_of(known[tile][first : first + count])

    return subtree


def _tiles_of(spans: Iterable[Span], size: int) -> set[Tile]:
    return {_place(*part, size)[0] for span in spans for part in subtrees_of(span)}


def _place(level: int, index: int, size: int) -> tuple[Tile, int, int]:
    """The tile with a subtree's hashes, the position of the first in it, and their number."""
    level, height = divmod(level, HEIGHT)
    number, first = divmod(index << height, FULL)
    width = min(FULL, (size >> level * HEIGHT) - number * FULL)
    return Tile(level, number, width), first, 1 << height
