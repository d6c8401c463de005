"""Merge the events of one request into one row per call before anything is written.

Pure. Start, end and interim events of a call become one row (`audit.index.interims`). If an earlier
line of the same request already has the slot of an event, the event is returned separately, as a
repeat.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

import msgspec
from tooltrail.ledger import Kind

from audit.events.candidates import Candidate

type Key = tuple[int, int]
"""A call's day and its invocation id as a number. Numbers are hashed and compared ten times as fast
as UUIDs."""


class Call(msgspec.Struct, gc=False):
    """A call as far as this request knows it: its start, its end, or both.

    `day` and `started_us` are those of its stored row (`is_stored`), or of the row it will get.
    """

    invocation_id: UUID
    day: int
    started_us: int
    start: Candidate | None = None
    end: Candidate | None = None
    is_stored: bool = False
    interims: tuple[Candidate, ...] = ()

    @property
    def key(self) -> Key:
        """The key of its row within the tenant."""
        return self.day, self.invocation_id.int

    def slot(self, kind: Kind) -> Candidate | None:
        """The event in this call's slot of this kind: its start or end."""
        return self.start if kind is Kind.START else self.end

    @property
    def interim(self) -> Candidate | None:
        """Its latest interim event. Of two at the same time, working counts."""
        if not self.interims:
            return None
        return max(self.interims, key=lambda each: (each.ended_us, each.interim_state))

    @property
    def events(self) -> list[Candidate]:
        """All its events."""
        return [*filter(None, (self.start, self.end)), *self.interims]

    def _take(self, candidate: Candidate) -> None:
        if candidate.kind is Kind.START:
            # The end event repeats the start's time. If the two differ, the start event counts.
            self.start = candidate
            self.day, self.started_us = candidate.day, candidate.started_us
        else:
            self.end = candidate


@dataclass(frozen=True, slots=True)
class Repeat:
    """An event whose slot is taken by an earlier line of the same request (`first`)."""

    candidate: Candidate
    first: Candidate


def merge(candidates: Iterable[Candidate]) -> tuple[list[Call], list[Repeat]]:
    """One `Call` per invocation, sorted by key, and the repeats.

    Start and end events whose days are at most one apart are one call; otherwise they are two.
    """
    calls: dict[int, list[Call]] = {}
    repeats: list[Repeat] = []
    for candidate in candidates:
        if candidate.kind not in (Kind.START, Kind.END):
            continue
        known = calls.setdefault(candidate.invocation_id.int, [])
        for call in known:
            if abs(call.day - candidate.day) <= 1:
                break
        else:
            call = Call(candidate.invocation_id, candidate.day, candidate.started_us)
            known.append(call)
        if candidate.interim_state is not None:
            call.interims += (candidate,)
            continue
        first = call.slot(candidate.kind)
        if first is None:
            call._take(candidate)
        else:
            repeats.append(Repeat(candidate, first))
    return _in_order(call for known in calls.values() for call in known), repeats


def settle_on_stored_days(
    calls: Iterable[Call], stored: Mapping[Key, tuple[int, int]]
) -> tuple[list[Call], list[Repeat]]:
    """Move ends without a start event to the stored rows of their calls.

    `stored` has day and start by key. `calls` are sorted by key. Returns them, sorted by key again,
    and the repeats that arise when two of them are the same call.
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
        other.interims += call.interims
        for candidate in filter(None, (call.start, call.end)):
            first = other.slot(candidate.kind)
            if first is None:
                other._take(candidate)
            else:
                repeats.append(Repeat(candidate, first))
    return _in_order(settled.values()), repeats


def _in_order(calls: Iterable[Call]) -> list[Call]:
    return sorted(calls, key=lambda call: call.key)
