"""Conversations: the traces that share a run id."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from audit.queries.agents import bounds
from audit.queries.call_filter import CallFilter
from audit.queries.call_walk import QUERY_BUDGET, Budget, Walk
from audit.queries.time_range import TimeRange
from audit.sql.run import Row, rows

TRACES_MAX: Final = 50_000
"""How many traces of a range are summed, the newest ones."""
CALLS_MAX: Final = 20_000
"""How many calls of a conversation are read, the newest ones."""
LISTED: Final = 200
_US: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Conversation:
    """The sums of a conversation's traces that began in a range."""

    run_id: str
    traces: int
    first_at: datetime
    last_at: datetime
    calls: int
    failed: int
    violations: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Turn:
    """A trace of a conversation."""

    trace_id: str
    first_at: datetime
    last_at: datetime
    calls: int
    failed: int
    violations: int
    tokens: int
    agents: Sequence[str] | None
    first_tool: str

    @property
    def duration_us(self) -> int:
        """Microseconds from its first start to its last known end."""
        return (self.last_at - self.first_at) // _US


@dataclass(frozen=True, slots=True)
class Placed:
    """A turn and its place on the axis of time of the conversation, in percent."""

    turn: Turn
    left: float
    width: float
    """At least half a percent, so that it can be seen."""


@dataclass(frozen=True, slots=True)
class ConversationDetail:
    """A conversation's traces in order."""

    run_id: str
    turns: Sequence[Turn]

    @property
    def calls(self) -> int:
        """The calls that were read."""
        return sum(turn.calls for turn in self.turns)

    @property
    def is_cut(self) -> bool:
        """Whether there may be older calls that were not read."""
        return self.calls >= CALLS_MAX

    @property
    def first_at(self) -> datetime:
        """When its first call began."""
        return self.turns[0].first_at

    @property
    def last_at(self) -> datetime:
        """When its last known call ended."""
        return max(turn.last_at for turn in self.turns)

    @property
    def placed(self) -> list[Placed]:
        """Its turns on one axis of time."""
        whole = max((self.last_at - self.first_at) / _US, 1)
        return [
            Placed(
                turn,
                round((turn.first_at - self.first_at) / _US / whole * 100, 3),
                round(max(turn.duration_us / whole * 100, 0.5), 3),
            )
            for turn in self.turns
        ]


def conversations_in(of: TimeRange) -> list[Conversation]:
    """The conversations with traces that began in a range, the latest first. One statement."""
    limits = {"trace_limit": TRACES_MAX, "row_limit": LISTED + 1}
    return [Conversation(*row) for row in rows("conversations", bounds(of) | limits)]


def conversations_of_query(
    wanted: CallFilter, now: datetime, *, budget: Budget = QUERY_BUDGET
) -> tuple[Sequence[Conversation], datetime | None]:
    """The conversations of the calls that match, the latest first, and until when calls were
    searched; None: all were.

    Sums are of the matching calls. The filter has no payload terms.
    """
    walk = Walk(wanted, now, budget)
    by_run: dict[str, list[Row]] = {}
    for ran, run_id, *sums in walk.summed("conversations_summed_before", {}):
        if ran:
            by_run.setdefault(run_id, []).append(tuple(sums[:-2]))
    listed = []
    for run_id, some in by_run.items():
        trace_ids, firsts, lasts, *counts = zip(*some, strict=True)
        calls, failed, violations, tokens = (int(sum(each)) for each in counts)
        listed.append(
            Conversation(
                run_id=run_id,
                traces=len(set(trace_ids)),
                first_at=min(firsts),
                last_at=max(lasts),
                calls=calls,
                failed=failed,
                violations=violations,
                tokens=tokens,
            )
        )
    listed.sort(key=lambda one: one.run_id)
    listed.sort(key=lambda one: one.last_at, reverse=True)
    return listed, walk.stopped.at if walk.stopped else None


def conversation(run_id: str) -> ConversationDetail | None:
    """A conversation by its id; None if no call names it. One statement."""
    turns = rows("conversation_traces", {"run_id": run_id, "call_limit": CALLS_MAX})
    return ConversationDetail(run_id, [Turn(*row) for row in turns]) if turns else None
