"""What an open call is: running, overdue or presumed crashed. Pure.

`audit/sql/call_list.sql` asks the same in `call_is_overdue` and `call_is_crashed`.
"""

from datetime import datetime, timedelta
from typing import Literal

from audit.queries.call_list import SILENCE, ListedCall

Condition = Literal["running", "overdue", "crashed"]

_MILLISECOND = timedelta(milliseconds=1)


def overdue_ms(call: ListedCall, now: datetime) -> int | None:
    """Milliseconds past its own limit; None if it has none, or not reached it yet."""
    if call.timeouts_ms is None:
        return None
    over = (now - call.started_at) / _MILLISECOND - call.timeouts_ms
    return int(over) if over > 0 else None


def condition_of(call: ListedCall, heard_at: datetime | None, now: datetime) -> Condition:
    """How an open call stands. `heard_at`: the last that was heard of its producer.

    One that has been silent for `SILENCE` will hardly end what it began; but while a call is
    within its own limit, its executor may be waiting for it and have nothing else to say.
    """
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
