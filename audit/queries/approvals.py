"""Approvals: what awaits one now, how long answers took, and who gave them.

An approval is a request with its answer, or what a person approved without a request. The rows of
a range are read; all figures are made of them, so page, export and API cannot differ.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from math import ceil
from typing import Any, Literal
from uuid import UUID

from audit.queries.call_list import DAYS_BACK
from audit.queries.call_walk import AHEAD
from audit.queries.cursor import Cursor
from audit.queries.decisions import WORDS
from audit.queries.time_range import TimeRange
from audit.sql.run import rows
from tenants.actions import storable_text

READ_LIMIT = 20_000
"""Approvals of a range that figures are made of, the newest."""

State = Literal["awaiting", "approved", "refused", "ran"]
"""What became of an approval; `ran`: the call ran without an answer."""

_MAX_VALUE = 600
"""Maximum characters of a filter's value. No column holds that many."""


@dataclass(frozen=True, slots=True)
class ApprovalFilter:
    """Which approvals. None means any; values are exact."""

    tool: str | None = None
    policy: str | None = None
    """Id or name of what asked for the approval."""
    by: str | None = None
    """Id or name of who answered."""
    requested_by: str | None = None
    """The person for whom the call is made."""
    only_self: bool = False
    """Only what people approved for themselves."""

    @classmethod
    def read(cls, params: Mapping[str, str]) -> "ApprovalFilter":
        """The filter in an address. What no column can hold matches nothing."""

        def text(name: str) -> str | None:
            value = params.get(name)
            return storable_text(value)[:_MAX_VALUE] if value else None

        return cls(
            tool=text("tool"),
            policy=text("policy"),
            by=text("by"),
            requested_by=text("requested_by"),
            only_self=params.get("self") == "1",
        )


@dataclass(frozen=True, slots=True)
class Approval:
    """A request for an approval with its answer, or an approval that nobody asked for."""

    started_on: date
    decision_id: UUID
    decided_at: datetime
    """When it was requested; without a request, when it was approved."""
    is_request: bool
    invocation_id: UUID
    tool_name: str
    tool_version: str
    trace_id: str
    policy_kind: str | None
    policy_id: str | None
    policy_name: str | None
    answered_at: datetime | None
    answer: str | None
    """The decision that ended the waiting."""
    by_kind: str | None
    by_id: str | None
    by_name: str | None
    definition_digest: str | None
    """Of the definition that was shown to who answered."""
    requested_by: str | None
    is_self_approved: bool
    """Whether a person approved a call that is made for them."""
    has_run: bool
    """Whether the call ran without an answer."""

    @property
    def state(self) -> State:
        """What became of it."""
        if self.answer is None:
            return "ran" if self.has_run else "awaiting"
        return "approved" if self.answer == "approved" else "refused"

    @property
    def waited_us(self) -> int | None:
        """Microseconds from the request to its answer; None without one of them."""
        if not self.is_request or self.answered_at is None:
            return None
        return (self.answered_at - self.decided_at) // timedelta(microseconds=1)

    @property
    def words(self) -> str:
        """The answer in words; '' without one."""
        return WORDS[self.answer] if self.answer else ""

    @property
    def policy(self) -> str:
        """What asked for it: a name, else an id, else a kind; '' if nothing is reported."""
        return self.policy_name or self.policy_id or self.policy_kind or ""

    @property
    def decider(self) -> str:
        """Who answered, likewise."""
        return self.by_name or self.by_id or self.by_kind or ""

    @property
    def cursor(self) -> Cursor[UUID]:
        """Its place in the list."""
        return Cursor(self.decided_at, self.decision_id)


@dataclass(slots=True)
class Answers:
    """Answers to requests, or approvals without a request: counts, and how long they took."""

    approved: int = 0
    refused: int = 0
    self_approved: int = 0
    unasked: int = 0
    """Approvals without a request, which are counted as approved, too."""
    waits_us: list[int] = field(default_factory=list)
    """Microseconds from each request to its answer, sorted."""

    @property
    def total(self) -> int:
        """Approved and refused."""
        return self.approved + self.refused

    def waited_us(self, share: float) -> int | None:
        """The microseconds within which this share of the requests was answered (nearest rank);
        None without any."""
        if not self.waits_us:
            return None
        return self.waits_us[max(0, ceil(share * len(self.waits_us)) - 1)]

    @property
    def p50_us(self) -> int | None:
        """The median."""
        return self.waited_us(0.5)

    @property
    def p95_us(self) -> int | None:
        """The 95th percentile."""
        return self.waited_us(0.95)

    def add(self, one: Approval) -> None:
        """Count one that is answered. The waits are to be sorted afterwards."""
        self.approved += one.state == "approved"
        self.refused += one.state == "refused"
        self.self_approved += one.is_self_approved
        self.unasked += not one.is_request
        if one.waited_us is not None:
            self.waits_us.append(one.waited_us)


