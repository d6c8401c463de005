"""Whether executors waited as long as an error asked before they retried.

Pure. An error's `retry_after_ms` says how long to wait. The next attempt is the first call of the
same tool in the same trace that starts after the failed call has ended, and that either has the
same call id (identical arguments) or the next attempt number. An identical call in another trace
does not count.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal
from uuid import UUID

from audit.events.instants import microseconds

Verdict = Literal["waited", "early", "none"]
"""The wait was long enough, it was too short, or there was no further attempt."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A call that may be a further attempt."""

    started_on: date
    invocation_id: UUID
    tool_name: str
    trace_id: str
    call_id: str
    attempt: int
    """Counted from 1."""
    started_at: datetime


@dataclass(frozen=True, slots=True)
class Refusal:
    """A failed call whose error says when to try again."""

    started_on: date
    invocation_id: UUID
    tool_name: str
    trace_id: str
    call_id: str
    attempt: int
    started_at: datetime
    ended_at: datetime
    retry_after_ms: int
    error_type: str


@dataclass(frozen=True, slots=True)
class Wait:
    """A failed call that asked for a wait, and the next attempt."""

    refusal: Refusal
    next: Attempt | None

    @property
    def waited_us(self) -> int | None:
        """Microseconds from the end of the failed call to the start of the next attempt."""
        if self.next is None:
            return None
        return microseconds(self.next.started_at) - microseconds(self.refusal.ended_at)

    @property
    def requested_us(self) -> int:
        """Microseconds that the error asked to wait."""
        return self.refusal.retry_after_ms * 1000

    @property
    def verdict(self) -> Verdict:
        """Whether the wait was long enough."""
        if self.waited_us is None:
            return "none"
        return "waited" if self.waited_us >= self.requested_us else "early"


def waits(refusals: Iterable[Refusal], later: Sequence[Attempt]) -> list[Wait]:
    """The wait after each refusal. `later` are sorted by when they started."""
    by_tool: dict[tuple[str, str], list[Attempt]] = {}
    for one in later:
        by_tool.setdefault((one.trace_id, one.tool_name), []).append(one)
    return [
        Wait(
            refusal,
            next(
                (
                    one
                    for one in by_tool.get((refusal.trace_id, refusal.tool_name), ())
                    if _follows(refusal, one)
                ),
                None,
            ),
        )
        for refusal in refusals
    ]


def _follows(refusal: Refusal, one: Attempt) -> bool:
    return (
        one.started_at >= refusal.ended_at
        and one.invocation_id != refusal.invocation_id
        and (one.call_id == refusal.call_id or one.attempt == refusal.attempt + 1)
    )
