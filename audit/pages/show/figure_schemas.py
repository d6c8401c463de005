"""The API's responses about figures and lost events, as the API description shows them."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from tenants.api_reads import Answer, Page


class Bounds(Answer):
    """The stretch of time that figures are of: from its start on and before its end."""

    from_: datetime = Field(alias="from")
    to: datetime


class Durations(Answer):
    """Milliseconds within which half, 95 % and 99 % of the calls took."""

    p50: float | None
    p95: float | None
    p99: float | None


class Summary(Bounds):
    """The calls of a range, summed up."""

    calls: int
    """Completed ones."""
    open: int
    errors: int
    """Completed calls that failed."""
    violations: int
    violating_calls: int
    prompt_tokens: int
    completion_tokens: int
    duration_ms: Durations


class ViolationKind(Answer):
    """A kind of violation: a tool, its version, a path with `[*]` for indexes, and a code."""

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
    """What guards made of violations."""

    strategy: str
    outcome: str
    violations: int


class Violations(Bounds):
    """The violations of a range by kind, the most frequent first."""

    total: int
    violations: list[ViolationKind]
    treatments: list[Treatment]


class ViolationRow(Answer):
    """One violation as it was found."""

    started_at: datetime
    """Of its call."""
    invocation_id: UUID
    tool_name: str
    tool_version: str | None
    path: str
    code: str
    severity: str
    expected: str
    received: str | None
    """May quote payloads: null for keys without the scope `payloads`."""
    strategy: str
    outcome: str


class ViolationPage(Page):
    """Single violations, newest first."""

    rows: list[ViolationRow]
    withheld: bool


class Spent(Answer):
    """Completed calls: how many, how long they took, and the tokens they used."""

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
    """Those of a version of a tool."""

    tool_name: str
    tool_version: str | None


class PartSpent(Spent, Bounds):
    """Those of a part of the range."""


class Latency(Bounds):
    """Durations and tokens of a range."""

    total: Spent
    versions: list[VersionSpent]
    parts: list[PartSpent]


class TokensSpent(Answer):
    """The tokens of completed calls."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    tokens: int
    """Both together."""
    cache_hits: int


class VersionTokens(TokensSpent):
    """Those of a version of a tool."""

    tool_name: str
    tool_version: str | None


class PartTokens(TokensSpent, Bounds):
    """Those of a part of the range."""


class Tokens(Bounds):
    """The tokens of a range."""

    total: TokensSpent
    versions: list[VersionTokens]
    parts: list[PartTokens]


class Repeat(Answer):
    """Identical calls: a loop in one trace, or a repeat in whichever."""

    kind: Literal["loop", "repeat"]
    tool_name: str
    call_id: str
    calls: int
    failed: int
    cache_hits: int
    wasted_ms: float
    """Of all calls but the first, as is `wasted_tokens`."""
    wasted_tokens: int
    first_at: datetime
    last_at: datetime
    trace_id: str | None
    """Of a loop."""
    traces: int


class Repeats(Bounds):
    """Identical calls of a range: totals of all, and the most frequent."""

    loops: int
    loop_calls: int
    repeated: int
    repeated_calls: int
    polling_tools: list[str]
    listed: list[Repeat]


class Producer(Answer):
    """A process that numbers its events."""

    producer_id: str
    last_heard_at: datetime
    missing: int
    """Numbers neither stored nor given up: under way, refused (the inbox), or lost."""
    given_up: int
    is_silent: bool
    """Not heard for 15 minutes."""


class Gap(Answer):
    """Events that producers had to give up, by reason."""

    reason: str
    lost: int
    producers: int


class ProducerPage(Page, Bounds):
    """The producers heard in a range, the latest first, and what they say was lost in it."""

    producer_count: int
    heard_lately: int
    """Within the last 15 minutes."""
    gaps: list[Gap]
    inbox: int
    """Refused lines that wait for somebody; 1,000 stands for as many or more."""
    producers: list[Producer]


class InboxLine(Answer):
    """A refused line."""

    id: UUID
    received_at: datetime
    code: str
    message: str
    line: int
    """Its number in the request, from 1."""
    raw_length: int
    """Bytes it had."""
    excerpt: str | None
    """How it begins; null for keys without the scope `payloads`."""
    resolution: Literal["accepted", "duplicate", "refused", "discarded"] | None
    """What became of it; null while it waits."""
    resolved_at: datetime | None
    resolved_by: str | None


class InboxPage(Page):
    """Refused lines, newest first."""

    lines: list[InboxLine]
    withheld: bool


class Action(Answer):
    """Something a person or a program did."""

    id: UUID
    at: datetime
    actor: str
    """A user's name; or an API key, an operator, or the server itself."""
    actor_id: int | None
    """The user's; null for all others."""
    verb: str
    """As in `key.create`."""
    subject: str | None
    """Of `payload.*` null for keys without the scope `payloads`."""
    details: dict[str, Any] | None
    """What else is on record; null for keys without the scope `payloads`."""
    ledger_index: int | None
    """The entry of the ledger that holds the same; null for some seconds."""


class ActionList(Page):
    """What people and programs did, newest first."""

    actions: list[Action]
    withheld: bool


class InboxEntry(InboxLine):
    """A refused line, whole."""

    batch_id: UUID
    event_id: UUID | None
    raw: str | None
    """As it came, up to 64 KiB, where it is UTF-8; else `raw_base64`. Both are null for keys
    without the scope `payloads`."""
    raw_base64: str | None
    discard_reason: str | None
    withheld: bool
