"""The tokens of models' answers, from the spans that report them (`llm_usage`).

A model's span is no call, so it is in no log. Its tokens are the cost of its trace and
conversation, and no tool has a part of them. Of a model's span inside another one, with no tool
between, only the outer counts: a framework and the client below it report the same answer.

Needs the tenant's open scope, and the locks of the traces.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from tooltrail.events import BIGINT_MAX, ID_MAX_LENGTH, NAME_MAX_LENGTH

from audit.events.instants import DAY_US, microseconds
from audit.events.spans import Span, span_uuid
from audit.index.indexing import MissingDays
from audit.intake.otlp.facts import short_id
from audit.intake.otlp.inheriting import Nodes, above, chains
from audit.intake.otlp.mapping import Mapped
from audit.sql import arrays
from audit.sql.run import Statements

_ANSWERS_MAX: Final = 2_000
"""Answers of a request's traces, the newest, that later spans may still tell about."""
_MARKS: Final[Mapping[str, frozenset[str]]] = {
    "gen_ai.operation.name": frozenset(
        {"chat", "completion", "text_completion", "generate_content", "embeddings"}
    ),
    "openinference.span.kind": frozenset({"LLM", "EMBEDDING"}),
    "llm.request.type": frozenset({"chat", "completion", "embedding"}),
    "langsmith.span.kind": frozenset({"llm"}),
    "ai.operationId": frozenset(
        f"ai.{name}"
        for name in (
            "generateText.doGenerate",
            "generateObject.doGenerate",
            "streamText.doStream",
            "streamObject.doStream",
        )
    ),
}
"""Attributes and values that mark a model's answer. A span of an agent has sums of answers."""
_INPUT: Final = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
)
_OUTPUT: Final = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
)
_CACHED: Final = (
    "ai.usage.cachedInputTokens",
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_tokens",
    "llm.token_count.prompt_details.cache_read",
)
_WRITTEN: Final = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_write_tokens",
    "llm.token_count.prompt_details.cache_write",
)


class Tokens(NamedTuple):
    """The tokens of an answer. `cached` and `written` are parts of `input`."""

    input: int
    cached: int
    written: int
    output: int


class _Answer(NamedTuple):
    """A stored answer."""

    day: int
    span_uuid: UUID
    agent: str
    agent_version: str
    run_id: str
    is_inner: bool


def tokens_of(span: Span) -> Tokens | None:
    """The tokens in a model's span; None if it is no such span, or names none."""
    attributes = span.attributes
    if not any(
        isinstance(value := attributes[name], str) and value in _MARKS[name]
        for name in _MARKS.keys() & attributes.keys()
    ):
        return None
    took, gave = _count(attributes, _INPUT), _count(attributes, _OUTPUT)
    if took is None and gave is None:
        return None
    took, cached = took or 0, _count(attributes, _CACHED) or 0
    written = _count(attributes, _WRITTEN) or 0
    if cached + written > took:  # some report the tokens of a cache beside the others
        took = min(took + cached + written, BIGINT_MAX)
        cached = min(cached, took)
        written = min(written, took - cached)
    return Tokens(took, cached, written, gave or 0)


def store_usage(writer: Statements, mapped: Mapped, missing_days: MissingDays) -> None:
    """Store the tokens in a request's other spans.

    Then read agent and conversation from the spans above, which are stored by now, for all answers
    of these traces and of `mapped.answered`. Skips days the index does not have.
    """
    rows: dict[tuple[int, UUID], tuple[Any, ...]] = {}
    traces = set(mapped.answered)
    for span in mapped.others:
        if not span.span_id or (tokens := tokens_of(span)) is None:
            continue
        started_us = span.start_time_unix_nano // 1000
        context = mapped.context_of(span)
        rows[started_us // DAY_US, span_uuid(*span.key)] = (
            started_us,
            span.trace_id,
            _short(context.get("provider"), NAME_MAX_LENGTH),
            _short(context.get("model"), NAME_MAX_LENGTH),
            *_named(context),
            *tokens,
        )
    missing = missing_days({day for day, _ in rows}) if rows else set()
    kept = sorted(key for key in rows if key[0] not in missing)
    if kept:
        traces |= {rows[key][1] for key in kept}
        _insert(writer, kept, [rows[key] for key in kept])
    if traces:
        _read_above(writer, sorted(traces))


