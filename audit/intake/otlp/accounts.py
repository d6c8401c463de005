"""The events of the wire contract that a tool call of spans becomes: its account.

Pure. The spans stay beside the events, so that a fuller account can be made of them later.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from tooltrail.events import NAME_MAX_LENGTH
from tooltrail.mcp_results import CALL_TOOL_RESULT
from tooltrail.tools.canonical import compute_call_id

from audit.events.any_json import ANY_JSON
from audit.events.decode import is_too_deep
from audit.events.instants import instant_of
from audit.events.spans import Span, event_uuid
from audit.intake.otlp.conventions import MAPPING_VERSION
from audit.intake.otlp.facts import Facts, short_id
from audit.intake.otlp.mapping import ToolCall
from audit.intake.otlp.outcomes import ABSENT, first_text


def to_events(call: ToolCall) -> tuple[bytes, bytes]:
    """The start and the end event of a call, each as one line of JSON of the wire contract."""
    start, end = _events(call, lambda span: span)
    if is_too_deep(end):
        start, end = _events(call, _flattened)
    return start, end


def _events(call: ToolCall, shown: Callable[[Span], Span]) -> tuple[bytes, bytes]:
    spans = [shown(facts.span) for facts in call.facts]
    outermost = spans[0]
    span_ids = [span.span_id for span in spans]
    if call.above:
        span_ids.append(f"above:{call.above}")
    if call.is_remapped:
        span_ids.append(f"mapping:{MAPPING_VERSION}")
    args = _first(call.facts, "arguments")
    # Some exporters send unfinished spans, which have no end.
    ended_ns = max(outermost.end_time_unix_nano, outermost.start_time_unix_nano)
    invocation_id = str(call.invocation_id)
    shared = {
        "invocation_id": invocation_id,
        "trace_id": outermost.trace_id,
        "parent_invocation_id": call.parent_id,
        "tool_name": call.facts[0].tool_name[:NAME_MAX_LENGTH],
        "call_id": call.call_id or _call_id(call, args),
        "tool_call_id": short_id(_first(call.facts, "tool_call_id")),
        "run_id": short_id(call.context.get("conversation")),
        "workflow_id": short_id(call.context.get("workflow")),
        "started_at": _instant(call.started_us),
    }
    shared = {name: value for name, value in shared.items() if value is not None}
    start = {
        "type": "toolExecutionStart",
        "event_id": event_uuid(invocation_id, "start", span_ids),
        **shared,
        "args": None if args is ABSENT else args,
        "context": call.context,
        "otlp": _source(call, [_beginning(span) for span in spans]),
    }
    if (tool_type := _first(call.facts, "tool_type")) is not ABSENT:
        start["tool_type"] = tool_type
    end = {
        "type": "toolExecutionEnd",
        "event_id": event_uuid(invocation_id, "end", span_ids),
        **shared,
        "ended_at": _instant(ended_ns // 1000),
        "duration_ms": (ended_ns - outermost.start_time_unix_nano) / 1e6,
        **_outcome(call, (ended_ns - outermost.start_time_unix_nano) // 1_000_000),
        "otlp": _source(call, spans),
    }
    if protocol := _protocol(call):
        end["mcp"] = {"protocol_version": protocol}
    return msgspec.json.encode(start), msgspec.json.encode(end)


def _protocol(call: ToolCall) -> str | None:
    named = (first_text(each.span.attributes, ("mcp.protocol.version",)) for each in call.facts)
    return next(filter(None, named), None)


def _outcome(call: ToolCall, took_ms: int) -> dict[str, Any]:
    """`is_error` and `output`, by the span that decides whether the call failed."""
    decisive = _decisive(call.facts)
    result = _first(call.facts, "result")
    source = next((each for each in call.facts if each.result is result), None)
    output_type = {"output_type": CALL_TOOL_RESULT} if source is not None and source.is_mcp else {}
    usage = {
        name: count
        for name, count in (
            ("prompt", _first(call.facts, "prompt_tokens")),
            ("completion", _first(call.facts, "completion_tokens")),
        )
        if count is not ABSENT
    }
    meta: dict[str, Any] = {"took_ms": took_ms}
    if usage:
        meta["token_usage"] = usage
    if decisive is not None and decisive.failure is not None:
        failures = [decisive.failure, *(each.failure for each in call.facts if each.failure)]
        error: dict[str, Any] = {}
        for name in ("type", "message", "code"):
            value = next(filter(None, (getattr(failure, name) for failure in failures)), None)
            if value is not None:
                error[name] = value
        if result is not ABSENT:
            error["details"] = {"result": result}
        failed = {"status": "error", "error": error, "meta": meta}
        return {"is_error": True, **_state(decisive), **output_type, "output": failed}
    if result is ABSENT and not usage:
        return {"is_error": False}
    data = None if result is ABSENT else result
    output: dict[str, Any] = {"status": "ok", "data": data, "meta": meta}
    return {"is_error": False, **_state(source), **output_type, "output": output}


def _decisive(facts: Sequence[Facts]) -> Facts | None:
    """The span that decides whether a call failed; None if no span says.

    Each span decides for itself, and a failure below it counts even if it reports success:
    a framework that turns an error into a text reports success. Of several spans below it, the one
    that ended last counts, as it was a retry.
    """
    if len(facts) == 1:
        return facts[0] if facts[0].has_failed is not None else None
    keys = {each.span.key for each in facts}
    below: dict[tuple[str, str], tuple[int, Facts]] = {}
    verdict: Facts | None = None
    for each in reversed(facts):  # the innermost first
        span = each.span
        _, inner = below.get(span.key, (0, None))
        is_decided_below = (
            inner is not None
            and not each.has_failed
            and (inner.has_failed or each.has_failed is None)
        )
        verdict = inner if is_decided_below else each if each.has_failed is not None else None
        if verdict is not None:
            above = (span.trace_id, span.parent_span_id)
            if above not in keys:  # a server's span beside the client's, which is the outermost
                above = facts[0].span.key
            if span.end_time_unix_nano >= below.get(above, (0, None))[0]:
                below[above] = span.end_time_unix_nano, verdict
    return verdict


def _state(facts: Facts | None) -> dict[str, str]:
    """The member `call_state` by the span that decides."""
    if facts is None or facts.call_state is None:
        return {}
    return {"call_state": facts.call_state}


def _source(call: ToolCall, spans: Sequence[Any]) -> dict[str, Any]:
    source = {
        "mapping_version": MAPPING_VERSION,
        "convention": call.facts[0].convention,
        "span": spans[0],
    }
    if len(spans) > 1:
        source["merged"] = spans[1:]
    if call.above:
        source["above"] = call.above
    if guessed := sorted({name for each in call.facts for name in each.guessed}):
        source["guessed"] = guessed
    if call.of_executor:
        source["of_executor"] = True
    if call.is_remapped:
        source["remapped"] = True
    return source


def _beginning(span: Span) -> Span:
    """The part of a span that was known at its start. The end event has the whole span."""
    return Span(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_span_id,
        name=span.name,
        kind=span.kind,
        start_time_unix_nano=span.start_time_unix_nano,
    )


def _flattened(span: Span) -> Span:
    """The span with nested values as JSON text, for spans nested too deep for an event."""

    def flat(attributes: dict[str, Any]) -> dict[str, Any]:
        return {
            name: msgspec.json.encode(value).decode() if isinstance(value, dict | list) else value
            for name, value in attributes.items()
        }

    return msgspec.structs.replace(
        span,
        attributes=flat(span.attributes),
        resource=flat(span.resource),
        events=[
            msgspec.structs.replace(each, attributes=flat(each.attributes)) for each in span.events
        ],
        links=[
            msgspec.structs.replace(each, attributes=flat(each.attributes)) for each in span.links
        ],
    )


def _first(facts: Iterable[Facts], name: str) -> Any:
    """The value of the outermost span that has this fact; `ABSENT` if none has."""
    for each in facts:
        value = getattr(each, name)
        if value is not None and value is not ABSENT:
            return value
    return ABSENT


def _call_id(call: ToolCall, args: Any) -> str:
    """The ADK's hash of tool and arguments, or a hash of their text if no parser accepts them."""
    if args is ABSENT:
        return call.outermost.span_id  # equal calls cannot be recognized
    tool_name = call.facts[0].tool_name
    try:
        value = ANY_JSON.decode(args) if isinstance(args, msgspec.Raw) else args
        return compute_call_id(tool_name, value)
    except (msgspec.MsgspecError, RecursionError, TypeError):
        return hashlib.sha256(f"{tool_name}\x00".encode() + bytes(args)).hexdigest()


def _instant(us: int) -> str:
    """RFC 3339, as `isoformat` writes it."""
    seconds, fraction = divmod(us, 1_000_000)
    return f"{_second(seconds)}.{fraction:06d}+00:00" if fraction else f"{_second(seconds)}+00:00"


@lru_cache(maxsize=4096)  # isoformat takes 3 µs, and calls of one second share all but the fraction
def _second(seconds: int) -> str:
    return instant_of(seconds * 1_000_000).isoformat()[:19]
