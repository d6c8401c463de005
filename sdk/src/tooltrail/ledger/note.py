"""A text with the signatures of one or more keys below it: https://c2sp.org/signed-note.

<text, ending in a newline>
<an empty line>
— <key name> <base64 of key id ‖ signature>      once or more
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tooltrail.ledger.errors import FormatError, UnknownSignerError
from tooltrail.ledger.keys import Signer, VerifierKey, check_name
from tooltrail.ledger.lines import from_base64, shown, to_base64

MAX_LENGTH = 1_000_000
"""In bytes; the specification lets the reader choose the limit."""
MAX_SIGNATURES = 100

_CONTROL = re.compile("[\x00-\x09\x0b-\x1f]")


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature line of a note: the signer's name, the key's id and the signature itself."""

    name: str
    key_id: bytes
    signature: bytes

    def __str__(self) -> str:
        return f"— {self.name} {to_base64(self.key_id + self.signature)}\n"

    @classmethod
    def parse(cls, line: str) -> "Signature":
        """Read a line without its newline. Raises FormatError."""
        parts = line.split(" ")
        if len(parts) != 3 or parts[0] != "—":
            raise FormatError(f"a signature line must be '— name base64', not {shown(line)}")
        name = parts[1]
        check_name(name)
        data = from_base64(parts[2], f"the signature of {shown(name)}")
        if len(data) < 5:
            raise FormatError(f"the signature of {shown(name)} is too short")
        return cls(name, data[:4], data[4:])


@dataclass(frozen=True, slots=True)
class OpenedNote:
    """The text of a note, the known keys that signed it, and the signatures of unknown keys."""

    text: str
    signers: tuple[VerifierKey, ...]
    unknown: tuple[Signature, ...]


def sign_note(text: str, keys: Sequence[Signer]) -> bytes:
    """Make a note with the signature of each key.

    Raises FormatError if the text or the number of keys is invalid, and ImportError without the
    extra `verify`.
    """
    if not text.endswith("\n"):
        raise FormatError("the text of a note must end with a newline")
    if not 1 <= len(keys) <= MAX_SIGNATURES:
        raise FormatError(f"a note must be signed by 1 to {MAX_SIGNATURES} keys, not {len(keys)}")
    _check_text(text)
    signed = [Signature(key.name, key.verifier.key_id, key.sign(text.encode())) for key in keys]
    return "".join([text, "\n", *map(str, signed)]).encode()


def parse_note(note: bytes) -> tuple[str, list[Signature]]:
    """Split a note into text and signatures without checking them: do not trust the result.

    Raises FormatError with what is wrong.
    """
    if len(note) > MAX_LENGTH:
        raise FormatError(f"a note has up to {MAX_LENGTH:,} bytes, not {len(note):,}")
    try:
        whole = note.decode()
    except UnicodeDecodeError:
        raise FormatError("a note must be UTF-8") from None
    _check_text(whole)
    text, empty_line, below = whole.rpartition("\n\n")
    if not empty_line or not below.endswith("\n"):
        raise FormatError("a note must have text, an empty line, and complete signature lines")
    lines = below[:-1].split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise FormatError(f"a note has up to {MAX_SIGNATURES} signatures, not {len(lines)}")
    return text + "\n", [Signature.parse(line) for line in lines]


def open_note(note: bytes, keys: Iterable[VerifierKey]) -> OpenedNote:
    """Read a note and check every signature of a known key.

    Signatures of unknown keys are not checked. Raises FormatError if it is not a note,
    SignatureError if a known key's signature is wrong or none is there, and ImportError without
    the extra `verify`.
    """
    known: dict[tuple[str, bytes], VerifierKey] = {}
    for key in keys:
        if known.setdefault((key.name, key.key_id), key) != key:
            raise FormatError(f"two keys of {shown(key.name)} share the id {key.key_id.hex()}")
    text, signatures = parse_note(note)
    signers: dict[VerifierKey, None] = {}
    unknown = []
    for signature in signatures:
        signer = known.get((signature.name, signature.key_id))
        if signer is None:
            unknown.append(signature)
        else:
            signer.verify(text, signature.signature)
            signers[signer] = None
    if not signers:
        names = ", ".join(f"{shown(each.name)} ({each.key_id.hex()})" for each in unknown[:3])
        raise UnknownSignerError(f"no known key signed the note; these are unknown: {names}")
    return OpenedNote(text, tuple(signers), tuple(unknown))


def _check_text(text: str) -> None:
    if _CONTROL.search(text):
        raise FormatError("a note must not contain control characters other than newlines")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FormatError("a note must be UTF-8, without lone surrogates") from None
