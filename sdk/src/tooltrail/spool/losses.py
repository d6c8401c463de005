"""Numbers that a producer had to give up, and the gap events that declare them.

Owns the form of a gap line. Spool and shipper decide what is given up.
"""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import uuid_utils
from pydantic_core import to_json

from tooltrail.spool.lines import Salvage, numbers

_GAP = b'{"type":"gap"'


@dataclass(slots=True)
class Loss:
    """A contiguous range of one producer's numbers, given up for one reason."""

    producer_id: str
    numbers: range
    reason: str
    # The id of its gap event. Once it is set, the range no longer changes.
    event_id: str | None = field(default=None, compare=False)

    @classmethod
    def read(cls, line: bytes) -> "Loss":
        """Read the loss that one of our gap lines declares."""
        event = json.loads(line)
        numbers = range(event["from_seq"], event["to_seq"] + 1)
        return cls(event["producer_id"], numbers, event["reason"], event["event_id"])

    def event(self) -> bytes:
        """Its gap event, as JSON text. Id and range are fixed from now on."""
        self.event_id = self.event_id or str(uuid_utils.uuid7())
        return to_json(
            {
                "type": "gap",
                "event_id": self.event_id,
                "producer_id": self.producer_id,
                "from_seq": self.numbers.start,
                "to_seq": self.numbers.stop - 1,
                "reason": self.reason,
                "count": len(self.numbers),
            }
        )

    def without(self, held: Iterable[range]) -> "list[Loss]":
        """The parts of this loss without the numbers known not to be lost."""
        left, start = [], self.numbers.start
        for part in sorted(held, key=lambda each: each.start):
            if part.start > start:
                left.append(range(start, min(part.start, self.numbers.stop)))
            start = max(start, part.stop)
            if start >= self.numbers.stop:
                break
        else:
            left.append(range(start, self.numbers.stop))
        return [Loss(self.producer_id, numbers, self.reason) for numbers in left]

    def takes_up(self, other: "Loss") -> bool:
        """Extend this loss by the other if it follows directly. Returns whether it did."""
        if (
            self.event_id is not None
            or (self.producer_id, self.reason) != (other.producer_id, other.reason)
            or self.numbers.stop != other.numbers.start
        ):
            return False
        self.numbers = range(self.numbers.start, other.numbers.stop)
        return True


def gather(losses: Iterable[Loss]) -> list[Loss]:
    """Make one loss for each producer, from its first lost number to its last.

    Numbers in between may not be lost; the files show which (`Loss.without`).
    """
    by_producer: dict[str, Loss] = {}
    for loss in losses:
        whole = by_producer.setdefault(
            loss.producer_id, Loss(loss.producer_id, loss.numbers, loss.reason)
        )
        start = min(whole.numbers.start, loss.numbers.start)
        whole.numbers = range(start, max(whole.numbers.stop, loss.numbers.stop))
    return list(by_producer.values())


def damage(producer_id: str, salvaged: Salvage) -> list[bytes]:
    """The gap events for damaged lines, to be stored beside the whole lines."""
    return [Loss(producer_id, lost, "damaged").event() for lost in salvaged.lost]


def held_in(lines: list[bytes], reason: str) -> list[Loss]:
    """What would be lost with these lines: their numbers, and the losses they declare."""
    return [
        *(Loss(owner, each, reason) for owner, held in numbers(lines).items() for each in held),
        *declared_in(lines),
    ]


def declared_in(lines: list[bytes]) -> list[Loss]:
    """Read the losses that these lines declare."""
    declared: list[Loss] = []
    for line in lines:
        if line.startswith(_GAP):
            # A user's own file may contain anything.
            with suppress(ValueError, KeyError, TypeError, OverflowError, RecursionError):
                loss = Loss.read(line)
                if len(loss.numbers):
                    declared.append(loss)
    return declared


def reason_of(error: OSError) -> str:
    """A short name of the kind of failure, for the ledger; never a path or a payload."""
    return os.strerror(error.errno).lower().replace(" ", "-") if error.errno else "write-failed"
