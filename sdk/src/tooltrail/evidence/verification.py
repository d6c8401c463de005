"""Checks an evidence bundle, using only the bundle and what the auditor already has.

One chunk of the bundle is in memory at a time. The leaves of the bundle's range are added to the
tree as they are read. Together with the hashes for the entries before and behind, they must give
the root of the largest checkpoint. Smaller checkpoints within the range are compared on the way.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from tooltrail.evidence import layout
from tooltrail.evidence.acknowledged import Acknowledged, Holding
from tooltrail.evidence.archive import Archive, UnreadableError
from tooltrail.evidence.checkpoints import NO_TREE, Checkpoints
from tooltrail.evidence.coverage import Coverage
from tooltrail.evidence.layout import Manifest, RegisteredVersion, Tree
from tooltrail.evidence.sample.check import SampleCheck
from tooltrail.evidence.sample.layout import SampleFile
from tooltrail.evidence.scan import Scan
from tooltrail.evidence.statements import Statements
from tooltrail.evidence.timestamped import check_times
from tooltrail.evidence.verdict import Check, Verdict
from tooltrail.evidence.witnessed import Policy, check_witnesses
from tooltrail.ledger import ProofError, VerifierKey
from tooltrail.ledger.frontier import Frontier
from tooltrail.ledger.lines import shown, to_base64
from tooltrail.tools.digest import tool_digest

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

type Progress = Callable[[int, int], None]
"""Called with the number of entries done, and the total."""

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_NO_WITNESS = (
    "No signature of a witness was checked (--witness). The bundle is consistent with itself. Only "
    "a witness, or an earlier checkpoint of your own, shows that the server gives everybody the "
    "same ledger (--previous, tooltrail watch)."
)
_TOO_FEW_WITNESSES = (
    "Too few of your witnesses vouch for these entries. For the others, only an earlier checkpoint "
    "of your own shows that the server gives everybody the same ledger (--previous)."
)
_WITNESSED = (
    "The witnesses saw one ledger that only grew. They do not know what its entries say. If as "
    "many of them as you require work together with the server, they can sign two ledgers."
)
_NOT_RECEIVED = (
    "Events that never reached the server are in no ledger, and events of the last minute may not "
    "be signed yet."
)
_CLOCK = "Times of arrival are those of the server's clock. No time authority was asked (--tsa)."
_TIMED = (
    "Times of arrival are those of the server's clock. The time authority shows only that the "
    "entries existed at the latest when it says, not how much earlier they arrived."
)
_OF_NOW = (
    "Somebody who can write to the server's database can add an entry dated now, in anybody's "
    "name. Calls and figures on pages are not in a bundle."
)
_NOT_PROVED = (
    "What was published as the older tool versions, by whom and when, is stated by the server and "
    "not proved: the ledger names it since its baseline."
)
_STATED = (
    "The tenant's name, README.txt, and who made the bundle and when are the words of whoever made "
    "this file. A tool whose versions were all published before the range can be left out."
)
_REPORT = (
    "That the figures of the report are right is stated by the server and not proved. You can "
    "recalculate them from the events in the bundle."
)
_TIMELINE = (
    "That the timeline has everything that happened, and that nothing else did, is stated by the "
    "server and not proved. You can compare it with the events in the bundle."
)
_NO_KEY = (
    "The public keys are from the bundle itself, so its creator could have created them, too. "
    "Get the key from the ledger's page or its operator, and pass it with --key."
)


def verify(
    archive: Archive,
    *,
    trusted: Sequence[VerifierKey] = (),
    previous: Sequence[bytes] = (),
    acknowledged: Acknowledged | None = None,
    policy: Policy | None = None,
    authorities: Sequence["Certificate"] = (),
    progress: Progress = lambda done, total: None,
) -> Verdict:
    """Check everything that can be checked; 1 million events of 1.2 KB take about 10 s.

    `trusted` are the keys that the auditor knows; without them, the keys in the bundle are used.
    `previous` are checkpoints, as signed notes, that the auditor has kept. `acknowledged` is what
    the server once answered to an executor. `policy` names the witnesses that the auditor trusts.
    `authorities` are certificates of the time authorities that the auditor trusts. Raises
    UnreadableError if this is not a bundle, FormatError if one of `previous` is not a checkpoint of
    this ledger, and ImportError without the extras `verify`, and `timestamp` for authorities.
    """
    return _Verification(
        archive, trusted, previous, acknowledged, policy, authorities, progress
    ).run()


class _Verification:
    def __init__(
        self,
        archive: Archive,
        trusted: Sequence[VerifierKey],
        previous: Sequence[bytes],
        acknowledged: Acknowledged | None,
        policy: Policy | None,
        authorities: Sequence["Certificate"],
        progress: Progress,
    ) -> None:
        self._archive = archive
        self._progress = progress
        archive.read(layout.README)  # only to find damage
        manifest = self._manifest = decoded(archive, layout.MANIFEST, Manifest)
        if manifest.format not in layout.FORMATS:
            raise UnreadableError(f"unknown format {shown(manifest.format)}")
        if manifest.end_index < manifest.first_index:
            raise UnreadableError("its range ends before it begins")
        if archive.has_statements != (manifest.format == layout.FORMAT):
            raise UnreadableError(f"{layout.STATEMENTS} does not fit {manifest.format}")
        self._tree = decoded(archive, layout.TREE, Tree)
        self._complete = Check("complete", "every entry of the range is present, once and in order")
        self._edited = Check("unedited", "every event matches its entry, byte for byte")
        self._erased = Check("erasures", "each missing payload was declared erased by an entry")
        self._included = Check("included", "every entry is in the signed ledger")
        self._checkpoints = Checkpoints(archive, manifest, self._tree, trusted, previous)
        self._largest = self._checkpoints.largest
        self._window = Check("range", "the bundle has every signed entry of the time range")
        self._registry = Check("registry", "each tool version is what entries say was published")
        self._report = Check("report", "the report is the one that was created")
        self._timeline = Check("timeline", "the timeline is the one that was made")
        self._acknowledged = Check("acknowledged", "it has what the server acknowledged")
        self._policy = policy
        self._witnessed = Check("witnessed")
        self._authorities = authorities
        self._timestamped = Check("timestamped")
        self._holding = None if acknowledged is None else Holding(acknowledged)
        self._sample: SampleCheck | None = None
        if archive.has_sample:
            sample = decoded(archive, layout.SAMPLE, SampleFile)
            self._sample = SampleCheck(sample, archive.read(layout.POPULATION))
        self._statements = Statements(None if self._sample is None else self._sample.note_action)
        self._verdict = Verdict(
            origin=manifest.origin,
            tenant=manifest.tenant,
            first_index=manifest.first_index,
            end_index=manifest.end_index,
            start=manifest.start,
            end=manifest.end,
            checks=[
                self._complete,
                self._edited,
                self._erased,
                self._included,
                self._checkpoints.signed,
                self._checkpoints.consistent,
                *([self._checkpoints.previous] if previous else []),
                *([self._witnessed] if policy else []),
                *([self._timestamped] if authorities else []),
                self._window,
                self._registry,
                *([self._report] if archive.has_report else []),
                *([self._timeline] if archive.has_timeline else []),
                *(self._sample.checks if self._sample else []),
                *([self._acknowledged] if acknowledged else []),
            ],
        )
        self._unproved = 0

    def run(self) -> Verdict:
        self._check_entries()
        self._checkpoints.check(self._statements, self._scan.roots)
        self._verdict.is_undecided |= self._checkpoints.is_undecided
        if self._policy is not None:
            self._check_witnesses(self._policy)
        if self._authorities:
            self._check_times()
        self._check_window()
        self._check_registry()
        if self._archive.has_report:
            report = self._archive.read(layout.REPORT)
            self._statements.check_report(self._manifest.report_id, report, self._report)
        if self._archive.has_timeline:
            timeline = self._archive.read(layout.TIMELINE)
            page = self._archive.read(layout.TIMELINE_PAGE)
            self._statements.check_timeline(timeline, page, self._timeline)
        if self._sample is not None:
            self._sample.finish(self._checkpoints.notes, self._checkpoints.roots, self._policy)
            self._verdict.is_undecided |= self._sample.is_undecided
        if self._holding is not None:
            is_compared = self._holding.check(
                self._manifest, self._largest.size, self._acknowledged
            )
            self._verdict.is_undecided |= not is_compared
        verdict = self._verdict
        verdict.size, verdict.root = self._largest.size, to_base64(self._largest.root)
        verdict.keys = [str(key) for key in self._checkpoints.keys]
        verdict.limits = [
            *([] if self._checkpoints.has_trusted else [_NO_KEY]),
            self._unwitnessed,
            _NOT_RECEIVED,
            _TIMED if self._timestamped.message and self._timestamped.is_checked else _CLOCK,
            _OF_NOW,
            *([_NOT_PROVED] if self._unproved else []),
            *([_REPORT] if self._archive.has_report else []),
            *([_TIMELINE] if self._archive.has_timeline else []),
            *(self._sample.limits if self._sample else []),
            _STATED,
            *self._scan.backward,
        ]
        return verdict

    def _check_witnesses(self, policy: Policy) -> None:
        """Check what the witnesses signed. It counts for the entries only with a proved ledger."""
        notes, end = self._checkpoints.notes, self._manifest.end_index
        self._verdict.is_undecided |= not check_witnesses(policy, notes, end, self._witnessed)

    def _check_times(self) -> None:
        """Check the tokens of time authorities."""
        notes, end = self._checkpoints.notes, self._manifest.end_index
        is_decided = check_times(self._authorities, notes, end, self._timestamped)
        self._verdict.is_undecided |= not is_decided

    @property
    def _unwitnessed(self) -> str:
        """What the witnesses leave open."""
        if self._policy is None:
            return _NO_WITNESS
        return _WITNESSED if self._witnessed.result == "verified" else _TOO_FEW_WITNESSES

    def _check_entries(self) -> None:
        """Read the range; what its entries say about the tree is checked afterwards."""
        manifest, largest = self._manifest, self._largest
        tree: Frontier | None = None
        try:
            tree = Frontier(manifest.first_index, self._tree.before)
            if largest.size < manifest.end_index:
                raise ProofError(
                    f"the largest checkpoint has {largest.size:,} entries, but the bundle ends at "
                    f"{manifest.end_index:,}"
                )
        except ProofError as error:
            self._included.fail(str(error))
        coverage = Coverage.read(self._archive.read(layout.ERASURES), largest, self._erased)
        if self._archive.has_statements:
            self._statements.read(self._archive.read(layout.STATEMENTS), largest, self._registry)
        scan = self._scan = Scan(
            manifest=manifest,
            tree=tree,
            sizes=self._checkpoints.sizes,
            coverage=coverage,
            statements=self._statements,
            complete=self._complete,
            edited=self._edited,
            holding=self._holding,
            sample=self._sample,
        )
        total = manifest.end_index - manifest.first_index
        for chunk in range(self._archive.chunks):
            self._progress(min(scan.events, total), total)
            scan.read(self._archive, chunk)
        scan.end()
        self._statements.check_declarations(coverage.declared, self._erased)
        self._progress(total, total)
        self._verdict.events, self._verdict.erased = scan.events, scan.erased
        if scan.erased:
            self._erased.message = (
                f"{scan.erased:,} payloads are erased, as declared by entries of the ledger"
            )
        if scan.tree is not None and tree is not None and not self._included.problem_count:
            self._lead_to_root(scan.tree, scan.remade)
        elif not self._included.problem_count:
            self._included.skip(NO_TREE)

    def _lead_to_root(self, tree: Frontier, remade: Frontier | None) -> None:
        """Continue the tree behind the bundle's range to the largest checkpoint's root."""
        largest = self._largest
        for each in (tree, *([remade] if remade else [])):
            try:
                each.finish(largest.size, self._tree.behind)
            except ProofError as error:
                self._included.fail(str(error))
                return
        if tree.root == largest.root:
            return
        if remade is not None and remade.root == largest.root:
            self._included.fail(
                "the stored leaves do not match the signed root, but those computed from the "
                "events do: leaves were edited, the events are genuine"
            )
            return
        self._included.fail(
            f"the entries do not match the signed root for {largest.size:,} entries: "
            "some were edited, inserted, removed or swapped"
        )

    def _check_window(self) -> None:
        """Check that the neighbouring entries are outside the time range, or there are none."""
        manifest = self._manifest
        if manifest.start is None or manifest.end is None:
            self._window.skip("the bundle has a range of ledger indexes, not a time range")
            return
        start, end = _microseconds(manifest.start), _microseconds(manifest.end)
        first, last = self._scan.first_received, self._scan.last_received
        if manifest.first_index == manifest.end_index and self._largest.size:
            self._window.fail(
                "it has no entries, so any entry of the ledger may belong to the range"
            )
            return
        unknown = []
        if manifest.first_index > 0:
            if first is None:
                unknown.append("first")
            elif first >= start:
                self._window.fail("entries before the bundle's first may belong to the range")
        if manifest.end_index < self._largest.size:
            if last is None:
                unknown.append("last")
            elif last < end:
                self._window.fail("entries after the bundle's last may belong to the range")
        if unknown and not self._window.problem_count:
            which = " and ".join(unknown)
            self._verdict.is_undecided = True
            self._window.skip(
                f"the arrival time of the {which} entry was erased with its payload: entries next "
                "to it may belong to the range, too"
            )

    def _check_registry(self) -> None:
        try:
            versions = msgspec.json.Decoder(RegisteredVersion).decode_lines(
                self._archive.read(layout.REGISTRY)
            )
            for each in versions:
                digest = tool_digest(
                    name=each.tool_name,
                    description=each.description,
                    input_schema=each.input_schema,
                    output_schema=each.output_schema,
                    trusted=each.trusted,
                    ephemeral=each.ephemeral,
                    on_collision=each.on_collision,
                )
                if digest != each.digest:
                    self._registry.fail(f"{shown(each.tool_name)} version {each.number} was edited")
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
            raise UnreadableError(f"{layout.REGISTRY} cannot be read ({error})") from error
        if self._archive.has_statements:
            self._unproved = self._statements.check_versions(
                versions, self._manifest, self._registry
            )
        else:
            self._unproved = len(versions)
        if self._unproved:
            self._registry.skip(
                f"{self._unproved:,} of {len(versions):,} tool versions match their digests, but "
                "no entry in the bundle proves what was published"
            )
        elif not versions:
            self._registry.skip("no registered tool had a version in this range")


def decoded[T](archive: Archive, name: str, form: type[T]) -> T:
    """Read a member that is one JSON document. Raises UnreadableError."""
    try:
        return msgspec.json.decode(archive.read(name), type=form)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UnreadableError(f"{name} cannot be read ({error})") from error


def _microseconds(instant: str) -> int:
    try:
        return (datetime.fromisoformat(instant) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, TypeError, OverflowError):
        raise UnreadableError(f"{shown(instant)} is not a valid time") from None
