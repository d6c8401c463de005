"""The AI Core's envelopes: frozen models with the field order and rules of its document.

Owns the models. `failures` makes errors from exceptions, `outputs` wraps functions. Source: the
AI Core's tool contracts. Where the AI Core's implementation differs from its document (examples,
counts ≥ 0, instants outside the calendar), these models follow the document.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    SerializeAsAny,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)

from tooltrail.events import InvocationEvent

_EXAMPLE_META: dict[str, Any] = {
    "took_ms": 42,
    "token_usage": {"prompt": 12, "completion": 20},
}
_EXAMPLES: dict[str, dict[str, Any]] = {
    "ToolContext": {
        "tenant_id": "5aa31da6-9278-4da0-9f1a-61b8d3edc5cc",
        "trace_id": "trace-123",
        "run_id": "graph_run_cfe213",
        "workflow_id": "retrieval_augmented_generation",
        "invocation_id": "0f4e6712-6d04-4514-b6cb-943b0667d45c",
        "now_iso": "2024-05-03T12:34:56.123456+00:00",
        "collection_id": "hr-onboarding",
        "case_id": "crm-7421",
        "locale": "de-DE",
        "timeouts_ms": 120000,
        "budget_tokens": 4096,
    },
    "ToolResultMeta": _EXAMPLE_META,
    "ToolResult": {
        "status": "ok",
        "input": {"query": "hello"},
        "data": {"answer": "Hi there!"},
        "meta": _EXAMPLE_META,
    },
    "ToolErrorMeta": {"took_ms": 10},
    "ToolError": {
        "status": "error",
        "input": {"query": "hello"},
        "error": {
            "type": "VALIDATION",
            "message": "Missing required field",
            "code": "missing_field",
            "retry_after_ms": None,
        },
        "meta": {"took_ms": 10},
    },
}


def _add_example(schema: dict[str, Any], model: type[BaseModel]) -> None:
    # By exact name: the example of an envelope does not apply to ToolResult[Mine, Yours].
    if model.__name__ in _EXAMPLES:
        schema["examples"] = [_EXAMPLES[model.__name__]]


# Each class below repeats `frozen`: type checkers read it there, not in the config.
class _Contract(BaseModel):
    model_config = ConfigDict(frozen=True, json_schema_extra=_add_example)


class ToolContext(_Contract, frozen=True):
    """What accompanies a call: whose it is, which run it belongs to, what it may spend.

    Exactly one of `run_id` and `ingestion_run_id` is given (not None). `now_iso` needs an
    offset and is kept in UTC. `timeouts_ms` is milliseconds for the whole call,
    `budget_tokens` tokens. `auth` is for the tool alone: it is never shipped.
    """

    tenant_id: UUID
    trace_id: str
    invocation_id: UUID
    now_iso: datetime
    idempotency_key: str | None = None
    timeouts_ms: PositiveInt | None = None
    budget_tokens: int | None = None
    locale: str | None = None
    safety_mode: str | None = None
    auth: dict[str, Any] | None = None
    run_id: str | None = None
    ingestion_run_id: str | None = None
    workflow_id: str | None = None
    collection_id: str | None = None
    document_id: str | None = None
    document_version_id: str | None = None
    case_id: str | None = None

    @field_validator("now_iso")
    @classmethod
    def _in_utc(cls, value: datetime) -> datetime:
        if value.utcoffset() is None:
            raise ValueError("now_iso must include timezone information")
        try:
            return value.astimezone(UTC)
        except OverflowError:
            raise ValueError("now_iso is outside the years 1 to 9999 in UTC") from None

    @model_validator(mode="after")
    def _belongs_to_one_run(self) -> Self:
        if self.run_id is None and self.ingestion_run_id is None:
            raise ValueError("Either run_id or ingestion_run_id must be provided.")
        if self.run_id is not None and self.ingestion_run_id is not None:
            raise ValueError("Only one of run_id or ingestion_run_id can be provided.")
        return self

    def event_members(self) -> dict[str, Any]:
        """The members for an event of this call, without those that are None.

        `auth` is never included. `tenant_id` and `now_iso` are not included either: the API key
        and the event's own times are better sources. All but `trace_id` and `invocation_id` are
        valid context members of `Trail.trace(…)`.
        """
        return self.model_dump(exclude={"auth", "tenant_id", "now_iso"}, exclude_none=True)

    @classmethod
    def from_event(cls, event: InvocationEvent, tenant_id: UUID) -> Self:
        """Make the context that an event was recorded in; `now_iso` is the start of the call.

        Raises pydantic.ValidationError if the event has no run or no invocation.
        """
        members = event.model_dump(include=cls.model_fields.keys() - {"auth"})
        if members.get("trace_id") is None:  # an ADK event has its turn's id instead
            members["trace_id"] = event.turn_id
        return cls.model_validate(members | {"tenant_id": tenant_id, "now_iso": event.started_at})


class ToolErrorType(StrEnum):
    """What kind of failure it was, which is to say what can be done about it."""

    RATE_LIMIT = "RATE_LIMIT"  # wait as long as the service says
    TIMEOUT = "TIMEOUT"  # the time budget ran out, here or in a service behind
    UPSTREAM = "UPSTREAM"  # a service behind failed
    VALIDATION = "VALIDATION"  # input or output violates its schema
    RETRYABLE = "RETRYABLE"  # a retry may succeed
    FATAL = "FATAL"  # a person must look into it


class ToolResultMeta(_Contract, frozen=True):
    """Figures of a call that worked: duration in ms, counts of sources and tokens."""

    took_ms: NonNegativeInt
    source_counts: dict[str, int] | None = None
    routing: dict[str, Any] | None = None
    cache_hit: bool | None = None
    token_usage: dict[str, int] | None = None

    @field_validator("source_counts")
    @classmethod
    def _counts_something(cls, value: dict[str, int] | None) -> dict[str, int] | None:
        if value and min(value.values()) < 0:
            raise ValueError("source_counts cannot be negative")
        return value


class ToolErrorMeta(_Contract, frozen=True):
    """Figures of a call that failed: ms until the failure was noticed."""

    took_ms: NonNegativeInt


class ToolErrorDetail(_Contract, frozen=True):
    """Why a call failed: its kind, a text for people, and what is known of the cause.

    `cause` is a technical reason or an exception's name; `endpoint` the service or queue
    behind, `upstream_status` its HTTP or gRPC status; `attempt` counts retries.
    """

    type: ToolErrorType
    message: str
    code: str | None = None
    cause: str | None = None
    details: dict[str, Any] | None = None
    retry_after_ms: int | None = None
    upstream_status: int | None = None
    endpoint: str | None = None
    attempt: int | None = None


class Untyped(BaseModel):
    """Holds whatever members it is given, for envelopes used without parameters."""

    model_config = ConfigDict(frozen=True, extra="allow")


def _keep_members(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    # Without parameters the type is BaseModel itself, which would drop all members.
    validated = handler(value)
    return Untyped.model_validate(value) if type(validated) is BaseModel else validated


class ToolResult[IT: BaseModel, OT: BaseModel](_Contract, frozen=True):
    """A call that worked: what was asked (`IT`), what came out (`OT`), and its figures."""

    status: Literal["ok"] = "ok"
    input: Annotated[SerializeAsAny[IT], WrapValidator(_keep_members)]
    data: Annotated[SerializeAsAny[OT], WrapValidator(_keep_members)]
    meta: ToolResultMeta


class ToolError[IT: BaseModel](_Contract, frozen=True):
    """A call that failed: what was asked (`IT`), why it failed, and its figures."""

    status: Literal["error"] = "error"
    input: Annotated[SerializeAsAny[IT], WrapValidator(_keep_members)]
    error: ToolErrorDetail
    meta: ToolErrorMeta


type ToolOutput[IT: BaseModel, OT: BaseModel] = Annotated[
    ToolResult[IT, OT] | ToolError[IT], Field(discriminator="status")
]
"""Either envelope, by its required `status`. To read one: `TypeAdapter(ToolOutput[I, O])`."""
