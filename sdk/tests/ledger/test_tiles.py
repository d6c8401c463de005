"""Names and contents of tiles; a proof needs only the tiles it names."""

import random
from collections import Counter
from itertools import pairwise

import pytest
from tooltrail.ledger import (
    FormatError,
    Tile,
    consistency_proof,
    inclusion_proof,
    root_of,
    subtrees_in,
    tiles_between,
    tiles_of_consistency,
    tiles_of_inclusion,
    tiles_of_root,
    tree_root,
)

from sdk.tests.support.ledger_book import (
    LEAVES,
    path,
    subproof,
    subtree,
)


class Kept:
    """A log's tiles as a worker writes them, and which of them were read since."""

    def __init__(self) -> None:
        self.size = 0
        self.tiles: dict[Tile, bytes] = {}
        self.read: list[Tile] = []

    def grow(self, size: int) -> None:
        """Level by level, from the leaves and from the full tiles below."""
        for tile in tiles_between(self.size, size):
            first = tile.index * 256
            numbers = range(first, first + tile.width)
            below = [Tile(tile.level - 1, number) for number in numbers]
            self.tiles[tile] = (
                b"".join(root_of(each.hashes(self.tiles[each])) for each in below)
                if tile.level
                else b"".join(LEAVES[first : first + tile.width])
            )
        self.size = size

    def __call__(self, tile: Tile) -> bytes:
        self.read.append(tile)
        return self.tiles[tile]


@pytest.mark.parametrize(
    ("tile", "path"),
    [
        (Tile(0, 1_234_067), "tile/0/x001/x234/067"),  # the specification's example
        (Tile(0, 0), "tile/0/000"),
        (Tile(0, 999, 1), "tile/0/999.p/1"),
        (Tile(1, 1_000, 255), "tile/1/x001/000.p/255"),
        (Tile(63, 0, 17), "tile/63/000.p/17"),
        (Tile(0, (1 << 55) - 1), "tile/0/x036/x028/x797/x018/x963/967"),
    ],
)
def test_tile_and_path_convert_both_ways(tile: Tile, path: str) -> None:
    assert tile.path == path
    assert Tile.from_path(path) == tile


@pytest.mark.parametrize(
    "path",
    [
        *("", "tile/0/", "tile/0/0", "tile/0/67", "tile/0/x000/001", "tile/0/001/002"),
        *("tile/00/001", "tile/64/001", "tile/-1/001", "tile/0/001.p/0", "tile/0/001.p/256"),
        *("tile/0/001.p/01", "tile/0/001.p/", "tile/0/x01", "/tile/0/001", "tile/0/٠٠١"),
        *("tile/0/001\n", "tile/8/0/001", "tile/entries/001", "tile/0/../001"),
        pytest.param("tile/0/" + "x999/" * 5_000 + "999", id="long"),
    ],
)
def test_invalid_tile_path_is_rejected(path: str) -> None:
    with pytest.raises(FormatError, match="not a tile path"):
        Tile.from_path(path)


def test_tree_has_the_tiles_of_the_specification() -> None:
    tiles = list(tiles_between(0, 70_000))
    assert Counter((tile.level, tile.width) for tile in tiles) == {
        (0, 256): 273,
        (0, 112): 1,
        (1, 256): 1,
        (1, 17): 1,
        (2, 1): 1,
    }
    assert list(tiles_between(0, 256)) == [Tile(0, 0), Tile(1, 0, 1)]
    assert list(tiles_between(0, 0)) == list(tiles_between(300, 300)) == []


def test_tiles_between_sizes_are_the_newly_added_tiles() -> None:
    some = random.Random(0)
    sizes = sorted({0, 1, 255, 256, 257, 65_535, 65_536, 65_537, *some.sample(range(70_000), 40)})
    for old, new in pairwise(sizes):
        added = set(tiles_between(0, new)) - set(tiles_between(0, old))
        assert list(tiles_between(old, new)) == sorted(added)


def test_tile_of_wrong_length_is_rejected() -> None:
    tile = Tile(0, 3, 2)
    assert tile.hashes(b"a" * 32 + b"b" * 32) == [b"a" * 32, b"b" * 32]
    for length in (0, 32, 63, 65, 96):
        with pytest.raises(FormatError, match=r"tile/0/003\.p/2 has .* bytes, not 64"):
            tile.hashes(bytes(length))


@pytest.mark.slow
def test_proofs_from_tiles_match_rfc_6962_and_read_only_the_listed_tiles() -> None:
    some, kept = random.Random(0), Kept()
    for size in (1, 2, 255, 256, 257, 300, 511, 512, 5_000, 65_535, 65_536, 65_537, 70_000):
        old = kept.size
        kept.grow(size)

        kept.read = []
        assert tree_root(size, subtrees_in(kept, size)) == tree_root(size, subtree)
        assert len(kept.read) == len(tiles_of_root(size))
        assert set(kept.read) == tiles_of_root(size)
        for index in {0, size - 1, old, *(some.randrange(size) for _ in range(10))}:
            kept.read = []
            proof = inclusion_proof(index, size, subtrees_in(kept, size))
            assert proof == path(index, 0, size)
            assert set(kept.read) == tiles_of_inclusion(index, size)

            kept.read = []
            proof = consistency_proof(index + 1, size, subtrees_in(kept, size))
            assert proof == subproof(index + 1, 0, size, True)
            assert set(kept.read) == tiles_of_consistency(index + 1, size)


def test_proof_in_a_log_of_100_million_needs_at_most_7_tiles() -> None:
    size, some = 100_000_000, random.Random(0)
    for index in (0, size - 1, *(some.randrange(size) for _ in range(300))):
        assert len(tiles_of_inclusion(index, size)) <= 7
        assert len(tiles_of_consistency(index + 1, size)) <= 7
