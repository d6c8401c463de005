"""What is in an evidence bundle, member by member: docs/evidence.md in code.

Writer and verifier share these classes. Bytes are base64 in JSON, instants RFC 3339 in UTC.
"""

import struct
from typing import Annotated
from uuid import UUID

import msgspec

from tooltrail.ledger import VERSION, Kind, leaf_of

FORMAT = "tooltrail-evidence/1"

README = "README.txt"
MANIFEST = "bundle.json"
KEYS = "keys.txt"
TREE = "tree.json"
ERASURES = "erasures.ndjson"
REGISTRY = "registry.ndjson"
REPORT = "report.json"
CHECKPOINTS = "checkpoints/"

CHUNK_EVENTS = 4096
CHUNK_BYTES = 8 << 20
"""A writer begins another chunk before it would have more of either."""

_PREFIX = struct.Struct(">BB16s16sQI")

type Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
type Length = Annotated[int, msgspec.Meta(ge=0, le=(1 << 32) - 1)]
type Hash = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]


class Manifest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`bundle.json`: what the bundle is to be. Nothing of it is believed before it is checked."""

    format: str
    origin: str
    """Whose ledger, as its checkpoints name it."""
    tenant: str
    made_at: str
    made_by: str
    start: str | None = msgspec.field(name="from", default=None)
    """Of the range of time that was asked for; None: the range is one of ledger indexes."""
    end: str | None = msgspec.field(name="to", default=None)
    report_id: UUID | None = None
    first_index: Count
    """Of the first entry in the bundle."""
    end_index: Count
    """Behind the last."""


class EntryLine(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A line of `entries/…`. With nothing but index and leaf it is an erased event's.

    `leaf` is as the server has stored it. The other members and the event's bytes make the
    ledger's entry, hence the leaf again.
    """

    index: Count
    leaf: Hash
    kind: Annotated[int, msgspec.Meta(ge=0, le=255)] | None = None
    event_id: UUID | None = None
    invocation_id: UUID | None = None
    received_us: Count = 0
    length: Length = 0
    salt: Annotated[bytes, msgspec.Meta(max_length=64)] = b""


class ErasureLine(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line of `erasures.ndjson`: an entry of the ledger that says which payloads are gone.

    `raw` is a document of kind erasure or retention (`Erased`), `proof` its inclusion proof in
    the largest checkpoint.
    """

    entry: EntryLine
    raw: bytes
    proof: Annotated[list[Hash], msgspec.Meta(max_length=64)]


class Erased(msgspec.Struct, gc=False):
    """What is read of an entry of kind erasure or retention: half-open ranges of indexes."""

    ranges: list[tuple[Count, Count]]
    reason: str = ""


class Tree(msgspec.Struct, forbid_unknown_fields=True):
    """`tree.json`: what leads from the bundle's leaves to the root of its largest checkpoint."""

    before: Annotated[list[Hash], msgspec.Meta(max_length=64)]
    """Roots of the complete subtrees of the entries in front of the bundle's, from the left."""
    behind: Annotated[list[Hash], msgspec.Meta(max_length=128)]
    """Likewise of the entries behind."""
    consistency: dict[str, Annotated[list[Hash], msgspec.Meta(max_length=65)]]
    """By size: the consistency proof from an earlier checkpoint to the largest."""


class RegisteredVersion(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A line of `registry.ndjson`: a version of a tool that was in force in the range."""

    tool_name: str
    number: Count
    digest: str
    """Of the members below, as `tooltrail.tools` makes it."""
    description: str
    input_schema: object
    output_schema: object = None
    trusted: bool
    ephemeral: bool
    on_collision: str
    published_at: str
    published_by: str


def entries_member(chunk: int) -> str:
    """Where the entries of a chunk are."""
    return f"entries/{chunk:06d}.ndjson"


def events_member(chunk: int) -> str:
    """Where the events of a chunk are: each as it was received, and a newline."""
    return f"events/{chunk:06d}.ndjson"


def checkpoint_member(size: int) -> str:
    """Where the checkpoint of a size is, a signed note."""
    return f"{CHECKPOINTS}{size:012d}.txt"


def leaf_from(line: EntryLine, commit: bytes) -> bytes:
    """The leaf that the members of a line and the commitment to the event's bytes make."""
    event_id, invocation_id = line.event_id, line.invocation_id
    return leaf_of(
        _PREFIX.pack(
            VERSION,
            line.kind or 0,
            event_id.bytes if event_id else bytes(16),
            invocation_id.bytes if invocation_id else bytes(16),
            line.received_us,
            line.length,
        )
        + commit
    )


COVERING = frozenset((Kind.ERASURE, Kind.RETENTION))
"""The kinds of entries that can cover a missing payload."""
