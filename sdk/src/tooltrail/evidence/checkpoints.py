"""Checks the checkpoints of a bundle, and those that the auditor has kept, against its entries."""

from collections.abc import Mapping, Sequence

from tooltrail.evidence import layout
from tooltrail.evidence.archive import Archive
from tooltrail.evidence.epochs import Epoch, parse_origin, under_name
from tooltrail.evidence.layout import Manifest, Tree
from tooltrail.evidence.signed import Signed, read_keys, read_member, read_signed
from tooltrail.evidence.statements import Statements
from tooltrail.evidence.verdict import Check
from tooltrail.ledger import FormatError, ProofError, VerifierKey, verify_consistency
from tooltrail.ledger.lines import shown

NO_TREE = "cannot be checked while entries are missing or out of order"


class Checkpoints:
    """The signed states of one ledger: in the bundle, and kept by the auditor (`previous`).

    `trusted` are the auditor's keys; without them, those in the bundle count. Raises
    UnreadableError, and FormatError if one of `previous` is not a checkpoint of this ledger.
    """

    def __init__(
        self,
        archive: Archive,
        manifest: Manifest,
        tree: Tree,
        trusted: Sequence[VerifierKey],
        previous: Sequence[bytes],
    ) -> None:
        self.signed = Check("signed")
        self.consistent = Check("consistent")
        self.previous = Check("previous", "the ledger only grew since your checkpoint")
        self.is_undecided = False
        """Whether one of the auditor's checkpoints could not be compared."""
        in_bundle = read_keys(archive.read(layout.KEYS))
        self.keys = tuple(trusted) or in_bundle
        self.has_trusted = bool(trusted)
        self._manifest = manifest
        self._origin = manifest.origin
        self._proofs = tree.consistency
        self._notes = {size: archive.read(name) for size, name in archive.checkpoints}
        self._checkpoints = [
            read_member(note, size, self._origin, self.keys) for size, note in self._notes.items()
        ]
        self.largest = self._checkpoints[-1]
        self._previous_notes = previous
        self._previous = [read_signed(note, self.keys) for note in previous]
        base, epoch = parse_origin(self._origin)
        for each in self._previous:
            known, earlier = parse_origin(each.origin)
            if known != base or earlier > epoch:
                raise FormatError(
                    f"your checkpoint is from {shown(each.origin)}, the bundle from "
                    f"{shown(self._origin)}"
                )

    @property
    def notes(self) -> Mapping[int, bytes]:
        """The signed notes in the bundle, by size."""
        return self._notes

    @property
    def roots(self) -> Mapping[int, bytes]:
        """The roots of the checkpoints in the bundle, by size."""
        return {each.size: each.root for each in self._checkpoints}

    @property
    def sizes(self) -> list[int]:
        """The sizes of the ledger at which its root is needed."""
        return [each.size for each in (*self._checkpoints, *self._previous)]

    def check(self, statements: Statements, roots: Mapping[int, bytes]) -> None:
        """Check them, after the entries. `roots` are computed from the entries, by size."""
        self._statements, self._roots = statements, roots
        self._check_signatures()
        self._check_consistency()
        self._check_previous()

    def _check_signatures(self) -> None:
        """Check all signatures, the smallest checkpoint first: it may announce a key for the next.

        A trusted key must have signed the largest. That smaller ones belong to the same ledger is
        proved without their signatures, so other keys may have signed them: old ones.
        """
        origin, trusted = self._origin, list(self.keys)
        self._previous = [self._signed_by(note, trusted) for note in self._previous_notes]
        unknown = 0
        for at, (size, note) in enumerate(self._notes.items()):
            each = read_member(note, size, origin, under_name(trusted, origin))
            self._checkpoints[at] = each
            if each.is_unknown and at < len(self._notes) - 1:
                unknown += 1
            elif each.fault:
                self.signed.fail(f"the checkpoint of {each.size:,} entries: {each.fault}")
            else:
                announced = self._statements.succession.announced_before(size)
                trusted += [VerifierKey(origin, public) for public in announced]
        key_name = "your key" if self.has_trusted else "the key in the bundle"
        count = len(self._checkpoints) - unknown
        many = f"{count} checkpoints are" if count > 1 else "the checkpoint is"
        others = f"; {unknown} smaller ones with other keys" if unknown else ""
        self.signed.message = f"{many} signed with {key_name}{others}"

    def _signed_by(self, note: bytes, trusted: Sequence[VerifierKey]) -> Signed:
        """One of the auditor's checkpoints; the keys may be of another epoch's name."""
        origin = read_signed(note, ()).origin
        return read_signed(note, under_name(trusted, origin))

    def _check_consistency(self) -> None:
        others = self._checkpoints[:-1]
        for each in others:
            if self._is_lost(each.size):
                self.consistent.skip(NO_TREE)
            elif (fault := self._inconsistency(each)) is not None:
                self.consistent.fail(fault)
        if not others:
            self.consistent.skip("the bundle has only one checkpoint")
        elif self.consistent.is_checked:
            self.consistent.message = f"{len(others)} earlier checkpoints belong to the same ledger"

    def _check_previous(self) -> None:
        check = self.previous
        for each in self._previous:
            if each.fault:
                check.fail(f"your checkpoint of {each.size:,} entries: {each.fault}")
            if each.size > self.largest.size and self._gone_since(each) is None:
                check.fail(
                    f"the ledger had {each.size:,} entries and now has {self.largest.size:,}: "
                    "entries at its end were removed, or it was replaced by an older state"
                )
            elif (gone := self._gone_since(each)) is not None:
                self.is_undecided = True
                check.skip(gone)
            elif self._is_lost(each.size):
                check.skip(NO_TREE)
            elif not self._is_within_reach(each.size):
                self.is_undecided = True
                check.skip(
                    f"the bundle has no proof from {each.size:,} entries to its checkpoint: "
                    f"request a bundle with previous={each.size}"
                )
            elif (fault := self._inconsistency(each)) is not None:
                begun = self._begun_after(each)
                if begun is None or begun.differs or each.size <= begun.proved:
                    check.fail(f"your checkpoint was signed for another ledger: {fault}")
                else:
                    self.is_undecided = True
                    check.skip(_gone(begun, each))

    def _gone_since(self, previous: Signed) -> str | None:
        """What the ledger lost when it was restarted after this checkpoint; None if nothing."""
        if parse_origin(previous.origin)[1] == parse_origin(self._origin)[1]:
            return None
        begun = self._begun_after(previous)
        if begun is None:
            return "the bundle does not have the entry with which the ledger was restarted"
        return None if previous.size <= begun.index else _gone(begun, previous)

    def _begun_after(self, previous: Signed) -> Epoch | None:
        """The entry with which the ledger was restarted after this checkpoint."""
        return self._statements.succession.begun_after(parse_origin(previous.origin)[1])

    def _is_lost(self, size: int) -> bool:
        """Whether this state lies within the range, but the entries there give no tree."""
        is_within = self._manifest.first_index <= size <= self._manifest.end_index
        return is_within and size not in self._roots and size < self.largest.size

    def _is_within_reach(self, size: int) -> bool:
        return size in self._roots or size in (0, self.largest.size) or str(size) in self._proofs

    def _inconsistency(self, signed: Signed) -> str | None:
        """Why a checkpoint is not an earlier state of the largest one; None if it is."""
        largest = self.largest
        computed = self._roots.get(signed.size)
        if computed is not None and signed.size != largest.size:
            if computed == signed.root:
                return None
            return f"the first {signed.size:,} entries do not match the signed root"
        proof = self._proofs.get(str(signed.size), [])
        try:
            verify_consistency(signed.size, signed.root, largest.size, largest.root, proof)
        except ProofError as error:
            return str(error)
        return None


def _gone(begun: Epoch, previous: Signed) -> str:
    return (
        f"entries {begun.proved:,} to {previous.size - 1:,} of your checkpoint are gone or were "
        f"changed: the ledger was restarted as epoch {begun.number} ({shown(begun.reason)})"
    )
