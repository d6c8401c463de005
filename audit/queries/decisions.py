"""Decisions about calls: those of a call, of a trace, and of calls in a list."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from audit.queries.call_filter import UNRUN
from audit.sql.run import rows, rows_prepared

WORDS = {
    "rejectedArguments": "arguments rejected",
    "denied": "denied",
    "awaiting": "awaiting approval",
    "approved": "approved",
    "cancelled": "cancelled",
    "overBudget": "over budget",
    "overRate": "over rate",
}
"""Each decision in words, by its name in events."""

LIMIT = 200
"""Decisions of one call that are read, the latest."""


class RejectedArgument(NamedTuple):
    """A violation of the input schema, for which a decision rejected a call."""

    path: str
    code: str
    expected: str
    """Blank after an erasure."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision about a call, as the index has it."""

    started_on: date
    decision_id: UUID
    decided_at: datetime
    decision: str
    invocation_id: UUID
    tool_name: str
    tool_version: str
    trace_id: str
    tool_call_id: str | None
    by_kind: str | None
    by_id: str | None
    by_name: str | None
    requested_by: str | None
    reason: str | None
    definition_digest: str | None
    violation_count: int
    paths: list[str]
    codes: list[str]
    expected: list[str]
    batch_id: UUID
    pos: int

    @property
    def words(self) -> str:
        """What was decided, in words."""
        return WORDS[self.decision]

    @property
    def decider(self) -> str:
        """Who or what decided: a name, else an id, else a kind; '' if nothing is reported."""
        return self.by_name or self.by_id or self.by_kind or ""

    @property
    def violations(self) -> list[RejectedArgument]:
        """The violations that the index has."""
        expected = self.expected or [""] * len(self.paths)
        return [
            RejectedArgument(*each) for each in zip(self.paths, self.codes, expected, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class DecisionStep:
    """A decision of a call, with what its other decisions say about it."""

    decision: Decision
    waited_us: int | None
    """Microseconds from the first request for an approval to the decision that ended it."""
    is_self_approved: bool
    """Whether a person approved a call that is made for them."""


def newest_decision() -> datetime | None:
    """When the tenant's newest decision was made, None without any. One statement, planned once.

    It takes 1 ms, so that pages of tenants without decisions need not plan statements about them.
    """
    return next((decided_at for (decided_at,) in rows_prepared("newest_decision", {})), None)


def steps(decisions: Iterable[Decision]) -> list[DecisionStep]:
    """The decisions of one call, the earliest first."""
    ordered = sorted(decisions, key=lambda each: (each.decided_at, each.decision_id))
    requesters = {each.requested_by for each in ordered if each.requested_by is not None}
    waiting_since: datetime | None = None
    made = []
    for one in ordered:
        waited = None
        if one.decision == "awaiting":
            waiting_since = waiting_since or one.decided_at
        elif waiting_since is not None:
            waited = (one.decided_at - waiting_since) // timedelta(microseconds=1)
            waiting_since = None
        is_own = one.decision == "approved" and one.by_kind == "person" and one.by_id in requesters
        made.append(DecisionStep(one, waited, is_own))
    return made


class Named(Protocol):
    """A call with the ids by which decisions name it."""

    @property
    def invocation_id(self) -> UUID: ...
    @property
    def trace_id(self) -> str: ...
    @property
    def tool_call_id(self) -> str | None: ...


def decisions_of_call(call: Named) -> list[DecisionStep]:
    """The decisions about a call, by its id or by the provider's id in its trace. One statement."""
    parameters: dict[str, Any] = {"invocation_id": call.invocation_id, "limit": LIMIT}
    if call.tool_call_id is None:
        return steps(Decision(*row) for row in rows_prepared("decisions_of_own_call", parameters))
    parameters |= {"trace_id": call.trace_id, "tool_call_id": call.tool_call_id}
    return steps(Decision(*row) for row in rows_prepared("decisions_of_call", parameters))


class Placed(Protocol):
    """A call of a list."""

    @property
    def invocation_id(self) -> UUID: ...
    @property
    def state(self) -> Any: ...


def latest_decisions(calls: Iterable[Placed]) -> dict[UUID, Decision]:
    """The latest decision of each call that did not run, by its id. At most one statement."""
    unrun = [call.invocation_id for call in calls if call.state in UNRUN]
    if not unrun:
        return {}
    latest = rows("latest_decisions", {"invocation_ids": unrun})
    return {one.invocation_id: one for one in (Decision(*row) for row in latest)}


def decided_day(invocation_id: UUID) -> date | None:
    """The day of the latest decision about a call; None if there is none. One statement."""
    latest = rows("decided_day", {"invocation_id": invocation_id})
    return latest[0][0] if latest else None
