"""The events of a call and of a decision, read from the log."""

from datetime import date
from typing import Literal
from uuid import UUID

from audit.log.payload import StoredEvent, read_events
from audit.queries.calls import CallDetail
from audit.sql.run import rows
from tenants.scope import current_tenant_id

Kind = Literal["start", "interim", "end"]
"""`interim`: the latest event that said what the call does before its end."""


def read_call_events(call: CallDetail) -> dict[Kind, StoredEvent]:
    """The call's start, interim and end event from the log. One that is not there is left out.

    Raises LogPayloadError when a payload is damaged.
    """
    places: dict[Kind, tuple[UUID, int]] = {}
    if call.start_batch_id is not None and call.start_pos is not None:
        places["start"] = (call.start_batch_id, call.start_pos)
    if call.interim_batch_id is not None and call.interim_pos is not None:
        places["interim"] = (call.interim_batch_id, call.interim_pos)
    if call.end_batch_id is not None and call.end_pos is not None:
        places["end"] = (call.end_batch_id, call.end_pos)
    events = read_events(current_tenant_id(), list(places.values()))
    return {kind: events[place] for kind, place in places.items() if place in events}


def read_decision(started_on: date, decision_id: UUID) -> StoredEvent | None:
    """The event of a decision from the log; None if there is no such decision.

    Raises LogPayloadError when a payload is damaged.
    """
    parameters = {"started_on": started_on, "decision_id": decision_id}
    for place in rows("decision_place", parameters):
        return read_events(current_tenant_id(), [place]).get(place)
    return None
