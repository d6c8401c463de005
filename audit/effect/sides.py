"""Compares the calls of two queries by the same tests as the calls of two versions. Pure."""

from collections.abc import Set
from dataclasses import dataclass
from itertools import compress

from audit.effect.comparison import Calls, Compared, compare
from audit.index.histogram import histogram
from audit.queries import apart

_DECIDED_BY = {"error_rate": "state", "violation_rate": "violation", "p95_ms": "duration"}
"""The property that each measure is about: a query that names it has decided the measure."""


@dataclass(frozen=True, slots=True)
class Side:
    """The calls of one query among those that were read."""

    number: int
    """How many calls the query has; about, if `is_part`."""
    is_part: bool
    """Whether only a part of them was read."""
    read: int
    """Calls that were read, open and cancelled ones too."""
    completed: Calls
    tokens: float
    """Of all calls that were read."""

    @property
    def tokens_per_call(self) -> float | None:
        """The mean over the calls that were read; None without any."""
        return self.tokens / self.read if self.read else None


@dataclass(frozen=True, slots=True)
class Between:
    """Both queries' calls, and the measures that neither query decides."""

    first: Side
    second: Side
    measures: list[Compared]


def between(read: apart.Compared, free: Set[str]) -> Between:
    """Compare the selection with the others; `free` are the properties that no query names."""
    first = _side(read, list(read.is_selected), read.selection_share)
    second = _side(read, [not selected for selected in read.is_selected], read.rest_share)
    measures = compare(first.completed, second.completed).measures
    return Between(first, second, [each for each in measures if _DECIDED_BY[each.name] in free])


def _side(read: apart.Compared, chosen: list[bool], share: float) -> Side:
    states = read.values["state"], read.values["violation"], read.durations_us
    calls = list(compress(zip(*states, strict=True), chosen))
    completed = [each for each in calls if each[0] in ("ok", "failed")]
    return Side(
        number=round(len(calls) / min(1.0, share)),
        is_part=share < 1,
        read=len(calls),
        completed=Calls(
            calls=len(completed),
            failed=sum(state == "failed" for state, _, _ in completed),
            violating=sum(violation is not None for _, violation, _ in completed),
            latency=histogram(duration_us or 0 for _, _, duration_us in completed),
        ),
        tokens=sum(compress(read.tokens, chosen)),
    )
