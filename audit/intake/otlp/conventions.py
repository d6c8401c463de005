"""The table of conventions: which spans are tool calls, and what their attributes mean.

Pure. Sources: OpenTelemetry's GenAI and MCP conventions (semantic-conventions-genai, status
Development), OpenInference's span kinds, pydantic-ai's instrumentation up to version 2. They
change over time. So every event contains `MAPPING_VERSION`. Increase it with each change here, in
`audit.intake.otlp.mapping` or `.decisions` that makes a different event of the same span.
"""

from dataclasses import dataclass
from typing import Any

import msgspec
from tooltrail.events import BIGINT_MAX, ID_MAX_LENGTH
from tooltrail.mcp_results import TOOL_ERROR, CallState, McpResult

from audit.events.any_json import ANY_JSON
from audit.events.decode import is_too_deep
from audit.events.outputs import mcp_result
from audit.events.spans import STATUS_ERROR, STATUS_OK, Span

MAPPING_VERSION = 3

MAX_VALUE_DEPTH = 40
"""Arguments and results nested deeper stay JSON text, because events have a limit on nesting."""


@dataclass(frozen=True, slots=True)
class Convention:
    """How one convention marks a tool call, and its attribute names. The first present counts."""

    name: str
    mark: tuple[str, str]
    """The attribute and value that mark a tool call; ("", x) if the span's name must be x."""
    tool_name: tuple[str, ...]
    name_prefix: tuple[str, ...] = ()
    """Prefixes of the tool's name in the span's name, used if no attribute has the tool's name."""
    tool_call_id: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    result: tuple[str, ...] = ()
    is_text: bool = False
    """Whether values are text, except if their `….mime_type` is JSON or they begin like JSON."""


CONVENTIONS = (
    Convention(
        name="mcp",
        mark=("mcp.method.name", "tools/call"),
        tool_name=("gen_ai.tool.name", "mcp.tool.name"),
        name_prefix=("MCP send tools/call ", "tools/call "),
        tool_call_id=("gen_ai.tool.call.id",),
        arguments=("gen_ai.tool.call.arguments",),
        result=("gen_ai.tool.call.result",),
    ),
    Convention(
        name="gen_ai",
        mark=("gen_ai.operation.name", "execute_tool"),
        tool_name=("gen_ai.tool.name",),
        name_prefix=("execute_tool ",),
        tool_call_id=("gen_ai.tool.call.id",),
        arguments=("gen_ai.tool.call.arguments", "tool_arguments"),
        result=("gen_ai.tool.call.result", "tool_response"),
    ),
    Convention(
        name="openinference",
        mark=("openinference.span.kind", "TOOL"),
        tool_name=("tool.name", "tool_call.function.name"),
        tool_call_id=("tool.id", "tool_call.id"),
        arguments=("input.value", "tool_call.function.arguments", "tool.parameters"),
        result=("output.value",),
        is_text=True,
    ),
    Convention(
        name="pydantic_ai",
        mark=("", "running tool"),
        tool_name=("gen_ai.tool.name",),
        tool_call_id=("gen_ai.tool.call.id",),
        arguments=("tool_arguments",),
        result=("tool_response",),
    ),
)

CONTEXT = {
    "agent": ("gen_ai.agent.name", "agent.name", "agent_name"),
    "agent_id": ("gen_ai.agent.id",),
    "agent_version": ("gen_ai.agent.version",),
    "agent_run": ("gen_ai.agent.call.id",),
    "conversation": ("gen_ai.conversation.id", "session.id"),
    "workflow": ("gen_ai.workflow.name",),
    "model": ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "model_name"),
    "provider": ("gen_ai.provider.name", "gen_ai.system", "llm.provider"),
    "user": ("user.id", "enduser.id"),
}
"""Members of an event's `context`, and their source attributes: on the span itself, or on the
nearest span above it that has one."""

_CONTEXT_OF = {
    attribute: (name, rank)
    for name, attributes in CONTEXT.items()
    for rank, attribute in enumerate(attributes)
}
"""Member and rank by attribute, because a span has fewer attributes than there are names here."""

_PROMPT_TOKENS = ("gen_ai.usage.input_tokens", "llm.token_count.prompt")
_COMPLETION_TOKENS = ("gen_ai.usage.output_tokens", "llm.token_count.completion")


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


class Facts(msgspec.Struct, gc=False):
    """The contents of a tool call's span. `has_failed` is None if the span does not say."""

    span: Span
    convention: str
    tool_name: str
    tool_call_id: str | None
    tool_type: str | None
    arguments: Any
    result: Any
    prompt_tokens: int | None
    completion_tokens: int | None
    has_failed: bool | None
    failure: Failure | None
    is_mcp: bool
    """Whether `result` is a `CallToolResult`."""
    call_state: CallState | None
    """Cancelled, by the error; waiting or working, by an MCP result."""


def convention_of(span: Span) -> Convention | None:
    """The convention that makes the span a tool call; None if it is none."""
    attributes = span.attributes
    for convention in CONVENTIONS:
        attribute, value = convention.mark
        if (attributes.get(attribute) if attribute else span.name) != value:
            continue
        if attribute or "gen_ai.tool.name" in attributes:  # the span's name alone is no proof
            return convention
    return None


