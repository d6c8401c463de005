"""Groups stored calls with their events in the log, for jobs that read many of them."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from audit.log.payload import StoredEvent
from audit.queries.replays import ReplayedCall

BATCHES_AT_ONCE = 20
"""Batches of the log per group; they are unpacked one by one, and only wanted events are kept."""


def together(calls: Sequence[ReplayedCall]) -> Iterator[list[ReplayedCall]]:
    """The calls in order, in groups whose events lie in at most `BATCHES_AT_ONCE` batches."""
    some: list[ReplayedCall] = []
    batches: set[UUID] = set()
    for call in calls:
        own = {batch_id for batch_id, _ in places(call)}
        if some and len(batches | own) > BATCHES_AT_ONCE:
            yield some
            some, batches = [], set()
        some.append(call)
        batches |= own
    if some:
        yield some


def places(call: ReplayedCall) -> list[tuple[UUID, int]]:
    """The places of a call's events in the log."""
    return [call.end] if call.start is None else [call.start, call.end]


def raw_of(event: StoredEvent | None) -> bytes | None:
    """The event as received; None if it is erased or not there."""
    return None if event is None else event.raw
