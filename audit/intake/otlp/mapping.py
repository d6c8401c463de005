"""Turn spans into tool calls, and each call into its two events of the wire contract.

Pure. Spans of one logical call become one call: an agent framework, an MCP client and an MCP
server each report the tool they are about to run, one inside the other. Spans that are no tool
calls are skipped, but they stay part of the chain of parents: calls inherit their agent,
conversation and model.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec
from tooltrail.events import NAME_MAX_LENGTH
from tooltrail.mcp_results import CALL_TOOL_RESULT
from tooltrail.tools.canonical import compute_call_id

from audit.events.any_json import ANY_JSON
from audit.events.decode import is_too_deep
from audit.events.instants import instant_of
from audit.events.spans import (
    CLIENT,
    SERVER,
    Span,
    event_uuid,
    span_uuid,
)
from audit.intake.otlp.conventions import (
    MAPPING_VERSION,
    PART,
    names_of,
    read_context,
)
from audit.intake.otlp.decisions import (
    Decided,
    approval_decisions,
    guardrail_decision,
    has_run,
)
from audit.intake.otlp.facts import (
    ABSENT,
    Facts,
    first_text,
    part_of,
    read_facts,
    short_id,
)


@dataclass(frozen=True, slots=True)
class Identity:
    """The properties of a tool call's span that decide whether two spans are of the same call."""

    tool_name: str
    scope: str
    kind: int
    tool_call_id: str | None


def identity_of(facts: Facts) -> Identity:
    """A tool span's identity, in texts that the index can store."""
    tool_call_id = short_id(facts.tool_call_id)
    return Identity(
        _indexable(facts.tool_name[:NAME_MAX_LENGTH]),
        _indexable(facts.span.scope.name[:NAME_MAX_LENGTH]),
        facts.span.kind,
        None if tool_call_id is None else _indexable(tool_call_id),
    )


def is_same_call(outer: Identity, inner: Identity) -> bool:
    """Whether a tool span directly below another one reports the same call.

    It does if a different layer reports the same tool: an agent's span, the MCP client's span in
    it, the MCP server's span in that. A tool that calls itself does so within one layer. A server
    that forwards the call to another server makes a new call.
    """
    return (
        outer.tool_name == inner.tool_name
        and (outer.scope, outer.kind) != (inner.scope, inner.kind)
        and (outer.kind, inner.kind) != (SERVER, CLIENT)
        and (None in (ids := (outer.tool_call_id, inner.tool_call_id)) or ids[0] == ids[1])
    )


class ToolCall(msgspec.Struct, gc=False):
    """A logical call: its spans, the outermost first, and its place among the other calls.

    `invocation_id` and `parent_id` are as this request knows them. `started_ns` is the start of a
    call that is already stored; if it is None, the start of the outermost span counts.
    `of_executor`: an executor reported the call itself, and its account counts.
    """

    facts: list[Facts]
    invocation_id: UUID
    parent_id: UUID | None = None
    context: dict[str, str] = {}
    started_ns: int | None = None
    of_executor: bool = False

    @property
    def outermost(self) -> Span:
        """The span around all others of the call."""
        return self.facts[0].span

    @property
    def started_us(self) -> int:
        """The call's start in microseconds since 1970, as in its events."""
        ns = self.outermost.start_time_unix_nano if self.started_ns is None else self.started_ns
        return ns // 1000


@dataclass(slots=True)
class Mapped:
    """A request's spans as calls and decisions, and the spans that are neither."""

    calls: list[ToolCall]
    others: list[Span]
    decisions: list[Decided] = field(default_factory=list)
    """Of guardrails, and of tools' spans: of calls that ran and of calls that did not."""

    @property
    def decided_spans(self) -> int:
        """The spans of decisions that are no calls."""
        if not self.decisions:
            return 0
        calls = {facts.span.key for call in self.calls for facts in call.facts}
        return len({one.span.key for one in self.decisions} - calls)


def map_spans(spans: Iterable[Span]) -> Mapped:
    """Find the calls among spans. Of spans with the same id, the first counts."""
    return _Mapping(spans).run()


def to_events(call: ToolCall) -> tuple[bytes, bytes]:
    """The start and the end event of a call, each as one line of JSON of the wire contract."""
    start, end = _events(call, lambda span: span)
    if is_too_deep(end):
        start, end = _events(call, _flattened)
    return start, end


