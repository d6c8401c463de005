"""The API's responses about calls and traces, as the API description shows them.

`Call` has the same members as every export (`audit.exports.call_document`).
"""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import ConfigDict
from tooltrail.events import DeciderKind, Decision

from tenants.api_reads import Answer, Page

State = Literal[
    "open", "waiting", "working", "ok", "failed", "cancelled", "refused", "awaiting", "approved"
]


class CallInTrace(Answer):
    """One execution of a tool. Unknown values are null."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "invocation_id": "018fd0a2-7c1e-7d52-9b7c-5a4c3f2e1d0b",
                "started_at": "2026-11-20T10:15:00.120000Z",
                "state": "failed",
                "tool_name": "get_weather",
                "trace_id": "trace-123",
            }
        }
    )
    invocation_id: UUID
    started_at: datetime
    ended_at: datetime | None
    duration_ms: float | None
    state: State
    """`failed`: the end event reports an error. A call that is `ok` can violate its schema.
    `waiting` for input and `working` calls have no end yet. The last three are of calls that did
    not run; for them, the time of the latest decision is the start."""
    tool_name: str
    tool_version: str | None
    """Version number or contract digest, as the executor reported it."""
    trace_id: str
    parent_invocation_id: UUID | None
    call_id: str
    """A hash of tool and arguments: the same for identical calls."""
    error_type: str | None
    error_code: str | None
    error_message: str | None
    """May quote payloads: null for keys without the scope `payloads`."""
    upstream_status: int | None
    retry_after_ms: int | None
    attempt: int | None
    guard_strategy: str | None
    guard_outcome: str | None
    violation_count: int
    violation_path: str | None
    """Path of the first violation; `violation_code` is its code."""
    violation_code: str | None
    prompt_tokens: int
    completion_tokens: int
    cache_hit: bool | None
    run_id: str | None
    timeouts_ms: int | None


class Call(CallInTrace):
    """One execution of a tool, with the context from its executor. Unknown values are null."""

    tool_call_id: str | None
    """The LLM provider's id."""
    turn_id: str | None
    ingestion_run_id: str | None
    workflow_id: str | None
    collection_id: str | None
    document_id: str | None
    document_version_id: str | None
    case_id: str | None
    producer_id: str | None
    mcp_server: str | None
    """Name and version, as the client or the server reports them."""
    mcp_client: str | None
    mcp_protocol: str | None
    """The version of the protocol."""
    agent: str | None
    """As the executor or its spans report it; likewise the next six."""
    agent_version: str | None
    model: str | None
    provider: str | None
    principal: str | None
    """On whose behalf the call was made: a pseudonym, unless the tenant chose clear text."""
    environment: str | None
    service: str | None
    pair_conflict: bool
    """The start and end events contradict each other."""


class CallPage(Page[Call]):
    """Calls, newest first."""

    OLD_NAME = "calls"

    searched_until: datetime | None
    """Set if a filter without an index was searched only back to this time. The page can then have
    fewer than `limit` calls, or none, and not be the last: continue with `next`."""
    withheld: bool
    """Error messages are omitted because the key lacks the scope `payloads`."""


class CallViolation(Answer):
    """One place where the call's output breaks its schema."""

    path: str
    code: str
    severity: str
    expected: str
    received: str | None
    """May quote payloads: null for keys without the scope `payloads`."""
    strategy: str
    outcome: str
    found_by: str


class CallDecision(Answer):
    """A decision about the call, before it ran or instead of running it."""

    decided_at: datetime
    decision: Decision
    by_kind: DeciderKind | None
    by_id: str | None
    by_name: str | None
    requested_by: str | None
    reason: str | None
    """May quote payloads: null for keys without the scope `payloads`."""
    definition_digest: str | None
    """Digest of the tool's definition that was shown to whoever decided."""
    violation_count: int
    """Violations of the input schema; `paths` and `codes` are of the first of them."""
    paths: list[str]
    codes: list[str]
    waited_ms: float | None
    """How long the call had waited for this decision."""
    is_self_approved: bool
    """A person approved a call that is made for them."""


class RecordedEvent(Answer):
    """An event in the log."""

    ledger_index: int
    received_at: datetime
    size: int
    """Size of its line in bytes; 0 if it was erased."""
    event: dict[str, Any] | None
    """The line as it was sent: `args` in a start event, `output` in an end event. Null if it was
    erased, and for keys without the scope `payloads`."""


class CallDetail(Call):
    """One call, its violations and its payload."""

    idempotency_key: str | None
    budget_tokens: int | None
    locale: str | None
    safety_mode: str | None
    violations: list[CallViolation]
    decisions: list[CallDecision]
    """The earliest first."""
    start: RecordedEvent | None
    """Null until it arrives. Of a call that did not run: the event of its latest decision."""
    interim: RecordedEvent | None
    """The latest event that said that the call waits for input or works on. Null without one."""
    end: RecordedEvent | None
    log_error: str | None
    """Why the log could not be read; null if it could."""
    archive: Literal["available", "read", "failed"] | None
    """Whether payloads that the log has no more can be read from the archive: `available` says that
    the API's parameter `archive` tries it. Null if there are none, or payloads are withheld."""
    archive_error: str | None
    """Why they could not be read from there, if `archive` is `failed`."""
    withheld: bool
    """Payloads and texts that quote them are omitted because the key lacks the scope `payloads`."""


class OpenTally(Answer):
    """Number of calls of each kind; 10,000 means 10,000 or more."""

    open: int
    running: int
    overdue: int
    crashed: int
    orphan: int


class OpenCall(Call):
    """A call without an end, or an end without a start."""

    condition: Literal["running", "overdue", "crashed", "orphan"]
    overdue_ms: int | None
    """Time past its timeout; null if it has no timeout or is within it."""
    producer_heard_at: datetime | None


class OpenPage(Page[OpenCall]):
    """Open calls, newest first."""

    OLD_NAME = "calls"

    tally: OpenTally
    """Counts all open calls, regardless of the filter."""
    searched_until: datetime | None
    withheld: bool


class Reason(Answer):
    """The call of a trace that failed, violated its schema or is open."""

    tool_name: str
    state: State
    error_type: str | None
    error_code: str | None
    error_message: str | None
    upstream_status: int | None
    started_at: datetime
    violation_path: str | None
    violation_code: str | None


class Trace(Answer):
    """Totals of the calls that share a trace id."""

    trace_id: str
    first_started_at: datetime
    last_at: datetime
    duration_ms: float | None
    """From its first start to its last known event; null while none of its calls has ended."""
    first_tool_name: str
    run_id: str | None
    calls_started: int
    calls_completed: int
    """Succeeded or failed."""
    calls_failed: int
    calls_open: int
    calls_cancelled: int
    violations: int
    prompt_tokens: int
    completion_tokens: int


class ListedTrace(Trace):
    """A trace in the list."""

    reason: Reason | None
    """Null if no call failed, violated its schema or is open."""


class TracePage(Page[ListedTrace]):
    """Traces, newest first."""

    OLD_NAME = "traces"

    searched_until: datetime | None
    """Set if traces were searched only back to this time: continue with `next`."""
    withheld: bool


class TraceDetail(Trace):
    """A trace and its calls, ordered by start."""

    calls: list[CallInTrace]
    is_cut: bool
    """The trace has more calls: use `/api/v1/calls?q=trace:…` to page through all of them."""
    withheld: bool
