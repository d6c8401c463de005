"""The table of conventions: which spans are tool calls, and what their attributes mean.

Pure data. Sources: OpenTelemetry's GenAI and MCP conventions (semantic-conventions-genai, status
Development), OpenInference's span kinds, OpenLLMetry's (Traceloop), and what instrumentations and
frameworks that follow none of them send (docs/frameworks). They change over time. So every event
contains `MAPPING_VERSION`. Increase it with each change here, in `audit.intake.otlp.facts`,
`.outcomes`, `.wrappers`, `.mapping` or `.decisions` that makes a different event of the same span.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from audit.events.any_json import ANY_JSON
from audit.events.spans import Span

MAPPING_VERSION = 9


@dataclass(frozen=True, slots=True, eq=False)
class Convention:
    """How one convention marks a tool call, and its attribute names. The first present counts."""

    name: str
    mark: tuple[str, str]
    """The attribute and value that mark a tool call; ("", x) if the span's name must be x. A name
    alone is no proof: the span must have the first attribute of `tool_name`, too."""
    tool_name: tuple[str, ...] = ()
    name_prefix: tuple[str, ...] = ()
    """Prefixes of the tool's name in the span's name, used if no attribute has the tool's name."""
    name_suffix: tuple[str, ...] = ()
    """Suffixes of the tool's name in the span's name, used likewise."""
    tool_call_id: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    result: tuple[str, ...] = ()
    error_message: tuple[str, ...] = ()
    is_text: bool = False
    """Whether values are text, except if their `….mime_type` is JSON or they begin like JSON."""
    is_mcp: bool = False
    """Whether results are `CallToolResult`s."""


