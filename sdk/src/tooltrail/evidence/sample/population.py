"""Compares the population of a sample with the entries of a bundle, as they are read."""

from collections.abc import Sequence
from uuid import UUID

from tooltrail.evidence.layout import EntryLine
from tooltrail.evidence.sample.selection import RECORD
from tooltrail.evidence.verdict import Check
from tooltrail.ledger import Kind

_CALLS = frozenset((Kind.START, Kind.END, Kind.DECISION))
"""Kinds of entries that a call can begin with."""


class Population:
    """The records of `population.bin`. Problems are reported to the check."""

    def __init__(self, data: bytes, check: Check) -> None:
        self.data = data
        self._check = check
        whole = len(data) - len(data) % RECORD.size
        if whole != len(data):
            check.fail("population.bin ends within a record")
        self._records = list(RECORD.iter_unpack(data[:whole]))
        self._at = 0
        self._seen: set[UUID] = set()
        self.erased: set[int] = set()
        """Its calls whose first entry is erased."""
        self.others: set[UUID] = set()
        """Calls that start in the bundle's entries and are not in it."""
        self.indexes = [index for index, _ in self._records]
        if any(one >= other for one, other in zip(self.indexes, self.indexes[1:], strict=False)):
            check.fail("the population is not in the order of the ledger, or names a call twice")

    def __len__(self) -> int:
        return len(self._records)

    def note(self, lines: Sequence[EntryLine]) -> None:
        """Compare the next entries of the bundle."""
        for line in lines:
            if self._at < len(self._records) and self._records[self._at][0] < line.index:
                self._miss(line.index)
            if self._at < len(self._records) and self._records[self._at][0] == line.index:
                self._compare(line, self._records[self._at][1])
                self._at += 1
            elif line.kind == Kind.START and line.invocation_id is not None:
                self.others.add(line.invocation_id)

    def end(self) -> None:
        """Report the records that no entry of the bundle belongs to."""
        self._miss(1 << 63)
        self.others -= self._seen

    def _compare(self, line: EntryLine, leaf: bytes) -> None:
        if line.leaf != leaf:
            self._check.fail(f"entry {line.index:,} is not the one that is in the population")
        if line.kind is None:
            self.erased.add(line.index)
        elif line.kind not in _CALLS or line.invocation_id is None:
            self._check.fail(f"entry {line.index:,} of the population is not of a call")
        elif line.invocation_id in self._seen:
            self._check.fail(f"entry {line.index:,}: its call is in the population twice")
        else:
            self._seen.add(line.invocation_id)

    def _miss(self, before: int) -> None:
        """Report the next records whose entries should have come before this index."""
        while self._at < len(self._records) and self._records[self._at][0] < before:
            self._check.fail(f"entry {self._records[self._at][0]:,} of the population is missing")
            self._at += 1
