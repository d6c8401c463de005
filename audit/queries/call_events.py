"""The events of a call and of a decision, read from the log."""

from datetime import date
from typing import Literal
from uuid import UUID

from audit.events.json_values import parse
from audit.log.payload import StoredEvent, read_events
from audit.queries.call_filter import UNRUN
from audit.queries.calls import CallDetail
from audit.queries.decisions import decisions_of_call
from audit.sql.run import rows
from tenants.scope import current_tenant_id

Kind = Literal["start", "interim", "end"]
"""`interim`: the latest event that said what the call does before its end."""

_DECISIONS = 20
"""Decisions of a call that are searched for its arguments, the latest."""


def read_call_events(call: CallDetail) -> dict[Kind, StoredEvent]:
    """The call's start, interim and end event from the log. One that is not there is left out.

    In place of a start, a call that did not run has its latest decision that has arguments, or its
    latest one. Raises LogPayloadError when a payload is damaged.
    """
    if call.state in UNRUN:
        return _decided_event(call)
    places: dict[Kind, tuple[UUID, int]] = {}
    if call.start_batch_id is not None and call.start_pos is not None:
        places["start"] = (call.start_batch_id, call.start_pos)
    if call.interim_batch_id is not None and call.interim_pos is not None:
        places["interim"] = (call.interim_batch_id, call.interim_pos)
    if call.end_batch_id is not None and call.end_pos is not None:
        places["end"] = (call.end_batch_id, call.end_pos)
    events = read_events(current_tenant_id(), list(places.values()))
    return {kind: events[place] for kind, place in places.items() if place in events}


def _decided_event(call: CallDetail) -> dict[Kind, StoredEvent]:
    """The decision that says what was to be called: an answer often does not repeat it."""
    latest = [each.decision for each in decisions_of_call(call)][: -_DECISIONS - 1 : -1]
    places = [(one.batch_id, one.pos) for one in latest]
    events = read_events(current_tenant_id(), places)
    stored = [events[place] for place in places if place in events]
    chosen = next((one for one in stored if _has_arguments(one)), None) or next(iter(stored), None)
    return {} if chosen is None else {"start": chosen}


def _has_arguments(event: StoredEvent) -> bool:
    if event.raw is None:
        return False
    try:
        document = parse(event.raw)
    except ValueError:
        return False
    return isinstance(document, dict) and document.get("args") is not None


def read_decision(started_on: date, decision_id: UUID) -> StoredEvent | None:
    """The event of a decision from the log; None if there is no such decision.

    Raises LogPayloadError when a payload is damaged.
    """
    parameters = {"started_on": started_on, "decision_id": decision_id}
    for place in rows("decision_place", parameters):
        return read_events(current_tenant_id(), [place]).get(place)
    return None
