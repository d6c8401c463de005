"""A call with everything that the index knows about it, as lists of calls show it."""

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from audit.events.outputs import Side
from audit.queries.calls import State, Tone, tone_of

type Place = tuple[UUID, int]
"""Batch and position of an event in the log."""


@dataclass(frozen=True, slots=True)
class ListedCall:
    """A call with everything that the index knows about it."""

    started_on: date
    invocation_id: UUID
    started_at: datetime
    ended_at: datetime | None
    duration_us: int | None
    state: State
    tool_name: str
    tool_version: str
    trace_id: str
    parent_invocation_id: UUID | None
    call_id: str
    tool_call_id: str | None
    error_type: str
    error_code: str | None
    error_message: str | None
    upstream_status: int | None
    retry_after_ms: int | None
    attempt: int | None
    guard_strategy: str | None
    guard_outcome: str | None
    violation_count: int
    prompt_tokens: int
    completion_tokens: int
    cache_hit: bool | None
    turn_id: str | None
    run_id: str | None
    ingestion_run_id: str | None
    workflow_id: str | None
    collection_id: str | None
    document_id: str | None
    document_version_id: str | None
    case_id: str | None
    timeouts_ms: int | None
    producer_id: str | None
    start_batch_id: UUID | None
    start_pos: int | None
    end_batch_id: UUID | None
    end_pos: int | None
    pair_conflict: bool
    mcp_server: str | None
    mcp_client: str | None
    mcp_protocol: str | None
    agent: str | None
    agent_version: str | None
    model: str | None
    provider: str | None
    principal: str | None
    environment: str | None
    service: str | None

    @property
    def tone(self) -> Tone:
        """Its colour and shape."""
        return tone_of(self.state, self.violation_count)

    @property
    def start_place(self) -> Place | None:
        """Batch and position of its start event in the log."""
        return _place_in_log(self.start_batch_id, self.start_pos)

    @property
    def end_place(self) -> Place | None:
        """Batch and position of its end event in the log."""
        return _place_in_log(self.end_batch_id, self.end_pos)

    def place_of(self, side: Side) -> Place | None:
        """Where the log has the event with its arguments, or with its output."""
        return self.end_place if side == "output" else self.start_place


def _place_in_log(batch_id: UUID | None, position: int | None) -> Place | None:
    return None if batch_id is None or position is None else (batch_id, position)