@dataclass(frozen=True, slots=True)
class Decider:
    """Who or what answered, and how."""

    kind: str | None
    id: str | None
    name: str | None
    answers: Answers

    @property
    def words(self) -> str:
        """A name, else an id, else a kind; '' if nothing is reported."""
        return self.name or self.id or self.kind or ""

    @property
    def key(self) -> str:
        """The value of the filter `by` that finds the answers; '' for none."""
        return self.id or self.name or ""


@dataclass(frozen=True, slots=True)
class ApprovalFigures:
    """The figures of some approvals."""

    total: Answers
    awaiting: int
    ran: int
    """Calls that ran although their request has no answer."""
    deciders: list[Decider]
    """Most answers first."""


def approvals(
    of: TimeRange,
    wanted: ApprovalFilter,
    *,
    limit: int,
    before: Cursor[UUID] | None = None,
    only_waiting: bool = False,
) -> list[Approval]:
    """The newest approvals of a range, or those older than `before`. One statement.

    A request is in the range in which it was made, whenever it is answered.
    """
    at = before.at if before else of.end
    parameters: dict[str, Any] = {
        "tool": wanted.tool,
        "policy": wanted.policy,
        "by": wanted.by,
        "requested_by": wanted.requested_by,
        "only_self": wanted.only_self,
        "only_waiting": only_waiting,
        "start": of.start,
        "end": of.end,
        "first_day": of.start.astimezone(UTC).date(),
        "last_day": min(at, of.end).astimezone(UTC).date(),
        "at": at,
        "id": before.id if before else UUID(int=0),
        "limit": limit,
    }
    return [Approval(*row) for row in rows("approvals", parameters)]


def awaiting_now(now: datetime, wanted: ApprovalFilter, *, limit: int) -> list[Approval]:
    """The newest requests that have no answer and whose calls did not run, of any age."""
    of = TimeRange(now - timedelta(days=DAYS_BACK), now + AHEAD, UTC)
    requested = ApprovalFilter(wanted.tool, wanted.policy, requested_by=wanted.requested_by)
    return approvals(of, requested, limit=limit, only_waiting=True)


def figures(of: Iterable[Approval]) -> ApprovalFigures:
    """The figures of these approvals. Pure."""
    total, awaiting, ran = Answers(), 0, 0
    by: dict[tuple[str | None, str | None], Decider] = {}
    for one in of:
        if one.answer is None:
            awaiting += one.state == "awaiting"
            ran += one.state == "ran"
            continue
        total.add(one)
        # The newest name of an id; without an id, each name is somebody else.
        key = (one.by_kind, one.by_id or one.by_name)
        decider = Decider(one.by_kind, one.by_id, one.by_name, Answers())
        by.setdefault(key, decider).answers.add(one)
    for answers in (total, *(one.answers for one in by.values())):
        answers.waits_us.sort()
    deciders = sorted(by.values(), key=lambda one: (-one.answers.total, one.words, one.kind or ""))
    return ApprovalFigures(total, awaiting, ran, deciders)


BANDS: Sequence[tuple[str, int]] = (
    ("less than 10 s", 10),
    ("10 s to 1 min", 60),
    ("1 to 5 min", 5 * 60),
    ("5 to 15 min", 15 * 60),
    ("15 min to 1 h", 3600),
    ("1 to 4 h", 4 * 3600),
    ("4 to 24 h", 24 * 3600),
)
"""Bands of waiting time: their names, and the seconds before which each ends."""
LAST_BAND = "1 day or longer"


def by_band(waits_us: Iterable[int]) -> list[tuple[str, int]]:
    """How many requests were answered within each band of time. Pure."""
    counts = [0] * (len(BANDS) + 1)
    for waited_us in waits_us:
        counts[sum(waited_us >= ends * 1_000_000 for _, ends in BANDS)] += 1
    return list(zip([*(name for name, _ in BANDS), LAST_BAND], counts, strict=True))
