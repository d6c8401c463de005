"""The API's responses about figures and lost events, as the API description shows them."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from tenants.api_reads import Answer, Page


class Bounds(Answer):
    """The time range of the figures: start inclusive, end exclusive."""

    from_: datetime = Field(alias="from")
    to: datetime


class QueriedBounds(Bounds):
    """The same, of figures that can be those of a query."""

    searched_until: datetime | None = None
    """With `q`: older calls of the range were not read, and are in no figure. null: all were."""


class Durations(Answer):
    """Percentiles of the duration, in milliseconds."""

    p50: float | None
    p95: float | None
    p99: float | None


class Summary(QueriedBounds):
    """Totals of the calls in a range."""

    calls: int
    """Completed calls."""
    open: int
    started: int
    """Completed, cancelled and open calls."""
    cancelled: int
    """In none of the other figures but `started`."""
    errors: int
    """Completed calls that failed."""
    refused: int
    """Calls that were decided about in the range and did not run: refused, awaiting approval, or
    approved. They are in none of the other figures."""
    awaiting: int
    approved: int
    asked_for: int
    """Calls that started, and calls that did not run."""
    refusal_rate: float | None
    """Refused calls of those asked for, from 0 to 1; null without any."""
    violations: int
    violating_calls: int
    prompt_tokens: int
    completion_tokens: int
    duration_ms: Durations


class ViolationKind(Answer):
    """A kind of violation: side, tool, its version, a path with `[*]` for indexes, and code."""

    side: Literal["arguments", "results"]
    """What breaks its schema: arguments that were rejected, or results of calls."""
    tool_name: str
    tool_version: str | None
    path_pattern: str
    code: str
    violations: int
    calls: int
    of_calls: int
    share: float | None
    first_at: datetime
    last_at: datetime
    first_ever_at: datetime
    new_since: str | None


class Treatment(Answer):
    """What became of violations: a guard's strategy and its outcome, or the decision."""

    side: Literal["arguments", "results"]
    strategy: str
    """Empty for arguments."""
    outcome: str
    violations: int


class RejectedCalls(Answer):
    """Calls of one version of a tool whose arguments were rejected."""

    tool_name: str
    tool_version: str | None
    registered_number: int | None
    """The registry's number of that version, whose description the model had; null if unknown."""
    calls: int
    of_calls: int
    """Calls of the version that started in the range, or have a decision in it."""
    share: float


class ViolationSides(Answer):
    """Violations by side."""

    arguments: int
    results: int


class Violations(Page[ViolationKind], QueriedBounds):
    """The violations of a range by kind, most frequent first."""

    OLD_NAME = "violations"

    total: int
    by_side: ViolationSides
    rejected: list[RejectedCalls]
    treatments: list[Treatment]


class ViolationRow(Answer):
    """One violation."""

    side: Literal["arguments", "results"]
    started_at: datetime
    """Start of its call, or when its arguments were rejected."""
    invocation_id: UUID
    tool_name: str
    tool_version: str | None
    path: str
    code: str
    severity: str
    expected: str
    received: str | None
    """May quote payloads: null for keys without the scope `payloads`, and for arguments, whose
    values are in their decision's event only."""
    strategy: str
    outcome: str


class ViolationPage(Page[ViolationRow]):
    """Single violations, newest first."""

    OLD_NAME = "rows"

    searched_until: datetime | None
    """Set if the calls of `q` were searched only back to this time: continue with `next`."""
    withheld: bool


class Spent(Answer):
    """Completed calls: count, durations and tokens."""

    calls: int
    failed: int
    p50_ms: float | None
    p90_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    prompt_tokens: int
    completion_tokens: int
    cache_hits: int


class VersionSpent(Spent):
    """Completed calls of one version of a tool."""

    tool_name: str
    tool_version: str | None


class PartSpent(Spent, Bounds):
    """Completed calls in one part of the range."""


