"""The wire contract: the events that an executor sends and the server accepts.

`CONTRACT_VERSION` 2 added `toolCallDecision` and `toolDefinitions`. A server of version 1 rejects
these types.

Snake case is canonical; the ADK's camelCase names are accepted as aliases. Members that are
not listed here are ignored by these models; the server's log keeps them byte for byte.
Members that every event of a kind must have are required. Members that the server can derive
(`event_id`, `invocation_id`, `trace_id`) are optional.
"""

import re
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self
from uuid import UUID, uuid5

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    TypeAdapter,
    model_validator,
)
from pydantic.alias_generators import to_camel

from tooltrail.guard.violations import Violation
from tooltrail.mcp_results import CALL_TOOL_RESULT, CallState

CONTRACT_VERSION = 2
CONTRACT_HEADER = "Tooltrail-Contract"
"""The header in which a server names its version in every answer from `/api/v1/events`. Version 1
has none."""

NAME_MAX_LENGTH = 256  # characters, of tool names and versions
ID_MAX_LENGTH = 128  # characters, of trace, turn, run, case … ids, which are free text
VIOLATIONS_MAX = 1000  # in one guard report
DEFINITIONS_MAX = 1000  # in one list of tools
BIGINT_MAX = 2**63 - 1  # the largest integer of the index
DURATION_MS_MAX = 1e13  # 317 years: as microseconds it is still exact in a bigint

_RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,12})?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}", re.ASCII)


def parse_instant(value: object) -> datetime:
    """Read an RFC 3339 date-time with offset. Digits beyond microseconds are cut off.

    Raises ValueError for anything else, including numbers and times without offset.
    """
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise ValueError("a time needs an offset, such as 2026-11-20T10:15:00Z")
        return value
    if not isinstance(value, str) or not _RFC3339.fullmatch(value):
        raise ValueError("not an RFC 3339 time with offset, such as 2026-11-20T10:15:00Z")
    return datetime.fromisoformat(value.upper())


def parse_uuid(value: object) -> UUID:
    """Read a UUID of 32 hexadecimal digits, with or without dashes.

    Raises ValueError for anything else.
    """
    if isinstance(value, UUID):
        return value
    if not isinstance(value, str) or not _UUID.fullmatch(value):
        raise ValueError("not a UUID")
    return UUID(value)


