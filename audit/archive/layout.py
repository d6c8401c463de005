"""What the archive is made of: `docs/archive.md` in code. Pure.

Under `<folder>/<tenant id>/` a segment is `<first>-<end>/`, with the ledger indexes of its first
entry and of the entry behind its last one:

- `record-<digest>.zip`: leaves and stubs of all entries, the server's own entries, checkpoints,
  proofs.
- `pack-<first>-<digest>.bin`: payloads, each encrypted with a key of its own
  (`audit.archive.packs`).
- `facts.parquet`: the facts of calls that erasure never clears, if pyarrow is installed.

The bucket of keys has two objects for each pack, `<folder>/<tenant id>/<first>-<digest>-<random>`
with `.secret` and with `.keys` behind. What two workers write never has the same name: records and
packs are named by their SHA-256, and each pack has other keys.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

import msgspec
from tooltrail.evidence import EntryLine, Tree
from tooltrail.evidence.layout import checkpoint_member

FORMAT = "tooltrail-archive/2"
FACTS = "facts.parquet"
_SEGMENT, _ENTRIES, _TREE, _KEYS = "segment.json", "entries.ndjson", "tree.json", "keys.txt"
_CHECKPOINT = re.compile(r"checkpoints/(\d{12,19})\.txt")
_OF_OLD = (1980, 1, 1, 0, 0, 0)
_MEMBER_MAX = 256 << 20
_FOLDER = re.compile(r"(\d{15})-(\d{15})")
_RECORD = re.compile(r"record-([0-9a-f]{64})\.zip")


class ArchiveError(Exception):
    """The archive is not as it must be; the message is for people."""


class Pack(msgspec.Struct, forbid_unknown_fields=True):
    """A pack of payloads: those of the entries from `first_index` to before `end_index`."""

    first_index: int
    end_index: int
    sha256: Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]


class Segment(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`segment.json`: what the segment is."""

    format: str
    tenant_id: UUID
    tenant: str
    """Its slug at that time."""
    origin: str
    epoch: int
    size: int
    """Of the checkpoint that covers the segment."""
    first_index: int
    end_index: int
    day: str
    made_at: str
    packs: list[Pack]


class Stub(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A line of `entries.ndjson`.

    Of an executor's event it has only what erasure leaves: index, leaf, kind, ids of the call, time
    of arrival and length. Of an entry of the server's own, which is never erased, all is there.
    """

    index: int
    leaf: bytes
    kind: int | None = None
    """None: its payload was erased before it was archived."""
    invocation_id: UUID | None = None
    received_us: int = 0
    length: int = 0
    event_id: UUID | None = None
    salt: bytes = b""
    raw: bytes = b""

    @property
    def is_own(self) -> bool:
        """Whether the entry is the server's own and whole."""
        return bool(self.raw)

    def line(self, event_id: UUID | None = None, salt: bytes = b"") -> EntryLine:
        """The line of an evidence bundle, with the members that the payload has."""
        return EntryLine(
            self.index,
            self.leaf,
            self.kind,
            event_id or self.event_id,
            self.invocation_id,
            self.received_us,
            self.length,
            salt or self.salt,
        )


@dataclass(frozen=True, slots=True)
class Record:
    """The contents of `record.zip`."""

    segment: Segment
    stubs: Sequence[Stub]
    checkpoints: dict[int, bytes]
    """Signed notes by size: those within the segment, and the one that covers it."""
    receipts: Sequence[bytes]
    """The root of the covering checkpoint, signed for COSE by each key."""
    tree: Tree
    """The hashes that lead from the leaves to the covering checkpoint."""
    keys: Sequence[str]

    def to_bytes(self) -> bytes:
        """The zip file. The same contents give the same bytes."""
        sink = io.BytesIO()
        encoder = msgspec.json.Encoder()
        with ZipFile(sink, "w", ZIP_DEFLATED) as file:

            def add(name: str, data: bytes) -> None:
                file.writestr(ZipInfo(name, _OF_OLD), data, ZIP_DEFLATED)

            add(_SEGMENT, encoder.encode(self.segment) + b"\n")
            add(_ENTRIES, encoder.encode_lines(self.stubs))
            for size, note in sorted(self.checkpoints.items()):
                add(checkpoint_member(size), note)
            for number, receipt in enumerate(self.receipts):
                add(f"receipts/{number}.cose", receipt)
            add(_TREE, encoder.encode(self.tree) + b"\n")
            add(_KEYS, "".join(f"{key}\n" for key in self.keys).encode())
        return sink.getvalue()

    @classmethod
    def read(cls, data: bytes) -> "Record":
        """Read the zip file. Raises ArchiveError; nothing in it is believed."""
        try:
            with ZipFile(io.BytesIO(data)) as file:
                members = {each.filename: each for each in file.infolist()}
                if any(each.file_size > _MEMBER_MAX for each in members.values()):
                    raise ArchiveError("A record would be too large")
                segment = msgspec.json.decode(file.read(_SEGMENT), type=Segment)
                if segment.format != FORMAT:
                    raise ArchiveError(f"A record has the unknown format {segment.format!r}")
                stubs = msgspec.json.Decoder(Stub).decode_lines(file.read(_ENTRIES))
                notes = {
                    int(match[1]): file.read(name)
                    for name in members
                    if (match := _CHECKPOINT.fullmatch(name))
                }
                receipts = [file.read(each) for each in members if each.startswith("receipts/")]
                tree = msgspec.json.decode(file.read(_TREE), type=Tree)
                keys = file.read(_KEYS).decode().split()
        except (BadZipFile, KeyError, ValueError, OSError, NotImplementedError) as error:
            raise ArchiveError(f"A record is damaged: {error}") from error
        if [each.index for each in stubs] != list(range(segment.first_index, segment.end_index)):
            raise ArchiveError("A record does not have each entry of its range once")
        return cls(segment, stubs, notes, receipts, tree, keys)


def segment_folder(first_index: int, end_index: int) -> str:
    """The name of a segment's folder. They sort in the order of the ledger."""
    return f"{first_index:015d}-{end_index:015d}"


def range_of(folder: str) -> tuple[int, int] | None:
    """The range of a segment's folder; None if it is not one."""
    match = _FOLDER.fullmatch(folder)
    return None if match is None else (int(match[1]), int(match[2]))


def record_name(digest: bytes) -> str:
    """The name of a record with this SHA-256 within the folder of its segment."""
    return f"record-{digest.hex()}.zip"


def digest_of(name: str) -> bytes | None:
    """The SHA-256 in the name of a record; None if it is another object."""
    match = _RECORD.fullmatch(name)
    return None if match is None else bytes.fromhex(match[1])


def pack_name(pack: Pack) -> str:
    """The name of a pack within the folder of its segment."""
    return f"pack-{_pack_id(pack)}.bin"


def keys_prefix(first_index: int, pack: Pack | None = None) -> str:
    """How the names of the keys of a pack begin, or of all packs that begin at an index."""
    return f"{first_index:015d}-" if pack is None else f"{_pack_id(pack)}-"


def _pack_id(pack: Pack) -> str:
    return f"{pack.first_index:015d}-{pack.sha256.hex()[:32]}"
