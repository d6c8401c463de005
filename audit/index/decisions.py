"""Writes decisions about calls: one row each, never changed by a later event.

What became of a call follows from its decisions and from its row in `invocation` when it is read.
So decisions may arrive in any order, and before, after or at the same time as the call's start.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from audit.events import wire
from audit.events.candidates import Candidate
from audit.index.merge import Repeat
from audit.sql import arrays
from audit.sql.run import Statements

type DecisionKey = tuple[int, int]
"""A decision's day and its id as a number."""

SHOWN_VIOLATIONS = 100
"""The index has the paths and codes of this many violations of a decision; the log has all."""
_TEXT_MAX = 500
_NAME_MAX = 256
_INDEX = re.compile(r"\[\d+\]")
# Namespace of the ids made for decisions without an event id. Never change it.
_NAMESPACE = UUID("b1c37c2e-6c5b-5a7e-9c0a-2f4d8a1e7c93")


class Decided(NamedTuple):
    """What a stored decision adds to its trace. Day and microseconds are since 1970."""

    day: int
    decided_us: int
    trace_id: str
    tool_name: str
    run_id: str | None


def decision_key(candidate: Candidate) -> DecisionKey:
    """The key of a decision's row within the tenant."""
    return candidate.day, decision_id(candidate).int


def decision_id(candidate: Candidate) -> UUID:
    """The event id; without one, an id that an equal decision has, too, whatever its batch."""
    event = candidate.event
    assert isinstance(event, wire.DecisionEvent)
    if event.event_id is not None:
        return event.event_id
    by = event.by
    members = (
        candidate.invocation_id,
        candidate.started_us,
        event.tool_name,
        event.decision,
        None if by is None else (by.kind, by.id),
    )
    return uuid5(_NAMESPACE, "\x1f".join(map(str, members)))


def without_repeats(decisions: Sequence[Candidate]) -> tuple[list[Candidate], list[Repeat]]:
    """The first decision of each key, in order of key, and the others."""
    first: dict[DecisionKey, Candidate] = {}
    repeats = []
    for candidate in decisions:
        known = first.setdefault(decision_key(candidate), candidate)
        if known is not candidate:
            repeats.append(Repeat(candidate, known))
    return [first[key] for key in sorted(first)], repeats


def insert_decisions(writer: Statements, decisions: Sequence[Candidate]) -> set[DecisionKey]:
    """Write decisions, which are in order of key. Returns the keys of those that are new."""
    rows = writer.run("insert_decisions", **_columns(decisions))
    return {(day, pk.int) for day, pk in rows}


def stored_places(
    writer: Statements, decisions: Sequence[Candidate]
) -> dict[DecisionKey, tuple[UUID, int]]:
    """Batch and position of each decision's stored event, by key."""
    rows = writer.run(
        "decision_places",
        days=arrays.days([each.day for each in decisions]),
        decision_ids=arrays.uuids([decision_id(each) for each in decisions]),
    )
    return {(day, pk.int): (batch_id, position) for day, pk, batch_id, position in rows}


def decided(candidate: Candidate) -> Decided:
    """What a decision adds to its trace."""
    event = candidate.event
    assert isinstance(event, wire.DecisionEvent) and event.trace_id is not None
    return Decided(
        candidate.day, candidate.started_us, event.trace_id, event.tool_name, event.run_id
    )


def _columns(decisions: Sequence[Candidate]) -> dict[str, Any]:
    events: list[Any] = [each.event for each in decisions]
    columns: dict[str, Any] = {
        "started_on": arrays.days([each.day for each in decisions]),
        "decision_id": arrays.uuids([decision_id(each) for each in decisions]),
        "decided_at": arrays.instants([each.started_us for each in decisions]),
        "invocation_id": arrays.uuids([each.invocation_id for each in decisions]),
        "parent_invocation_id": arrays.uuids([each.parent_invocation_id for each in events]),
        "by_kind": arrays.texts([each.by and each.by.kind for each in events]),
        "by_id": arrays.texts([each.by and each.by.id for each in events]),
        "by_name": arrays.texts([each.by and _cut(each.by.name, _NAME_MAX) for each in events]),
        "reason": arrays.texts([_cut(each.reason, _TEXT_MAX) for each in events]),
        "violation_count": arrays.ints([len(each.violations) for each in events]),
        "violations": arrays.texts([_violations(each) for each in events]),
        "batch_id": arrays.uuids([each.batch_id for each in decisions]),
        "pos": arrays.ints([each.position for each in decisions]),
    }
    for name in _TEXTS:
        columns[name] = arrays.texts([getattr(each, name) for each in events])
    for name in _OF_CONTEXT:
        columns[name] = arrays.texts([getattr(each.context, name) for each in decisions])
    return columns


def _violations(event: wire.DecisionEvent) -> str:
    """The violations as JSON: an array each of path patterns, codes and expected values."""
    shown = event.violations[:SHOWN_VIOLATIONS]
    return json.dumps(
        [
            [_INDEX.sub("[*]", each.path[:_TEXT_MAX]) for each in shown],
            [each.code for each in shown],
            [each.expected[:_TEXT_MAX] for each in shown],
        ]
    )


def _cut(text: str | None, length: int) -> str | None:
    return text if text is None else text[:length]


_TEXTS = (
    "decision",
    "tool_name",
    "tool_version",
    "trace_id",
    "call_id",
    "tool_call_id",
    "requested_by",
    "definition_digest",
    "turn_id",
    "run_id",
    "ingestion_run_id",
    "workflow_id",
    "collection_id",
    "document_id",
    "document_version_id",
    "case_id",
    "producer_id",
)
"""The members of an event that are columns as they are."""
_OF_CONTEXT = ("agent", "agent_version", "model", "provider", "environment", "service")
"""The members of a context that are columns. Not the principal: `requested_by` is the person."""
