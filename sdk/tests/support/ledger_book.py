"""The tree exactly as RFC 6962, section 2.1, defines it, by slices: slow, but simple."""

from functools import cache
from hashlib import sha256

from tooltrail.ledger import Subtree, leaf_of

LEAVES = [leaf_of(f"entry {number}".encode()) for number in range(70_000)]


@cache
def mth(begin: int, end: int) -> bytes:
    """MTH(D[begin:end]) over LEAVES."""
    if end - begin == 1:
        return LEAVES[begin]
    middle = begin + split(end - begin)
    return sha256(b"\x01" + mth(begin, middle) + mth(middle, end)).digest()


def path(m: int, begin: int, end: int) -> list[bytes]:
    """PATH(m, D[begin:end]), m counted from `begin`."""
    if end - begin == 1:
        return []
    k = split(end - begin)
    if m < k:
        return [*path(m, begin, begin + k), mth(begin + k, end)]
    return [*path(m - k, begin + k, end), mth(begin, begin + k)]


def subproof(m: int, begin: int, end: int, known: bool) -> list[bytes]:
    """SUBPROOF(m, D[begin:end], known); PROOF(m, D[n]) is SUBPROOF(m, D[0:n], true)."""
    if m == end - begin:
        return [] if known else [mth(begin, end)]
    k = split(end - begin)
    if m <= k:
        return [*subproof(m, begin, begin + k, known), mth(begin + k, end)]
    return [*subproof(m - k, begin + k, end, False), mth(begin, begin + k)]


def split(size: int) -> int:
    """The largest power of two below `size`."""
    k = 1
    while k * 2 < size:
        k *= 2
    return k


def subtree(level: int, index: int) -> bytes:
    """The complete subtrees over LEAVES."""
    return mth(index << level, (index + 1) << level)


def alike(leaf: bytes) -> Subtree:
    """The subtrees of a log of any size in which every leaf is `leaf`."""
    levels = [leaf]
    while len(levels) < 63:
        levels.append(sha256(b"\x01" + levels[-1] * 2).digest())
    return lambda level, _: levels[level]


def flips(data: bytes) -> list[bytes]:
    """Every text that differs from `data` in a single bit."""
    whole = int.from_bytes(data)
    return [(whole ^ 1 << bit).to_bytes(len(data)) for bit in range(len(data) * 8)]