def parse_version(value: object) -> object:
    """Convert a registry number to text: `4` and `"4"` name the same tool version."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _text_or_none(value: object) -> object:
    """A text that may be a traceparent, else None: W3C Trace Context ignores invalid values."""
    return value if isinstance(value, str) and 0 < len(value) <= ID_MAX_LENGTH else None


def _call_state_or_none(value: object) -> object:
    """A known state, else None: later versions of the contract may add others."""
    return value if value in ("waiting", "working", "cancelled") else None


def _output_type_or_none(value: object) -> object:
    """A known output type, else None: later versions of the contract may add others."""
    return value if value == CALL_TOOL_RESULT else None


INTERIM_STATES: Final = ("waiting", "working")
"""The states of `call_state` that do not end the call."""
Instant = Annotated[
    datetime, BeforeValidator(parse_instant), PlainSerializer(datetime.isoformat, when_used="json")
]
Identifier = Annotated[UUID, BeforeValidator(parse_uuid)]
Name = Annotated[str, Field(min_length=1, max_length=NAME_MAX_LENGTH)]
FreeId = Annotated[str, Field(min_length=1, max_length=ID_MAX_LENGTH)]
Count = Annotated[int, Field(ge=0, le=BIGINT_MAX)]


class _Wire(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="ignore",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        loc_by_alias=False,  # errors name members as the contract does
    )


class GuardReport(_Wire):
    """The result of an output guard: its strategy, the outcome and all violations.

    `received` is what the tool returned, if the caller got something else (docs/adr/0005).
    """

    strategy: str = Field(max_length=32)
    outcome: Literal["passed", "failed", "coerced", "stripped", "fallback", "error-result"]
    violations: list[Violation] = Field(default_factory=list, max_length=VIOLATIONS_MAX)
    received: Any = None


class ContextEvent(_Wire):
    """The members of every event about a call: the call, its tool and its context.

    The context members are those of the AI Core. Its `auth` is never sent and never stored.
    `timeouts_ms` is in milliseconds, `budget_tokens` in tokens. `mcp` is what is known of the MCP
    client and server; it is shown, and malformed parts of it are ignored.
    """

    event_id: Identifier | None = None
    invocation_id: Identifier | None = None
    trace_id: FreeId | None = None
    parent_invocation_id: Identifier | None = None
    tool_name: Name
    tool_version: Annotated[Name, BeforeValidator(parse_version)] | None = None
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
    timeouts_ms: Annotated[int, Field(gt=0, le=BIGINT_MAX)] | None = None
    budget_tokens: Count | None = None
    locale: FreeId | None = None
    safety_mode: FreeId | None = None
    mcp: Any = None
    producer_id: FreeId | None = None
    producer_seq: Count | None = None

    @model_validator(mode="after")
    def _is_placed(self) -> Self:
        if self.trace_id is None and self.turn_id is None:
            raise ValueError("trace_id is missing; it is required without a turn_id")
        if self.run_id is not None and self.ingestion_run_id is not None:
            raise ValueError("run_id and ingestion_run_id cannot both be set")
        return self


class InvocationEvent(ContextEvent):
    """The members of both start and end."""

    call_id: FreeId
    started_at: Instant


class ToolExecutionStart(InvocationEvent):
    """A tool is about to run: its validated arguments and its start time.

    `traceparent` is the OpenTelemetry span it runs in, in W3C's form. It is absent if the
    enclosing call has the same span. A malformed value is ignored.
    """

    type: Literal["toolExecutionStart"] = "toolExecutionStart"
    args: Any
    traceparent: Annotated[FreeId | None, BeforeValidator(_text_or_none)] = None


class ToolExecutionEnd(InvocationEvent):
    """A tool has run: its duration, whether it failed and, if captured, its output.

    `output` is any JSON. If it is an AI Core envelope (`status`, `data` or `error`, `meta`),
    the server indexes it. With `output_type`, the output, or its `data`, is the result of an MCP
    tool: the call fails if that says so, and its structured content is validated. `duration_ms`
    is in milliseconds, fractions allowed.

    `call_state` names a state that `is_error` cannot express. `waiting` and `working` do not end
    the call: the latest such event says what it does until an end event without them comes.
    `ended_at` is then the time of the event. A `cancelled` call has ended, and neither succeeded
    nor failed.
    """

    type: Literal["toolExecutionEnd"] = "toolExecutionEnd"
    ended_at: Instant
    duration_ms: Annotated[float, Field(ge=0, le=DURATION_MS_MAX)]
    is_error: bool
    call_state: Annotated[CallState | None, BeforeValidator(_call_state_or_none)] = None
    output_type: Annotated[
        Literal["CallToolResult"] | None, BeforeValidator(_output_type_or_none)
    ] = None
    output: Any = None
    guard: GuardReport | None = None

    @model_validator(mode="after")
    def _names_its_call(self) -> Self:
        if self.call_state in INTERIM_STATES and self.invocation_id is None:
            raise ValueError(
                "invocation_id is missing; it is required with call_state waiting and working"
            )
        return self


Decision = Literal[
    "rejectedArguments", "denied", "awaiting", "approved", "cancelled", "overBudget", "overRate"
]
"""A decision about a call. All but `awaiting` and `approved` refuse it."""
DeciderKind = Literal["person", "policy", "guardrail"]


class Decider(_Wire):
    """Who or what decided: a person, a policy or a guardrail, with its id and its name."""

    kind: DeciderKind
    id: FreeId | None = None
    name: str | None = None


class ToolCallDecision(ContextEvent):
    """A decision about a call before it runs, or instead of running it.

    A call may have several decisions, and need not have a start. `invocation_id` names the call;
    without it, the trace and `tool_call_id` do; without both, the decision is about a call of its
    own. `requested_by` is the person for whom the call is made: a person who approves their own
    request is marked. `definition_digest` is the digest of the tool's definition that was shown to
    whoever decided. `violations` are those of the input schema; their paths begin at the arguments.
    """

    type: Literal["toolCallDecision"] = "toolCallDecision"
    call_id: FreeId | None = None
    decided_at: Instant
    decision: Decision
    by: Decider | None = None
    requested_by: FreeId | None = None
    reason: str | None = None
    definition_digest: FreeId | None = None
    args: Any = None
    violations: list[Violation] = Field(default_factory=list, max_length=VIOLATIONS_MAX)


# Of the ids of calls that are known from decisions without an invocation id. Never change it.
_DECISION_NAMESPACE: Final = UUID("3d3c9c6e-5d0b-5a53-8a0f-0c1f7f6f2b41")


def decided_call_id(trace_id: str | None, tool_call_id: str) -> UUID:
    """The invocation id that decisions about a call have in common if they name none.

    The SDK writes it, and the server makes it for events without one.
    """
    return uuid5(_DECISION_NAMESPACE, f"{trace_id}\x1f{tool_call_id}")


class Party(_Wire):
    """A server or a client of tools, by the name it gives itself."""

    name: Name
    version: Annotated[Name, BeforeValidator(parse_version)] | None = None


class ToolDefinitions(_Wire):
    """Definitions of a server's tools: those of one `tools/list`, as they were served.

    It says nothing about tools that it does not list. The server keeps each definition once, and
    enters a list in the ledger if one of its definitions changed. So these events have no numbers
    of a producer. `tools` are definitions of MCP, or of a provider (`{"function": {…}}`).
    """

    type: Literal["toolDefinitions"] = "toolDefinitions"
    event_id: Identifier | None = None
    seen_at: Instant
    server: Party
    client: Party | None = None
    tools: list[Any] = Field(min_length=1, max_length=DEFINITIONS_MAX)

    @model_validator(mode="after")
    def _has_names(self) -> Self:
        names = set()
        for place, tool in enumerate(self.tools):
            name = name_of_definition(tool)
            if name is None:
                raise ValueError(
                    f"tools[{place}] has no name of at most {NAME_MAX_LENGTH} characters"
                )
            if name in names:
                raise ValueError(f"tools[{place}] has the name of an earlier tool")
            names.add(name)
        return self


def name_of_definition(tool: Any) -> str | None:
    """The name in a definition of MCP or of a provider; None if it has none that can be stored."""
    inner = tool.get("function", tool) if isinstance(tool, dict) else None
    name = inner.get("name") if isinstance(inner, dict) else None
    return name if isinstance(name, str) and 0 < len(name) <= NAME_MAX_LENGTH else None


class Gap(_Wire):
    """Declares the loss of events that a producer numbered and then had to drop.

    `from_seq` and `to_seq` are the first and the last lost number, `count` is how many are lost.
    """

    type: Literal["gap"] = "gap"
    event_id: Identifier | None = None
    producer_id: FreeId
    from_seq: Count
    to_seq: Count
    reason: FreeId
    count: Count

    @model_validator(mode="after")
    def _is_ordered(self) -> Self:
        if self.to_seq < self.from_seq:
            raise ValueError("to_seq is less than from_seq")
        return self


class AdkToolExecutionStart(_Wire):
    """A tool is about to run, with only the members of the ADK's own event.

    `Tool.executor` passes it to its context. `ToolExecutionStart` is sent to the server.
    """

    tool_name: str
    turn_id: str
    call_id: str
    args: Any
    started_at: Instant


class AdkToolExecutionEnd(_Wire):
    """A tool has run, with only the members of the ADK's own event: no result, no error."""

    tool_name: str
    turn_id: str
    call_id: str
    started_at: Instant
    ended_at: Instant
    duration_ms: float
    is_error: bool


class GuardedToolExecutionEnd(AdkToolExecutionEnd):
    """A tool with a guarded handler has run; includes the guard's report.

    `guard.received` is what the handler returned, unchanged and not redacted. It is set if the
    outcome is not `passed`.
    """

    guard: GuardReport


Event = Annotated[
    ToolExecutionStart | ToolExecutionEnd | ToolCallDecision | ToolDefinitions | Gap,
    Field(discriminator="type"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
"""Reads one event: `EVENT.validate_json(line)`. Raises pydantic.ValidationError."""
