"""An evidence bundle as a stream: the log is read piece by piece, each in a scope of its own.

What the log has is written down as it is, altered or not: it is the verifier who judges. Nothing
here raises because of it; tiles that do not fit are left out, and then the proof is missing.
"""

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
from tooltrail.evidence import (
    FORMAT,
    BundleWriter,
    EntryLine,
    Erased,
    ErasureLine,
    Manifest,
    RegisteredVersion,
    Tree,
)
from tooltrail.evidence.layout import COVERING
from tooltrail.ledger import LedgerError
from tooltrail.ledger.frontier import subtrees_before, subtrees_behind

from audit.evidence.entries import entries_of
from audit.evidence.readme import readme
from audit.evidence.stretch import NotSignedError, Stretch, newest_checkpoint
from audit.ledger.proofs import public_keys
from audit.ledger.recompute import StoredBatch
from audit.ledger.tree import StoredTree
from audit.queries.time_range import TimeRange
from audit.reports.export import FORMS
from audit.reports.queries import Report
from audit.sql.run import run
from config.instants import iso
from tenants.models import Tenant
from tenants.scope import tenant_scope

_BATCHES = 10  # read at once: of the largest 200 MB, of common ones 2
_CHECKPOINTS_WITHIN = 50
_VERSION_BYTES = 32 << 20  # of their schemas
_FIRST_ID = UUID(int=0)

_WAITS, _WAIT_SECONDS = 15, 4.0  # together as long as an entry may wait for its signature
_BEHIND_ALL = 2**62

type Run = tuple[int, int]
"""Neighbouring indexes, from the first to behind the last."""
type Declared = tuple[EntryLine, bytes, Erased]
"""An entry that says which payloads are gone, its bytes, and what these say."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A bundle: of which stretch, for which range of time or stored report, asked for by whom.

    `previous` are sizes of earlier checkpoints the bundle shall prove to go on from.
    """

    tenant: Tenant
    stretch: Stretch
    of: TimeRange
    made_by: str
    now: datetime
    report: Report | None = None
    previous: Collection[int] = ()

    def on_record(self) -> dict[str, Any]:
        """Its subject and details, as an action."""
        start, end = iso(self.of.start), iso(self.of.end)
        return {
            "subject": f"{start} to {end}",
            "from": start,
            "to": end,
            "report": self.report and str(self.report.id),
            "first_index": self.stretch.first_index,
            "end_index": self.stretch.end_index,
        }


def bundle(wanted: Wanted) -> Iterator[bytes]:
    """The zip, a piece at a time; opens scopes of its own, so none may be open."""
    stretch, of = wanted.stretch, wanted.of
    manifest = Manifest(
        format=FORMAT,
        origin=stretch.origin,
        tenant=wanted.tenant.slug,
        made_at=iso(wanted.now),
        made_by=wanted.made_by,
        # To the microsecond: entries just outside show that none is missing.
        start=of.start.astimezone(UTC).isoformat(),
        end=of.end.astimezone(UTC).isoformat(),
        report_id=None if wanted.report is None else wanted.report.id,
        first_index=stretch.first_index,
        end_index=stretch.end_index,
    )
    writer = BundleWriter()
    versions, left_out = _versions(wanted.tenant.id, of)
    has_report = wanted.report is not None
    yield writer.begin(
        manifest, readme(manifest, has_report=has_report, versions_left_out=left_out)
    )
    missing: list[Run] = []
    yield from writer.entries(_noting(_entries(wanted.tenant.id, stretch), missing))
    yield writer.end(versions=versions, **_ending(wanted, missing))


def _noting(
    found: Iterator[tuple[EntryLine, bytes]], missing: list[Run]
) -> Iterator[tuple[EntryLine, bytes]]:
    """Passes entries on, and notes the runs of those without a payload."""
    for line, raw in found:
        if line.kind is None:
            if missing and missing[-1][1] == line.index:
                missing[-1] = missing[-1][0], line.index + 1
            else:
                missing.append((line.index, line.index + 1))
        yield line, raw


def _entries(tenant_id: UUID, stretch: Stretch) -> Iterator[tuple[EntryLine, bytes]]:
    for batch in _batches(
        tenant_id,
        "evidence_batches",
        first_index=stretch.first_index,
        end_index=stretch.end_index,
    ):
        for line, raw in entries_of(batch):
            if stretch.first_index <= line.index < stretch.end_index:
                yield line, raw


def _batches(tenant_id: UUID, name: str, **parameters: Any) -> Iterator[StoredBatch]:
    after_index, after_id = -1, _FIRST_ID
    while True:
        with tenant_scope(tenant_id):
            found = run(
                name,
                after_index=after_index,
                after_id=after_id,
                batch_limit=_BATCHES,
                **parameters,
            )
        for row in found:
            yield StoredBatch(*row)
        if len(found) < _BATCHES:
            return
        after_id, _, after_index, *_ = found[-1]