class Latency(Page[VersionSpent], QueriedBounds):
    """Durations and tokens of a range."""

    OLD_NAME = "versions"

    total: Spent
    parts: list[PartSpent]


class TokensSpent(Answer):
    """Tokens of completed calls."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    tokens: int
    """Sum of both."""
    cache_hits: int


class VersionTokens(TokensSpent):
    """Tokens of one version of a tool."""

    tool_name: str
    tool_version: str | None


class PartTokens(TokensSpent, Bounds):
    """Tokens in one part of the range."""


class Tokens(Page[VersionTokens], QueriedBounds):
    """The tokens of a range."""

    OLD_NAME = "versions"

    total: TokensSpent
    parts: list[PartTokens]


class Repeat(Answer):
    """Identical calls: a loop in one trace, or a repeat in any trace."""

    kind: Literal["loop", "repeat"]
    tool_name: str
    call_id: str
    calls: int
    failed: int
    cache_hits: int
    wasted_ms: float
    """Time of all calls but the first; `wasted_tokens` are their tokens."""
    wasted_tokens: int
    first_at: datetime
    last_at: datetime
    trace_id: str | None
    """Only for a loop."""
    traces: int


class Repeats(Page[Repeat], Bounds):
    """Identical calls of a range: totals, and the most frequent ones."""

    OLD_NAME = "listed"

    loops: int
    loop_calls: int
    repeated: int
    repeated_calls: int
    polling_tools: list[str]


class Producer(Answer):
    """A process that numbers its events."""

    producer_id: str
    last_heard_at: datetime
    missing: int
    """Sequence numbers neither stored nor dropped: in transit, rejected (see inbox), or lost."""
    given_up: int
    is_silent: bool
    """No events for 15 minutes."""


class Gap(Answer):
    """Events that producers dropped, by reason."""

    reason: str
    lost: int
    producers: int


class ProducerPage(Page[Producer], Bounds):
    """The producers active in a range, most recent first, and the events they dropped."""

    OLD_NAME = "producers"

    producer_count: int
    heard_lately: int
    """Producers active in the last 15 minutes."""
    gaps: list[Gap]
    inbox: int
    """Rejected events that are waiting; 1,000 means 1,000 or more."""


class InboxLine(Answer):
    """A rejected event."""

    id: UUID
    received_at: datetime
    code: str
    message: str
    line: int
    """Line number in the request, from 1."""
    raw_length: int
    """Size of the line in bytes."""
    excerpt: str | None
    """Start of the line; null for keys without the scope `payloads`."""
    resolution: Literal["accepted", "duplicate", "refused", "discarded"] | None
    """Result of handling it; null while it waits."""
    resolved_at: datetime | None
    resolved_by: str | None


class InboxPage(Page[InboxLine]):
    """Rejected events, newest first."""

    OLD_NAME = "lines"

    withheld: bool


class Action(Answer):
    """An action of a person or a program."""

    id: UUID
    at: datetime
    actor: str
    """Name of a user or an API key, an operator, or the server itself."""
    actor_id: int | None
    """Id of the user; null for other actors."""
    verb: str
    """Such as `key.create`."""
    subject: str | None
    """For `payload.*` verbs null for keys without the scope `payloads`."""
    details: dict[str, Any] | None
    """Further details; null for keys without the scope `payloads`."""
    ledger_index: int | None
    """Its entry in the ledger; null for the first seconds."""


class ActionList(Page[Action]):
    """Actions of people and programs, newest first."""

    OLD_NAME = "actions"

    withheld: bool


class InboxEntry(InboxLine):
    """A rejected event with its full line."""

    batch_id: UUID
    event_id: UUID | None
    raw: str | None
    """The line as received, up to 64 KiB, if it is UTF-8; else see `raw_base64`. Both are null for
    keys without the scope `payloads`."""
    raw_base64: str | None
    discard_reason: str | None
    withheld: bool
