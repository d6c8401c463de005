"""The tree cut into tiles of 256 hashes: https://c2sp.org/tlog-tiles.

Tile N of level L has the roots of the complete subtrees of 256^L leaves, the first of them at
leaf N·256^(L + 1). Only the last tile of a level can be partial; only full ones are hashed into
the level above. A full tile never changes, so that tiles can be kept and served for ever.
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
    """Which tile: its level, its place in the level, and how many hashes it has, 1 to 256."""

    level: int
    index: int
    width: int = FULL

    @property
    def path(self) -> str:
        """Where the log has it, below its prefix: `tile/0/x001/x234/067`, partial `….p/9`."""
        digits = str(self.index)
        digits = digits.zfill(-(-len(digits) // 3) * 3)
        parts = [digits[at : at + 3] for at in range(0, len(digits), 3)]
        number = "/".join([*(f"x{part}" for part in parts[:-1]), parts[-1]])
        return f"tile/{self.level}/{number}" + (f".p/{self.width}" if self.width < FULL else "")

    @classmethod
    def from_path(cls, path: str) -> "Tile":
        """The tile at a path. Raises FormatError if `path` would not be written so."""
        if found := _PATH.fullmatch(path):
            level, number, width = found.groups()
            index = int(number.replace("x", "").replace("/", ""))
            tile = cls(int(level), index, int(width or FULL))
            if tile.level < 64 and 0 < tile.width <= FULL and tile.path == path:
                return tile
        raise FormatError(f"no path of a tile: {shown(path)}")

    def hashes(self, data: bytes) -> list[bytes]:
        """Its content, the concatenated hashes, apart. Raises FormatError at another length."""
        if len(data) != self.width * HASH_LENGTH:
            raise FormatError(
                f"{self.path} has {len(data):,} bytes, not {self.width * HASH_LENGTH:,}"
            )
        return [data[at : at + HASH_LENGTH] for at in range(0, len(data), HASH_LENGTH)]


def tiles_between(old: int, new: int) -> Iterator[Tile]:
    """The tiles a log of `new` leaves has that it did not have, or not as wide, with `old`.

    Level by level, so that each full tile comes before the one its root stands in. From 0: all.
    """
    level = 0
    while new:
        for index in range(old >> HEIGHT, -(-new >> HEIGHT) if new > old else 0):
            yield Tile(level, index, min(FULL, new - index * FULL))
        level, old, new = level + 1, old >> HEIGHT, new >> HEIGHT


def tiles_of_inclusion(index: int, size: int) -> set[Tile]:
    """The tiles from which the inclusion proof is made. Raises ProofError as it does."""
    return _tiles_of(inclusion_spans(index, size), size)


def tiles_of_consistency(old: int, new: int) -> set[Tile]:
    """The tiles of the new log from which the proof is made. Raises ProofError as it does."""
    return _tiles_of(consistency_spans(old, new), new)


def tiles_of_root(size: int) -> set[Tile]:
    """The tiles from which the root of the first `size` leaves is made."""
    return _tiles_of([Span(0, size)], size)


def tiles_of_subtrees(subtrees: Iterable[tuple[int, int]], size: int) -> set[Tile]:
    """The tiles from which these complete subtrees, as level and index, are made."""
    return {_place(level, index, size)[0] for level, index in subtrees}


def subtrees_in(read: Callable[[Tile], bytes], size: int) -> Subtree:
    """What the tree's functions ask of a log of `size` leaves, answered from its tiles.

    `read` gets a tile as wide as it is in a log of that size (who has it wider cuts it) and
    returns its content; each is read once. FormatError goes up if it is not of that length.
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
    """The tile that has a subtree's hashes, the place of the first in it, and how many."""
    level, height = divmod(level, HEIGHT)
    number, first = divmod(index << height, FULL)
    width = min(FULL, (size >> level * HEIGHT) - number * FULL)
    return Tile(level, number, width), first, 1 << height
