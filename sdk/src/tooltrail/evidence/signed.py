"""Reads the checkpoints and keys of a bundle without believing them."""

from collections.abc import Sequence
from dataclasses import dataclass

from tooltrail.evidence.archive import UnreadableError
from tooltrail.ledger import (
    Checkpoint,
    FormatError,
    SignatureError,
    UnknownSignerError,
    VerifierKey,
    open_note,
    parse_note,
)
from tooltrail.ledger.lines import HASH_LENGTH, shown

MAX_KEYS = 1_000


@dataclass(frozen=True, slots=True)
class Signed:
    """A checkpoint, and why it is not to be believed; None if a known key signed it."""

    origin: str
    size: int
    root: bytes
    fault: str | None
    is_unknown: bool = False
    """Whether the fault is only that no known key signed it."""


def read_signed(note: bytes, keys: Sequence[VerifierKey]) -> Signed:
    """Read a checkpoint. A wrong signature is returned as its `fault`, not raised.

    Raises FormatError if it is not a checkpoint.
    """
    text, _ = parse_note(note)
    checkpoint = Checkpoint.parse(text)
    fault, is_unknown = None, False
    try:
        open_note(note, keys)
    except SignatureError as error:
        fault, is_unknown = str(error), isinstance(error, UnknownSignerError)
    return Signed(checkpoint.origin, checkpoint.size, checkpoint.root, fault, is_unknown)


def read_member(note: bytes, size: int, origin: str, keys: Sequence[VerifierKey]) -> Signed:
    """Read a checkpoint that must have this origin and size; any error becomes its `fault`."""
    try:
        signed = read_signed(note, keys)
    except FormatError as error:
        return Signed(origin, size, bytes(HASH_LENGTH), f"not a checkpoint: {error}")
    if signed.origin != origin:
        return Signed(origin, size, signed.root, f"it is from {shown(signed.origin)}")
    if signed.size != size:
        return Signed(origin, size, signed.root, f"it has {signed.size:,} entries")
    return signed


def read_keys(data: bytes) -> tuple[VerifierKey, ...]:
    """Read public keys, one per line. Raises UnreadableError."""
    try:
        lines = data.decode().split()
        if not 1 <= len(lines) <= MAX_KEYS:
            raise UnreadableError(f"a bundle has 1 to {MAX_KEYS} public keys, not {len(lines)}")
        return tuple(VerifierKey.parse(line) for line in lines)
    except (UnicodeDecodeError, FormatError) as error:
        raise UnreadableError(f"its public keys cannot be read: {error}") from error
