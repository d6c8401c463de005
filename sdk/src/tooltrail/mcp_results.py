"""Reads the result of an MCP tool call, a `CallToolResult`, as the protocol defines it.

Pure. The recording, the guard and the server read results with it, so all of them mean the same
value by "what the tool returned". It works on the JSON of a result, with the protocol's names or
those of a Python SDK (`structured_content`). `document_of` makes that JSON of a result object.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

from tooltrail.guard.violations import Violation

CALL_TOOL_RESULT: Final = "CallToolResult"
"""The `output_type` of an event whose output is one."""

CallState = Literal["waiting", "working", "cancelled"]
"""The states that an end event may name. `waiting` (for input) and `working` (as a task) do not end
the call."""

TOOL_ERROR: Final = "tool_error"
"""The type of the error if `isError` is true, as in OpenTelemetry's MCP conventions."""

_INTERIM_RESULTS: Final = ("InputRequiredResult", "CreateTaskResult")
"""The classes of answers that a server may send before the result."""
_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
MISSING: Final = Violation(
    path="$",
    code="MISSING_STRUCTURED_CONTENT",
    expected="structured content",
    received="none",
    message="The tool has an output schema, but its result has no structured content.",
    llm_message=(
        "The result has no structuredContent although the tool declares an output schema. "
        "Please return structuredContent that conforms to the schema."
    ),
)
"""The violation of a result without structured content, if the tool declares an output schema."""


class McpResult(NamedTuple):
    """The contents of a `CallToolResult`."""

    value: Any
    """What the tool returned, which is what its output schema describes. None without a source."""
    source: Literal["structured", "text", ""]
    """Where `value` is from: the structured content, or the only text, which is JSON. `""`: the
    result has neither."""
    content: list[Any]
    """The content blocks."""
    is_error: bool
    message: str
    """The first text of the content, or what a task says. Of an error, it says why."""
    is_complete: bool
    """False if the server asks for input or returned a task. Then nothing was returned yet."""
    call_state: CallState | None = None
    """What the call does then: it waits for input, works as a task, or the task was cancelled."""


def read_result(document: Any, parse: Callable[[str], Any] = json.loads) -> McpResult | None:
    """Read the JSON of a `CallToolResult`. None if it is none.

    `parse` reads a text that may be JSON; it raises ValueError or RecursionError for any other.
    """
    if type(document) is not dict and not isinstance(document, Mapping):
        return None
    content = document.get("content")
    structured = document.get("structuredContent", document.get("structured_content"))
    task = _task(document)
    has_failed = task is not None and task.get("status") == "failed"
    is_error = has_failed or document.get("isError", document.get("is_error")) is True
    call_state = None if has_failed else _call_state(document, task)
    is_complete = call_state is None
    if not isinstance(content, list):
        if structured is None and not is_error and is_complete:
            return None
        content = []
    texts = [
        block["text"]
        for block in content
        if isinstance(block, Mapping) and isinstance(block.get("text"), str)
    ]
    status_message = (
        task.get("statusMessage", task.get("status_message")) if task is not None else None
    )
    message = texts[0] if texts else status_message if isinstance(status_message, str) else ""
    value, source = _value_of(structured, texts if len(content) == 1 else [], parse)
    return McpResult(
        value=value,
        source=source,
        content=content,
        is_error=is_error,
        message=message,
        is_complete=is_complete,
        call_state=call_state,
    )


def _value_of(
    structured: Any, texts: list[str], parse: Callable[[str], Any]
) -> tuple[Any, Literal["structured", "text", ""]]:
    if structured is not None:
        return structured, "structured"
    # Objects and lists only: "42" alone may as well be prose.
    if len(texts) == 1 and texts[0].lstrip()[:1] in ("{", "["):
        try:
            return parse(texts[0]), "text"
        except (ValueError, RecursionError):
            pass
    return None, ""


def _task(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The task that stands in the place of a result; None if there is none.

    In MCP 2025-11-25 it is the member `task`, in 2026-07-28 the result itself.
    """
    task = document.get("task")
    if document.get("resultType", document.get("result_type")) == "task":
        return task if isinstance(task, Mapping) else document
    is_task = isinstance(task, Mapping) and isinstance(task.get("taskId"), str)
    return task if is_task and "content" not in document else None


def _call_state(document: Mapping[str, Any], task: Mapping[str, Any] | None) -> CallState | None:
    """What the call does after this result (`resultType`, MCP 2026-07-28); None if it has ended."""
    if task is None:
        asks = document.get("resultType", document.get("result_type")) == "input_required"
        is_asking = any(name in document for name in ("inputRequests", "requestState"))
        return "waiting" if asks and is_asking else None
    status = task.get("status")
    if status == "cancelled":
        return "cancelled"
    return "waiting" if status == "input_required" else "working"


class McpPeers(NamedTuple):
    """Who took part in an MCP call, as far as it is known: name and version, and the protocol."""

    server: str = ""
    client: str = ""
    protocol: str = ""


def read_peers(stated: Any, result: Any) -> McpPeers:
    """The peers that a member `mcp` of an event states. A server also names itself in its result.

    Anything that is malformed is ignored.
    """
    stated = stated if isinstance(stated, Mapping) else {}
    meta = result.get("_meta") if isinstance(result, Mapping) else None
    named = meta.get(_SERVER_INFO) if isinstance(meta, Mapping) else None
    protocol = stated.get("protocol_version")
    return McpPeers(
        _peer(stated.get("server")) or _peer(named),
        _peer(stated.get("client")),
        protocol if isinstance(protocol, str) else "",
    )


def _peer(stated: Any) -> str:
    if not isinstance(stated, Mapping):
        return ""
    texts = (stated.get("name"), stated.get("version"))
    return " ".join(text for text in texts if isinstance(text, str) and text)


class ResultDocument(dict[str, Any]):
    """The JSON of a result that an MCP server is known to have sent, of whatever class it was."""

    @classmethod
    def of(cls, result: Any) -> "ResultDocument | None":
        """The result of a server as its JSON. None if it has none."""
        document = _dumped(result)
        return cls(document) if isinstance(document, dict) else None


def document_of(result: Any) -> Any:
    """The JSON of a `CallToolResult` of a Python SDK, or of what may stand in its place.

    None for any other object. The class decides, not the shape: a tool of another kind may return
    the same members.
    """
    if type(result) is ResultDocument:
        return result
    name = type(result).__name__
    if name in _INTERIM_RESULTS and hasattr(result, "model_dump"):
        return _dumped(result)
    if name != CALL_TOOL_RESULT:
        return None
    content = getattr(result, "content", None)
    if not isinstance(content, list):
        return None
    if hasattr(result, "model_dump"):
        return _dumped(result)
    if not dataclasses.is_dataclass(result):
        return None
    # FastMCP's client has a class of its own.
    document = {"content": [*map(_dumped, content)], "isError": getattr(result, "is_error", False)}
    structured = getattr(result, "structured_content", None)
    return document if structured is None else document | {"structuredContent": structured}


def _dumped(model: Any) -> Any:
    if hasattr(model, "model_dump"):
        return model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return model


def with_structured(result: Any, value: Any) -> Any:
    """A copy of a result object with this structured content."""
    name = "structuredContent" if hasattr(result, "structuredContent") else "structured_content"
    if hasattr(result, "model_copy"):
        return result.model_copy(update={name: value})
    return dataclasses.replace(result, **{name: value})
