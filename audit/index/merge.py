"""The events of one request, merged into one row per call before anything is written.

Pure. Start and end of a call become one row; what takes a slot that an earlier line of the
same request took is set aside.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

import msgspec
from tooltrail.ledger import Kind

from audit.events.candidates import Candidate

type Key = tuple[int, int]
"""A call's day and its invocation id as a number, which is hashed and compared ten times as fast
as a UUID."""


class Call(msgspec.Struct, gc=False):
    """A call as far as this request knows it: its start, its end, or both.

    `day` and `started_us` are those it is stored under (`is_stored`), or will be.
    """

    invocation_id: UUID
    day: int
    started_us: int
    start: Candidate | None = None
    end: Candidate | None = None
    is_stored: bool = False

    @property
    def key(self) -> Key:
        """What names its row within the tenant."""
        return self.day, self.invocation_id.int

    def slot(self, kind: Kind) -> Candidate | None:
        """The event that has taken this call's start or end."""
        return self.start if kind is Kind.START else self.end

    def _take(self, candidate: Candidate) -> None:
        if candidate.kind is Kind.START:
            # The end repeats the start's time: where the two differ, the start knows.
            self.start = candidate
            self.day, self.started_us = candidate.day, candidate.started_us
        else:
            self.end = candidate


@dataclass(frozen=True, slots=True)
class Repeat:
    """An event whose slot an earlier line of the same request has taken."""

    candidate: Candidate
    first: Candidate


def merge(candidates: Iterable[Candidate]) -> tuple[list[Call], list[Repeat]]:
    """One `Call` per invocation, sorted by key, and the repeats.

    Start and end that put the call a day apart are still one call; further apart they are two.
    """
    calls: dict[int, list[Call]] = {}
    repeats: list[Repeat] = []
    for candidate in candidates:
        if candidate.kind is Kind.GAP:
            continue
        known = calls.setdefault(candidate.invocation_id.int, [])
        for call in known:
            if abs(call.day - candidate.day) <= 1:
                break
        else:
            call = Call(candidate.invocation_id, candidate.day, candidate.started_us)
            known.append(call)
        first = call.slot(candidate.kind)
        if first is None:
            call._take(candidate)
        else:
            repeats.append(Repeat(candidate, first))
    return _in_order(call for known in calls.values() for call in known), repeats


def settle_on_stored_days(
    calls: Iterable[Call], stored: Mapping[Key, tuple[int, int]]
) -> tuple[list[Call], list[Repeat]]:
    """Move ends that came alone to the rows their calls have: `stored` by key, day and start.

    `calls` are sorted by key. Returns them, sorted by key again, and the repeats
    that arise where two of them turn out to be one call.
    """
    if not stored:
        return list(calls), []
    settled: dict[Key, Call] = {}
    repeats: list[Repeat] = []
    for call in calls:
        place = stored.get(call.key)
        if place is not None and call.start is None:
            call.day, call.started_us = place
            call.is_stored = True
        other = settled.setdefault(call.key, call)
        if other is call:
            continue
        for candidate in filter(None, (call.start, call.end)):
            first = other.slot(candidate.kind)
            if first is None:
                other._take(candidate)
            else:
                repeats.append(Repeat(candidate, first))
    return _in_order(settled.values()), repeats


def _in_order(calls: Iterable[Call]) -> list[Call]:
    return sorted(calls, key=lambda call: call.key)
