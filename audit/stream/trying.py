"""A test of a stream: one record that says that it is a test."""

import json
from uuid import UUID

from django.utils import timezone

from audit.events.instants import microseconds
from audit.models import Stream
from audit.stream.records import Record
from audit.stream.ways.opening import open_way
from audit.stream.ways.way import SendError
from config.boxes import BoxError
from tenants.actions import storable_text
from tenants.scope import tenant_scope

_ANSWER_MAX = 500
_INFORMATIONAL = 6


def try_stream(tenant_id: UUID, stream_id: UUID) -> None:
    """Send a record that is about no entry, and note how the receiver took it.

    Takes up to half a minute. Opens its own scopes, so no scope may be open.
    """
    with tenant_scope(tenant_id):
        stream = Stream.objects.for_tenant(tenant_id).filter(id=stream_id).first()
    if stream is None:  # deleted since
        return
    failure = _failure(stream)
    request = stream.last_test or {}
    answer = {
        **request,
        "at": timezone.now().isoformat(),
        "is_taken": not failure,
        "answer": storable_text(failure)[:_ANSWER_MAX] or "The receiver took a test record.",
    }
    with tenant_scope(tenant_id):
        Stream.objects.for_tenant(tenant_id).filter(id=stream_id).update(last_test=answer)


def _failure(stream: Stream) -> str:
    """Why the receiver did not take a test record; '' if it did."""
    now = timezone.now()
    body = json.dumps(
        {
            "message": f"Test of the stream {stream.name}",
            "test": True,
            "time": microseconds(now) // 1000,
            "product": "Tooltrail",
        }
    ).encode()
    try:
        way = open_way(stream)
        try:
            way.send([Record(0, microseconds(now), _INFORMATIONAL, body)])
            way.settle()
        finally:
            way.close()
    except (SendError, BoxError) as error:
        return str(error)
    return ""
