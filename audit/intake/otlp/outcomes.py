"""What a span of a tool call says of the call's end: failed, cancelled, or nothing.

Pure.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from tooltrail.mcp_results import TOOL_ERROR, CallState, McpResult

from audit.events.any_json import ANY_JSON
from audit.events.spans import STATUS_ERROR, STATUS_OK, STATUS_UNSET, Span
from audit.intake.otlp.wrappers import Unwrapped, stated_error

NOT_SPECIFIED = "<not specified>"
"""Google ADK's placeholder for a missing id or response."""


ADK_SCOPES = ("gcp.vertex.agent", "openinference.instrumentation.google_adk")
"""The instrumentations of Google ADK."""


class _Absent:
    """Stands for a value that was not recorded, which differs from null."""

    def __bool__(self) -> bool:
        return False


ABSENT = _Absent()


class Failure(msgspec.Struct, gc=False):
    """Why a call failed, as far as a span says."""

    type: str | None
    message: str | None
    code: str | None


def first_text(attributes: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """The first of these attributes that is a non-empty text."""
    for name in names:
        value = attributes.get(name)
        if value and isinstance(value, str):
            return value
    return None


def decoded(value: Any) -> Any:
    """A value that is JSON text, decoded."""
    if not isinstance(value, str | msgspec.Raw):
        return value
    try:
        return ANY_JSON.decode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return value


def has_failed(span: Span, result: Unwrapped, mcp_error: str | None) -> bool | None:
    """Whether the call failed; None if the span does not say. A cancelled call counts as failed."""
    if says_error(span) or result.is_error or mcp_error is not None:
        return True
    if has_no_answer(span, result):
        return True
    if span.status.code == STATUS_OK or result.value is not ABSENT:
        return False
    return False if span.attributes.get("gen_ai.tool.status") == "success" else None


_FAILED = {
    "gen_ai.tool.status": "error",  # Strands
    "gen_ai.task.status": "failure",  # OpenLLMetry
    "langfuse.observation.level": "ERROR",
    "haystack.tool.error": True,
}


def says_error(span: Span) -> bool:
    """Whether the span itself says that something failed."""
    attributes = span.attributes
    return (
        span.status.code == STATUS_ERROR
        or bool(attributes.get("error.type"))
        or (
            not attributes.keys().isdisjoint(_FAILED)
            and any(attributes.get(name) == value for name, value in _FAILED.items())
        )
    )


def failure_of(
    span: Span, messages: tuple[str, ...], result: Unwrapped, mcp_error: str | None
) -> Failure:
    """Why the call failed. `messages` are attributes, `mcp_error` the text of an MCP result."""
    exception = next((event for event in span.events if event.name == "exception"), None)
    raised = exception.attributes if exception is not None else {}
    message = (
        first_text(raised, ("exception.message",))
        or span.status.message
        or mcp_error
        or first_text(span.attributes, ("error.message",))
        or first_text(span.attributes, messages)
        or (result.value if result.is_error and isinstance(result.value, str) else None)
    )
    if message is None and span.attributes.get("haystack.tool.error") is True:
        error = decoded(result.value)
        message = first_text(error, ("error",)) if isinstance(error, dict) else None
    stated_type, stated_message = stated_error(message) if message else (None, None)
    return Failure(
        type=first_text(span.attributes, ("error.type",))
        or stated_type
        or first_text(raised, ("exception.type",))
        or (TOOL_ERROR if mcp_error is not None else None),
        message=stated_message,
        code=first_text(span.attributes, ("rpc.response.status_code",)),
    )


_CANCELLED = {"cancelled", "canceled", "cancellederror", "operationcanceledexception"}
"""Last parts of the types of errors that say that a call was cancelled, in lower case."""


def call_state(
    span: Span, result: Unwrapped, mcp: McpResult | None, failed: bool
) -> CallState | None:
    """Cancelled, by the error or because no answer came; waiting or working, by an MCP result."""
    if not failed:
        return None if mcp is None else mcp.call_state
    if has_no_answer(span, result):
        return "cancelled"
    raised = [event.attributes for event in span.events if event.name == "exception"]
    types = [
        first_text(span.attributes, ("error.type",)),
        first_text(span.attributes, ("rpc.response.status_code",)),
        *(first_text(each, ("exception.type",)) for each in raised[:1]),
    ]
    words = {each.rpartition(".")[2].lower() for each in types if each is not None}
    return "cancelled" if words & _CANCELLED else None


_ANSWERS_AT_ONCE = {"AgentTool", "FunctionTool", "MCPTool", "McpTool"}
"""Google ADK's types of tools that always return something. Others may answer later."""


def _adk_has_none(span: Span, result: Unwrapped) -> bool:
    attributes = span.attributes
    return (
        attributes.get("gen_ai.tool.call.id") == NOT_SPECIFIED
        and "gcp.vertex.agent.event_id" not in attributes
        and attributes.get("gen_ai.tool.type") in _ANSWERS_AT_ONCE
    )


_HAS_NO_ANSWER: dict[str, Callable[[Span, Unwrapped], bool]] = {
    **dict.fromkeys(ADK_SCOPES, _adk_has_none),
    # It sets a status for every result and every exception.
    "openinference.instrumentation.autogen_agentchat": lambda span, result: (
        span.status.code == STATUS_UNSET and result.value is ABSENT
    ),
    # It has this status of every result, and says OK of a tool that was stopped.
    "strands.telemetry.tracer": lambda span, result: (
        "gen_ai.tool.status" not in span.attributes and result.value is ABSENT
    ),
}
"""By scope: whether a span shows that its tool neither returned nor raised an exception."""


def has_no_answer(span: Span, result: Unwrapped) -> bool:
    """Whether a tool was stopped before it returned or raised.

    Python's CancelledError is no `Exception`, and instrumentations record only these. So a span
    shows it by what is missing, if its instrumentation otherwise always writes something. These
    are known by their source code; of others (AutoGen, MCP, FastMCP) nothing is missing.
    """
    shows = _HAS_NO_ANSWER.get(span.scope.name)
    return shows is not None and not says_error(span) and shows(span, result)
