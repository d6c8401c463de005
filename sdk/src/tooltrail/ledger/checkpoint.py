"""The size and root that a log signs: https://c2sp.org/tlog-checkpoint.

<origin>
<size>
<base64 of the root>
<extension lines>          none in ours
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tooltrail.ledger.errors import FormatError
from tooltrail.ledger.keys import Signer, VerifierKey
from tooltrail.ledger.lines import HASH_LENGTH, from_base64, from_decimal, shown, to_base64
from tooltrail.ledger.note import open_note, sign_note


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a log: its origin, number of entries and root. `str()` gives the note's text.

    Raises FormatError if the text could not be read back.
    """

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.size < 1 << 63:
            raise FormatError(f"the size of a log must be below 2^63, not {self.size}")
        if len(self.root) != HASH_LENGTH:
            raise FormatError(f"a root has {HASH_LENGTH} bytes, not {len(self.root)}")
        if any(not line or "\n" in line for line in (self.origin, *self.extensions)):
            raise FormatError("origin and extensions of a checkpoint must be one line each")

    def __str__(self) -> str:
        lines = (self.origin, str(self.size), to_base64(self.root), *self.extensions)
        return "".join(f"{line}\n" for line in lines)

    @classmethod
    def parse(cls, text: str) -> "Checkpoint":
        """Read the text of an opened note. Raises FormatError."""
        origin, *lines = text.removesuffix("\n").split("\n")
        if len(lines) < 2 or not text.endswith("\n"):
            raise FormatError("a checkpoint has three lines: origin, size, root")
        size = from_decimal(lines[0], "the size in a checkpoint")
        root = from_base64(lines[1], "the root in a checkpoint", HASH_LENGTH)
        return cls(origin, size, root, tuple(lines[2:]))

    def sign(self, keys: Sequence[Signer]) -> bytes:
        """Make a signed note of the checkpoint; with two keys while one replaces the other.

        Raises as `sign_note` does. A log must never sign two inconsistent checkpoints: the caller
        must check that before.
        """
        return sign_note(str(self), keys)


def open_checkpoint(note: bytes, origin: str, keys: Iterable[VerifierKey]) -> Checkpoint:
    """Read the checkpoint in a note that one of the log's own `keys` signed.

    `keys` must not contain a witness's key: its signature alone would be accepted. Raises
    FormatError if the checkpoint's origin is not `origin`, and otherwise as `open_note` does.
    """
    checkpoint = Checkpoint.parse(open_note(note, keys).text)
    if checkpoint.origin != origin:
        raise FormatError(
            f"the checkpoint is from {shown(checkpoint.origin)}, not from {shown(origin)}"
        )
    return checkpoint
