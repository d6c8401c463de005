"""Which calls of a population are drawn: repeatable by anybody (docs/sampling.md).

A population is a list of records in the order of the ledger. A record is the ledger index of a
call's first entry (8 bytes, big-endian) and the leaf of that entry (32 bytes).
"""

import hashlib
import re
import struct
from collections.abc import Iterable, Iterator
from heapq import nsmallest

RECORD = struct.Struct(">Q32s")
NONCE = re.compile(r"[0-9a-f]{64}")
"""A nonce: 32 random bytes as hexadecimal digits."""


def commitment_of(nonce: str) -> str:
    """What commits to a nonce, and tells nothing about it: SHA-256 of its digits, as digits."""
    return hashlib.sha256(nonce.encode("ascii")).hexdigest()


def population_digest(population: bytes) -> bytes:
    """The digest of a population's records (32 bytes)."""
    return hashlib.sha256(population).digest()


def seed_of(population: bytes, nonce: str, root: bytes) -> bytes:
    """The seed of a draw (32 bytes): SHA-256 of the population's digest, the nonce and the root.

    `nonce` is '' if the auditor committed to none. `root` is that of the first checkpoint with the
    entry that fixed the population.
    """
    return hashlib.sha256(population + nonce.encode("ascii") + root).digest()


def draw(seed: bytes, indexes: Iterable[int], size: int) -> list[int]:
    """The ledger indexes of `size` calls, in the order in which they are drawn.

    Each call has a ticket, SHA-256 of the seed and its index; the smallest tickets are drawn. So
    no call is drawn twice, and the first calls of a larger sample are those of a smaller one.
    """

    def ticket(index: int) -> bytes:
        return hashlib.sha256(seed + index.to_bytes(8)).digest()

    return nsmallest(size, indexes, key=ticket)


def selection_digest(drawn: Iterable[int]) -> str:
    """SHA-256, as digits, of the drawn indexes (8 bytes each) in the order of the draw."""
    return hashlib.sha256(b"".join(index.to_bytes(8) for index in drawn)).hexdigest()


def indexes_in(population: bytes) -> Iterator[int]:
    """The ledger indexes of a population's records. Raises ValueError for a cut record."""
    if len(population) % RECORD.size:
        raise ValueError("it ends within a record")
    return (index for index, _ in RECORD.iter_unpack(population))
