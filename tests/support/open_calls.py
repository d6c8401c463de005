"""Calls without an end: in progress, overdue, crashed, and ends without a start."""

from datetime import UTC, datetime, timedelta
from typing import Any

from audit.models import Producer
from audit.queries.call_walk import SILENCE
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import listed_tools, signed_in

NOW = datetime.now(UTC)


def open_call(
    tool_name: str, *, started_at: datetime | None = None, **members: Any
) -> list[dict[str, Any]]:
    """A call without an end; it starts when this module was imported unless given."""
    return make_call(tool_name=tool_name, started_at=started_at or NOW, is_open=True, **members)


def set_last_heard(cast: Cast, producer_id: str, since: datetime) -> None:
    """Set the time of a producer's last event."""
    with tenant_scope(cast.tenant.id):
        Producer.objects.for_tenant(cast.tenant.id).filter(producer_id=producer_id).update(
            last_heard_at=since
        )


def tools_by_kind(cast: Cast) -> dict[str, list[str]]:
    """The tools that the list of open calls shows, by the kind it is filtered for."""
    client = signed_in(cast.viewer)
    return {
        kind: sorted(listed_tools(client.get("/calls/open", {"kind": kind}).content.decode()))
        for kind in ("", "running", "overdue", "crashed", "orphan")
    }


def send_each_kind(cast: Cast) -> None:
    """Send one call of each kind, relative to the current time."""
    now = datetime.now(UTC)
    long_ago = now - timedelta(hours=1)
    send_events(
        cast.tenant,
        [
            *open_call("fresh", started_at=now, producer_id="alive"),
            *open_call("anonymous", started_at=long_ago),
            *open_call("within", started_at=long_ago, timeouts_ms=10**9, producer_id="silent"),
            *open_call("overdue", started_at=long_ago, timeouts_ms=1000, producer_id="alive"),
            *open_call("crashed", started_at=long_ago, producer_id="silent"),
            *open_call("both", started_at=long_ago, timeouts_ms=1000, producer_id="silent"),
            *open_call("just-begun", started_at=now, producer_id="silent"),
            make_call(tool_name="orphan")[1],
            *make_call(tool_name="whole"),
        ],
    )
    set_last_heard(cast, "silent", now - SILENCE - timedelta(minutes=1))
