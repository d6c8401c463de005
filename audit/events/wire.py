"""The wire contract as the ingest path reads it: only what the index needs, payloads skipped.

`tooltrail.events` is the contract; these structs are its fast counterpart. Events that they accept
are also accepted by the contract, with the same values. `audit.events.decode` gives all others to
the contract itself (tests/audit/events/test_decode.py proves both). So the structs have only
snake_case members: any camelCase member makes a struct reject the event.
"""

from typing import Annotated, ClassVar, Literal
from uuid import UUID

import msgspec
from msgspec import Meta, Raw
from pydantic.alias_generators import to_camel
from tooltrail.events import (
    BIGINT_MAX,
    DURATION_MS_MAX,
    ID_MAX_LENGTH,
    NAME_MAX_LENGTH,
    DeciderKind,
    Decision,
)
from tooltrail.guard.violations import McpViolationCode, ViolationCode, ViolationSeverity
from tooltrail.ledger import Kind
from tooltrail.mcp_results import CallState

Name = Annotated[str, Meta(min_length=1, max_length=NAME_MAX_LENGTH)]
FreeId = Annotated[str, Meta(min_length=1, max_length=ID_MAX_LENGTH)]
Count = Annotated[int, Meta(ge=0, le=BIGINT_MAX)]
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Bigint = Annotated[int, Meta(ge=-BIGINT_MAX, le=BIGINT_MAX)]


class TokenUsage(msgspec.Struct, gc=False):
    """Tokens a call used."""

    prompt: Count | None = None
    completion: Count | None = None


class EnvelopeMeta(msgspec.Struct, gc=False):
    """The figures of an envelope."""

    cache_hit: bool | None = None
    attempt: Int32 | None = None
    token_usage: TokenUsage | None = None


class EnvelopeError(msgspec.Struct, gc=False):
    """Why a call failed, from its envelope."""

    type: str | None = None
    message: str | None = None
    code: str | None = None
    retry_after_ms: Bigint | None = None
    upstream_status: Int32 | None = None
    attempt: Int32 | None = None


class Envelope(msgspec.Struct, gc=False):
    """The members of an AI Core `ToolOutput` that the index uses; the data are skipped."""

    status: str | None = None
    error: EnvelopeError | None = None
    meta: EnvelopeMeta | None = None


class Violation(msgspec.Struct, gc=False):
    """A violation as the guard reported it."""

    path: str
    code: Literal[ViolationCode, McpViolationCode]
    severity: ViolationSeverity = "error"
    expected: str = ""
    received: str = ""
    message: str = ""
    llm_message: str = ""
    llmMessage: str = ""  # noqa: N815  # the same member's other name


class GuardReport(msgspec.Struct, gc=False):
    """What the output guard did."""

    strategy: Annotated[str, Meta(max_length=32)]
    outcome: Literal["passed", "failed", "coerced", "stripped", "fallback", "error-result"]
    violations: Annotated[list[Violation], Meta(max_length=1000)] = []


class McpPeer(msgspec.Struct, gc=False):
    """The name and version that an MCP client or server gives itself."""

    name: str | None = None
    version: str | None = None


class McpStated(msgspec.Struct, gc=False):
    """What is stated of an MCP call. Any other form is read by `tooltrail.mcp_results`."""

    client: McpPeer | None = None
    server: McpPeer | None = None
    protocol_version: str | None = None


class Spans(msgspec.Struct, gc=False):
    """The part of a member `otlp` that says whose account an event is (`audit.events.reported`)."""

    of_executor: bool = False


class CallEvent(msgspec.Struct, kw_only=True, gc=False):
    """Members that start and end share. `started_at` is RFC 3339 text, as sent."""

    event_id: UUID | None = None
    invocation_id: UUID | None = None
    trace_id: FreeId | None = None
    parent_invocation_id: UUID | None = None
    tool_name: Name
    tool_version: Name | int | None = None
    call_id: FreeId
    tool_call_id: FreeId | None = None
    turn_id: FreeId | None = None
    run_id: FreeId | None = None
    ingestion_run_id: FreeId | None = None
    workflow_id: FreeId | None = None
    collection_id: FreeId | None = None
    document_id: FreeId | None = None
    document_version_id: FreeId | None = None
    case_id: FreeId | None = None
    idempotency_key: FreeId | None = None
    timeouts_ms: Annotated[int, Meta(gt=0, le=BIGINT_MAX)] | None = None
    budget_tokens: Count | None = None
    locale: FreeId | None = None
    safety_mode: FreeId | None = None
    mcp: McpStated | None = None
    otlp: Spans | None = None
    producer_id: FreeId | None = None
    producer_seq: Count | None = None
    started_at: str
    auth: None = None  # any value but null is rejected


