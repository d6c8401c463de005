"""Reads the facts of a tool call from its span, by the names of `audit.intake.otlp.conventions`.

Pure. A value that an exporter wrote as JSON text is read as JSON (`msgspec.Raw`), and frameworks'
wrappers are taken off (`audit.intake.otlp.wrappers`).
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from tooltrail.events import BIGINT_MAX, ID_MAX_LENGTH
from tooltrail.mcp_results import CallState, McpResult

from audit.events.any_json import ANY_JSON
from audit.events.decode import is_too_deep
from audit.events.outputs import mcp_result
from audit.events.spans import Span
from audit.intake.otlp.conventions import Convention, Names, mounted_name
from audit.intake.otlp.outcomes import (
    ABSENT,
    NOT_SPECIFIED,
    Failure,
    call_state,
    decoded,
    failure_of,
    first_text,
    has_failed,
    says_error,
)
from audit.intake.otlp.wrappers import (
    MAX_VALUE_DEPTH,
    Unwrapped,
    is_schema,
    json_in,
    named_result,
    only_text,
    unwrap_arguments,
    unwrap_result,
)

_NO_RESPONSE = {"result": NOT_SPECIFIED}
_ARGUMENT_EVENTS = {"gen_ai.tool.message": ("content",)}
_RESULT_EVENTS = {"gen_ai.choice": ("message",), "tool.output": ("output", "content")}
"""Events of spans, and their attributes: of Strands, and of Claude Code."""
_PROMPT_TOKENS = ("gen_ai.usage.input_tokens", "llm.token_count.prompt")
_COMPLETION_TOKENS = ("gen_ai.usage.output_tokens", "llm.token_count.completion")


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
    """Cancelled, waiting or working."""
    guessed: tuple[str, ...]
    """Which of `args` and `result` were read as Python literals."""
    is_part: bool = False
    """Whether the span is a part of the call around it and no call by itself."""
    is_mount: bool = False
    """Whether a server hands the call on to a mounted one in this span. `tool_name` is the name
    there."""


def read_facts(span: Span, names: Names) -> Facts:
    """The facts in a span that is a tool call by these conventions: of each, the first that has it.

    Instrumentations enrich each other's spans, so a span may have the names of several.
    """
    attributes = span.attributes
    is_of_mcp = names.is_mcp or bool(attributes.get("mcp.method.name"))
    arguments = _arguments(span, names)
    result = _result(span, names, is_of_mcp=is_of_mcp)
    read = _mcp_result(result.value) if is_of_mcp else None
    error = read.message if read is not None and read.is_error else None
    failed = has_failed(span, result, error)
    if failed and not is_of_mcp:
        error = _wrapped_error(result.value)
    mounted = mounted_name(span)
    return Facts(
        span=span,
        convention=names.convention,
        tool_name=mounted
        or _tool_name(span, names)
        or arguments.tool_name
        or span.name
        or names.convention,
        tool_call_id=_named_id(attributes, names.tool_call_id)
        or result.tool_call_id
        or arguments.tool_call_id,
        tool_type=first_text(attributes, ("gen_ai.tool.type",)),
        arguments=arguments.value,
        result=result.value,
        prompt_tokens=_count(attributes, _PROMPT_TOKENS),
        completion_tokens=_count(attributes, _COMPLETION_TOKENS),
        has_failed=failed,
        failure=failure_of(span, names.error_message, result, error) if failed else None,
        is_mcp=read is not None,
        call_state=call_state(span, result, read, failed is True),
        guessed=(("args",) if arguments.is_guessed else ())
        + (("result",) if result.is_guessed else ()),
        is_mount=mounted is not None,
    )


def part_of(span: Span, around: Facts) -> Facts:
    """The facts in a span that is a part of a call: what it says of the call's outcome."""
    failed = True if says_error(span) else None
    return Facts(
        span=span,
        convention=around.convention,
        tool_name=around.tool_name,
        tool_call_id=around.tool_call_id,
        tool_type=None,
        arguments=ABSENT,
        result=ABSENT,
        prompt_tokens=None,
        completion_tokens=None,
        has_failed=failed,
        failure=failure_of(span, (), Unwrapped(ABSENT), None) if failed else None,
        is_mcp=False,
        call_state=None,
        guessed=(),
        is_part=True,
    )


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
        if value and isinstance(value, str) and value != NOT_SPECIFIED:
            return value
    return None


def _arguments(span: Span, names: Names) -> Unwrapped:
    for name, convention in names.arguments:
        if name not in span.attributes:
            continue
        if name == "tool.parameters" and is_schema(decoded(span.attributes[name])):
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
        if name == "gcp.vertex.agent.tool_response" and decoded(value) == _NO_RESPONSE:
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


def _mcp_result(result: Any) -> McpResult | None:
    """The result as a `CallToolResult`; None if it is none."""
    if result is ABSENT:
        return None
    if isinstance(result, msgspec.Raw):
        try:
            result = ANY_JSON.decode(result)
        except (msgspec.MsgspecError, RecursionError):
            return None
    return mcp_result(result)


def _wrapped_error(result: Any) -> str | None:
    """The message of a failed `CallToolResult` that a framework returns as its tool's result."""
    if isinstance(result, msgspec.Raw) and b"isError" not in bytes(result):
        return None
    read = _mcp_result(result)
    return read.message if read is not None and read.is_error else None
