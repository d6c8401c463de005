"""Read tool calls and decisions from log records, as spans of the GenAI convention.

Pure. Coding agents write a log record for each tool call and each decision about one. Such a record
becomes a span with its own attributes and, beside them, the names of the GenAI convention. From
there on it is a span like any other (docs/adr/0031). Sources of the names: Claude Code 2.1.197
(`claude_code.tool_result`, `.tool_decision`), Codex of 2026 (`codex.tool_result`, `.tool_decision`)
and Gemini CLI 0.61 (`gemini_cli.tool_call`), each read in its code.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from audit.events.spans import STATUS_ERROR, STATUS_OK, Received, Scope, Span, Status
from audit.intake.otlp.decisions import Decided
from audit.intake.otlp.mapping import Mapped, map_spans

_LONGEST_MS = 366 * 86_400_000
"""A longer duration is considered a mistake; the call then begins when it ended."""


@dataclass(frozen=True, slots=True)
class LogConvention:
    """The names that one agent's records use. An empty name means that it has none."""

    agent: str
    tool_name: str
    tool_call_id: str
    session: str
    turn: str = ""
    arguments: tuple[str, ...] = ()
    result: str = ""
    error: str = ""
    error_type: str = ""
    decision: str = "decision"
    decided_by: str = ""
    """The attribute that says who decided, of a record that is a decision and no call."""


_CLAUDE = LogConvention(
    agent="claude-code",
    tool_name="tool_name",
    tool_call_id="tool_use_id",
    session="session.id",
    turn="prompt.id",
    arguments=("tool_input", "tool_parameters"),
    error="error",
    error_type="error_type",
    decision="decision_type",
)
_CODEX = LogConvention(
    agent="codex",
    tool_name="tool_name",
    tool_call_id="call_id",
    session="conversation.id",
    arguments=("arguments",),
    result="output",
    error="output",
    decision="",
)
_GEMINI = LogConvention(
    agent="gemini-cli",
    tool_name="function_name",
    tool_call_id="",
    session="session.id",
    turn="prompt_id",
    arguments=("function_args",),
    error="error",
    error_type="error_type",
)
CALLS = {
    "claude_code.tool_result": _CLAUDE,
    "codex.tool_result": _CODEX,
    "gemini_cli.tool_call": _GEMINI,
}
"""Conventions of records that are calls, by the record's event name."""

DECISIONS = {
    "claude_code.tool_decision": LogConvention(
        agent="claude-code",
        tool_name="tool_name",
        tool_call_id="tool_use_id",
        session="session.id",
        turn="prompt.id",
        decided_by="source",
    ),
    "codex.tool_decision": LogConvention(
        agent="codex",
        tool_name="tool_name",
        tool_call_id="call_id",
        session="conversation.id",
        decided_by="source",
    ),
}
"""Conventions of records that are decisions, by the record's event name."""

_ANSWERS = (
    *(("approved", "approved"), ("accept", "approved"), ("auto_accept", "approved")),
    *(("modify", "approved"), ("denied", "denied"), ("reject", "denied")),
    *(("abort", "cancelled"), ("timedout", "cancelled"), ("timed_out", "cancelled")),
)
"""First letters of an agent's word for a decision, and ours. Codex: `approvedForSession`."""


def log_record(
    *,
    trace_id: str,
    span_id: str,
    event_name: str,
    time_unix_nano: int,
    attributes: dict[str, Any],
    body: Any,
    severity: str,
    scope: Scope,
    resource: dict[str, Any],
) -> Span:
    """A log record in the form of a span that has no id yet. Its parent is the record's span."""
    named = (event_name, attributes.get("event.name"), body)
    known = (name for name in named if isinstance(name, str) and (name in CALLS | DECISIONS))
    first = next((name for name in named if isinstance(name, str) and name), "log record")
    name = next(known, first)
    extra = {"log.record.body": body, "log.record.severity": severity}
    return Span(
        trace_id=trace_id,
        span_id="",
        parent_span_id=span_id,
        name=name,
        start_time_unix_nano=time_unix_nano,
        end_time_unix_nano=time_unix_nano,
        attributes=attributes
        | {key: value for key, value in extra.items() if value not in ("", None, name)},
        scope=scope,
        resource=resource,
    )