def _insert(
    writer: Statements, keys: Sequence[tuple[int, UUID]], rows: Sequence[tuple[Any, ...]]
) -> None:
    at, trace, provider, model, agent, version, run, *tokens = zip(*rows, strict=True)
    took, cached, written, gave = tokens
    writer.send(
        "insert_llm_usage",
        started_on=arrays.days([day for day, _ in keys]),
        span_uuid=arrays.uuids([span for _, span in keys]),
        started_at=arrays.instants(at),
        trace_id=arrays.texts(trace),
        provider=arrays.texts(provider),
        model=arrays.texts(model),
        agent=arrays.texts(agent),
        agent_version=arrays.texts(version),
        run_id=arrays.texts(run),
        input_tokens=arrays.bigints(took),
        cached_tokens=arrays.bigints(cached),
        written_tokens=arrays.bigints(written),
        output_tokens=arrays.bigints(gave),
    )


def _read_above(writer: Statements, trace_ids: Sequence[str]) -> None:
    """Set agent, conversation and `is_inner` of stored answers by the spans above them."""
    stored = writer.run(
        "llm_usage_of_traces", trace_ids=arrays.texts(trace_ids), row_limit=_ANSWERS_MAX
    )
    started_ns = [microseconds(at) * 1000 for at, *_ in stored]
    answers = [_Answer(*row) for _, *row in stored]
    nodes = chains(writer, {one.span_uuid for one in answers}, started_ns)
    spans = {one.span_uuid for one in answers}
    changed = [now for one in answers if (now := _as_told(one, nodes, spans)) != one]
    if not changed:
        return
    changed.sort()
    writer.send(
        "tell_llm_usage",
        started_on=arrays.days([one.day for one in changed]),
        span_uuid=arrays.uuids([one.span_uuid for one in changed]),
        agent=arrays.texts([one.agent for one in changed]),
        agent_version=arrays.texts([one.agent_version for one in changed]),
        run_id=arrays.texts([one.run_id for one in changed]),
        is_inner=arrays.booleans([one.is_inner for one in changed]),
    )


def _as_told(answer: _Answer, nodes: Nodes, answers: set[UUID]) -> _Answer:
    """The answer by what is known now. What was known before stays."""
    agent, version, run_id = _named(above(answer.span_uuid, nodes).context)
    return _Answer(
        answer.day,
        answer.span_uuid,
        agent or answer.agent,
        version if agent else answer.agent_version,
        run_id or answer.run_id,
        answer.is_inner or _is_inner(answer.span_uuid, nodes, answers),
    )


def _is_inner(span: UUID, nodes: Nodes, answers: set[UUID]) -> bool:
    seen = {span}
    at = nodes[span][0] if span in nodes else None
    while at is not None and at in nodes and at not in seen:
        if at in answers:
            return True
        parent, invocation_id, _ = nodes[at]
        if invocation_id is not None:
            return False
        seen.add(at)
        at = parent
    return False


def _named(context: dict[str, str]) -> tuple[str, str, str]:
    return (
        _short(context.get("agent"), NAME_MAX_LENGTH),
        _short(context.get("agent_version"), NAME_MAX_LENGTH),
        _short(short_id(context.get("conversation")), ID_MAX_LENGTH),
    )


def _short(text: str | None, longest: int) -> str:
    return (text or "")[:longest].replace("\x00", "\ufffd")


def _count(attributes: dict[str, Any], names: Sequence[str]) -> int | None:
    for name in names:
        value = attributes.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= BIGINT_MAX:
            return value
    return None