def _ending(wanted: Wanted, missing: list[Run]) -> dict[str, Any]:
    """What the bundle ends with, as of one checkpoint."""
    stretch, tenant_id = wanted.stretch, wanted.tenant.id
    size, declared = _declaring(tenant_id, stretch, missing)
    with tenant_scope(tenant_id):
        tree = StoredTree(tenant_id, size)
        checkpoints = {
            at: note.encode()
            for at, note in run(
                "evidence_checkpoints",
                epoch=stretch.epoch,
                size=size,
                first_index=stretch.first_index,
                end_index=stretch.end_index,
                count=_CHECKPOINTS_WITHIN,
            )
        }
        within = range(stretch.first_index, stretch.end_index + 1)
        proved = {at for at in (*checkpoints, *wanted.previous) if at not in within and at < size}
        report = wanted.report
        return {
            "report": None if report is None else FORMS["json"].write(report, wanted.tenant.name),
            "erasures": [
                ErasureLine(line, raw, _proof(lambda at=line.index: tree.inclusion(at)))
                for line, raw, _ in declared
            ],
            "checkpoints": checkpoints,
            "tree": Tree(
                _proof(lambda: tree.hashes(subtrees_before(stretch.first_index))),
                _proof(lambda: tree.hashes(subtrees_behind(stretch.end_index, size))),
                {str(at): _proof(lambda at=at: tree.consistency(at)) for at in sorted(proved)},
            ),
            "keys": [key.vkey for key in public_keys(stretch.origin, wanted.now)],
        }


def _declaring(tenant_id: UUID, stretch: Stretch, missing: list[Run]) -> tuple[int, list[Declared]]:
    """The checkpoint the bundle is proved by, and what of it declares the missing payloads gone.

    That of the beginning, if it has all of that: its range ends there. Else the newest: what was
    erased meanwhile was declared meanwhile. Where that is not signed yet the signer's next turns
    are waited for; raises NotSignedError if they do not come, so that the file is cut off: whole,
    it would tell of payloads that nothing accounts for. What nothing declares at all is in it.
    """
    size = stretch.size
    declared = _declared(tenant_id, stretch.first_index, size, missing)
    for waits_left in reversed(range(_WAITS)):
        if _covers(declared, missing):
            break
        with tenant_scope(tenant_id):
            _, _, size = newest_checkpoint(stretch.epoch)
        declared = _declared(tenant_id, stretch.first_index, size, missing)
        unsigned = _declared(tenant_id, size, _BEHIND_ALL, missing)
        if not unsigned or not _covers([*declared, *unsigned], missing):
            break
        if not waits_left:
            raise NotSignedError("What was erased meanwhile is declared, and not signed yet.")
        time.sleep(_WAIT_SECONDS)
    return size, declared


def _declared(tenant_id: UUID, first_index: int, size: int, missing: list[Run]) -> list[Declared]:
    """The entries that say that some of these payloads are gone."""
    found: list[Declared] = []
    if not missing:
        return found
    for batch in _batches(
        tenant_id, "evidence_own_batches", first_index=first_index, end_index=size
    ):
        for line, raw in entries_of(batch):
            if line.kind not in COVERING:
                continue
            try:
                erased = msgspec.json.decode(raw, type=Erased)
            except (msgspec.MsgspecError, ValueError):
                continue
            if any(
                begin < run[1] and run[0] < end for begin, end in erased.ranges for run in missing
            ):
                found.append((line, raw, erased))
    return found


def _covers(declared: list[Declared], missing: list[Run]) -> bool:
    ranges = sorted(each for *_, erased in declared for each in erased.ranges)
    for begin, end in missing:
        for first, last in ranges:
            if first <= begin < last:
                begin = last
        if begin < end:
            return False
    return True


def file_name(tenant: Tenant, of: TimeRange) -> str:
    """What the file is called."""
    start, end = of.start.astimezone(UTC), of.end.astimezone(UTC)
    return f"evidence-{tenant.slug}-{start:%Y%m%dT%H%M}-{end:%Y%m%dT%H%MZ}.zip"


def _proof(make: Any) -> list[bytes]:
    """Hashes, or none where the tiles do not give them: then there is no proof."""
    try:
        hashes: list[bytes] = make()
        return hashes
    except LedgerError:
        return []


def _versions(tenant_id: UUID, of: TimeRange) -> tuple[list[RegisteredVersion], int]:
    """The versions published before the end of the range, the oldest first; the newest 32 MB.

    And how many older ones that leaves out.
    """
    with tenant_scope(tenant_id):
        found = run("evidence_versions", before=of.end, byte_limit=_VERSION_BYTES)
    versions = []
    for name, number, digest, description, takes, gives, *more in reversed(found):
        trusted, ephemeral, on_collision, created_at, user, key, _ = more
        versions.append(
            RegisteredVersion(
                tool_name=name,
                number=number,
                digest=digest,
                description=description,
                input_schema=msgspec.Raw(takes.encode()),
                output_schema=None if gives is None else msgspec.Raw(gives.encode()),
                trusted=trusted,
                ephemeral=ephemeral,
                on_collision=on_collision,
                published_at=iso(created_at),
                published_by=user or key,
            )
        )
    return versions, found[0][-1] - len(found) if found else 0
