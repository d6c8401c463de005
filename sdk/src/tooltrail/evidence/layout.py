"""The members of an evidence bundle: docs/evidence.md in code.

Writer and verifier share these classes. Bytes are base64 in JSON, instants are RFC 3339 in UTC.
"""

import struct
from typing import Annotated
from uuid import UUID

import msgspec

from tooltrail.ledger import VERSION, Kind, LedgerError, commit_of, leaf_of, verify_inclusion

FORMAT = "tooltrail-evidence/2"
FORMATS = ("tooltrail-evidence/1", FORMAT)
"""Readable formats. The first had no statements, so its registry and report are not proved."""

README = "README.txt"
MANIFEST = "bundle.json"
KEYS = "keys.txt"
TREE = "tree.json"
ERASURES = "erasures.ndjson"
REGISTRY = "registry.ndjson"
STATEMENTS = "statements.ndjson"
REPORT = "report.json"
SAMPLE = "sample.json"
POPULATION = "population.bin"
"""Both, or none: an auditor's sample and the calls that it was drawn from."""
TIMELINE = "timeline.json"
TIMELINE_PAGE = "timeline.html"
"""Both, or none: the timeline of an incident."""
CHECKPOINTS = "checkpoints/"

CHUNK_EVENTS = 4096
CHUNK_BYTES = 8 << 20
"""A writer begins a new chunk before it would exceed either limit."""

_PREFIX = struct.Struct(">BB16s16sQI")

type Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
type Length = Annotated[int, msgspec.Meta(ge=0, le=(1 << 32) - 1)]
type Hash = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]


class Manifest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`bundle.json`: what the bundle claims to be. None of it is believed unchecked."""

    format: str
    origin: str
    """The ledger, as its checkpoints name it."""
    tenant: str
    made_at: str
    made_by: str
    start: str | None = msgspec.field(name="from", default=None)
    """Start of the requested time range; None if the range is one of ledger indexes."""
    end: str | None = msgspec.field(name="to", default=None)
    report_id: UUID | None = None
    first_index: Count
    """The index of the first entry in the bundle."""
    end_index: Count
    """The index after the last entry."""
    versions_left_out: Count = 0
    """How many of the oldest versions of tools are left out, because of their size."""


class EntryLine(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A line of `entries/…`. With only index and leaf it belongs to an erased event.

    `leaf` is the leaf as stored by the server. The other members and the event's bytes make the
    ledger's entry, and so the leaf again.
    """

    index: Count
    leaf: Hash
    kind: Annotated[int, msgspec.Meta(ge=0, le=255)] | None = None
    event_id: UUID | None = None
    invocation_id: UUID | None = None
    received_us: Count = 0
    length: Length = 0
    salt: Annotated[bytes, msgspec.Meta(max_length=64)] = b""


class ProvedLine(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line of `erasures.ndjson` and `statements.ndjson`: an entry from anywhere in the ledger.

    `raw` are its bytes. `proof` is its inclusion proof in the largest checkpoint.
    """

    entry: EntryLine
    raw: bytes
    proof: Annotated[list[Hash], msgspec.Meta(max_length=64)]


class Erased(msgspec.Struct, gc=False):
    """The part read of an erasure or retention entry: half-open ranges of indexes."""

    ranges: list[tuple[Count, Count]]
    reason: str = ""


class Tree(msgspec.Struct, forbid_unknown_fields=True):
    """`tree.json`: the hashes between the bundle's leaves and its largest checkpoint's root."""

    before: Annotated[list[Hash], msgspec.Meta(max_length=64)]
    """Roots of the complete subtrees of the entries before the bundle's, from the left."""
    behind: Annotated[list[Hash], msgspec.Meta(max_length=128)]
    """The same for the entries behind the bundle's."""
    consistency: dict[str, Annotated[list[Hash], msgspec.Meta(max_length=65)]]
    """The consistency proof from each earlier checkpoint to the largest, by size."""


class RegisteredVersion(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A line of `registry.ndjson`: a version of a tool that was in force in the range."""

    tool_name: str
    number: Count
    digest: str
    """The digest of the members below, as `tooltrail.tools` computes it."""
    description: str
    input_schema: object
    output_schema: object = None
    trusted: bool
    ephemeral: bool
    on_collision: str
    published_at: str
    published_by: str


def fault_of(line: ProvedLine, size: int, root: bytes) -> str | None:
    """Why the line is not an entry of the ledger of this size and root; None if it is."""
    entry = line.entry
    if entry.length != len(line.raw):
        return "its size differs from its entry"
    if leaf_from(entry, commit_of(entry.salt, line.raw)) != entry.leaf:
        return "it does not match its leaf"
    try:
        verify_inclusion(entry.leaf, entry.index, size, line.proof, root)
    except LedgerError as error:
        return str(error)
    return None


def entries_member(chunk: int) -> str:
    """The name of the member with the entries of a chunk."""
    return f"entries/{chunk:06d}.ndjson"


def events_member(chunk: int) -> str:
    """The name of the member with the events of a chunk: each as received, plus a newline."""
    return f"events/{chunk:06d}.ndjson"


def checkpoint_member(size: int) -> str:
    """The name of the member with the checkpoint of a size, a signed note."""
    return f"{CHECKPOINTS}{size:012d}.txt"


def leaf_from(line: EntryLine, commit: bytes) -> bytes:
    """Compute the leaf from the members of a line and the commitment to the event's bytes."""
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
"""The kinds of entries that can explain a missing payload."""