class _Mapping:
    def __init__(self, spans: Iterable[Span]) -> None:
        self._spans: dict[tuple[str, str], Span] = {}
        for span in spans:
            self._spans.setdefault(span.key, span)
        self._facts: dict[tuple[str, str], Facts] = {}
        self._places: dict[tuple[str, str], tuple[UUID | None, dict[str, str]]] = {}

    def run(self) -> Mapped:
        others, decisions = self._read()
        calls: dict[tuple[str, str], ToolCall] = {}
        depths: dict[tuple[str, str], int] = {}
        for key, facts in self._facts.items():
            head, depths[key] = self._head(facts.span)
            call = calls.get(head.key)
            if call is None:
                calls[head.key] = ToolCall([facts], span_uuid(*head.key))
            else:
                call.facts.append(facts)
        for call in calls.values():
            if len(call.facts) > 1:
                # Of two spans at the same depth (a retry), the one that ended later comes first.
                call.facts.sort(
                    key=lambda each: (depths[each.span.key], -each.span.end_time_unix_nano)
                )
            self._place(call)
        return Mapped(list(calls.values()), others, decisions)

    def _read(self) -> tuple[list[Span], list[Decided]]:
        """Read the facts of tools' spans whose calls ran. Returns other spans and decisions."""
        beside: list[Span] = []
        others: list[Span] = []
        decisions: list[Decided] = []
        tools: dict[tuple[str, str], Facts] = {}
        for key, span in self._spans.items():
            names = names_of(span)
            if names is None:
                beside.append(span)
                continue
            facts = tools[key] = read_facts(span, names)
            approvals = approval_decisions(facts)
            decisions += approvals
            if has_run(facts, approvals):
                self._facts[key] = facts
        tool_names: dict[tuple[str, str], str] | None = None
        for span in beside:
            around = tools.get((span.trace_id, span.parent_span_id))
            if around is not None and span.name == PART and around.span.key in self._facts:
                self._facts[span.key] = part_of(span, around)
                continue
            one = guardrail_decision(span, around)
            if one is None:
                others.append(span)
                continue
            if one.tool_name is None and one.tool_call_id is not None:
                if tool_names is None:
                    tool_names = {
                        (each.span.trace_id, each.tool_call_id): each.tool_name
                        for each in tools.values()
                        if each.tool_call_id is not None
                    }
                one = one._replace(tool_name=tool_names.get((span.trace_id, one.tool_call_id)))
            decisions.append(one)
        return others, decisions

    def _parent(self, span: Span) -> Span | None:
        return self._spans.get((span.trace_id, span.parent_span_id))

    def _head(self, span: Span) -> tuple[Span, int]:
        """The outermost span of a tool span's call, and the number of levels between the two."""
        seen = {span.key}
        head, depth = span, 0
        while (parent := self._parent(head)) is not None and parent.key not in seen:
            outer, inner = self._facts.get(parent.key), self._facts[head.key]
            if outer is None or not (
                inner.is_part or is_same_call(identity_of(outer), identity_of(inner))
            ):
                break
            head, depth = parent, depth + 1
            seen.add(head.key)
        return head, depth

    def _place(self, call: ToolCall) -> None:
        """Set a call's parent and its context."""
        call.parent_id, inherited = self._above(call.outermost)
        call.context = dict(inherited)
        for facts in reversed(call.facts):
            call.context |= read_context(facts.span)
        service = first_text(call.outermost.resource, ("service.name",))
        if service is not None and not service.startswith("unknown_service"):  # the SDKs' default
            call.context["service"] = service

    def _above(self, span: Span) -> tuple[UUID | None, dict[str, str]]:
        """The call around a span, or its nearest known substitute, and the inherited context."""
        path = []
        seen: set[tuple[str, str]] = set()
        at: Span | None = span
        while at is not None and at.key not in self._places and at.key not in seen:
            path.append(at)
            seen.add(at.key)
            at = self._parent(at)
        for each in reversed(path):
            self._places[each.key] = self._place_of(each)
        return self._places[span.key]

    def _place_of(self, span: Span) -> tuple[UUID | None, dict[str, str]]:
        if not span.parent_span_id:
            return None, {}
        parent = self._parent(span)
        if parent is None or parent.key not in self._places:
            return span_uuid(span.trace_id, span.parent_span_id), {}
        above, inherited = self._places[parent.key]
        context = inherited | read_context(parent)
        if parent.key not in self._facts:
            return above, context
        return span_uuid(*self._head(parent)[0].key), context


def _events(call: ToolCall, shown: Callable[[Span], Span]) -> tuple[bytes, bytes]:
    spans = [shown(facts.span) for facts in call.facts]
    outermost = spans[0]
    span_ids = [span.span_id for span in spans]
    args = _first(call.facts, "arguments")
    # Some exporters send unfinished spans, which have no end.
    ended_ns = max(outermost.end_time_unix_nano, outermost.start_time_unix_nano)
    invocation_id = str(call.invocation_id)
    shared = {
        "invocation_id": invocation_id,
        "trace_id": outermost.trace_id,
        "parent_invocation_id": call.parent_id,
        "tool_name": call.facts[0].tool_name[:NAME_MAX_LENGTH],
        # Without arguments, equal calls cannot be recognized.
        "call_id": outermost.span_id if args is ABSENT else _call_id(call.facts[0].tool_name, args),
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

    Each span decides for itself, and a failure below it counts although it says that all is well:
    a framework that turns an error into a text reports success. Of several spans below it, the one
    that ended last counts, as it was a retry.
    """
    if len(facts) == 1:
        return facts[0] if facts[0].has_failed is not None else None
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
    if guessed := sorted({name for each in call.facts for name in each.guessed}):
        source["guessed"] = guessed
    if call.of_executor:
        source["of_executor"] = True
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


def _call_id(tool_name: str, args: Any) -> str:
    """The ADK's hash of tool and arguments, or a hash of their text if no parser accepts them."""
    try:
        value = ANY_JSON.decode(args) if isinstance(args, msgspec.Raw) else args
        return compute_call_id(tool_name, value)
    except (msgspec.MsgspecError, RecursionError, TypeError):
        return hashlib.sha256(f"{tool_name}\x00".encode() + bytes(args)).hexdigest()


def _indexable(text: str) -> str:
    return text.replace("\x00", "\ufffd")


def _instant(us: int) -> str:
    """RFC 3339, as `isoformat` writes it."""
    seconds, fraction = divmod(us, 1_000_000)
    return f"{_second(seconds)}.{fraction:06d}+00:00" if fraction else f"{_second(seconds)}+00:00"


@lru_cache(maxsize=4096)  # isoformat takes 3 µs, and calls of one second share all but the fraction
def _second(seconds: int) -> str:
    return instant_of(seconds * 1_000_000).isoformat()[:19]
