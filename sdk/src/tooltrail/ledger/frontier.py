"""A growing log's tree, reduced to the hashes needed to append further leaves.

For n leaves these are the roots of the complete subtrees whose sizes add up to n, one for each
1 among the binary digits of n. The root of the whole log follows from them, the leaves from
`begin` up to `end`, and the roots of the complete subtrees behind `end`. So a range of leaves is
proved in one pass.
"""

from collections.abc import Sequence
from functools import reduce
from hashlib import sha256

from tooltrail.ledger.errors import ProofError
from tooltrail.ledger.lines import HASH_LENGTH
from tooltrail.ledger.tree import EMPTY_ROOT, Span, node_of, subtrees_of

_PAIR = 2 * HASH_LENGTH
_LEVELS = 64


class Frontier:
    """A log of `size` leaves to which leaves can be appended."""

    __slots__ = ("_nodes", "size")

    def __init__(self, size: int = 0, hashes: Sequence[bytes] = ()) -> None:
        """Start after `size` leaves, given the roots of `subtrees_before(size)`.

        Raises ProofError if their number or length is wrong.
        """
        subtrees = subtrees_before(size)
        _check(hashes, len(subtrees))
        self.size = size
        self._nodes: list[bytes] = [b""] * _LEVELS
        for (level, _), node in zip(subtrees, hashes, strict=True):
            self._nodes[level] = node

    def extend(self, leaves: bytes | bytearray) -> None:
        """Append concatenated leaf hashes; takes about 0.7 µs per leaf."""
        self.size += len(leaves) // HASH_LENGTH
        level, nodes = 0, bytes(leaves)
        while nodes:
            if waiting := self._nodes[level]:
                nodes, self._nodes[level] = waiting + nodes, b""
            if len(nodes) % _PAIR:
                nodes, self._nodes[level] = nodes[:-HASH_LENGTH], nodes[-HASH_LENGTH:]
            nodes = b"".join(
                [
                    sha256(b"\x01" + nodes[at : at + _PAIR]).digest()
                    for at in range(0, len(nodes), _PAIR)
                ]
            )
            level += 1

    def finish(self, size: int, hashes: Sequence[bytes]) -> None:
        """Append the rest of a log of `size` leaves, given the roots of `subtrees_behind`.

        Raises ProofError if their number or length is wrong.
        """
        subtrees = subtrees_behind(self.size, size)
        _check(hashes, len(subtrees))
        for (level, _), node in zip(subtrees, hashes, strict=True):
            while left := self._nodes[level]:
                node, self._nodes[level] = node_of(left, node), b""
                level += 1
            self._nodes[level] = node
        self.size = size

    @property
    def root(self) -> bytes:
        """The root of the log in its current state."""
        nodes = [node for node in self._nodes if node]
        return reduce(lambda right, left: node_of(left, right), nodes) if nodes else EMPTY_ROOT

    def copy(self) -> "Frontier":
        """Make an independent copy."""
        other = Frontier()
        other.size, other._nodes = self.size, self._nodes.copy()
        return other


def subtrees_before(size: int) -> list[tuple[int, int]]:
    """The complete subtrees of a log's first `size` leaves, as level and index, from the left."""
    return subtrees_of(Span(0, size))


def subtrees_behind(begin: int, size: int) -> list[tuple[int, int]]:
    """The complete subtrees from leaf `begin` to the end of a log of `size` leaves.

    Raises ProofError if `begin` is beyond the log.
    """
    if not 0 <= begin <= size:
        raise ProofError(f"a log of {size:,} entries ends before {begin:,}")
    parts = []
    while begin < size:
        level = (size - begin).bit_length() - 1
        if begin:
            level = min(level, (begin & -begin).bit_length() - 1)
        parts.append((level, begin >> level))
        begin += 1 << level
    return parts


def _check(hashes: Sequence[bytes], needed: int) -> None:
    if len(hashes) != needed:
        raise ProofError(f"the proof has {len(hashes)} hashes, not {needed}")
    if any(len(each) != HASH_LENGTH for each in hashes):
        raise ProofError(f"a hash is not {HASH_LENGTH} bytes")
