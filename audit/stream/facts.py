"""What an entry of the log says, in the words that the formats of SIEMs share. Pure.

Without payloads nothing of an event leaves that a viewer may not see (docs/adr/0011): no arguments,
results, error messages, reasons, received values, nor details of actions.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

import msgspec
from tooltrail.ledger import NO_INVOCATION, Entry, Kind

from audit.events import wire
from audit.events.candidates import Candidate
from audit.events.instants import microseconds
from audit.index.projection import ending_of, violations
from audit.ledger.recompute import Remade
from tenants.actions import storable, storable_text

type State = Literal["whole", "erased", "altered"]
type What = Literal["start", "interim", "end", "decision", "gap", "finding", "action", "unknown"]

type Severity = Literal["informational", "low", "medium", "high"]

_IDS = (
    *("trace_id", "parent_invocation_id", "call_id", "tool_call_id", "turn_id", "run_id"),
    *("ingestion_run_id", "workflow_id", "collection_id", "document_id", "document_version_id"),
    *("case_id", "producer_id"),
)
_KIND_NAMES: Final[Mapping[Kind, str]] = {kind: kind.name.lower() for kind in Kind}
_TEXT_MAX = 500
_SUBJECT_MAX = 300


class Violation(msgspec.Struct, gc=False):
    """A violation without its values."""

    path: str
    code: str
    severity: str


class Fact(msgspec.Struct, kw_only=True, gc=False):
    """What an entry says. Texts that are absent are None; times are microseconds since 1970."""

    what: What
    state: State = "whole"
    kind: str
    """Of the entry: `start`, `action` …; `unknown` if it was erased."""
    at_us: int
    invocation_id: UUID | None = None
    ids: Mapping[str, str] = {}
    tool: str | None = None
    tool_version: str | None = None
    outcome: str = "unknown"
    """`ok`, `failed`, `cancelled`, `waiting`, `working`; of a decision what was decided."""
    started_us: int | None = None
    ended_us: int | None = None
    duration_us: int | None = None
    error_type: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    """Quotes payloads, as `reason` does."""
    upstream_status: int | None = None
    violations: tuple[Violation, ...] = ()
    agent: str | None = None
    agent_version: str | None = None
    model: str | None = None
    provider: str | None = None
    principal: str | None = None
    environment: str | None = None
    service: str | None = None
    mcp_server: str | None = None
    mcp_client: str | None = None
    mcp_protocol: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    decided_by: str | None = None
    reason: str | None = None
    lost: int | None = None
    """Of a gap: how many events a producer dropped."""
    actor: str | None = None
    """Of an action: who acted, and what was done to what."""
    verb: str | None = None
    subject: str | None = None


def fact_of(one: Remade, received_us: int, *, is_own: bool) -> Fact:
    """What an entry says. Nothing that is stored raises: what cannot be read is `altered`."""
    entry = one.entry
    if entry is None:
        state: State = "altered" if one.raw else "erased"
        return Fact(what="unknown", state=state, kind="unknown", at_us=received_us)
    if is_own:
        return _of_own(entry, one.raw, received_us)
    if one.candidate is None:  # its bytes fit, and this release cannot read them
        return Fact(what="unknown", kind=_KIND_NAMES[entry.kind], at_us=received_us)
    return _of_call(entry, one.candidate)


def _of_call(entry: Entry, candidate: Candidate) -> Fact:
    event = candidate.event
    kind = _KIND_NAMES[entry.kind]
    if isinstance(event, wire.GapEvent):
        return Fact(
            what="gap",
            kind=kind,
            at_us=entry.received_us,
            ids={"producer_id": storable_text(event.producer_id)},
            outcome="lost",
            error_type=storable_text(event.reason),
            lost=event.count,
        )
    ids = {name: str(value) for name in _IDS if (value := getattr(event, name))}
    context, peers = candidate.context, event.mcp
    fact = Fact(
        what="start",
        kind=kind,
        at_us=candidate.started_us,
        invocation_id=None if entry.invocation_id == NO_INVOCATION else entry.invocation_id,
        ids=ids,
        tool=event.tool_name,
        tool_version=None if event.tool_version is None else str(event.tool_version),
        outcome="open",
        started_us=candidate.started_us,
        agent=context.agent,
        agent_version=context.agent_version,
        model=context.model,
        provider=context.provider,
        principal=context.principal,
        environment=context.environment,
        service=context.service,
        mcp_server=candidate.server,
    )
    if peers is not None:
        fact.mcp_client = _peer(peers.client)
        fact.mcp_server = _peer(peers.server) or candidate.server
        fact.mcp_protocol = peers.protocol_version and peers.protocol_version[:_TEXT_MAX]
    if kind == "finding":
        fact.what, fact.outcome, fact.at_us = "finding", "unguarded", entry.received_us
        fact.violations = _violations(candidate)
    elif isinstance(event, wire.EndEvent):
        _end(fact, candidate)
    elif isinstance(event, wire.DecisionEvent):
        fact.what, fact.outcome, fact.started_us = "decision", event.decision, None
        fact.decided_by = _decider(event.by)
        fact.reason = event.reason
        fact.violations = tuple(
            Violation(each.path[:_TEXT_MAX], each.code, each.severity) for each in event.violations
        )
    return fact


def _end(fact: Fact, candidate: Candidate) -> None:
    fact.at_us = fact.ended_us = candidate.ended_us
    if candidate.interim_state is not None:
        fact.what, fact.outcome = "interim", candidate.interim_state
        return
    ending = ending_of(candidate)
    fact.what, fact.outcome = "end", ending.state
    fact.duration_us = ending.duration_us
    fact.error_type = ending.error_type or None
    fact.error_code = ending.error_code
    fact.error_message = ending.error_message
    fact.upstream_status = ending.upstream_status
    fact.prompt_tokens = ending.prompt_tokens or None
    fact.completion_tokens = ending.completion_tokens or None
    if ending.violation_count:
        fact.violations = _violations(candidate)


def _violations(end: Candidate) -> tuple[Violation, ...]:
    return tuple(Violation(path, code, severity) for path, _, code, severity, *_ in violations(end))


def _peer(peer: wire.McpPeer | None) -> str | None:
    if peer is None:
        return None
    return " ".join(filter(None, (peer.name, peer.version)))[:_TEXT_MAX] or None


def _decider(by: wire.Decider | None) -> str | None:
    return None if by is None else (by.name or by.id or by.kind)


def _of_own(entry: Entry, raw: bytes, received_us: int) -> Fact:
    """An entry of the server: an action of somebody, or what the server did with the ledger."""
    kind = _KIND_NAMES[entry.kind]
    try:
        document = storable(json.loads(raw))
        at_us = microseconds(datetime.fromisoformat(document["at"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return Fact(what="unknown", kind=kind, at_us=received_us)
    verb = document.get("verb") if kind == "action" else f"ledger.{kind}"
    subject = document.get("subject")
    return Fact(
        what="action",
        kind=kind,
        at_us=at_us,
        outcome="ok",
        actor=_text(document.get("actor")),
        verb=_text(verb),
        subject=_text(subject),
    )


def _text(value: Any) -> str | None:
    return value[:_SUBJECT_MAX] if isinstance(value, str) and value else None


def severity_of(fact: Fact) -> Severity:
    """How much a person should care."""
    if fact.state == "altered":
        return "high"
    if fact.what == "gap" or fact.violations or fact.outcome == "denied":
        return "medium"
    return "low" if fact.outcome == "failed" else "informational"


def without_payload(fact: Fact) -> Fact:
    """The fact as a viewer may see it. Changes it in place, as it is made for one record."""
    fact.error_message = fact.reason = None
    if fact.verb is not None and fact.verb.startswith("payload."):
        fact.subject = None  # the text of a search, which may quote a payload
    return fact
