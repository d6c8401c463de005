"""Packs: payloads that lie together, each encrypted with a key of its own. Pure.

A pack is, for each entry in order, a `u32` length (big endian) and a ciphertext; an entry without
payload has length 0. A ciphertext is AES-256-GCM over salt and bytes of the event, compressed one
by one: what they were compressed with together, such as a dictionary, would outlive an erased one.
A key encrypts one text only, so the nonce is always zero. The keys of a pack are 32 bytes for each
entry; zeros where there is none, or where it was destroyed.
"""

import os
import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from audit.archive.layout import ArchiveError
from config.zstd import zstd

KEY_BYTES = 32
NO_KEY = bytes(KEY_BYTES)
ENTRIES_MAX = 4_096
BYTES_MAX = 8 << 20
"""A pack begins anew before it would exceed either limit."""
_LEVEL = 3
_NONCE = bytes(12)
_LENGTH = struct.Struct(">I")
_PLACE = struct.Struct(">16sQ")
_HEAD = struct.Struct(">16sB")
_INFLATED_MAX = 64 << 20


@dataclass(frozen=True, slots=True)
class Payload:
    """What an erasure clears of an event: its bytes, its salt and its own id."""

    event_id: UUID | None
    salt: bytes
    raw: bytes


@dataclass(frozen=True, slots=True)
class SealedPack:
    """A pack and its keys."""

    first_index: int
    end_index: int
    data: bytes
    keys: bytes


def seal(tenant_id: UUID, first_index: int, payloads: Sequence[Payload | None]) -> SealedPack:
    """Encrypt the payloads of consecutive entries, each with a new key."""
    packer = zstd.ZstdCompressor(level=_LEVEL)
    parts: list[bytes] = []
    keys: list[bytes] = []
    for index, payload in enumerate(payloads, first_index):
        if payload is None:
            parts.append(_LENGTH.pack(0))
            keys.append(NO_KEY)
            continue
        key = os.urandom(KEY_BYTES)
        event_id = payload.event_id.bytes if payload.event_id else bytes(16)
        plain = _HEAD.pack(event_id, len(payload.salt)) + payload.salt + payload.raw
        text = packer.compress(plain, packer.FLUSH_FRAME)
        sealed = AESGCM(key).encrypt(_NONCE, text, _PLACE.pack(tenant_id.bytes, index))
        parts += (_LENGTH.pack(len(sealed)), sealed)
        keys.append(key)
    end_index = first_index + len(payloads)
    return SealedPack(first_index, end_index, b"".join(parts), b"".join(keys))


def unseal(tenant_id: UUID, first_index: int, data: bytes, keys: bytes) -> list[Payload | None]:
    """The payloads of a pack; None where there is none, or no key any more.

    Raises ArchiveError if the pack was altered or the keys are another's.
    """
    texts = list(_texts(data))
    if len(keys) != len(texts) * KEY_BYTES:
        raise ArchiveError("the keys are not those of the pack")
    payloads: list[Payload | None] = []
    for position, text in enumerate(texts):
        key = keys[position * KEY_BYTES : (position + 1) * KEY_BYTES]
        if not text or key == NO_KEY:
            payloads.append(None)
            continue
        payloads.append(_opened(key, text, _PLACE.pack(tenant_id.bytes, first_index + position)))
    return payloads


def wrap(secret: bytes, keys: bytes, place: bytes) -> bytes:
    """Encrypt the keys of a pack with a secret that encrypts nothing else."""
    return AESGCM(secret).encrypt(_NONCE, keys, place)


def unwrap(secret: bytes, wrapped: bytes, place: bytes) -> bytes:
    """The keys of a pack. Raises ArchiveError if they were altered or are another's."""
    try:
        return AESGCM(secret).decrypt(_NONCE, wrapped, place)
    except InvalidTag as error:
        raise ArchiveError("the keys of a pack were altered") from error


def has_key(keys: bytes, position: int) -> bool:
    """Whether the payload at a position of a pack has a key."""
    return keys[position * KEY_BYTES : (position + 1) * KEY_BYTES] != NO_KEY


def without_keys(keys: bytes, positions: Collection[int]) -> tuple[bytes, int]:
    """The keys with those at some positions destroyed, and how many there were."""
    left, count = bytearray(keys), 0
    for position in positions:
        at = slice(position * KEY_BYTES, (position + 1) * KEY_BYTES)
        if left[at] not in (NO_KEY, b""):
            left[at] = NO_KEY
            count += 1
    return bytes(left), count


def _opened(key: bytes, text: bytes, place: bytes) -> Payload:
    inflater = zstd.ZstdDecompressor()
    try:
        compressed = AESGCM(key).decrypt(_NONCE, text, place)
        plain = inflater.decompress(compressed, _INFLATED_MAX)
        event_id, salt_length = _HEAD.unpack_from(plain)
    except (InvalidTag, zstd.ZstdError, struct.error) as error:
        raise ArchiveError("a payload of the archive was altered") from error
    if not inflater.eof:
        raise ArchiveError("a payload of the archive was altered")
    begin = _HEAD.size + salt_length
    own_id = UUID(bytes=event_id) if any(event_id) else None
    return Payload(own_id, plain[_HEAD.size : begin], plain[begin:])


def _texts(data: bytes) -> list[bytes]:
    texts, at = [], 0
    while at < len(data):
        if at + _LENGTH.size > len(data):
            raise ArchiveError("a pack of the archive is cut off")
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if at + length > len(data):
            raise ArchiveError("a pack of the archive is cut off")
        texts.append(data[at : at + length])
        at += length
    return texts
