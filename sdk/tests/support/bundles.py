"""Evidence bundles for tests: a small log in memory, and every part can be altered."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

from tooltrail.evidence import (
    FORMAT,
    BundleWriter,
    EntryLine,
    Manifest,
    ProvedLine,
    RegisteredVersion,
    Tree,
)
from tooltrail.evidence.layout import leaf_from
from tooltrail.ledger import (
    Checkpoint,
    Kind,
    SigningKey,
    commit_of,
    consistency_proof,
    inclusion_proof,
    root_of,
)
from tooltrail.ledger.frontier import subtrees_before, subtrees_behind
from tooltrail.tools.digest import tool_digest

ORIGIN = "tooltrail.example/log/acme"
KEY = SigningKey(ORIGIN, bytes(range(32)))
OTHER_KEY = SigningKey(ORIGIN, bytes(range(1, 33)))
BEGAN = datetime(2026, 11, 20, tzinfo=UTC)


@dataclass
class Log:
    """A ledger whose entry `n` arrived `n` seconds after `BEGAN`."""

    lines: list[EntryLine] = field(default_factory=list)
    raws: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, size: int) -> "Log":
        """A ledger with only executors' events."""
        log = cls()
        for number in range(size):
            log.add(f'{{"type":"toolExecutionStart","n":{number}}}'.encode())
        return log

    def add(self, raw: bytes, kind: Kind = Kind.START, *, received: float | None = None) -> int:
        """Append an entry; return its index."""
        index = len(self.lines)
        received = int(BEGAN.timestamp() + index if received is None else received)
        line = EntryLine(
            index,
            bytes(32),
            kind,
            UUID(int=index),
            UUID(int=index // 2),
            received * 1_000_000,
            len(raw),
            sha256(b"salt %d" % index).digest(),
        )
        line.leaf = leaf_from(line, commit_of(line.salt, raw))
        self.lines.append(line)
        self.raws.append(raw)
        return index

    def declare(self, *ranges: tuple[int, int], kind: Kind = Kind.ERASURE) -> int:
        """Append an entry that declares these payloads erased."""
        return self.add(json.dumps({"type": "erasure", "ranges": ranges}).encode(), kind)

    def erase(self, *indexes: int) -> None:
        """Remove payloads."""
        for index in indexes:
            self.lines[index] = EntryLine(index, self.lines[index].leaf)
            self.raws[index] = b""

    def publish(self, version: RegisteredVersion, **details: object) -> int:
        """Append the action that published a version; `details` replace what it says."""
        action = {
            "version": version.number,
            "digest": version.digest,
            "published_at": version.published_at,
            "published_by": version.published_by,
        }
        return self.act("tool.publish", version.tool_name, **action | details)

    def act(self, verb: str, subject: str, **details: object) -> int:
        """Append an action."""
        action = {
            "at": at(0),
            "actor": "ada",
            "verb": verb,
            "subject": subject,
            "details": details,
        }
        return self.add(json.dumps(action).encode(), Kind.ACTION)

    def baseline(self, *versions: RegisteredVersion) -> int:
        """Append a baseline that lists versions."""
        listed = [
            (one.tool_name, one.number, one.digest, one.published_at, one.published_by)
            for one in versions
        ]
        return self.add(json.dumps({"rows": {}, "versions": listed}).encode(), Kind.BASELINE)

    def proved(self, index: int, size: int) -> ProvedLine:
        """An entry with its proof in the first `size` entries."""
        proof = inclusion_proof(index, size, self.subtree)
        return ProvedLine(self.lines[index], self.raws[index], proof)

    def subtree(self, level: int, index: int) -> bytes:
        """A complete subtree."""
        whole = self.lines[index << level : (index + 1) << level]
        return root_of([line.leaf for line in whole])

    def root(self, size: int) -> bytes:
        """The root of the first `size` entries."""
        return root_of([line.leaf for line in self.lines[:size]])

    def checkpoint(self, size: int, *keys: SigningKey) -> bytes:
        """A signed note."""
        return Checkpoint(ORIGIN, size, self.root(size)).sign(keys or [KEY])


def at(seconds: float) -> str:
    """An instant."""
    return (BEGAN + timedelta(seconds=seconds)).isoformat()


VERSION = RegisteredVersion(
    tool_name="search",
    number=1,
    digest=tool_digest(name="search", description="Looks", input_schema={"type": "object"}),
    description="Looks",
    input_schema={"type": "object"},
    trusted=False,
    ephemeral=False,
    on_collision="throw",
    published_at=at(0),
    published_by="ada",
)


@dataclass(frozen=True)
class Bundle:
    """What goes into a bundle of the entries from `begin` up to `end`; alter it, then `write`."""

    manifest: Manifest
    entries: list[tuple[EntryLine, bytes]]
    erasures: list[ProvedLine]
    checkpoints: dict[int, bytes]
    tree: Tree
    keys: tuple[str, ...] = (str(KEY.verifier),)
    versions: tuple[RegisteredVersion, ...] = (VERSION,)
    report: bytes | None = None
    statements: tuple[ProvedLine, ...] = ()

    @classmethod
    def of(
        cls,
        log: Log,
        begin: int,
        end: int,
        *,
        sizes: Iterable[int] = (),
        previous: Iterable[int] = (),
        declared: Iterable[int] = (),
        stated: Iterable[int] = (),
    ) -> "Bundle":
        """The bundle of an honest server; `sizes` are those of its checkpoints."""
        sizes = sorted(sizes) or [len(log.lines)]
        size = sizes[-1]
        proved = {each for each in (*sizes, *previous) if not begin <= each <= end and each < size}
        return cls(
            Manifest(
                format=FORMAT,
                origin=ORIGIN,
                tenant="acme",
                made_at=at(1_000_000),
                made_by="ada",
                start=at(begin + 0.5) if begin else at(0),
                end=at(end - 1.5) if end < size else at(end),
                first_index=begin,
                end_index=end,
            ),
            list(zip(log.lines[begin:end], log.raws[begin:end], strict=True)),
            [log.proved(index, size) for index in declared],
            {each: log.checkpoint(each) for each in sizes},
            Tree(
                [log.subtree(*each) for each in subtrees_before(begin)],
                [log.subtree(*each) for each in subtrees_behind(end, size)],
                {str(each): consistency_proof(each, size, log.subtree) for each in proved},
            ),
            statements=tuple(log.proved(index, size) for index in stated),
        )

    def but(self, **changes: Any) -> "Bundle":
        """A copy with some parts replaced."""
        return replace(self, **changes)

    def write(self, path: Path) -> Path:
        """Write the bundle to a file."""
        writer = BundleWriter()
        parts = [writer.begin(self.manifest, "What this is\n")]
        parts += writer.entries(self.entries)
        parts.append(
            writer.end(
                versions=self.versions,
                report=self.report,
                erasures=self.erasures,
                statements=self.statements,
                checkpoints=self.checkpoints,
                tree=self.tree,
                keys=self.keys,
            )
        )
        path.write_bytes(b"".join(parts))
        return path
