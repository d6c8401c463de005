"""The API's responses about calls and traces, as the API description shows them.

`Call` has the same members as every export (`audit.exports.call_document`).
"""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import ConfigDict

from tenants.api_reads import Answer, Page

State = Literal["open", "ok", "failed"]


class CallInTrace(Answer):
    """One execution of a tool. What is not known is null."""

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
    """Failed: its end says so. A call may be ok and break its schema."""
    tool_name: str
    tool_version: str | None
    """A number or digest of the registry, as the executor knew it."""
    trace_id: str
    parent_invocation_id: UUID | None
    call_id: str
    """A hash of tool and arguments: the same for identical calls."""
    error_type: str | None
    error_code: str | None
    error_message: str | None
    """Quotes payloads: null for keys without the scope `payloads`."""
    upstream_status: int | None
    retry_after_ms: int | None
    attempt: int | None
    guard_strategy: str | None
    guard_outcome: str | None
    violation_count: int
    violation_path: str | None
    """Of its first violation, as is `violation_code`."""
    violation_code: str | None
    prompt_tokens: int
    completion_tokens: int
    cache_hit: bool | None
    run_id: str | None
    timeouts_ms: int | None


class Call(CallInTrace):
    """One execution of a tool, with the context its executor gave. What is not known is null."""

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
    pair_conflict: bool
    """Its start and its end contradict each other."""


class CallPage(Page):
    """Calls, newest first."""

    calls: list[Call]
    searched_until: datetime | None
    """Not all was looked at yet: a filter without an index is searched in stretches, so that a
    page may hold fewer than `limit` calls, or none, and not be the last. `next` goes on."""
    withheld: bool
    """Error messages are left out: the key lacks the scope `payloads`."""


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


class RecordedEvent(Answer):
    """An event as it lies in the log."""

    ledger_index: int
    received_at: datetime
    size: int
    """Bytes of its line; 0 once it was erased."""
    event: dict[str, Any] | None
    """The line as it was sent, member by member: `args` in a start, `output` in an end. Null once
    it was erased, and for keys without the scope `payloads`."""


class CallDetail(Call):
    """One call, its violations and its payload."""

    idempotency_key: str | None
    budget_tokens: int | None
    locale: str | None
    safety_mode: str | None
    violations: list[CallViolation]
    start: RecordedEvent | None
    """Null until it has come."""
    end: RecordedEvent | None
    log_error: str | None
    """Why the log could not be read, if so."""
    withheld: bool
    """Payloads, and what quotes them, are left out: the key lacks the scope `payloads`."""


class OpenTally(Answer):
    """How many calls there are of each kind; 10,000 stands for as many or more."""

    open: int
    running: int
    overdue: int
    crashed: int
    orphan: int


class OpenCall(Call):
    """A call without an end, or an end without a start."""

    condition: Literal["running", "overdue", "crashed", "orphan"]
    overdue_ms: int | None
    """How long past its own limit; null without one, or within it."""
    producer_heard_at: datetime | None


class OpenPage(Page):
    """Open calls, newest first."""

    tally: OpenTally
    """Of all, whatever is asked for."""
    calls: list[OpenCall]
    searched_until: datetime | None
    withheld: bool


class Reason(Answer):
    """Why a trace is worth a look: its call that failed, broke its schema or is open."""

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
    """The calls that share a trace id, summed up."""

    trace_id: str
    first_started_at: datetime
    last_at: datetime
    duration_ms: float | None
    """From its first start to the last that is known; null while none of its calls has ended."""
    first_tool_name: str
    run_id: str | None
    calls_started: int
    calls_completed: int
    calls_failed: int
    calls_open: int
    violations: int
    prompt_tokens: int
    completion_tokens: int


class ListedTrace(Trace):
    """A trace in the list."""

    reason: Reason | None
    """Null for one in which nothing failed, broke a schema or is open."""


class TracePage(Page):
    """Traces, newest first."""

    traces: list[ListedTrace]
    searched_until: datetime | None
    """As in the list of calls: not all was looked at yet, `next` goes on."""
    withheld: bool


class TraceDetail(Trace):
    """A trace and its calls, by their start."""

    calls: list[CallInTrace]
    is_cut: bool
    """There are more calls: `/api/v1/calls?q=trace:…` pages through all of them."""
    withheld: bool