def read_facts(span: Span, convention: Convention) -> Facts:
    """The facts in a span that is a tool call by this convention."""
    attributes = span.attributes
    result = _payload(span, convention, convention.result)
    is_of_mcp = bool(attributes.get("mcp.method.name"))
    read = _mcp_result(result, is_of_mcp=is_of_mcp)
    error = read.message if read is not None and read.is_error else None
    has_failed = _has_failed(span, result, error if is_of_mcp else None)
    return Facts(
        span=span,
        convention=convention.name,
        tool_name=_tool_name(span, convention),
        tool_call_id=first_text(attributes, convention.tool_call_id),
        tool_type=first_text(attributes, ("gen_ai.tool.type",)),
        arguments=_payload(span, convention, convention.arguments),
        result=result,
        prompt_tokens=_count(attributes, _PROMPT_TOKENS),
        completion_tokens=_count(attributes, _COMPLETION_TOKENS),
        has_failed=has_failed,
        failure=_failure(span, error) if has_failed else None,
        is_mcp=is_of_mcp and read is not None,
        call_state=_call_state(span, read if is_of_mcp else None, has_failed is True),
    )


def read_context(span: Span) -> dict[str, str]:
    """The `context` members in a span, such as agent, conversation and model."""
    best: dict[str, tuple[int, str]] = {}
    for attribute, value in span.attributes.items():
        place = _CONTEXT_OF.get(attribute)
        if place is not None and value and isinstance(value, str):
            name, rank = place
            if name not in best or rank < best[name][0]:
                best[name] = rank, value
    return {name: best[name][1] for name in CONTEXT if name in best}


def first_text(attributes: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """The first of these attributes that is a non-empty text."""
    for name in names:
        value = attributes.get(name)
        if value and isinstance(value, str):
            return value
    return None


def read_value(value: Any) -> Any:
    """An attribute's value; a text that is JSON as `msgspec.Raw`. `ABSENT` stays."""
    if value is ABSENT:
        return value
    return _json(value) if isinstance(value, str) else _shallow(value)


def short_id(text: Any) -> str | None:
    """The text if it fits into an id of the contract. Longer ones stay only in the span."""
    return text if isinstance(text, str) and 0 < len(text) <= ID_MAX_LENGTH else None


def _tool_name(span: Span, convention: Convention) -> str:
    named = first_text(span.attributes, convention.tool_name)
    if named is not None:
        return named
    for prefix in convention.name_prefix:
        if span.name.startswith(prefix) and len(span.name) > len(prefix):
            return span.name.removeprefix(prefix)
    return span.name or convention.mark[1]


def _payload(span: Span, convention: Convention, names: tuple[str, ...]) -> Any:
    for name in names:
        if name not in span.attributes:
            continue
        value = span.attributes[name]
        if not isinstance(value, str):
            return _shallow(value)
        if convention.is_text and value[:1] not in ("{", "["):
            mime_type = span.attributes.get(f"{name.partition('.')[0]}.mime_type")
            if mime_type != "application/json":
                return value
        return _json(value)
    return ABSENT


_SKIP = msgspec.json.Decoder(msgspec.Raw)


def _json(text: str) -> Any:
    """A text that is JSON as `msgspec.Raw` on one line; any other text unchanged."""
    start = text.lstrip()[:1]
    if not start or start not in '{["-0123456789tfn':
        return text
    data = text.encode()
    try:
        if start in "{[":
            if is_too_deep(data, MAX_VALUE_DEPTH):
                return text
            _SKIP.decode(data)
        # A text may look like a number. It is one only if JSON would write it the same way.
        elif msgspec.json.encode(ANY_JSON.decode(data)) != data:
            return text
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return text
    # Line feeds in JSON are white space. An event must be on one line.
    return msgspec.Raw(data.replace(b"\n", b" ").replace(b"\r", b" "))


def _shallow(value: Any) -> Any:
    """An attribute's value, as JSON text if it is nested too deep for an event."""
    if not isinstance(value, dict | list):
        return value
    data = msgspec.json.encode(value)
    return data.decode() if is_too_deep(data, MAX_VALUE_DEPTH) else value


def _count(attributes: dict[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = attributes.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= BIGINT_MAX:
            return value
    return None


def _has_failed(span: Span, result: Any, mcp_error: str | None) -> bool | None:
    if span.status.code == STATUS_ERROR or span.attributes.get("error.type"):
        return True
    if mcp_error is not None:
        return True
    return False if span.status.code == STATUS_OK or result is not ABSENT else None


def _failure(span: Span, mcp_error: str | None) -> Failure:
    exception = next((event for event in span.events if event.name == "exception"), None)
    raised = exception.attributes if exception is not None else {}
    return Failure(
        type=first_text(span.attributes, ("error.type",))
        or first_text(raised, ("exception.type",))
        or (TOOL_ERROR if mcp_error is not None else None),
        message=first_text(raised, ("exception.message",))
        or span.status.message
        or mcp_error
        or first_text(span.attributes, ("error.message",)),
        code=first_text(span.attributes, ("rpc.response.status_code",)),
    )


_CANCELLED = {"cancelled", "canceled", "cancellederror", "operationcanceledexception"}
"""Last parts of the types of errors that say that a call was cancelled, in lower case."""


def _call_state(span: Span, result: McpResult | None, has_failed: bool) -> CallState | None:
    if not has_failed:
        return None if result is None else result.call_state
    raised = [event.attributes for event in span.events if event.name == "exception"]
    types = [
        first_text(span.attributes, ("error.type",)),
        first_text(span.attributes, ("rpc.response.status_code",)),
        *(first_text(each, ("exception.type",)) for each in raised[:1]),
    ]
    words = {each.rpartition(".")[2].lower() for each in types if each is not None}
    return "cancelled" if words & _CANCELLED else None


def _mcp_result(result: Any, *, is_of_mcp: bool) -> McpResult | None:
    """The result as a `CallToolResult`; None if it is none. Other spans may wrap a failed one."""
    if result is ABSENT:
        return None
    if isinstance(result, msgspec.Raw):
        if not is_of_mcp and b"isError" not in bytes(result):
            return None
        try:
            result = ANY_JSON.decode(result)
        except (msgspec.MsgspecError, RecursionError):
            return None
    return mcp_result(result)
