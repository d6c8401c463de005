"""Checks an evidence bundle, using only the bundle and what the auditor already has.

One chunk of the bundle is in memory at a time. The leaves of the bundle's range are added to the
tree as they are read. Together with the hashes for the entries before and behind, they must give
the root of the largest checkpoint. Smaller checkpoints within the range are compared on the way.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from tooltrail.evidence import layout
from tooltrail.evidence.archive import Archive, UnreadableError
from tooltrail.evidence.coverage import Coverage
from tooltrail.evidence.epochs import parse_origin, under_name
from tooltrail.evidence.layout import Manifest, RegisteredVersion, Tree
from tooltrail.evidence.scan import Scan
from tooltrail.evidence.signed import Signed, read_keys, read_member, read_signed
from tooltrail.evidence.statements import Statements
from tooltrail.evidence.verdict import Check, Verdict
from tooltrail.ledger import FormatError, ProofError, VerifierKey, verify_consistency
from tooltrail.ledger.frontier import Frontier
from tooltrail.ledger.lines import shown, to_base64
from tooltrail.tools.digest import tool_digest

type Progress = Callable[[int, int], None]
"""Called with the number of entries done, and the total."""

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_NO_TREE = "cannot be checked while entries are missing or out of order"
_NO_WITNESS = (
    "No external witness signs these checkpoints. The bundle is consistent with itself. Only an "
    "earlier checkpoint of your own shows that the server gives everybody the same ledger "
    "(--previous, tooltrail watch)."
)
_NOT_RECEIVED = (
    "Events that never reached the server are in no ledger. Times of arrival are those of the "
    "server's clock."
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
_NO_KEY = (
    "The public keys are from the bundle itself, so its creator could have created them, too. "
    "Get the key from the ledger's page or its operator, and pass it with --key."
)


def verify(
    archive: Archive,
    *,
    trusted: Sequence[VerifierKey] = (),
    previous: Sequence[bytes] = (),
    progress: Progress = lambda done, total: None,
) -> Verdict:
    """Check everything that can be checked; 1 million events of 1.2 KB take about 10 s.

    `trusted` are the keys that the auditor knows; without them, the keys in the bundle are used.
    `previous` are checkpoints, as signed notes, that the auditor has kept. Raises
    UnreadableError if this is not a bundle, FormatError if one of `previous` is not a
    checkpoint of this ledger, and ImportError without the extra `verify`.
    """
    return _Verification(archive, trusted, previous, progress).run()


class _Verification:
    def __init__(
        self,
        archive: Archive,
        trusted: Sequence[VerifierKey],
        previous: Sequence[bytes],
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
        self._signed = Check("signed")
        self._consistent = Check("consistent")
        self._window = Check("range", "the bundle has every signed entry of the time range")
        self._registry = Check("registry", "each tool version is what entries say was published")
        self._report = Check("report", "the report is the one that was created")
        self._statements = Statements()
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
                self._signed,
                self._consistent,
                self._window,
                self._registry,
                *([self._report] if archive.has_report else []),
            ],
        )
        in_bundle = read_keys(archive.read(layout.KEYS))
        self._keys = tuple(trusted) or in_bundle
        self._has_trusted = bool(trusted)
        self._unproved = 0
        self._notes = {size: archive.read(name) for size, name in archive.checkpoints}
        self._checkpoints = [
            read_member(note, size, manifest.origin, self._keys)
            for size, note in self._notes.items()
        ]
        self._largest = self._checkpoints[-1]
        self._previous_notes = previous
        self._previous = [read_signed(note, self._keys) for note in previous]
        base, epoch = parse_origin(manifest.origin)
        for each in self._previous:
            known, earlier = parse_origin(each.origin)
            if known != base or earlier > epoch:
                raise FormatError(
                    f"your checkpoint is from {shown(each.origin)}, the bundle from "
                    f"{shown(manifest.origin)}"
                )

    def run(self) -> Verdict:
        self._check_entries()
        self._check_signatures()
        self._check_consistency()
        self._check_previous()
        self._check_window()
        self._check_registry()
        if self._archive.has_report:
            report = self._archive.read(layout.REPORT)
            self._statements.check_report(self._manifest.report_id, report, self._report)
        verdict = self._verdict
        verdict.size, verdict.root = self._largest.size, to_base64(self._largest.root)
        verdict.keys = [str(key) for key in self._keys]
        verdict.limits = [
            *([] if self._has_trusted else [_NO_KEY]),
            _NO_WITNESS,
            _NOT_RECEIVED,
            *([_NOT_PROVED] if self._unproved else []),
            *([_REPORT] if self._archive.has_report else []),
            _STATED,
            *self._scan.backward,
        ]
        return verdict

    def _check_signatures(self) -> None:
        """Check all signatures, the smallest checkpoint first: it may announce a key for the next.

        A trusted key must have signed the largest. That smaller ones belong to the same ledger is
        proved without their signatures, so other keys may have signed them: old ones.
        """
        origin, trusted = self._manifest.origin, list(self._keys)
        self._previous = [self._signed_by(note, trusted) for note in self._previous_notes]
        unknown = 0
        for at, (size, note) in enumerate(self._notes.items()):
            each = read_member(note, size, origin, under_name(trusted, origin))
            self._checkpoints[at] = each
            if each.is_unknown and at < len(self._notes) - 1:
                unknown += 1
            elif each.fault:
                self._signed.fail(f"the checkpoint of {each.size:,} entries: {each.fault}")
            else:
                announced = self._statements.succession.announced_before(size)
                trusted += [VerifierKey(origin, public) for public in announced]
        key_name = "your key" if self._has_trusted else "the key in the bundle"
        count = len(self._checkpoints) - unknown
        many = f"{count} checkpoints are" if count > 1 else "the checkpoint is"
        others = f"; {unknown} smaller ones with other keys" if unknown else ""
        self._signed.message = f"{many} signed with {key_name}{others}"

    def _signed_by(self, note: bytes, trusted: Sequence[VerifierKey]) -> Signed:
        """One of the auditor's checkpoints; the keys may be of another epoch's name."""
        origin = read_signed(note, ()).origin
        return read_signed(note, under_name(trusted, origin))

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
        sizes = [each.size for each in (*self._checkpoints, *self._previous)]
        scan = self._scan = Scan(
            manifest=manifest,
            tree=tree,
            sizes=sizes,
            coverage=coverage,
            statements=self._statements,
            complete=self._complete,
            edited=self._edited,
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
            self._included.skip(_NO_TREE)

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

    def _check_consistency(self) -> None:
        others = self._checkpoints[:-1]
        for each in others:
            if self._is_lost(each.size):
                self._consistent.skip(_NO_TREE)
            elif (fault := self._inconsistency(each)) is not None:
                self._consistent.fail(fault)
        if not others:
            self._consistent.skip("the bundle has only one checkpoint")
        elif self._consistent.is_checked:
            self._consistent.message = (
                f"{len(others)} earlier checkpoints belong to the same ledger"
            )

    def _check_previous(self) -> None:
        if not self._previous:
            return
        check = Check("previous", "the ledger only grew since your checkpoint")
        self._verdict.checks.insert(6, check)
        for each in self._previous:
            if each.fault:
                check.fail(f"your checkpoint of {each.size:,} entries: {each.fault}")
            if each.size > self._largest.size and self._gone_since(each) is None:
                check.fail(
                    f"the ledger had {each.size:,} entries and now has {self._largest.size:,}: "
                    "entries at its end were removed, or it was replaced by an older state"
                )
            elif (gone := self._gone_since(each)) is not None:
                self._verdict.is_undecided = True
                check.skip(gone)
            elif self._is_lost(each.size):
                check.skip(_NO_TREE)
            elif not self._is_within_reach(each.size):
                self._verdict.is_undecided = True
                check.skip(
                    f"the bundle has no proof from {each.size:,} entries to its checkpoint: "
                    f"request a bundle with previous={each.size}"
                )
            elif (fault := self._inconsistency(each)) is not None:
                check.fail(f"your checkpoint was signed for another ledger: {fault}")

    def _gone_since(self, previous: Signed) -> str | None:
        """What the ledger lost when it was begun again after this checkpoint; None if nothing."""
        number = parse_origin(previous.origin)[1]
        if number == parse_origin(self._manifest.origin)[1]:
            return None
        begun = self._statements.succession.begun_after(number)
        if begun is None:
            return "the bundle does not have the entry with which the ledger was begun again"
        if previous.size <= begun.index:
            return None
        return (
            f"entries {begun.index:,} to {previous.size - 1:,} of your checkpoint are gone: the "
            f"ledger was begun again as epoch {begun.number} ({shown(begun.reason)})"
        )

    def _is_lost(self, size: int) -> bool:
        """Whether this state lies within the range, but the entries there give no tree."""
        is_within = self._manifest.first_index <= size <= self._manifest.end_index
        return is_within and size not in self._scan.roots and size < self._largest.size

    def _is_within_reach(self, size: int) -> bool:
        return (
            size in self._scan.roots
            or size in (0, self._largest.size)
            or str(size) in self._tree.consistency
        )

    def _inconsistency(self, signed: Signed) -> str | None:
        """Why a checkpoint is not an earlier state of the largest one; None if it is."""
        largest = self._largest
        computed = self._scan.roots.get(signed.size)
        if computed is not None and signed.size != largest.size:
            if computed == signed.root:
                return None
            return f"the first {signed.size:,} entries do not match the signed root"
        proof = self._tree.consistency.get(str(signed.size), [])
        try:
            verify_consistency(signed.size, signed.root, largest.size, largest.root, proof)
        except ProofError as error:
            return str(error)
        return None

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
