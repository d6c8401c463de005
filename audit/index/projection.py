"""Compute the columns of a call's row in the index from its events.

Pure. `audit.events.envelope` has already dropped members of a payload that have the wrong type, or
are too large for their column. Texts are cut to what a list can show; the log has all of them.
"""

import re
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from audit.events import wire
from audit.events.candidates import Candidate
from audit.events.findings import OUTCOME, STRATEGY
from audit.events.reported_context import NOTHING, ReportedContext
from audit.index.merge import Call

ERROR_TYPE_MAX = 64  # characters; it is part of rollup's key
TEXT_MAX = 500

SHARED = (
    "tool_name",
    "tool_version",
    "trace_id",
    "parent_invocation_id",
    "call_id",
    "tool_call_id",
    "turn_id",
    "run_id",
    "ingestion_run_id",
    "workflow_id",
    "collection_id",
    "document_id",
    "document_version_id",
    "case_id",
    "idempotency_key",
    "timeouts_ms",
    "budget_tokens",
    "locale",
    "safety_mode",
    "producer_id",
)
"""The columns that are in both start and end events. If they differ, the stored value stays."""

_shared_of = attrgetter(*SHARED)
_INDEX = re.compile(r"\[\d+\]")


class Ending(NamedTuple):
    """The columns that only an end event fills. The defaults are those of an open call."""

    ended_us: int | None = None
    duration_us: int | None = None
    state: str = "open"
    error_type: str = ""
    error_code: str | None = None
    error_message: str | None = None
    upstream_status: int | None = None
    retry_after_ms: int | None = None
    attempt: int | None = None
    guard_strategy: str | None = None
    guard_outcome: str | None = None
    violation_count: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cache_hit: bool | None = None


class Peers(NamedTuple):
    """Who took part in an MCP call: name and version, and the protocol's version."""

    mcp_server: str | None = None
    mcp_client: str | None = None
    mcp_protocol: str | None = None


class Row(msgspec.Struct, frozen=True, gc=False):
    """A call's row, without its tenant and batch."""

    call: Call
    shared: tuple[Any, ...]
    ending: Ending
    pair_conflict: bool
    peers: Peers
    context: ReportedContext


OPEN = Ending()
NOBODY = Peers()
_PEER_MAX = 200  # characters
_NO_ERROR = wire.EnvelopeError()


def project(call: Call) -> Row:
    """The row of a call."""
    start, end = call.start, call.end
    if start is None or end is None:
        only = start or end or call.interim
        assert only is not None, "a call has an event"
        shared = _shared_of(only.event)
        differs = only.started_us != call.started_us
    else:
        shared, others = _shared_of(start.event), _shared_of(end.event)
        differs = start.started_us != end.started_us
        if shared != others:
            pairs = list(zip(shared, others, strict=True))
            shared = tuple(b if a is None else a for a, b in pairs)
            differs = differs or any(a is not None and b is not None and a != b for a, b in pairs)
    context = NOTHING if start is None else start.context
    return Row(
        call=call,
        shared=shared,
        ending=OPEN if end is None else ending_of(end),
        pair_conflict=differs,
        peers=_peers(call),
        context=context,
    )


def _peers(call: Call) -> Peers:
    """Those that its events state, the start first; then the server that its result names."""
    start, end = call.start, call.end or call.interim
    stated = [
        each.event.mcp  # type: ignore[union-attr]  # a call's events are starts and ends
        for each in (start, end)
        if each is not None and each.event.mcp is not None  # type: ignore[union-attr]  # likewise
    ]
    named = None if end is None else end.server
    if not stated and named is None:
        return NOBODY
    servers = [_peer(each.server) for each in stated]
    clients = [_peer(each.client) for each in stated]
    protocols = [_cut(each.protocol_version) for each in stated]
    return Peers(_first([*servers, _cut(named)]), _first(clients), _first(protocols))


def _peer(peer: wire.McpPeer | None) -> str | None:
    return None if peer is None else _cut(" ".join(filter(None, (peer.name, peer.version))))


def _first(texts: Sequence[str | None]) -> str | None:
    text = next(filter(None, texts), None)
    return None if text is None else text[:_PEER_MAX]


def violations(end: Candidate) -> Iterator[tuple[str, ...]]:
    """The rows of an end event's violations.

    Columns: path, its pattern, code, severity, expected, received, strategy, outcome, finder.
    """
    event = end.event
    assert isinstance(event, wire.EndEvent)
    how: tuple[str, str, str] = (STRATEGY, OUTCOME, "server")
    if event.guard is not None:
        how = (event.guard.strategy, event.guard.outcome, "executor")
    for violation in _violations_of(end):
        path = violation.path[:TEXT_MAX]
        yield (
            path,
            _INDEX.sub("[*]", path),
            violation.code,
            violation.severity,
            violation.expected[:TEXT_MAX],
            violation.received[:TEXT_MAX],
            *how,
        )


def _violations_of(end: Candidate) -> Sequence[wire.Violation]:
    """Those that the guard reported; without a guard, those that the server found."""
    event = end.event
    assert isinstance(event, wire.EndEvent)
    if event.guard is not None:
        return event.guard.violations
    return () if end.finding is None else end.finding.violations


def ending_of(end: Candidate) -> Ending:
    """The columns that an end event fills."""
    event = end.event
    assert isinstance(event, wire.EndEvent)
    guard, output = event.guard, event.output
    failure = output.error if output is not None and output.status == "error" else None
    guard_failed = guard is not None and guard.outcome in ("failed", "error-result")
    is_cancelled = event.call_state == "cancelled"
    failed = event.is_error or (output is not None and output.status == "error") or guard_failed
    meta = output.meta if output is not None else None
    usage = meta.token_usage if meta is not None else None
    failure = failure or _NO_ERROR
    # By position: by name, this takes twice as long, as long as the rest of the function.
    return Ending(
        end.ended_us,
        round(event.duration_ms * 1000),
        "cancelled" if is_cancelled else "failed" if failed else "ok",
        _error_type(failure.type, guard_failed) if failed and not is_cancelled else "",
        _cut(failure.code),
        _cut(failure.message),
        failure.upstream_status,
        failure.retry_after_ms,
        # The SDK sends the attempt with every call, the contracts only with a failed one.
        meta.attempt if failure.attempt is None and meta is not None else failure.attempt,
        guard.strategy if guard is not None else None,
        guard.outcome if guard is not None else None,
        0 if is_cancelled else len(_violations_of(end)),
        (usage.prompt or 0) if usage is not None else 0,
        (usage.completion or 0) if usage is not None else 0,
        meta.cache_hit if meta is not None else None,
    )


def _error_type(reported_type: str | None, guard_failed: bool) -> str:
    """The type a failure counts as: the one in the envelope, else GUARD or ERROR.

    GUARD: the output guard rejected what the tool returned. ERROR: the tool raised, and the event
    has no further details (an ADK event has none).
    """
    if reported_type:
        return reported_type[:ERROR_TYPE_MAX]
    return "GUARD" if guard_failed else "ERROR"


def _cut(text: str | None) -> str | None:
    return text if text is None else text[:TEXT_MAX]
