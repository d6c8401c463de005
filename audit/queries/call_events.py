"""The events of a call, read from the log."""

from typing import Literal
from uuid import UUID

from audit.log.payload import StoredEvent, read_events
from audit.queries.calls import CallDetail
from tenants.scope import current_tenant_id

Kind = Literal["start", "end"]


def read_call_events(call: CallDetail) -> dict[Kind, StoredEvent]:
    """The call's start and end events from the log. An event that is not there is left out.

    Raises LogPayloadError when a payload is damaged.
    """
    places: dict[Kind, tuple[UUID, int]] = {}
    if call.start_batch_id is not None and call.start_pos is not None:
        places["start"] = (call.start_batch_id, call.start_pos)
    if call.end_batch_id is not None and call.end_pos is not None:
        places["end"] = (call.end_batch_id, call.end_pos)
    events = read_events(current_tenant_id(), list(places.values()))
    return {kind: events[place] for kind, place in places.items() if place in events}
