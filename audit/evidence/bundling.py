"""Writes an evidence bundle as a stream: reads the log in pieces, each in its own scope.

The contents of the log are written as they are, altered or not: the verifier judges them. Nothing
here raises because of altered contents. If tiles do not fit, the proof that needs them is missing.
"""

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
from django.db.models import Q
from tooltrail.evidence import (
    FORMAT,
    BundleWriter,
    EntryLine,
    Manifest,
    ProvedLine,
    RegisteredVersion,
    Tree,
)
from tooltrail.evidence.statements import PUBLISHED
from tooltrail.ledger import Kind, LedgerError
from tooltrail.ledger.frontier import subtrees_before, subtrees_behind

from audit.evidence.declarations import Run, declaring, noting
from audit.evidence.entries import entries_of
from audit.evidence.ledger_range import LedgerRange
from audit.evidence.readme import readme
from audit.ledger.proofs import public_keys
from audit.ledger.stored_batches import stored_batches
from audit.ledger.tree import StoredTree
from audit.ledger.witnesses.bringing import bring_soon
from audit.ledger.witnesses.states import cosigned_notes, policy_of, signed_sizes, waits_for
from audit.models import LedgerCheckpoint
from audit.queries.time_range import TimeRange
from audit.reports.export import FORMS
from audit.reports.queries import Report
from audit.sql.run import run
from config.instants import iso
from tenants.models import Action, Tenant
from tenants.scope import tenant_scope

_CHECKPOINTS_WITHIN = 50
_VERSION_BYTES = 32 << 20  # the most bytes of descriptions and schemas
_PUBLISHED, _REPORTED, _CONFIRMED, _SET = (
    f'"verb":"{verb}"'.encode()
    for verb in (PUBLISHED, "report.create", "erasure.confirm", "tenant.settings")
)

_WITNESS_WAITS, _WITNESS_WAIT_SECONDS = 20, 1.0


@dataclass(frozen=True, slots=True)
class Sampled:
    """The members of a bundle that are about an auditor's sample, and the checkpoints they need."""

    id: UUID
    file: bytes
    population: bytes
    sizes: Collection[int]


