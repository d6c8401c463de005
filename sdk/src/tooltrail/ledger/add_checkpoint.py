"""The request by which a log asks a witness to sign: https://c2sp.org/tlog-witness.

old <size of the last checkpoint that the witness signed, or 0>
<base64 of a hash>      the consistency proof, none to 63 lines
<an empty line>
<the signed note of the checkpoint>
"""

from dataclasses import dataclass

from tooltrail.ledger.errors import FormatError
from tooltrail.ledger.lines import HASH_LENGTH, from_base64, from_decimal, to_base64

PATH = "/add-checkpoint"
SIZE_TYPE = "text/x.tlog.size"
"""Media type of a refusal that names the size of the last checkpoint the witness signed."""
HASHES_MAX = 63


@dataclass(frozen=True, slots=True)
class AddCheckpoint:
    """A checkpoint, and the proof that its log begins with the log of `old` entries."""

    old: int
    proof: tuple[bytes, ...]
    note: bytes

    def to_bytes(self) -> bytes:
        """Write the request's body."""
        lines = [f"old {self.old}", *map(to_base64, self.proof), "", ""]
        return "\n".join(lines).encode() + self.note

    @classmethod
    def parse(cls, body: bytes) -> "AddCheckpoint":
        """Read a body without checking the proof. Raises FormatError with what is wrong."""
        head, empty_line, note = body.partition(b"\n\n")
        try:
            first, *lines = head.decode("ascii").split("\n")
        except UnicodeDecodeError:
            raise FormatError("the request must be ASCII up to its checkpoint") from None
        if not empty_line or not first.startswith("old "):
            raise FormatError("the request must begin with 'old <size>', and have an empty line")
        old = from_decimal(first.removeprefix("old "), "the old size")
        if len(lines) > HASHES_MAX:
            raise FormatError(f"a proof has up to {HASHES_MAX} hashes, not {len(lines)}")
        proof = tuple(from_base64(line, "a hash of the proof", HASH_LENGTH) for line in lines)
        return cls(old, proof, note)
