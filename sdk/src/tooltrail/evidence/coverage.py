"""Decides which missing payloads are covered by erasures in the ledger itself."""

from collections.abc import Sequence
from typing import Self

import msgspec

from tooltrail.evidence.archive import UnreadableError
from tooltrail.evidence.layout import COVERING, ERASURES, Erased, ProvedLine, fault_of
from tooltrail.evidence.signed import Signed
from tooltrail.evidence.verdict import Check


class Coverage:
    """The index ranges whose payloads are erased according to entries of the ledger.

    Missing payloads must be reported in ascending order. It remembers a run of them, not each.
    """

    def __init__(
        self, ranges: list[tuple[int, int]], check: Check, declared: Sequence[ProvedLine] = ()
    ) -> None:
        self.declared = declared
        """The entries that declare payloads erased."""
        self._ranges = _merged(ranges)
        self._check = check
        self._at = 0
        self._run = (0, 0)

    @classmethod
    def read(cls, data: bytes, largest: Signed, check: Check) -> Self:
        """Read `erasures.ndjson`. An entry that is not in the ledger covers nothing and fails.

        Raises UnreadableError.
        """
        ranges: list[tuple[int, int]] = []
        declared: list[ProvedLine] = []
        try:
            for line in msgspec.json.Decoder(ProvedLine).decode_lines(data):
                entry = line.entry
                fault = _fault(line, largest)
                if fault is not None:
                    check.fail(f"the erasure at entry {entry.index:,} is invalid: {fault}")
                    continue
                erased = msgspec.json.decode(line.raw, type=Erased)
                # An erasure cannot cover entries that came after it.
                declared.append(line)
                ranges += [(begin, min(end, entry.index)) for begin, end in erased.ranges]
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise UnreadableError(f"{ERASURES} cannot be read ({error})") from error
        return cls(ranges, check, declared)

    def missing(self, index: int) -> None:
        """Report that the payload of this entry is missing."""
        ranges = self._ranges
        while self._at < len(ranges) and ranges[self._at][1] <= index:
            self._at += 1
        if self._at < len(ranges) and ranges[self._at][0] <= index:
            return
        begin, end = self._run
        if end != index:
            self.end()
            begin = index
        self._run = (begin, index + 1)

    def end(self) -> None:
        """Fail the check for the last run of missing payloads, if it is not covered."""
        begin, end = self._run
        if end > begin:
            what = f"entry {begin:,}" if end - begin == 1 else f"entries {begin:,} to {end - 1:,}"
            self._check.fail(
                f"the payload of {what} is missing, and no ledger entry declares its erasure"
            )
        self._run = (0, 0)


def _fault(line: ProvedLine, largest: Signed) -> str | None:
    """Why the line is not a ledger entry that erases; None if it is."""
    if line.entry.kind not in COVERING:
        return "its kind does not erase payloads"
    return fault_of(line, largest.size, largest.root)


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(ranges):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        elif begin < end:
            merged.append((begin, end))
    return merged
