"""What entries say about registry, report and timeline, and whether the bundle agrees.

The publication of a version is an action with the digest of its contract. The baseline lists the
versions that were published before actions named digests. The creation of a report is an action
with the SHA-256 of the report, and so is that of an incident's timeline. A bundle has these entries
whether they lie in its range or not.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from tooltrail.evidence.archive import UnreadableError
from tooltrail.evidence.epochs import Succession
from tooltrail.evidence.layout import (
    REPORT,
    STATEMENTS,
    TIMELINE,
    TIMELINE_PAGE,
    Manifest,
    ProvedLine,
    RegisteredVersion,
    fault_of,
)
from tooltrail.evidence.signed import Signed
from tooltrail.evidence.verdict import Check
from tooltrail.ledger import Kind
from tooltrail.ledger.lines import shown

STATING = frozenset((Kind.ACTION, Kind.BASELINE, Kind.EPOCH, Kind.KEY))
"""The kinds of entries that may say something here."""
PUBLISHED = "tool.publish"
SAYING = (
    *(PUBLISHED, "report.create", "incident.timeline"),
    *("erasure.confirm", "tenant.settings"),
)
"""The verbs of actions that say something here."""


class _After(msgspec.Struct, gc=False):
    payload_days: int | msgspec.UnsetType | None = msgspec.UNSET


class _Details(msgspec.Struct, gc=False):
    after: _After = msgspec.field(default_factory=_After)
    reason: str = ""
    version: int = 0
    digest: str = ""
    published_at: str = ""
    published_by: str = ""
    report: str = ""
    sha256: str = ""
    page_sha256: str = ""


class _Action(msgspec.Struct, gc=False):
    at: datetime
    verb: str
    subject: str
    details: msgspec.Raw
    actor: str = ""


class _Baseline(msgspec.Struct, gc=False):
    versions: list[tuple[str, int, str, str, str]]
    """Tool, number, digest, when and by whom each was published."""
    payload_days: int | None = None


class _Declaration(msgspec.Struct, gc=False):
    actor: str = ""
    reason: str = ""
    erasure: str = ""


class _Timeline(msgspec.Struct, gc=False):
    id: str


class _Version(NamedTuple):
    """A publication. Empty texts: the entry is of an older release and does not say it."""

    entry_index: int
    at: datetime
    digest: str
    published_at: str
    published_by: str


class Statements:
    """What the entries say. Entries are noted in the order of the ledger, or in any other."""

    def __init__(self, note_action: Callable[[int, bytes], None] | None = None) -> None:
        """`note_action` gets each action's index and bytes, and may raise msgspec.MsgspecError."""
        self._note_further = note_action
        self.has_baseline = False
        self.succession = Succession()
        self._versions: dict[tuple[str, int], _Version] = {}
        self._reports: dict[str, str] = {}
        self._timelines: dict[str, tuple[str, str]] = {}
        """Digests of the two forms of an incident's timeline, by its id."""
        self._baseline_index = 0
        self._confirmed: dict[str, tuple[int, str, str]] = {}
        """Index, actor and reason of an erasure's confirmation, by its id."""
        self._settings: list[tuple[int, int | None]] = []
        """Index of each setting of the retention, and its days."""

    def read(self, data: bytes, largest: Signed, check: Check) -> None:
        """Read `statements.ndjson`. An entry that is not in the ledger says nothing, and fails.

        Raises UnreadableError.
        """
        try:
            for line in msgspec.json.Decoder(ProvedLine).decode_lines(data):
                fault = fault_of(line, largest.size, largest.root)
                if fault is not None:
                    check.fail(f"the statement at entry {line.entry.index:,} is invalid: {fault}")
                else:
                    self.note(line.entry.index, line.entry.kind, line.raw)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise UnreadableError(f"{STATEMENTS} cannot be read ({error})") from error

    def note(self, index: int, kind: int | None, raw: bytes) -> None:
        """Note what an entry says. Other kinds of entries and other actions say nothing here."""
        self.succession.note(index, kind, raw)
        try:
            if kind == Kind.ACTION:
                if self._note_further is not None:
                    self._note_further(index, raw)
                self._note_action(index, msgspec.json.decode(raw, type=_Action))
            elif kind == Kind.BASELINE and not self.has_baseline:
                self._note_baseline(index, msgspec.json.decode(raw, type=_Baseline))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return  # it is proved like any other entry, and has no meaning here

    def _note_action(self, index: int, action: _Action) -> None:
        if action.verb not in SAYING:
            return
        details = msgspec.json.decode(action.details, type=_Details)
        match action.verb:
            case "report.create":
                self._reports.setdefault(details.report, details.sha256)
            case "incident.timeline":
                self._timelines.setdefault(action.subject, (details.sha256, details.page_sha256))
            case "erasure.confirm":
                first = self._confirmed.get(action.subject)
                if first is None or index < first[0]:
                    self._confirmed[action.subject] = index, action.actor, details.reason
            case "tenant.settings":
                if details.after.payload_days is not msgspec.UNSET:
                    self._settings.append((index, details.after.payload_days))
            case _:
                version = _Version(
                    index,
                    action.at,
                    details.digest,
                    details.published_at,
                    details.published_by,
                )
                self._note_version(action.subject, details.version, version)

    def _note_baseline(self, index: int, baseline: _Baseline) -> None:
        self.has_baseline = True
        self._baseline_index = index
        self._settings.append((index, baseline.payload_days))
        for name, number, digest, at, by in baseline.versions:
            version = _Version(index, datetime.fromisoformat(at), digest, at, by)
            self._note_version(name, number, version)

    def _note_version(self, name: str, number: int, version: _Version) -> None:
        """Keep the first entry with a digest: a version never changes.

        Actions of older releases have none; the baseline behind them has it.
        """
        known = self._versions.get((name, number))
        order = (not version.digest, version.entry_index)
        if known is None or order < (not known.digest, known.entry_index):
            self._versions[name, number] = version

    def check_versions(
        self, listed: Iterable[RegisteredVersion], manifest: Manifest, check: Check
    ) -> int:
        """Compare the versions in the bundle with the entries. Returns how many are not proved.

        A version without an entry fails only if there is a baseline: before it, older releases
        published without naming what.
        """
        there: set[tuple[str, int]] = set()
        unproved, oldest = 0, ""
        for one in listed:
            key = one.tool_name, one.number
            there.add(key)
            oldest = min(oldest or one.published_at, one.published_at)
            stated, name = self._versions.get(key), f"{shown(one.tool_name)} version {one.number}"
            if stated is None and self.has_baseline:
                check.fail(f"{name}: no entry of the ledger says that it was published")
            elif stated is None or not stated.digest:
                unproved += 1
            elif stated.digest != one.digest:
                check.fail(f"{name} is not the contract that was published")
            elif (stated.published_at, stated.published_by) != (one.published_at, one.published_by):
                check.fail(
                    f"{name} was published at {stated.published_at} by"
                    f" {shown(stated.published_by)}, not as stated"
                )
        self._check_missing(there, manifest, oldest, check)
        return unproved

    def _check_missing(
        self, there: set[tuple[str, int]], manifest: Manifest, oldest: str, check: Check
    ) -> None:
        end = None if manifest.end is None else datetime.fromisoformat(manifest.end)
        left_out = manifest.versions_left_out
        highest: dict[str, int] = {}
        for name, number in self._versions.keys() | there:
            highest[name] = max(number, highest.get(name, 0))
        for (name, number), stated in self._versions.items():
            is_older = bool(left_out) and (not oldest or stated.published_at <= oldest)
            is_later = end is not None and stated.at >= end
            if (name, number) not in there and not is_older and not is_later:
                check.fail(f"{shown(name)} version {number} was published and is missing")
        if self.has_baseline and not left_out:
            for name, last in highest.items():
                for number in range(1, last):
                    if (name, number) not in self._versions and (name, number) not in there:
                        check.fail(f"{shown(name)} version {number} is missing")

    def check_declarations(self, declared: Iterable[ProvedLine], check: Check) -> None:
        """Check who may declare payloads erased: after the baseline, entries must justify it.

        An erasure needs an earlier confirmation by the same person for the same reason, retention
        a setting in force.
        """
        if not self.has_baseline:
            return
        for line in declared:
            index = line.entry.index
            if index <= self._baseline_index:
                continue
            try:
                declaration = msgspec.json.decode(line.raw, type=_Declaration)
            except (msgspec.MsgspecError, ValueError, RecursionError):
                declaration = _Declaration()
            if line.entry.kind == Kind.RETENTION:
                in_force = max((each for each in self._settings if each[0] < index), key=_index)
                if in_force[1] is None:
                    check.fail(
                        f"entry {index:,}: payloads expired, but no setting lets them expire"
                    )
                continue
            confirmed = self._confirmed.get(declaration.erasure)
            wanted = declaration.actor, declaration.reason
            if confirmed is None or confirmed[0] > index or confirmed[1:] != wanted:
                check.fail(
                    f"entry {index:,}: an erasure by {shown(declaration.actor)}, but no entry"
                    " before it says that they confirmed it"
                )

    def check_report(self, report_id: UUID | None, data: bytes, check: Check) -> None:
        """Compare the report in the bundle with the action that created it."""
        stated = self._reports.get(str(report_id))
        if not stated:
            check.skip("no signed entry has a hash of this report")
            return
        try:
            document = json.loads(data)
            document.pop("tenant", None)  # the tenant's name of today
            if report_digest(document) != stated:
                check.fail("it is not the report that was created")
        except (ValueError, AttributeError, RecursionError) as error:
            raise UnreadableError(f"{REPORT} cannot be read ({error})") from error

    def check_timeline(self, data: bytes, page: bytes, check: Check) -> None:
        """Compare the two forms of the timeline with the action that put it on record.

        A server gives out no timeline before its entry is signed, so a missing entry fails.
        """
        try:
            named = msgspec.json.decode(data, type=_Timeline).id
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise UnreadableError(f"{TIMELINE} cannot be read ({error})") from error
        stated = self._timelines.get(named)
        if stated is None:
            check.fail("no signed entry has a hash of this timeline")
            return
        for name, member, digest in zip(
            (TIMELINE, TIMELINE_PAGE), (data, page), stated, strict=True
        ):
            if hashlib.sha256(member).hexdigest() != digest:
                check.fail(f"{name} is not what was made")


def _index(setting: tuple[int, int | None]) -> int:
    return setting[0]


def report_digest(document: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of a report as JSON: members sorted, no spaces, ASCII."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
