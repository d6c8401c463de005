"""Agent, conversation and model of spans that arrive in other requests than the calls below them.

Exporters send the innermost span first, so a call is often stored before the agent's span around
it. `otlp_span` keeps what spans say themselves. A new call inherits from the stored spans above it.
A new span looks for stored calls below it, and those that inherit something new from it get a
fuller account (`above` in `audit.events.reported`).

Needs the tenant's open scope, and the locks of the traces.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from audit.events.instants import DAY_US
from audit.events.spans import Span, span_uuid
from audit.intake.otlp.mapping import Mapped, ToolCall
from audit.sql import arrays
from audit.sql.run import Statements

_MAX_BELOW = 4096
"""Stored spans below those of a request that are considered. Calls beyond keep their context."""
_MAX_STEPS = 100
_OF_ANSWERS = {"agent", "conversation"}
_LONGEST = 512
"""Characters. Longer values are not inherited from other requests."""
_LONG_RUN_NS = DAY_US * 1000
"""How much earlier than a call the spans above it may have started."""
_HOUR_NS = 3_600_000_000_000

_CONTEXT = msgspec.json.Decoder(dict[str, str])

type Nodes = Mapping[UUID, tuple[UUID | None, UUID | None, dict[str, str]]]
"""Parent, call and own context of spans."""


class Above(NamedTuple):
    """What a span and those above it say."""

    parent_id: UUID | None
    """The nearest call; without one, the first span that is not known; None if all are known."""
    context: dict[str, str]
    speaking: int
    """How many of the spans have context."""


def packed(context: dict[str, str]) -> str | None:
    """A span's own context as `otlp_span` keeps it."""
    kept = {name: value for name, value in context.items() if len(value) <= _LONGEST}
    return msgspec.json.encode(kept).decode() if kept else None


def rows_below(writer: Statements, spans: Sequence[Span], mapped: Mapped) -> list[tuple[Any, ...]]:
    """The rows of stored tools' spans below new spans, without the spans themselves.

    Notes the traces with stored answers of models that these spans may tell about.
    """
    days = _days(span.start_time_unix_nano for span in spans)
    days |= _days(max(span.end_time_unix_nano, span.start_time_unix_nano) for span in spans)
    trace_ids = sorted({span.trace_id for span in spans})
    telling = {
        span.trace_id for span in spans if not _OF_ANSWERS.isdisjoint(mapped.context_of(span))
    }
    rows = writer.look_up(
        "traces_with_calls",
        trace_ids=arrays.texts(trace_ids),
        telling=arrays.texts(sorted(telling)),
        days=arrays.days(sorted(days)),
    )
    seen = {trace_id for trace_id, has_calls in rows if has_calls}
    mapped.answered = {trace_id for trace_id, has_calls in rows if not has_calls}
    wanted = {span_uuid(*span.key) for span in spans if span.trace_id in seen}
    if not wanted:
        return []
    rows = writer.look_up(
        "calls_below",
        span_uuids=arrays.uuids(sorted(wanted)),
        days=arrays.days(sorted(days)),
        row_limit=len(wanted) + _MAX_BELOW,
    )
    return [row for row in rows if row[0] not in wanted]


def inherit(writer: Statements, spans: Sequence[Span], mapped: Mapped) -> None:
    """Give calls the context of spans above them that are stored or in the same request.

    Removes late calls that inherit nothing new.
    """
    origins = {call.leaves_at for call in mapped.calls if call.leaves_at is not None}
    origins |= {
        parent
        for call in mapped.calls
        if call.is_late and (parent := _parent(call.outermost)) is not None
    }
    if not origins:
        return
    started = [call.outermost.start_time_unix_nano for call in mapped.calls]
    stored = chains(writer, origins, started)
    if not stored and not any(call.is_late for call in mapped.calls):
        return
    ids = {facts.span.key: call.invocation_id for call in mapped.calls for facts in call.facts}
    known = dict(stored) | {
        span_uuid(*span.key): (_parent(span), ids.get(span.key), mapped.context_of(span))
        for span in spans
    }
    seen: dict[UUID, Above] = {}
    calls: list[ToolCall] = []
    for call in mapped.calls:
        if call.leaves_at is not None:
            if call.leaves_at not in seen:
                seen[call.leaves_at] = above(call.leaves_at, known)
            outside = seen[call.leaves_at]
            if call.parent_id == call.leaves_at:
                call.parent_id = outside.parent_id
            call.context = outside.context | call.context
            call.above += outside.speaking
        if call.is_late:
            before = above(_parent(call.outermost), stored).context | call.own_context
            if call.context == before:
                continue
        calls.append(call)
    mapped.calls = calls


def chains(writer: Statements, spans: Collection[UUID], started_ns: Iterable[int]) -> Nodes:
    """Stored spans and those above them. `started_ns`: when what is below them started."""
    started = list(started_ns)
    days = _days(started) | _days(ns - _LONG_RUN_NS for ns in started)
    rows = writer.look_up(
        "spans_above", span_uuids=arrays.uuids(sorted(spans)), days=arrays.days(sorted(days))
    )
    return {
        span: (parent, invocation_id, _CONTEXT.decode(context) if context else {})
        for span, parent, invocation_id, context in rows
    }


def above(span: UUID | None, nodes: Nodes) -> Above:
    """What a span and those above it say."""
    parent_id = None
    context: dict[str, str] = {}
    count = 0
    for _ in range(_MAX_STEPS):
        if span is None:
            return Above(parent_id, context, count)
        if span not in nodes:
            break
        span, invocation_id, own = nodes[span]
        parent_id = parent_id or invocation_id
        if own:
            context = own | context
            count += 1
    return Above(parent_id or span, context, count)


def _days(instants: Iterable[int]) -> set[int]:
    """The days since 1970 within an hour or two of these instants in nanoseconds."""
    hours = {ns // _HOUR_NS for ns in instants}
    return {(hour + away) // 24 for hour in hours for away in (-1, 1)}


def _parent(span: Span) -> UUID | None:
    return span_uuid(span.trace_id, span.parent_span_id) if span.parent_span_id else None
