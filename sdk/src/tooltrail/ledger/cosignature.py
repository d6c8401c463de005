"""What a witness signs about a checkpoint: https://c2sp.org/tlog-cosignature, `cosignature/v1`.

    message   = "cosignature/v1\n" ‖ "time " ‖ seconds since 1970 ‖ "\n" ‖ the checkpoint's text
    signature = u64 seconds ‖ the 64 bytes of RFC 8032
    key id    = SHA256(name ‖ "\\n" ‖ 0x04 ‖ public key)[:4]

It says: at this time this was the largest state of the log that the witness had seen, and all that
it had seen before belong to the same log. The line stands below the log's own signature. For who
does not know the witness, a note with such lines is the same note.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tooltrail.ledger.errors import SignatureError
from tooltrail.ledger.keys import (
    NamedKey,
    Signer,
    check_signature,
)
from tooltrail.ledger.lines import shown
from tooltrail.ledger.note import Signature

COSIGNATURE_V1 = b"\x04"
_TIME_BYTES = 8
_LENGTH = _TIME_BYTES + 64
_TIME_MAX = 1 << 63


@dataclass(frozen=True, slots=True)
class WitnessKey(NamedKey):
    """The public key of a witness."""

    kind: ClassVar[bytes] = COSIGNATURE_V1
    called: ClassVar[str] = "the Ed25519 key of a witness"

    def time_of(self, text: str, signature: Signature) -> int:
        """When the witness signed a checkpoint's text, in seconds since 1970, UTC.

        Raises SignatureError, or ImportError without the extra `verify`.
        """
        if len(signature.signature) != _LENGTH:
            raise SignatureError(f"the cosignature of {shown(self.name)} has not {_LENGTH} bytes")
        time = int.from_bytes(signature.signature[:_TIME_BYTES], "big")
        if time >= _TIME_MAX:
            raise SignatureError(f"the time of the cosignature of {shown(self.name)} is too large")
        signed = signature.signature[_TIME_BYTES:]
        check_signature(self.name, self.public, _message(text, time).encode(), signed)
        return time


def cosign(text: str, key: Signer, time: int) -> Signature:
    """A witness's signature on a checkpoint's text. The caller must have checked its consistency.

    `time` is in seconds since 1970. Raises ImportError without the extra `verify`.
    """
    witness = WitnessKey(key.name, key.verifier.public)
    signature = time.to_bytes(_TIME_BYTES, "big") + key.sign(_message(text, time).encode())
    return Signature(key.name, witness.key_id, signature)


def cosigned_by(
    text: str, signatures: Sequence[Signature], witnesses: Sequence[WitnessKey]
) -> dict[WitnessKey, int]:
    """The witnesses that signed a checkpoint's text, each with the time, in seconds since 1970.

    Signatures of others are ignored; of several by one witness the first counts. Raises
    SignatureError if one that names a witness is wrong, ImportError without the extra `verify`.
    """
    known = {(each.name, each.key_id): each for each in witnesses}
    times: dict[WitnessKey, int] = {}
    for signature in signatures:
        witness = known.get((signature.name, signature.key_id))
        if witness is not None:
            times.setdefault(witness, witness.time_of(text, signature))
    return times


def _message(text: str, time: int) -> str:
    return f"cosignature/v1\ntime {time}\n{text}"