def map_logs(received: Received) -> tuple[Received, Mapped]:
    """Find the calls and decisions among log records. Returns their spans, and what they are.

    Records that are neither are in `others`, without a place in any trace.
    """
    spans: list[Span] = []
    others: list[Span] = []
    decisions: list[Decided] = []
    for record in received.spans:
        if not record.end_time_unix_nano:
            received.refuse("without a time")
            continue
        if (names := CALLS.get(record.name)) is not None:
            spans.append(_call(record, names))
        elif record.attributes.get("gen_ai.operation.name") == "execute_tool":
            spans.append(_placed(record, "gen_ai.conversation.id", "", "gen_ai.tool.call.id"))
        elif (names := DECISIONS.get(record.name)) and (one := _decision(record, names)):
            decisions.append(one)
        else:
            others.append(msgspec.structs.replace(record, parent_span_id=""))
    mapped = map_spans(spans)
    mapped.decisions += _once(decisions)
    mapped.others += others
    return Received(spans, received.refused), mapped


def _call(record: Span, names: LogConvention) -> Span:
    span = _placed(record, names.session, names.turn, names.tool_call_id)
    given = record.attributes
    attributes = _shared(given, names) | {"gen_ai.operation.name": "execute_tool"}
    arguments = next((given[name] for name in names.arguments if given.get(name)), None)
    if arguments is not None:
        attributes["gen_ai.tool.call.arguments"] = arguments
    if _decided(_text(given, names.decision)) in ("denied", "cancelled"):
        attributes["gen_ai.tool.approval.resolution"] = _decided(_text(given, names.decision))
    span.start_time_unix_nano = span.end_time_unix_nano - _duration_ns(given.get("duration_ms"))
    success = str(given.get("success", "")).lower()
    if success == "false":
        message = _text(given, names.error)
        span.status = Status(STATUS_ERROR, message)
        if kind := _text(given, names.error_type):
            attributes["error.type"] = kind
    else:
        if success == "true":
            span.status = Status(STATUS_OK)
        if names.result in given:
            attributes["gen_ai.tool.call.result"] = given[names.result]
    span.attributes = given | attributes
    return span


def _decision(record: Span, names: LogConvention) -> Decided | None:
    """The decision in a record; None if its word is unknown or it names no tool."""
    given = record.attributes
    decision = _decided(_text(given, names.decision))
    tool_name = _text(given, names.tool_name)
    if decision is None or not tool_name:
        return None
    source = _text(given, names.decided_by)
    if decision == "denied" and source.casefold() == "user_abort":
        decision = "cancelled"
    span = _placed(record, names.session, names.turn, "")  # a call may have several
    span.attributes = given | _shared(given, names)
    kind = "person" if source.casefold().startswith("user") else "policy"
    return Decided(
        span=span,
        convention=record.name,
        decision=decision,
        at_ns=record.end_time_unix_nano,
        tool_name=tool_name,
        tool_call_id=_text(given, names.tool_call_id) or None,
        of_span=None,
        # The record does not say who the person is; the source says which rule or answer it was.
        by={"kind": kind, "name": source[:200]} if source else None,
        reason=None,
    )


def _shared(given: dict[str, Any], names: LogConvention) -> dict[str, Any]:
    values = {
        "gen_ai.tool.name": _text(given, names.tool_name) or "unknown",
        "gen_ai.tool.call.id": _text(given, names.tool_call_id),
        "gen_ai.conversation.id": _text(given, names.session),
        "gen_ai.agent.name": names.agent,
        "gen_ai.request.model": _text(given, "model"),
    }
    return {name: value for name, value in values.items() if value}


def _placed(record: Span, session: str, turn: str, tool_call_id: str) -> Span:
    """The record with a trace and an id derived from its content, so that a copy has the same.

    A record written inside a span belongs to that span's trace. Any other belongs to the trace of
    its session and turn; one without a session is alone in its trace.
    """
    given = record.attributes
    service = str(record.resource.get("service.name", ""))
    place = [service, _text(given, session), _text(given, turn)]
    call_id = _text(given, tool_call_id)
    content = [record.name, record.end_time_unix_nano, record.scope.name, given]
    identity = [record.name, *place, call_id] if call_id and place[1] else [*place, *content]
    return msgspec.structs.replace(
        record,
        trace_id=record.trace_id or _digest(place if place[1] else content, 32),
        span_id=_digest(["span", record.trace_id, *identity], 16),
    )


def _digest(parts: Iterable[Any], length: int) -> str:
    data = msgspec.json.encode(list(parts), order="deterministic")
    return hashlib.sha256(data).hexdigest()[:length]


def _once(decisions: Iterable[Decided]) -> list[Decided]:
    """One of each decision, as a request may contain a record twice."""
    return list({(*one.span.key, one.decision): one for one in decisions}.values())


def _decided(word: str) -> str | None:
    word = word.casefold()
    return next((ours for theirs, ours in _ANSWERS if word.startswith(theirs)), None)


def _duration_ns(value: Any) -> int:
    try:
        ms = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return int(ms * 1e6) if 0 <= ms <= _LONGEST_MS else 0


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name) if name else None
    return value if isinstance(value, str) else ""
