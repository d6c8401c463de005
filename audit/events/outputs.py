"""Read from a stored event what a tool was given and what it returned. Pure.

The returned value is `guard.received` if the executor sent it, otherwise the data of the envelope,
otherwise an output that is no envelope. Of the result of an MCP tool, only the structured content
counts, or a JSON text in its place (`tooltrail.mcp_results`). That a result is one of MCP is stated
by the event (`output_type`) or by the span it was made from; its shape alone proves nothing.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, NamedTuple

import msgspec
from tooltrail.mcp_results import CALL_TOOL_RESULT, McpResult, read_peers, read_result
from tooltrail.redact_text import MARK

from audit.events.any_json import finite
from audit.events.decode import is_too_deep

Side = Literal["output", "args"]
Skipped = Literal["erased", "nothing", "incomplete", "replaced", "costly"]

_WHOLE: Final = {"output": ("$.output.data", "$.guard.received"), "args": ("$.args",)}
_LEFT_OUT: Final = ("not captured", "shape only", "too long", "not JSON")


class Value(NamedTuple):
    """The value to validate, and what the executor's guard did with it."""

    value: Any
    is_stripped: bool = False
    """Whether the guard removes undeclared members before it validates."""
    known: tuple[tuple[str, str], ...] = ()
    """Exact path and code of each reported violation."""
    is_missing: bool = False
    """Whether an MCP result has no structured content. `value` is None then."""


class _Event(msgspec.Struct, gc=False):
    output: Any = None
    output_type: Any = None
    outputType: Any = None  # noqa: N815  # the same member's other name
    args: Any = msgspec.UNSET
    guard: Any = None
    removed: Any = None
    otlp: Any = msgspec.UNSET


_DECODER: Final = msgspec.json.Decoder(_Event, float_hook=finite)


def _decoded(raw: bytes) -> _Event:
    try:
        return _DECODER.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass  # 1e999 and lone surrogates, which Python can represent
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return _Event()
    if not isinstance(document, dict):
        return _Event()
    return _Event(**{k: v for k, v in document.items() if k in _Event.__struct_fields__})


def judged_members(raw: bytes | None) -> str | None:
    """The members of an event that say what was given or returned, as JSON; None if unreadable.

    As an event, they are judged as the whole one.
    """
    try:
        document = json.loads(raw or b"")
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    # ASCII: PostgreSQL stores neither U+0000 nor lone surrogates in a text.
    return json.dumps({k: v for k, v in document.items() if k in _Event.__struct_fields__})


def read_output(raw: bytes | None) -> Value | Skipped:
    """What a tool returned, from its end event; or why that is not known."""
    if raw is None:
        return "erased"
    end = _decoded(raw)
    guard = end.guard if isinstance(end.guard, dict) else {}
    if guard.get("outcome", "passed") != "passed":
        if "received" not in guard:
            return "replaced"
        value = guard["received"]
    else:
        value = _data(end.output)
        if value is msgspec.UNSET or (value is None and end.otlp is not msgspec.UNSET):
            return "nothing"
    if value == MARK or (end.removed and _is_left_out(end.removed, "output")):
        return "incomplete"
    is_missing = False
    output_type = end.output_type or end.outputType
    if is_of_mcp(output_type, end.otlp):
        result = mcp_result(value)
        if result is None and output_type is not None:
            return "incomplete"
        if result is not None:
            if result.is_error or not result.is_complete:
                return "nothing"
            if result.value == MARK or (not result.source and _is_marked(result)):
                return "incomplete"
            value, is_missing = result.value, not result.source
    reported = guard.get("violations")
    if not reported:
        return Value(value, is_missing=is_missing)
    is_stripped = guard.get("strategy") == "strip-extra"
    return Value(value, is_stripped, tuple(_known(reported)), is_missing)


def read_args(raw: bytes | None) -> Value | Skipped:
    """The arguments of a call, from its start event; or why they are not known."""
    if raw is None:
        return "erased"
    start = _decoded(raw)
    if start.args is msgspec.UNSET or (start.args is None and start.otlp is not msgspec.UNSET):
        return "nothing"
    if start.args == MARK or (start.removed and _is_left_out(start.removed, "args")):
        return "incomplete"
    return Value(start.args)


def is_of_mcp(output_type: Any, otlp: Any) -> bool:
    """Whether the output of an end event is the result of an MCP tool, by these members of it.

    Events that were made from spans before `output_type` existed name the convention instead.
    """
    if output_type is not None:
        return bool(output_type == CALL_TOOL_RESULT)
    return isinstance(otlp, dict) and otlp.get("convention") == "mcp"


def mcp_result(document: Any, loads: Callable[[bytes], Any] = json.loads) -> McpResult | None:
    """Read the JSON of a `CallToolResult`; None if it is none. `loads` parses a text in it."""

    def parse(text: str) -> Any:
        data = text.encode(errors="surrogatepass")
        if is_too_deep(data):
            raise ValueError("nested too deeply")
        return loads(data)

    return read_result(document, parse)


def mcp_report(raw: bytes) -> tuple[str | None, str | None]:
    """What an MCP result in an end event says: its text if it reports an error, and its server."""
    output = _decoded(raw).output
    document = _data(output)
    result = mcp_result(document)
    message = result.message if result is not None and result.is_error else None
    if document is msgspec.UNSET and isinstance(output, dict):  # an error has it in its details
        details = output["error"].get("details")
        document = details.get("result") if isinstance(details, dict) else None
    return message, read_peers(None, document).server or None


def _is_marked(result: McpResult) -> bool:
    """Whether a text may have been JSON before a part of it was redacted."""
    return MARK in result.message


def _data(output: Any) -> Any:
    """What the tool returned, from its output; UNSET if it returned nothing."""
    if isinstance(output, dict):
        if output.get("status") == "ok" and "data" in output:
            return output["data"]
        if output.get("status") == "error" and isinstance(output.get("error"), dict):
            return msgspec.UNSET
    return msgspec.UNSET if output is None else output


def _known(reported: Any) -> Iterator[tuple[str, str]]:
    for each in reported if isinstance(reported, list) else ():
        if not isinstance(each, dict):
            continue
        # A member that was stripped although the schema allows it is not a violation.
        if each.get("severity", "error") == "error" or each.get("code") == "COERCED":
            yield str(each.get("path", "")), str(each.get("code", ""))


def _is_left_out(notes: Any, side: Side) -> bool:
    """Whether the executor reports that it did not send the whole value."""
    return any(
        isinstance(note, dict)
        and note.get("path") in _WHOLE[side]
        and str(note.get("reason", "")).startswith(_LEFT_OUT)
        for note in (notes if isinstance(notes, list) else ())
    )
