"""Missing payloads, and the entries of the ledger that explain them. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

import msgspec
from tooltrail.evidence import Erased
from tooltrail.evidence.layout import COVERING

from audit.ledger.recompute import Remade

type Run = tuple[int, int]
"""Consecutive indexes: begin (inclusive) and end (exclusive)."""


class Missing:
    """Runs of indexes, in order and without overlap. Truthy while there is one."""

    def __init__(self, flat: Sequence[int] = ()) -> None:
        self._begins, self._ends = list(flat[::2]), list(flat[1::2])

    def __bool__(self) -> bool:
        return bool(self._ends)

    @property
    def flat(self) -> list[int]:
        """Begin and end of each run, as one flat list."""
        return [each for run in zip(self._begins, self._ends, strict=False) for each in run]

    def add(self, index: int) -> None:
        """Add an index that is greater than all others."""
        if self._ends and self._ends[-1] == index:
            self._ends[-1] += 1
        else:
            self._begins.append(index)
            self._ends.append(index + 1)

    def explain(self, begin: int, end: int) -> int:
        """Remove the indexes from `begin` to `end` (exclusive). Returns how many were removed."""
        first, last = bisect_right(self._ends, begin), bisect_left(self._begins, end)
        if first >= last:
            return 0
        begins, ends = self._begins[first:last], self._ends[first:last]
        left: list[Run] = []
        if begins[0] < begin:
            left.append((begins[0], begin))
        if ends[-1] > end:
            left.append((end, ends[-1]))
        self._begins[first:last] = [one for one, _ in left]
        self._ends[first:last] = [other for _, other in left]
        return sum(ends) - sum(begins) - sum(other - one for one, other in left)

    def messages(self) -> Iterator[str]:
        """One message for each remaining run."""
        for begin, end in zip(self._begins, self._ends, strict=False):
            if end - begin == 1:
                yield f"entry {begin:,}: the payload is missing, and no entry declares it erased"
            else:
                yield (
                    f"entries {begin:,} to {end - 1:,}: the payloads are missing, and no entry"
                    " declares them erased"
                )


def runs_of(indexes: Sequence[int]) -> list[Run]:
    """Group ascending indexes into runs."""
    runs: list[Run] = []
    for index in indexes:
        if runs and runs[-1][1] == index:
            runs[-1] = runs[-1][0], index + 1
        else:
            runs.append((index, index + 1))
    return runs


def erased_by(index: int, one: Remade) -> Iterator[Run]:
    """The runs that the entry at `index` declares erased. Only indexes before its own count."""
    if one.entry is None or one.entry.kind not in COVERING:
        return
    try:
        erased = msgspec.json.decode(one.raw, type=Erased)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return
    for begin, end in erased.ranges:
        yield begin, min(end, index)