@dataclass(frozen=True, slots=True)
class Timelined:
    """The members of a bundle that tell an incident, and the holds whose entries it has."""

    id: UUID
    file: bytes
    page: bytes
    hold_ids: Collection[UUID]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The parameters of a bundle: entries, range of time, requester, optional stored report.

    `previous` has sizes of earlier checkpoints. The bundle proves that the ledger extends them.
    """

    tenant: Tenant
    ledger_range: LedgerRange
    of: TimeRange
    made_by: str
    now: datetime
    report: Report | None = None
    previous: Collection[int] = ()
    sample: Sampled | None = None
    """Of a sample, `of` is no range of time: the bundle has the entries that the sample needs."""
    incident: Timelined | None = None

    def on_record(self) -> dict[str, Any]:
        """Subject and details for the action that records the bundle."""
        start, end = iso(self.of.start), iso(self.of.end)
        return {
            "subject": f"{start} to {end}",
            "from": start,
            "to": end,
            "report": self.report and str(self.report.id),
            "first_index": self.ledger_range.first_index,
            "end_index": self.ledger_range.end_index,
        }


def bundle(wanted: Wanted) -> Iterator[bytes]:
    """The zip in pieces. Opens its own scopes, so no scope may be open.

    Raises NotSignedError after the entries if the declaration of an erasure stays unsigned.
    """
    ledger_range, of = wanted.ledger_range, wanted.of
    versions, left_out = _versions(wanted.tenant.id, of, ledger_range.size)
    manifest = Manifest(
        format=FORMAT,
        origin=ledger_range.origin,
        tenant=wanted.tenant.slug,
        made_at=iso(wanted.now),
        made_by=wanted.made_by,
        # To the microsecond: the entries just outside the range prove that none is missing.
        start=None if wanted.sample else of.start.astimezone(UTC).isoformat(),
        end=None if wanted.sample else of.end.astimezone(UTC).isoformat(),
        report_id=None if wanted.report is None else wanted.report.id,
        first_index=ledger_range.first_index,
        end_index=ledger_range.end_index,
        versions_left_out=left_out,
    )
    writer = BundleWriter()
    has_report = wanted.report is not None
    yield writer.begin(
        manifest,
        readme(
            manifest,
            has_report=has_report,
            has_sample=wanted.sample is not None,
            has_timeline=wanted.incident is not None,
            versions_left_out=left_out,
        ),
    )
    asks_witnesses = _ask_witnesses(wanted)
    missing: list[Run] = []
    yield from writer.entries(noting(_entries(wanted.tenant.id, ledger_range), missing))
    if asks_witnesses:
        _wait_for_witnesses(wanted)
    yield writer.end(versions=versions, **_ending(wanted, missing))


def _ask_witnesses(wanted: Wanted) -> bool:
    """Let the worker bring the checkpoint of the range to the witnesses, if there are any."""
    tenant_id = wanted.tenant.id
    with tenant_scope(tenant_id):
        has_witnesses = bool(policy_of(tenant_id).witnesses)
        if has_witnesses:
            bring_soon(tenant_id, wanted.ledger_range.size)
    return has_witnesses


def _wait_for_witnesses(wanted: Wanted) -> None:
    """Wait some seconds until each witness has answered. A bundle is also made without them."""
    ledger_range, tenant_id = wanted.ledger_range, wanted.tenant.id
    for _ in range(_WITNESS_WAITS):
        with tenant_scope(tenant_id):
            if not waits_for(tenant_id, ledger_range.epoch, ledger_range.size):
                return
        time.sleep(_WITNESS_WAIT_SECONDS)


def _entries(tenant_id: UUID, ledger_range: LedgerRange) -> Iterator[tuple[EntryLine, bytes]]:
    for batch in stored_batches(tenant_id, ledger_range.first_index, ledger_range.end_index):
        for line, raw in entries_of(batch):
            if ledger_range.first_index <= line.index < ledger_range.end_index:
                yield line, raw


def _ending(wanted: Wanted, missing: list[Run]) -> dict[str, Any]:
    """The last parts of the bundle, all by one checkpoint."""
    ledger_range, tenant_id = wanted.ledger_range, wanted.tenant.id
    size, declared = declaring(tenant_id, ledger_range, missing)
    stated = list(_stating(wanted, ledger_range.size))
    with tenant_scope(tenant_id):
        tree = StoredTree(tenant_id, size)
        checkpoints = {
            at: note.encode()
            for at, note in run(
                "evidence_checkpoints",
                epoch=ledger_range.epoch,
                size=size,
                first_index=ledger_range.first_index,
                end_index=ledger_range.end_index,
                count=_CHECKPOINTS_WITHIN,
            )
        }
        signed = signed_sizes(tenant_id, ledger_range.epoch, size)
        sample = wanted.sample
        signed = signed.union(() if sample is None else sample.sizes) - checkpoints.keys()
        for one in LedgerCheckpoint.objects.for_tenant(tenant_id).filter(
            epoch=ledger_range.epoch, size__in=signed
        ):
            checkpoints[one.size] = one.note.encode()
        checkpoints = _cosigned(tenant_id, ledger_range.epoch, checkpoints)
        within = range(ledger_range.first_index, ledger_range.end_index + 1)
        proved = {at for at in (*checkpoints, *wanted.previous) if at not in within and at < size}
        report, incident = wanted.report, wanted.incident
        return {
            "report": None if report is None else FORMS["json"].write(report, wanted.tenant.name),
            "sample": None if sample is None else (sample.file, sample.population),
            "timeline": None if incident is None else (incident.file, incident.page),
            "erasures": [
                ProvedLine(line, raw, _proof(lambda at=line.index: tree.inclusion(at)))
                for line, raw, _ in declared
            ],
            "statements": [
                ProvedLine(line, raw, _proof(lambda at=line.index: tree.inclusion(at)))
                for line, raw in stated
            ],
            "checkpoints": checkpoints,
            "tree": Tree(
                _proof(lambda: tree.hashes(subtrees_before(ledger_range.first_index))),
                _proof(lambda: tree.hashes(subtrees_behind(ledger_range.end_index, size))),
                {str(at): _proof(lambda at=at: tree.consistency(at)) for at in sorted(proved)},
            ),
            "keys": [key.vkey for key in public_keys(ledger_range.origin, wanted.now)],
        }


def _cosigned(tenant_id: UUID, epoch: int, notes: dict[int, bytes]) -> dict[int, bytes]:
    """The notes by size, smallest first, with the signatures of witnesses below."""
    listed = [(epoch, size, note.decode()) for size, note in sorted(notes.items())]
    return {size: note.encode() for (_, size), note in cosigned_notes(tenant_id, listed).items()}


def _stating(wanted: Wanted, size: int) -> Iterator[tuple[EntryLine, bytes]]:
    """The entries about versions, erasures, retention, epochs and keys, and those about the report,
    the sample or the incident.
    """
    report = None if wanted.report is None else f'"{wanted.report.id}"'.encode()
    subjects = [
        f'"subject":"{each.id}"'.encode() for each in (wanted.sample, wanted.incident) if each
    ]
    holds = wanted.incident.hold_ids if wanted.incident else ()
    held = [f'"hold":"{pk}"'.encode() for pk in holds]
    for batch in stored_batches(wanted.tenant.id, 0, size, is_own=True):
        for line, raw in entries_of(batch):
            if line.index >= size:
                return
            is_action = line.kind == Kind.ACTION
            if (
                line.kind in (Kind.BASELINE, Kind.EPOCH, Kind.KEY)
                or (is_action and (_PUBLISHED in raw or _CONFIRMED in raw or _SET in raw))
                or (is_action and report is not None and _REPORTED in raw and report in raw)
                or (is_action and any(subject in raw for subject in subjects))
                or (line.kind == Kind.HOLD and any(hold in raw for hold in held))
            ):
                yield line, raw


def file_name(tenant: Tenant, of: TimeRange) -> str:
    """The file's name."""
    start, end = of.start.astimezone(UTC), of.end.astimezone(UTC)
    return f"evidence-{tenant.slug}-{start:%Y%m%dT%H%M}-{end:%Y%m%dT%H%MZ}.zip"


def _proof(make: Any) -> list[bytes]:
    """The hashes of a proof; an empty list, so no proof, if the tiles do not give them."""
    try:
        hashes: list[bytes] = make()
        return hashes
    except LedgerError:
        return []


def _versions(tenant_id: UUID, of: TimeRange, size: int) -> tuple[list[RegisteredVersion], int]:
    """The versions published before the end of the range, oldest first, up to 32 MB.

    Keeps the newest ones. Also returns how many older ones are left out. Versions whose publication
    is not among the first `size` entries are not included: nothing proves them yet.
    """
    with tenant_scope(tenant_id):
        rows = run("evidence_versions", before=of.end, byte_limit=_VERSION_BYTES)
        unsigned = set(
            Action.objects.filter(
                Q(ledger_index=None) | Q(ledger_index__gte=size),
                tenant_id=tenant_id,
                verb=PUBLISHED,
            ).values_list("subject", "details__version")
        )
    versions = []
    for name, number, digest, description, takes, gives, *more in reversed(rows):
        trusted, ephemeral, on_collision, created_at, user, key, _ = more
        if (name, number) in unsigned:
            continue
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
    return versions, rows[0][-1] - len(rows) if rows else 0