CONVENTIONS = (
    Convention(
        name="mcp",
        mark=("mcp.method.name", "tools/call"),
        tool_name=("gen_ai.tool.name", "mcp.tool.name"),
        name_prefix=("MCP send tools/call ", "tools/call "),
        tool_call_id=("gen_ai.tool.call.id",),
        arguments=("gen_ai.tool.call.arguments",),
        result=("gen_ai.tool.call.result",),
        is_mcp=True,
    ),
    Convention(
        name="gen_ai",
        mark=("gen_ai.operation.name", "execute_tool"),
        tool_name=("gen_ai.tool.name",),
        name_prefix=("execute_tool ",),
        tool_call_id=("gen_ai.tool.call.id",),
        arguments=(
            "gen_ai.tool.call.arguments",
            "tool_arguments",
            "gcp.vertex.agent.tool_call_args",  # Google ADK, schema 1
        ),
        result=("gen_ai.tool.call.result", "tool_response", "gcp.vertex.agent.tool_response"),
        error_message=("gen_ai.framework.error.message",),
    ),
    Convention(
        name="vercel",
        mark=("ai.operationId", "ai.toolCall"),
        tool_name=("ai.toolCall.name",),
        tool_call_id=("ai.toolCall.id",),
        arguments=("ai.toolCall.args",),
        result=("ai.toolCall.result",),
    ),
    Convention(
        name="openinference",
        mark=("openinference.span.kind", "TOOL"),
        tool_name=("tool.name", "tool_call.function.name"),
        name_suffix=(".__call__",),  # dspy
        tool_call_id=("tool.id", "tool_call.id"),
        arguments=("input.value", "tool_call.function.arguments", "tool.parameters"),
        result=("output.value",),
        is_text=True,
    ),
    Convention(
        name="traceloop",
        mark=("traceloop.span.kind", "tool"),
        tool_name=("gen_ai.tool.name", "traceloop.entity.name"),
        name_suffix=(".tool",),
        arguments=("traceloop.entity.input",),
        result=("traceloop.entity.output",),
    ),
    Convention(
        name="langsmith",
        mark=("langsmith.span.kind", "tool"),
        tool_name=("gen_ai.tool.name", "langsmith.trace.name"),
        tool_call_id=("gen_ai.tool.call.id",),
        arguments=("gen_ai.prompt",),
        result=("gen_ai.completion",),
    ),
    Convention(
        name="langfuse",
        mark=("langfuse.observation.type", "tool"),
        arguments=("langfuse.observation.input",),
        result=("langfuse.observation.output",),
        error_message=("langfuse.observation.status_message",),
    ),
    Convention(
        name="logfire_function",  # of the OpenAI Agents SDK
        mark=("logfire.msg_template", "Function: {name}"),
        tool_name=("name",),
        arguments=("input",),
        result=("output",),
        error_message=("error",),
    ),
    Convention(
        name="logfire_mcp",
        mark=("rpc.method", "tools/call"),
        name_prefix=("MCP request: tools/call ", "MCP server handle request: tools/call "),
        arguments=("request",),
        result=("response",),
        is_mcp=True,
    ),
    Convention(
        name="haystack",
        mark=("", "haystack.agent.step.tool"),
        tool_name=("haystack.tool.name",),
        arguments=("haystack.agent.step.tool.input",),
        result=("haystack.agent.step.tool.output",),
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

PART = "claude_code.tool.execution"
"""The name of a span that is a part of the call around it and does not name its tool."""

_NO_TOOLS = {"(merged tools)"}
"""Google ADK's name of the span around what parallel calls returned together."""

CONTEXT = {
    "agent": (
        "gen_ai.agent.name",
        "agent.name",
        "agent_name",
        "ai.telemetry.functionId",
        "langsmith.metadata.lc_agent_name",
        "traceloop.association.properties.lc_agent_name",
        "metadata/lc_agent_name",
        "graph.node.id",
    ),
    "agent_id": ("gen_ai.agent.id",),
    "agent_version": ("gen_ai.agent.version",),
    "agent_run": ("gen_ai.agent.call.id",),
    "conversation": (
        "gen_ai.conversation.id",
        "session.id",
        "ai.telemetry.metadata.sessionId",
        "langsmith.metadata.session_id",
        "langsmith.metadata.thread_id",
        "traceloop.association.properties.session_id",
        "traceloop.association.properties.thread_id",
        "metadata/session_id",
        "metadata/thread_id",
        "group_id",
    ),
    "workflow": ("gen_ai.workflow.name", "traceloop.workflow.name"),
    "model": ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "model_name"),
    "provider": ("gen_ai.provider.name", "gen_ai.system", "llm.provider"),
    "principal": (
        "user.id",
        "enduser.id",
        "ai.telemetry.metadata.userId",
        "langsmith.metadata.user_id",
        "traceloop.association.properties.user_id",
        "metadata/user_id",
    ),
}
"""Members of an event's `context`, and their source attributes: on the span itself, or on the
nearest span above it that has one. After `metadata/`: a member of OpenInference's JSON text
`metadata`."""

DEPLOYED = {
    "service": ("service.name",),
    "service_version": ("service.version",),
    "environment": ("deployment.environment.name", "deployment.environment"),
}
"""Members of an event's `context` that the resource of the call's outermost span names."""

_CONTEXT_OF = {
    attribute: (name, rank)
    for name, attributes in CONTEXT.items()
    for rank, attribute in enumerate(attributes)
}
"""Member and rank by attribute."""
_SAYING = frozenset({*_CONTEXT_OF, "metadata"})

_ONLY = {
    "graph.node.id": ("openinference.span.kind", "AGENT"),
    "group_id": ("logfire.msg_template", "OpenAI Agents trace: {name}"),
}
"""Attributes that are context only on spans with this attribute and value."""

_METADATA = tuple(name.partition("/")[2] for name in _CONTEXT_OF if name.startswith("metadata/"))
_BY_MARK = {each.mark: each for each in CONVENTIONS if each.mark[0]}
_MARKING = frozenset(name for name, _ in _BY_MARK)
_KINDS = frozenset({"gen_ai.operation.name", "openinference.span.kind", "mcp.method.name"})
_BY_NAME = {each.mark[1]: each for each in CONVENTIONS if not each.mark[0]}


class Names:
    """The names of the conventions of one span, in their order."""

    def __init__(self, *conventions: Convention) -> None:
        """Join the names of these conventions."""
        self.convention = conventions[0].name
        self.is_mcp = any(each.is_mcp for each in conventions)
        self.tool_name = tuple(name for each in conventions for name in each.tool_name)
        self.name_prefix = tuple(name for each in conventions for name in each.name_prefix)
        self.name_suffix = tuple(name for each in conventions for name in each.name_suffix)
        self.tool_call_id = tuple(
            dict.fromkeys(name for each in conventions for name in each.tool_call_id)
        )
        self.arguments = tuple((name, each) for each in conventions for name in each.arguments)
        self.result = tuple((name, each) for each in conventions for name in each.result)
        self.error_message = tuple(name for each in conventions for name in each.error_message)


_names = cache(Names)  # there are as many as combinations of conventions


def names_of(span: Span) -> Names | None:
    """The names of the conventions that make the span a tool call; None if it is none."""
    attributes = span.attributes
    matching = [
        convention
        for name in _MARKING.intersection(attributes)
        if isinstance(value := attributes[name], str)
        and (convention := _BY_MARK.get((name, value))) is not None
    ]
    named = _BY_NAME.get(span.name)
    if named is not None and named.tool_name[0] in attributes:
        matching.append(named)
    if not matching or _is_no_call(span):
        return None
    if len(matching) > 1:
        matching.sort(key=CONVENTIONS.index)
    return _names(*matching)


def _is_no_call(span: Span) -> bool:
    """Whether a span is marked as a tool call and is not one."""
    name = span.attributes.get("gen_ai.tool.name")
    return isinstance(name, str) and name in _NO_TOOLS


def mounted_name(span: Span) -> str | None:
    """The tool's name on a mounted server, of the span in which FastMCP hands a call on to it."""
    name = span.attributes.get("fastmcp.component.key")
    return name if isinstance(name, str) and span.name.startswith("delegate ") else None


def looks_like_a_call(span: Span) -> bool:
    """Whether a span that no convention marks names a tool, so that a convention may be missing."""
    return (
        span.name != PART
        and _KINDS.isdisjoint(span.attributes)  # it says what it is instead
        and not _is_no_call(span)
        and any("tool" in name and name.endswith("name") for name in span.attributes)
    )


def read_context(span: Span) -> dict[str, str]:
    """The `context` members in a span, such as agent, conversation and model."""
    attributes = span.attributes
    saying = _SAYING.intersection(attributes)
    if not saying:
        return {}
    best: dict[str, tuple[int, str]] = {}
    for attribute in saying:
        value = attributes[attribute]
        if attribute == "metadata":
            for name in _METADATA:
                _consider(best, f"metadata/{name}", _member(value, name))
        elif attribute not in _ONLY or _is_only(attributes, *_ONLY[attribute]):
            _consider(best, attribute, value)
    return {name: best[name][1] for name in CONTEXT if name in best}


def deployed(resource: dict[str, Any]) -> dict[str, str]:
    """The `context` members in a span's resource: in what, and where, the agent runs."""
    members = {
        name: value
        for name, attributes in DEPLOYED.items()
        for attribute in reversed(attributes)
        if isinstance(value := resource.get(attribute), str) and value
    }
    if members.get("service", "").startswith("unknown_service"):  # the SDKs' default
        del members["service"]
    return members


def _is_only(attributes: dict[str, Any], name: str, value: str) -> bool:
    return bool(attributes.get(name) == value)


def _consider(best: dict[str, tuple[int, str]], attribute: str, value: Any) -> None:
    if not value or not isinstance(value, str):
        return
    name, rank = _CONTEXT_OF[attribute]
    if name not in best or rank < best[name][0]:
        best[name] = rank, value


def _member(text: Any, name: str) -> Any:
    if not isinstance(text, str) or f'"{name}"' not in text:
        return None
    try:
        value = ANY_JSON.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return value.get(name) if isinstance(value, dict) else None
