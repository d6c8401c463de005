"""What became of the events of batches: counts, rejections, and the numbers seen from producers.

`audit.index.indexing` decides; this module keeps account.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from uuid import UUID

from tooltrail.ledger import Kind

from audit.events import wire
from audit.events.candidates import Candidate, Rejection, reject

CONFLICT = "conflict", "another event of this call and type was stored before"
NO_DAY = "out_of_range", "the index does not have this day, and has no call that this event ends"


@dataclass(slots=True)
class Outcome:
    """The outcome of a batch's candidates."""

    accepted: int = 0
    duplicates: int = 0
    rejections: list[Rejection] = field(default_factory=list)


class Outcomes:
    """The outcomes of all batches that are indexed together."""

    def __init__(self) -> None:
        self.of_batch: defaultdict[UUID, Outcome] = defaultdict(Outcome)
        self.producers: dict[str, tuple[int | None, int | None, int]] = {}
        """Of each producer the first and the last number, and how many events are new."""
        self._latest: tuple[UUID | None, Outcome] = None, Outcome()

    def take(self, candidate: Candidate, *, is_new: bool) -> None:
        """Count an event that is stored now (`is_new`) or was stored by an earlier batch."""
        outcome = self._of(candidate)
        outcome.accepted += is_new
        outcome.duplicates += not is_new
        self._hear(candidate.event, is_new=is_new)

    def _hear(self, event: wire.WireEvent, *, is_new: bool) -> None:
        """Update the numbers seen from the event's producer."""
        if event.producer_id is None:
            return
        if event.kind is Kind.GAP:
            low, high, count = event.from_seq, event.to_seq, 0
        elif event.producer_seq is None:
            low, high, count = None, None, 0
        else:
            low, high, count = event.producer_seq, event.producer_seq, int(is_new)
        first, last, total = self.producers.get(event.producer_id, (None, None, 0))
        self.producers[event.producer_id] = (
            low if first is None else min(first, low if low is not None else first),
            high if last is None else max(last, high if high is not None else last),
            total + count,
        )

    def reject(self, candidate: Candidate, reason: tuple[str, str]) -> None:
        """Note that an event is not stored, with the reason's code and message."""
        self._of(candidate).rejections.append(reject(candidate, *reason))

    def _of(self, candidate: Candidate) -> Outcome:
        # Cached, because the batch is nearly always that of the previous candidate, and hashing a
        # UUID takes longer than the rest of this method.
        if candidate.batch_id is not self._latest[0]:
            self._latest = candidate.batch_id, self.of_batch[candidate.batch_id]
        return self._latest[1]
