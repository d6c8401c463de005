"""Numbers a producer had to give up, and the gap event that says so.

Owns the form of a gap line; when something is given up is the spool's and the shipper's.
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
    """Numbers of one producer given up for one reason, in one piece."""

    producer_id: str
    numbers: range
    reason: str
    # Of its gap event: from then on it keeps its extent.
    event_id: str | None = field(default=None, compare=False)

    @classmethod
    def read(cls, line: bytes) -> "Loss":
        """The loss a gap line of ours declares."""
        event = json.loads(line)
        numbers = range(event["from_seq"], event["to_seq"] + 1)
        return cls(event["producer_id"], numbers, event["reason"], event["event_id"])

    def event(self) -> bytes:
        """Its gap event, as JSON text. Keeps its name and its extent from now on."""
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
        """What is left of this loss when some of its numbers are known not to be lost."""
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
        """Make this one loss of both, if the other goes on where this one ends."""
        if (
            self.event_id is not None
            or (self.producer_id, self.reason) != (other.producer_id, other.reason)
            or self.numbers.stop != other.numbers.start
        ):
            return False
        self.numbers = range(self.numbers.start, other.numbers.stop)
        return True


def gather(losses: Iterable[Loss]) -> list[Loss]:
    """One loss for each producer, from its first lost number to its last.

    Numbers in between may not be lost: what is on file tells (`Loss.without`).
    """
    found: dict[str, Loss] = {}
    for loss in losses:
        whole = found.setdefault(
            loss.producer_id, Loss(loss.producer_id, loss.numbers, loss.reason)
        )
        start = min(whole.numbers.start, loss.numbers.start)
        whole.numbers = range(start, max(whole.numbers.stop, loss.numbers.stop))
    return list(found.values())


def damage(producer_id: str, found: Salvage) -> list[bytes]:
    """The gap events of what is damaged, to be stored beside what is whole."""
    return [Loss(producer_id, lost, "damaged").event() for lost in found.lost]


def held_in(lines: list[bytes], reason: str) -> list[Loss]:
    """What would be lost with these lines: their numbers, and the losses they declare."""
    return [
        *(Loss(owner, each, reason) for owner, held in numbers(lines).items() for each in held),
        *declared_in(lines),
    ]


def declared_in(lines: list[bytes]) -> list[Loss]:
    """The losses these lines declare."""
    found: list[Loss] = []
    for line in lines:
        if line.startswith(_GAP):
            # Somebody's own file may hold anything.
            with suppress(ValueError, KeyError, TypeError, OverflowError):
                loss = Loss.read(line)
                if len(loss.numbers):
                    found.append(loss)
    return found


def reason_of(error: OSError) -> str:
    """A short word for the ledger: which kind of failure, never a path or a payload."""
    return os.strerror(error.errno).lower().replace(" ", "-") if error.errno else "write-failed"
