"""Reads the facts of a tool call from its span, by the names of `audit.intake.otlp.conventions`.

Pure. A value that an exporter wrote as JSON text is read as JSON (`msgspec.Raw`), and frameworks'
wrappers are taken off (`audit.intake.otlp.wrappers`).
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from tooltrail.events import BIGINT_MAX, ID_MAX_LENGTH
from tooltrail.mcp_results import TOOL_ERROR, CallState, McpResult

from audit.events.any_json import ANY_JSON
from audit.events.decode import is_too_deep
from audit.events.outputs import mcp_result
from audit.events.spans import STATUS_ERROR, STATUS_OK, Span
from audit.intake.otlp.conventions import Convention, Names
from audit.intake.otlp.wrappers import (
    MAX_VALUE_DEPTH,
    Unwrapped,
    is_schema,
    json_in,
    named_result,
    only_text,
    said_in,
    unwrap_arguments,
    unwrap_result,
)

_NOT_SPECIFIED = "<not specified>"
"""Google ADK's placeholder for a missing id or response."""
_NO_RESPONSE = {"result": _NOT_SPECIFIED}
_ARGUMENT_EVENTS = {"gen_ai.tool.message": ("content",)}
_RESULT_EVENTS = {"gen_ai.choice": ("message",), "tool.output": ("output", "content")}
"""Events of spans, and their attributes: of Strands, and of Claude Code."""
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
    guessed: tuple[str, ...]
    """Which of `args` and `result` were read as Python literals."""
    is_part: bool = False
    """Whether the span is a part of the call around it and no call by itself."""


def read_facts(span: Span, names: Names) -> Facts:
    """The facts in a span that is a tool call by these conventions: of each, the first that has it.

    Instrumentations enrich each other's spans, so a span may have the names of several.
    """
    attributes = span.attributes
    is_of_mcp = names.is_mcp or bool(attributes.get("mcp.method.name"))
    arguments = _arguments(span, names)
    result = _result(span, names, is_of_mcp=is_of_mcp)
    read = _mcp_result(result.value, is_of_mcp=is_of_mcp)
    error = read.message if read is not None and read.is_error else None
    has_failed = _has_failed(span, result, error if is_of_mcp else None)
    return Facts(
        span=span,
        convention=names.convention,
        tool_name=_tool_name(span, names) or arguments.tool_name or span.name or names.convention,
        tool_call_id=_named_id(attributes, names.tool_call_id)
        or result.tool_call_id
        or arguments.tool_call_id,
        tool_type=first_text(attributes, ("gen_ai.tool.type",)),
        arguments=arguments.value,
        result=result.value,
        prompt_tokens=_count(attributes, _PROMPT_TOKENS),
        completion_tokens=_count(attributes, _COMPLETION_TOKENS),
        has_failed=has_failed,
        failure=_failure(span, names.error_message, result, error) if has_failed else None,
        is_mcp=is_of_mcp and read is not None,
        call_state=_call_state(span, read if is_of_mcp else None, has_failed is True),
        guessed=(("args",) if arguments.is_guessed else ())
        + (("result",) if result.is_guessed else ()),
    )


def part_of(span: Span, around: Facts, tool_name: str | None = None) -> Facts:
    """The facts in a span that is a part of a call: what it says of the call's outcome.

    `tool_name`: the tool's name inside it, if it has another one there.
    """
    has_failed = True if _says_error(span) else None
    return Facts(
        span=span,
        convention=around.convention,
        tool_name=tool_name or around.tool_name,
        tool_call_id=around.tool_call_id,
        tool_type=None,
        arguments=ABSENT,
        result=ABSENT,
        prompt_tokens=None,
        completion_tokens=None,
        has_failed=has_failed,
        failure=_failure(span, (), Unwrapped(ABSENT), None) if has_failed else None,
        is_mcp=False,
        call_state=None,
        guessed=(),
        is_part=True,
    )


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


