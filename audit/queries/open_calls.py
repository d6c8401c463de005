"""The condition of an open call: running, overdue or presumed crashed. Pure.

`call_is_overdue` and `call_is_crashed` in `audit/sql/call_list.sql` apply the same rules.
"""

from datetime import datetime, timedelta
from typing import Literal

from audit.queries.call_walk import SILENCE
from audit.queries.listed_call import ListedCall

Condition = Literal["running", "waiting", "working", "overdue", "crashed"]

_MILLISECOND = timedelta(milliseconds=1)


def overdue_ms(call: ListedCall, now: datetime) -> int | None:
    """Milliseconds past the call's timeout; None without a timeout, or before it is over."""
    if call.timeouts_ms is None:
        return None
    over = (now - call.started_at) / _MILLISECOND - call.timeouts_ms
    return int(over) if over > 0 else None


def condition_of(call: ListedCall, heard_at: datetime | None, now: datetime) -> Condition:
    """The condition of an open call. `heard_at` is when its producer was last heard.

    A producer that has been silent for `SILENCE` will hardly end its calls. But while a call is
    within its timeout, its executor may be waiting for it and have nothing else to send. One that
    waits for input or works on as a task is neither overdue nor crashed.
    """
    if call.state in ("waiting", "working"):
        return call.state
    is_overdue = overdue_ms(call, now) is not None
    silent_since = now - SILENCE
    if (
        heard_at is not None
        and heard_at < silent_since
        and call.started_at < silent_since
        and (call.timeouts_ms is None or is_overdue)
    ):
        return "crashed"
    return "overdue" if is_overdue else "running"
