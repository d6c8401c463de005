"""What the events of one call contain, as its panel shows it.

Payloads are read from the exact bytes of the log. Anything that has an unexpected form is shown as
it is, or left out.
"""

import re
from dataclasses import dataclass
from typing import Any

from tooltrail.mcp_results import read_peers

from audit.events.json_values import Number, parse
from audit.events.outputs import is_of_mcp, mcp_result
from audit.events.spans import mcp_protocol
from audit.log.payload import StoredEvent
from audit.queries.call_events import Kind
from audit.queries.call_query import quoted
from audit.show.json_tree import ABSENT
from audit.show.masking import mask
from audit.show.reasons import tokens

_COUNT = re.compile(r"\d{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ContextValue:
    """A name and value of the context, with the query for the calls that share the value."""

    name: str
    value: str
    query: str


@dataclass(frozen=True, slots=True)
class Payloads:
    """What the events of a call contain. A value is ABSENT if its event does not have it."""

    args: Any
    received: Any  # what the tool returned, if its guard replaced it
    data: Any
    content: Any  # of an MCP result
    is_from_text: bool  # whether a text of this content stands in for the data
    meta: Any
    error: dict[str, Any]
    error_more: Any  # cause and details of the error
    reported: list[Any]  # the violations as the guard reported them
    context: list[ContextValue]
    mcp_server: str = ""

    def as_shapes(self) -> "Payloads":
        """Return the shapes of the values, without texts that quote them."""
        return Payloads(
            args=_shape(self.args),
            received=_shape(self.received),
            data=_shape(self.data),
            content=_shape(self.content),
            is_from_text=self.is_from_text,
            meta=_shape(self.meta),
            error={},
            error_more=_shape(self.error_more),
            reported=[],
            context=[],
            mcp_server=self.mcp_server,
        )


def read_payloads(stored: dict[Kind, StoredEvent]) -> Payloads:
    """Return what the events of a call contain."""
    start = _document(stored.get("start"))
    end = _document(stored.get("end") or stored.get("interim"))
    data, error, meta = _parts(end.get("output", ABSENT))
    guard = end.get("guard")
    guard = guard if isinstance(guard, dict) else {}
    reported, received = guard.get("violations"), guard.get("received", ABSENT)
    content, is_from_text = ABSENT, False
    peers = _mcp_peers(start, end, data)
    if is_of_mcp(end.get("output_type") or end.get("outputType"), end.get("otlp")):
        received, _, _ = _of_mcp(received)
        data, content, is_from_text = _of_mcp(data)
    # The header already shows the duration that the call reported itself.
    is_shown = isinstance(meta, dict) and set(meta) <= {"took_ms"}
    return Payloads(
        args=_args(start),
        received=received,
        data=data,
        content=content,
        is_from_text=is_from_text,
        meta=ABSENT if is_shown else meta,
        error=error,
        error_more={name: error[name] for name in ("cause", "details") if error.get(name)}
        or ABSENT,
        reported=reported if isinstance(reported, list) else [],
        context=[*_reported_context(start), *_model_usage(start), *peers],
        mcp_server=next((one.value for one in peers if one.name == "MCP server"), ""),
    )


def _mcp_peers(start: dict[str, Any], end: dict[str, Any], data: Any) -> list[ContextValue]:
    """Return client, server and protocol of an MCP call, as the events state them."""
    stated = {**_object(start.get("mcp")), **_object(end.get("mcp"))}
    peers = read_peers(stated, data)
    named = [
        ("MCP server", peers.server, "server"),
        ("MCP client", peers.client, "client"),
        ("MCP protocol", peers.protocol or mcp_protocol(end.get("otlp")), "protocol"),
    ]
    return [
        ContextValue(name, value, f"{term}:{quoted(value)}") for name, value, term in named if value
    ]


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _of_mcp(output: Any) -> tuple[Any, Any, bool]:
    """Return what an MCP tool returned, its content, and whether a text stands in for the first."""
    result = mcp_result(output, parse)
    if result is None or not result.is_complete:
        return output, ABSENT, False
    value = result.value if result.source else ABSENT
    return value, result.content or ABSENT, result.source == "text"


def _document(event: StoredEvent | None) -> dict[str, Any]:
    """Return the event's members. Lines were checked on arrival: a non-object was erased."""
    if event is None or event.raw is None:
        return {}
    try:
        document = parse(event.raw)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _parts(output: Any) -> tuple[Any, dict[str, Any], Any]:
    """Return data, error and meta of an output: an AI Core envelope, or any other value."""
    if isinstance(output, dict):
        meta = output.get("meta") or ABSENT
        error = output.get("error")
        if output.get("status") == "ok" and "data" in output:
            return output["data"], {}, meta
        if output.get("status") == "error" and isinstance(error, dict):
            return ABSENT, error, meta
    return output, {}, ABSENT


def member(document: dict[str, Any], name: str) -> Any:
    """Return a member by its snake-case name or the ADK's camel-case one, else ABSENT."""
    head, *rest = name.split("_")
    camel = head + "".join(word.capitalize() for word in rest)
    return document.get(name, document.get(camel, ABSENT))


def _reported_context(start: dict[str, Any]) -> list[ContextValue]:
    """Return agent and model as spans (`audit.intake.otlp.conventions`) or adapters report them."""
    context = start.get("context")
    if not isinstance(context, dict):
        return []
    return [
        ContextValue(name.replace("_", " ").capitalize(), value, "")
        for name, value in context.items()
        if name not in ("conversation", "workflow") and isinstance(value, str)
    ]


def _model_usage(start: dict[str, Any]) -> list[ContextValue]:
    """Return the tokens of the model's answer that asked for the call, if it is reported."""
    used = _object(start.get("model_usage"))
    counts = [
        int(each)
        for each in (used.get("prompt"), used.get("completion"))
        if isinstance(each, Number) and _COUNT.fullmatch(each)
    ]
    if len(counts) != 2:
        return []
    return [ContextValue("Tokens of the asking model", tokens(*counts), "")]


def _args(start: dict[str, Any]) -> Any:
    """Return the arguments. ABSENT if instrumentation left them out, which is its default."""
    args = start.get("args", ABSENT)
    return ABSENT if args is None and "otlp" in start else args


def _shape(value: Any) -> Any:
    return value if value is ABSENT else mask(value)
