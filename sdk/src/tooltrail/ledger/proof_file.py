"""A file that proves one entry offline, with its checkpoint: https://c2sp.org/tlog-proof.

c2sp.org/tlog-proof@v1
extra <base64>             optional
index <index>
<base64 of a hash>         of the inclusion proof, from the leaf's sibling up; up to 63
<an empty line>
<the checkpoint, signed>
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tooltrail.ledger.checkpoint import Checkpoint, open_checkpoint
from tooltrail.ledger.errors import FormatError
from tooltrail.ledger.keys import VerifierKey
from tooltrail.ledger.lines import HASH_LENGTH, from_base64, from_decimal, to_base64
from tooltrail.ledger.tree import verify_inclusion

SUFFIX = ".tlog-proof"
HEADER = "c2sp.org/tlog-proof@v1"
MAX_LENGTH = 2_000_000
"""In bytes; the specification lets the reader choose the limit."""
MAX_HASHES = 63


@dataclass(frozen=True, slots=True)
class ProofFile:
    """The proof that a log has an entry at `index`, and the signed checkpoint it leads to.

    `extra` is what the application needs to find the leaf. No signature covers it.
    """

    index: int
    proof: tuple[bytes, ...]
    checkpoint: bytes
    extra: bytes | None = None

    def to_bytes(self) -> bytes:
        """Write the file's bytes."""
        lines = [HEADER]
        if self.extra is not None:
            lines.append(f"extra {to_base64(self.extra)}")
        lines += [f"index {self.index}", *map(to_base64, self.proof), "", ""]
        return "\n".join(lines).encode() + self.checkpoint

    @classmethod
    def parse(cls, file: bytes) -> "ProofFile":
        """Read a file without checking the proof. Raises FormatError with what is wrong."""
        if len(file) > MAX_LENGTH:
            raise FormatError(f"a proof has up to {MAX_LENGTH:,} bytes, not {len(file):,}")
        head, empty_line, checkpoint = file.partition(b"\n\n")
        try:
            header, *lines = head.decode("ascii").split("\n")
        except UnicodeDecodeError:
            raise FormatError("a proof must be ASCII up to its checkpoint") from None
        if header != HEADER:
            raise FormatError(f"the first line of a proof must be {HEADER}")
        if not empty_line:
            raise FormatError("a proof must have an empty line before its checkpoint")
        extra = None
        if lines and lines[0].startswith("extra "):
            extra = from_base64(lines.pop(0).removeprefix("extra "), "the extra of a proof")
        if not lines or not lines[0].startswith("index "):
            raise FormatError("a proof must have the line 'index …' before its hashes")
        index = from_decimal(lines.pop(0).removeprefix("index "), "the index of a proof")
        if len(lines) > MAX_HASHES:
            raise FormatError(f"a proof has up to {MAX_HASHES} hashes, not {len(lines)}")
        proof = tuple(from_base64(line, "a hash of a proof", HASH_LENGTH) for line in lines)
        return cls(index, proof, checkpoint, extra)

    def verify(self, leaf: bytes, origin: str, keys: Iterable[VerifierKey]) -> Checkpoint:
        """Check that the log signed a checkpoint that contains `leaf`; return that checkpoint.

        Raises as `open_checkpoint` and `verify_inclusion` do.
        """
        checkpoint = open_checkpoint(self.checkpoint, origin, keys)
        verify_inclusion(leaf, self.index, checkpoint.size, self.proof, checkpoint.root)
        return checkpoint
