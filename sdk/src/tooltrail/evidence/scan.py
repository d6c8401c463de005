"""Reads the entries of a bundle and their events; most of the verification time is spent here."""

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from tooltrail.evidence import layout
from tooltrail.evidence.acknowledged import Holding
from tooltrail.evidence.archive import Archive, UnreadableError
from tooltrail.evidence.coverage import Coverage
from tooltrail.evidence.layout import EntryLine, Manifest
from tooltrail.evidence.sample.check import SampleCheck
from tooltrail.evidence.statements import STATING, Statements
from tooltrail.evidence.verdict import Check
from tooltrail.ledger import SALT_LENGTH
from tooltrail.ledger.frontier import Frontier
from tooltrail.ledger.lines import HASH_LENGTH

_BACKWARD_US = 600_000_000
"""How much earlier than those in front of it an entry may have arrived: 10 minutes."""
_BACKWARD_SHOWN = 5


class Scan:
    """One pass over the bundle's range. Problems are reported to the checks."""

    def __init__(
        self,
        manifest: Manifest,
        tree: Frontier | None,
        sizes: Iterable[int],
        coverage: Coverage,
        statements: Statements,
        complete: Check,
        edited: Check,
        holding: Holding | None = None,
        sample: SampleCheck | None = None,
    ) -> None:
        self.tree = tree
        """Grows with the entries; None once entries are missing or out of order."""
        self.remade: Frontier | None = None
        """The tree with the leaves made from the events, once these differ from the stored ones."""
        self.roots: dict[int, bytes] = {}
        """The ledger's roots, computed from its entries, at those of `sizes` within the range."""
        self.events = 0
        self.erased = 0
        self.first_received: int | None = None
        """When the first entry of the range arrived, in µs; None if it is erased."""
        self.backward: list[str] = []
        """Entries that arrived minutes before the one before them; the first few."""
        self._latest = 0
        self.last_received: int | None = None
        self._begin, self._end = manifest.first_index, manifest.end_index
        self._expected = self._begin
        self._stops = sorted({size for size in sizes if self._begin <= size <= self._end})
        self._coverage = coverage
        self._statements = statements
        self._complete = complete
        self._edited = edited
        self._holding = holding
        self._sample = sample
        self._decoder = msgspec.json.Decoder(EntryLine)
        self._stop()

    def read(self, archive: Archive, chunk: int) -> None:
        """Read and check the next chunk. Raises UnreadableError."""
        name = layout.entries_member(chunk)
        try:
            lines = self._decoder.decode_lines(archive.read(name))
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise UnreadableError(f"{name} cannot be read ({error})") from error
        name = layout.events_member(chunk)
        stored, computed = self._leaves(lines, archive.read(name), name)
        if lines:
            self._note_times(lines[0], lines[-1])
        if self._holding is not None:
            self._holding.note(lines)
        if self._sample is not None:
            self._sample.note(lines)
        if self.tree is None:
            return
        if self.remade is None and stored != computed:
            self.remade = self.tree.copy()
        if self.remade is not None:
            self.remade.extend(computed)
        self._extend(self.tree, stored)

    def end(self) -> None:
        """Finish the pass after the last chunk."""
        self._coverage.end()
        if self._expected < self._end:
            self._complete.fail(_entries(self._expected, self._end) + " missing")
            self.tree = None

    def _leaves(self, lines: list[EntryLine], data: bytes, name: str) -> tuple[bytes, bytes]:
        """The leaves of a chunk: as stored, and as made from its events."""
        missing, leaf_from = self._coverage.missing, layout.leaf_from
        expected, at = self._expected, 0
        stored: list[bytes] = []
        computed: list[bytes] = []
        for line in lines:
            index, leaf = line.index, line.leaf
            if index == expected < self._end:
                expected += 1
            else:
                expected = self._out_of_order(index, expected)
            stored.append(leaf)
            if line.kind is None:
                self.erased += 1
                computed.append(leaf)
                missing(index)
                continue
            end = at + line.length
            if data[end : end + 1] != b"\n":
                raise UnreadableError(f"{name} has no event for entry {index:,}")
            received = line.received_us
            if received < self._latest - _BACKWARD_US and len(self.backward) < _BACKWARD_SHOWN:
                self._note_backward(index, received)
            self._latest = max(self._latest, received)
            salt = line.salt
            own = leaf_from(line, sha256(b"\x02" + salt + data[at:end]).digest())
            if line.kind in STATING and own == leaf:
                self._statements.note(index, line.kind, data[at:end])
            at = end + 1
            computed.append(own)
            if own != leaf or len(salt) != SALT_LENGTH:
                self._edited.fail(
                    f"entry {index:,}: the event does not match the stored leaf: one of "
                    "them was edited"
                )
        if at != len(data):
            raise UnreadableError(f"{name} has events without an entry")
        self._expected = expected
        self.events += len(lines)
        return b"".join(stored), b"".join(computed)

    def _out_of_order(self, index: int, expected: int) -> int:
        """Report an entry that is not the next one; returns the index expected after it."""
        self.tree = None
        if not self._begin <= index < self._end:
            self._complete.fail(f"entry {index:,} does not belong to the range")
            return expected
        if index < expected:
            self._complete.fail(f"entry {index:,} is a duplicate or out of order")
            return expected
        self._complete.fail(_entries(expected, index) + " missing")
        return index + 1

    def _note_backward(self, index: int, received: int) -> None:
        minutes = (self._latest - received) // 60_000_000
        self.backward.append(
            f"Entry {index:,} arrived {minutes:,} minutes before an entry in front of it: the "
            "server's clock was wrong, or somebody with the database inserted it later."
        )

    def _note_times(self, first: EntryLine, last: EntryLine) -> None:
        if first.index == self._begin and first.kind is not None:
            self.first_received = first.received_us
        if last.index == self._end - 1 and last.kind is not None:
            self.last_received = last.received_us

    def _extend(self, tree: Frontier, leaves: bytes) -> None:
        at = 0
        while self._stops and self._stops[0] <= tree.size + (len(leaves) - at) // HASH_LENGTH:
            end = at + (self._stops[0] - tree.size) * HASH_LENGTH
            tree.extend(leaves[at:end])
            at = end
            self._stop()
        tree.extend(leaves[at:])

    def _stop(self) -> None:
        """Remember the root if it is needed at this size."""
        if self.tree is not None and self._stops and self._stops[0] == self.tree.size:
            self.roots[self._stops.pop(0)] = self.tree.root


def _entries(begin: int, end: int) -> str:
    """Entries from `begin` up to but without `end`, followed by the verb."""
    if end - begin == 1:
        return f"entry {begin:,} is"
    return f"entries {begin:,} to {end - 1:,} are"
