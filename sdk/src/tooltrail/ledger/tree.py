"""The Merkle tree of RFC 6962: roots, inclusion and consistency proofs, and their verification.

    node = SHA256(0x01 ‖ left ‖ right), over the leaf hashes that `leaf_of` makes

A proof over n leaves is made from O(log n) hashes of complete subtrees, wherever they are kept.
The functions here request "the root of the complete subtree at level L, index N", which covers
the leaves from N·2^L up to (N + 1)·2^L; level 0 is the leaf itself. `tiles.subtrees_in` makes
such a function.

A proof is about a root, not about a size: trees of different sizes can give a leaf the same
path. Take size and root from the same signed checkpoint, which binds them to each other.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from hashlib import sha256
from typing import NamedTuple

from tooltrail.ledger.errors import ProofError
from tooltrail.ledger.lines import HASH_LENGTH

type Subtree = Callable[[int, int], bytes]
"""A function from level and index to the root of that complete subtree."""

EMPTY_ROOT = sha256(b"").digest()
"""The root of a log without entries."""


class Span(NamedTuple):
    """The leaves of one node of a tree, from `begin` up to but without `end`."""

    begin: int
    end: int


def node_of(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node."""
    return sha256(b"\x01" + left + right).digest()


def root_of(leaves: Iterable[bytes]) -> bytes:
    """The Merkle tree hash of RFC 6962, section 2.1, over leaf hashes.

    Computed level by level; a node without a neighbour moves up unchanged. This gives the same
    tree, because the RFC splits at powers of two, in a quarter less time than leaf by leaf.
    """
    level = list(leaves)
    while len(level) > 1:
        above = [
            sha256(b"\x01" + left + right).digest()
            for left, right in zip(level[::2], level[1::2], strict=False)
        ]
        level = above + level[2 * len(above) :]
    return level[0] if level else EMPTY_ROOT


def tree_root(size: int, subtree: Subtree) -> bytes:
    """The root of the first `size` leaves."""
    return _hash_of(Span(0, size), subtree) if size else EMPTY_ROOT


def inclusion_proof(index: int, size: int, subtree: Subtree, *, height: int = 0) -> list[bytes]:
    """The audit path of RFC 6962, section 2.1.1, from the leaf's sibling up.

    With a `height` from the sibling of the complete subtree of that height, which has the leaf.
    At most ⌈log2(size)⌉ hashes: 27 at 100 million. Raises ProofError if there is no such leaf.
    """
    return [_hash_of(span, subtree) for span in inclusion_spans(index, size)[height:]]


def consistency_proof(old: int, new: int, subtree: Subtree) -> list[bytes]:
    """The proof of RFC 6962, section 2.1.2, that a log of `new` leaves begins with its first `old`.

    At most ⌈log2(new)⌉ + 1 hashes: 28 at 100 million; none if `old` is 0 or both sizes are the
    same. Raises ProofError if the log would have shrunk.
    """
    return [_hash_of(span, subtree) for span in consistency_spans(old, new)]


def verify_inclusion(
    leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes
) -> None:
    """Check that `leaf` is the leaf hash at `index` in the tree of this size and root.

    Raises ProofError if not, or if the proof does not show it.
    """
    _check_hashes(proof, len(proof), root)
    if root_of_inclusion(leaf, index, size, proof) != root:
        raise ProofError(
            f"the entry does not match index {index:,} of this log of {size:,} entries"
        )


def root_of_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes:
    """The root that a proof leads to from `leaf` at `index`. Raises ProofError if it leads nowhere.

    It proves nothing unless something else vouches for the root.
    """
    spans = inclusion_spans(index, size)
    _check_hashes(proof, len(spans), leaf)
    node = leaf
    for span, sibling in zip(spans, proof, strict=True):
        node = node_of(sibling, node) if span.end <= index else node_of(node, sibling)
    return node


def verify_consistency(
    old: int, old_root: bytes, new: int, new_root: bytes, proof: Sequence[bytes]
) -> None:
    """Check that the log with size and root `new` begins with the log with size and root `old`.

    Every log is consistent with an empty log. Raises ProofError if it does not begin so, or if
    the proof does not show it.
    """
    spans = consistency_spans(old, new)
    _check_hashes(proof, len(spans), old_root, new_root)
    if old == 0 or old == new:
        expected = new_root if old == new else EMPTY_ROOT
        if old_root != expected or (new == 0 and new_root != EMPTY_ROOT):
            raise ProofError(f"not two states of the same log: {old:,} and {new:,} entries")
        return
    # The path starts at the old log's rightmost complete subtree: in the proof, or the old root.
    given = bool(spans) and spans[0].end == old
    old_node = new_node = proof[0] if given else old_root
    for span, sibling in list(zip(spans, proof, strict=True))[given:]:
        if span.end <= old:
            old_node, new_node = node_of(sibling, old_node), node_of(sibling, new_node)
        else:
            new_node = node_of(new_node, sibling)
    if old_node != old_root or new_node != new_root:
        raise ProofError(
            f"the log of {new:,} entries does not start with the log of {old:,} entries"
        )


def inclusion_spans(index: int, size: int) -> list[Span]:
    """The spans whose roots are the hashes of `inclusion_proof`, in its order.

    Raises ProofError if there is no such leaf.
    """
    if not 0 <= index < size:
        raise ProofError(f"a log of {size:,} entries has no entry {index:,}")
    here, siblings = Span(0, size), []
    while here.end - here.begin > 1:
        here, sibling = _halves(here, index)
        siblings.append(sibling)
    return siblings[::-1]


def consistency_spans(old: int, new: int) -> list[Span]:
    """The spans whose roots are the hashes of `consistency_proof`, in its order.

    Raises ProofError if the log would have shrunk.
    """
    if not 0 <= old <= new:
        raise ProofError(f"the log shrank from {old:,} to {new:,} entries")
    if old == 0:
        return []
    here, siblings = Span(0, new), []
    while here.end != old:
        here, sibling = _halves(here, old - 1)
        siblings.append(sibling)
    if here.begin:  # else it is the whole old log, whose root the verifier already has
        siblings.append(here)
    return siblings[::-1]


def subtrees_of(span: Span) -> list[tuple[int, int]]:
    """The complete subtrees that make up one node, as level and index, from the left."""
    begin, parts = span.begin, []
    while begin < span.end:
        level = (span.end - begin).bit_length() - 1
        parts.append((level, begin >> level))
        begin += 1 << level
    return parts


def _halves(span: Span, index: int) -> tuple[Span, Span]:
    """The child that contains the leaf, and the other child; the left has 2^k leaves."""
    middle = span.begin + (1 << (span.end - span.begin - 1).bit_length() - 1)
    left, right = Span(span.begin, middle), Span(middle, span.end)
    return (left, right) if index < middle else (right, left)


def _hash_of(span: Span, subtree: Subtree) -> bytes:
    return _joined([subtree(level, index) for level, index in subtrees_of(span)])


def _joined(parts: list[bytes]) -> bytes:
    """The root over complete subtrees of decreasing size."""
    return reduce(lambda right, left: node_of(left, right), reversed(parts))


def _check_hashes(proof: Sequence[bytes], needed: int, *others: bytes) -> None:
    # Before hashing: with wrong lengths, bytes could move from one side of a node to the other.
    if any(len(each) != HASH_LENGTH for each in (*proof, *others)):
        raise ProofError(f"a hash is not {HASH_LENGTH} bytes")
    if len(proof) != needed:
        raise ProofError(f"the proof has {len(proof)} hashes, not {needed}")