def _tool_name(span: Span, names: Names) -> str | None:
    named = first_text(span.attributes, names.tool_name)
    if named is not None:
        return named
    for prefix in names.name_prefix:
        if span.name.startswith(prefix) and len(span.name) > len(prefix):
            return span.name.removeprefix(prefix)
    for suffix in names.name_suffix:
        if span.name.endswith(suffix) and len(span.name) > len(suffix):
            return span.name.removesuffix(suffix)
    return None


def _named_id(attributes: dict[str, Any], names: tuple[str, ...]) -> str | None:
    for name in names:
        value = attributes.get(name)
        if value and isinstance(value, str) and value != _NOT_SPECIFIED:
            return value
    return None


def _arguments(span: Span, names: Names) -> Unwrapped:
    for name, convention in names.arguments:
        if name not in span.attributes:
            continue
        if name == "tool.parameters" and is_schema(_decoded(span.attributes[name])):
            continue
        return unwrap_arguments(_value(span, convention, name))
    return Unwrapped(read_value(_of_events(span, _ARGUMENT_EVENTS)))


def _result(span: Span, names: Names, *, is_of_mcp: bool) -> Unwrapped:
    for name, convention in names.result:
        if name not in span.attributes:
            continue
        value = _value(span, convention, name)
        if is_of_mcp:
            return Unwrapped(value)
        if convention.name == "traceloop" and ".mcp" in span.scope.name:
            return named_result(value)
        if name == "gcp.vertex.agent.tool_response" and _decoded(value) == _NO_RESPONSE:
            continue
        return unwrap_result(value)
    return Unwrapped(only_text(read_value(_of_events(span, _RESULT_EVENTS))))


def _of_events(span: Span, names: Mapping[str, tuple[str, ...]]) -> Any:
    """The value in the first of a span's events that has one."""
    for event in span.events:
        for name in names.get(event.name, ()):
            if name in event.attributes:
                return event.attributes[name]
    return ABSENT


def _value(span: Span, convention: Convention, name: str) -> Any:
    value = span.attributes[name]
    if not isinstance(value, str):
        return _shallow(value)
    if convention.is_text and value[:1] not in ("{", "["):
        mime_type = span.attributes.get(f"{name.partition('.')[0]}.mime_type")
        if mime_type != "application/json":
            return value
    return _json(value)


def _decoded(value: Any) -> Any:
    """A value that is JSON text, decoded."""
    if not isinstance(value, str | msgspec.Raw):
        return value
    try:
        return ANY_JSON.decode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return value


def _json(text: str) -> Any:
    """A text that is JSON as `msgspec.Raw` on one line; any other text unchanged."""
    stripped = text.lstrip()
    start = stripped[:1]
    if not start or start not in '{["-0123456789tfn':
        return text
    if start in "{[":
        value = json_in(stripped)
        return text if value is stripped else value
    data = text.encode()
    try:
        # A text may look like a number. It is one only if JSON would write it the same way.
        if msgspec.json.encode(ANY_JSON.decode(data)) != data:
            return text
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return text
    return msgspec.Raw(data)


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


def _has_failed(span: Span, result: Unwrapped, mcp_error: str | None) -> bool | None:
    if _says_error(span) or result.is_error or mcp_error is not None:
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


def _says_error(span: Span) -> bool:
    attributes = span.attributes
    return (
        span.status.code == STATUS_ERROR
        or bool(attributes.get("error.type"))
        or (
            not attributes.keys().isdisjoint(_FAILED)
            and any(attributes.get(name) == value for name, value in _FAILED.items())
        )
    )


def _failure(
    span: Span, messages: tuple[str, ...], result: Unwrapped, mcp_error: str | None
) -> Failure:
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
        said = _decoded(result.value)
        message = first_text(said, ("error",)) if isinstance(said, dict) else None
    told_type, told = said_in(message) if message else (None, None)
    return Failure(
        type=first_text(span.attributes, ("error.type",))
        or told_type
        or first_text(raised, ("exception.type",))
        or (TOOL_ERROR if mcp_error is not None else None),
        message=told,
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
