"""Turns the bytes of an event into its leaf in the tenant's Merkle log.

    commit = SHA256(0x02 ‖ salt ‖ raw)
    entry  = version u8, kind u8, event_id 16, invocation_id 16, received_us u64, raw_len u32,
             commit 32 (big endian)
    leaf   = SHA256(0x00 ‖ entry), a leaf of RFC 6962
The salt protects erased bytes from guessing: without it the commitment reveals nothing.
"""

import struct
from enum import IntEnum
from hashlib import sha256
from uuid import UUID

import msgspec

VERSION = 1
SALT_LENGTH = 32
NO_INVOCATION = UUID(int=0)
"""The invocation id in the entry of an event that belongs to no invocation (a gap)."""

_ENTRY = struct.Struct(">BB16s16sQI32s")


class Kind(IntEnum):
    """What an entry records. Executors send starts, ends, gaps and decisions.

    The server makes the others. A finding is a violation in the output of an end event, in the
    batch of that end. A definition is a change of the definitions of a server's tools. The
    baseline has the digests of the rows that existed before actions named them. A verifier need not
    know a kind: it can still prove the entry.
    """

    START = 1
    END = 2
    GAP = 3
    ACTION = 4
    ERASURE = 5
    RETENTION = 6
    HOLD = 7
    KEY = 8
    EPOCH = 9
    FINDING = 10
    DECISION = 11
    DEFINITION = 12
    BASELINE = 13


class Entry(msgspec.Struct, frozen=True, gc=False):
    """What the ledger stores about one event. `received_us` is microseconds since 1970 in UTC."""

    kind: Kind
    event_id: UUID
    invocation_id: UUID
    received_us: int
    raw_length: int
    commit: bytes

    def to_bytes(self) -> bytes:
        """The entry in its only form: 78 bytes."""
        return _ENTRY.pack(
            VERSION,
            self.kind,
            self.event_id.bytes,
            self.invocation_id.bytes,
            self.received_us,
            self.raw_length,
            self.commit,
        )


def commit_of(salt: bytes, raw: bytes) -> bytes:
    """The commitment to an event's bytes: SHA256(0x02 ‖ salt ‖ raw)."""
    return sha256(b"\x02" + salt + raw).digest()


def leaf_of(entry: bytes) -> bytes:
    """The leaf hash of an entry's bytes: SHA256(0x00 ‖ entry)."""
    return sha256(b"\x00" + entry).digest()
