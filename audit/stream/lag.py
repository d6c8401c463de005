"""How a stream stands: what it has not sent yet, and since when it is behind. Needs the scope."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from audit.ledger.status import LedgerStatus
from audit.models import Stream
from audit.stream.reading import oldest_from

LATE_AFTER = timedelta(minutes=5)
"""From then on a stream with entries that wait is behind: signing alone takes a minute."""

type State = Literal["paused", "failing", "behind", "current"]


@dataclass(frozen=True, slots=True)
class Lag:
    """What waits, in entries of the ledger, and since when."""

    state: State
    entries: int
    """Between the cursor and the end of the ledger, entries of the other kind included."""
    oldest_at: datetime | None
    """When the first entry that the stream has to send was received; None if none waits."""

    def seconds(self, now: datetime) -> int:
        """The age of the oldest entry that waits."""
        return 0 if self.oldest_at is None else max(0, int((now - self.oldest_at).total_seconds()))


def lag_of(stream: Stream, status: LedgerStatus, now: datetime) -> Lag:
    """How a stream stands. One query."""
    oldest = oldest_from(stream.tenant_id, stream.of, stream.next_index)
    entries = max(0, status.size - stream.next_index) if oldest is not None else 0
    state: State = "current"
    if stream.paused_at is not None:
        state = "paused"
    elif stream.failure:
        state = "failing"
    elif oldest is not None and now - oldest > LATE_AFTER:
        state = "behind"
    return Lag(state, entries, oldest)