class StartEvent(CallEvent, tag="toolExecutionStart", kw_only=True, gc=False):
    """A tool is about to run."""

    kind: ClassVar[Literal[Kind.START]] = Kind.START

    args: Raw
    traceparent: FreeId | None = None
    context: Raw = Raw(b"")
    """Any value. `audit.events.reported_context` reads it."""


class EndEvent(CallEvent, tag="toolExecutionEnd", kw_only=True, gc=False):
    """A tool has run. An `output` that is not an envelope is read as an empty envelope."""

    kind: ClassVar[Literal[Kind.END]] = Kind.END

    ended_at: str
    duration_ms: Annotated[float, Meta(ge=0, le=DURATION_MS_MAX)]
    is_error: bool
    call_state: CallState | None = None
    output_type: Literal["CallToolResult"] | None = None
    output: Envelope | None = None
    guard: GuardReport | None = None


class Decider(msgspec.Struct, gc=False):
    """Who or what made a decision."""

    kind: DeciderKind
    id: FreeId | None = None
    name: str | None = None


class DecisionEvent(CallEvent, tag="toolCallDecision", kw_only=True, gc=False):
    """A decision about a call. `started_at` becomes `decided_at`, which places it on a day.

    The arguments are skipped, as the index does not use them.
    """

    kind: ClassVar[Literal[Kind.DECISION]] = Kind.DECISION

    call_id: FreeId | None = None  # type: ignore[assignment]  # optional, unlike its base's
    started_at: str = ""
    decided_at: str
    decision: Decision
    by: Decider | None = None
    requested_by: FreeId | None = None
    reason: str | None = None
    definition_digest: FreeId | None = None
    violations: Annotated[list[Violation], Meta(max_length=1000)] = []
    context: Raw = Raw(b"")
    """As of a start."""


class GapEvent(msgspec.Struct, tag="gap", kw_only=True, gc=False):
    """Sequence numbers of events that a producer had to drop."""

    kind: ClassVar[Literal[Kind.GAP]] = Kind.GAP

    event_id: UUID | None = None
    producer_id: FreeId
    from_seq: Count
    to_seq: Count
    reason: FreeId
    count: Count
    auth: None = None


type WireEvent = StartEvent | EndEvent | DecisionEvent | GapEvent

_Impossible = Annotated[str, Meta(min_length=2, max_length=1)]


def _without_camel_case[S: msgspec.Struct](struct: type[S]) -> type[S]:
    """The struct, extended so that it rejects the camelCase names of its members."""
    names = [to_camel(name) for name in struct.__struct_fields__ if "_" in name]
    return msgspec.defstruct(  # type: ignore[return-value]  # made at run time
        struct.__name__,
        [(name, _Impossible, "") for name in names],
        bases=(struct,),
        tag=struct.__struct_config__.tag,
        kw_only=True,
        gc=False,
    )


class _RawOutput(EndEvent, tag="toolExecutionEnd", kw_only=True):
    output: Raw = Raw(b"null")  # type: ignore[assignment]  # not decoded, unlike its base's


EVENT: msgspec.json.Decoder[WireEvent] = msgspec.json.Decoder(
    _without_camel_case(StartEvent)
    | _without_camel_case(EndEvent)
    | _without_camel_case(DecisionEvent)
    | _without_camel_case(GapEvent)
)
"""Decodes an event whose output, if any, is an envelope or null."""

WITH_ANY_OUTPUT: msgspec.json.Decoder[WireEvent] = msgspec.json.Decoder(
    # A union of two, as a decoder of one struct alone does not require its type tag.
    _without_camel_case(_RawOutput) | _without_camel_case(GapEvent)
)
"""Decodes an end event with any output, and keeps the output as bytes."""
