"""The inbox: pages of rejected lines, how many are waiting, and which call a line is about."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from audit.models import RejectedEvent
from audit.queries.cursor import BEGINNING, END
from audit.sql.run import rows
from tenants.scope import current_tenant_id

InboxState = Literal["", "sent", "discarded", "all"]
"""Which lines to list, in this order: waiting, sent again, discarded, all."""

EXCERPT_BYTES = 240
COUNT_LIMIT = 1000

_LAST_ID = UUID(int=2**128 - 1)
_CLOCKS_DIFFER = timedelta(minutes=1)  # between receiving a line and giving it its id


@dataclass(frozen=True, slots=True)
class InboxFilter:
    """Which lines to list: those received between two instants."""

    state: InboxState = ""
    code: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class InboxRow:
    """A rejected line as listed. `excerpt` is its beginning; None if the reader may not see it."""

    id: UUID
    received_at: datetime
    code: str
    message: str
    line: int
    raw_length: int
    excerpt: bytes | None
    resolution: str | None
    resolved_at: datetime | None
    resolved_by_name: str | None


@dataclass(frozen=True, slots=True)
class InboxPage:
    """A page, newest first, and the ids for the newer and the older page."""

    rows: list[InboxRow]
    newer: UUID | None
    older: UUID | None


def inbox_page(
    wanted: InboxFilter,
    *,
    before: UUID | None = None,
    after: UUID | None = None,
    size: int = 50,
    with_raw: bool,
) -> InboxPage:
    """At most `size` lines, older than `before` or newer than `after`. One statement."""
    parameters: dict[str, Any] = {
        "before": before or _LAST_ID,
        "after": after,
        "first_id": first_id_of(wanted.since),
        "since": wanted.since or BEGINNING,
        "until": wanted.until or END,
        "code": wanted.code,
        "state": wanted.state,
        "with_raw": with_raw,
        "excerpt_bytes": EXCERPT_BYTES,
        "page_limit": size + 1,
    }
    name = "inbox_page" if after is None else "inbox_page_after"
    lines = [_row(values) for values in rows(name, parameters)]
    has_more = len(lines) > size
    lines = lines[:size]
    if after is not None:
        lines.reverse()
    newer = older = None
    if lines:
        if has_more if after is not None else before is not None:
            newer = lines[0].id
        if has_more or after is not None:
            older = lines[-1].id
    return InboxPage(lines, newer, older)


def inbox_open_count() -> int:
    """How many lines are waiting; `COUNT_LIMIT` means that many or more."""
    ((number,),) = rows("inbox_open_count", {"count_limit": COUNT_LIMIT})
    return int(number)


def inbox_line(pk: UUID, *, for_update: bool = False) -> RejectedEvent | None:
    """One line with its bytes, or None. `for_update` locks its row."""
    lines = RejectedEvent.objects.for_tenant(current_tenant_id()).filter(id=pk)
    return (lines.select_for_update() if for_update else lines).first()


def inbox_lines(wanted: InboxFilter, *, before: UUID | None, size: int) -> list[RejectedEvent]:
    """At most `size` whole lines older than `before`, newest first. Two statements."""
    page = inbox_page(wanted, before=before, size=size, with_raw=False)
    # Read again by id: only the statement of the page knows which lines match.
    lines = RejectedEvent.objects.for_tenant(current_tenant_id())
    return list(lines.filter(id__in=[row.id for row in page.rows]).order_by("-id"))


def refused_as(line: RejectedEvent) -> UUID | None:
    """The id of the new line if this line was sent again and rejected again; else None."""
    if line.resolved_at is None or line.redrive_batch_id is None:
        return None
    parameters = {
        "first_id": first_id_of(line.resolved_at - _CLOCKS_DIFFER),
        "last_id": first_id_of(line.resolved_at + 2 * _CLOCKS_DIFFER),
        "batch_id": line.redrive_batch_id,
    }
    return next((row[0] for row in rows("inbox_refused_as", parameters)), None)


def find_call_day(day: date, invocation_id: UUID) -> date | None:
    """The day of the row of a call, as ingest finds it; None without a row.

    `day` is the day according to the event.
    """
    days = [day + timedelta(days=n) for n in (-1, 0, 1)]
    parameters = {"invocation_id": invocation_id, "day": day, "days": days}
    return next((row[0] for row in rows("call_near", parameters)), None)


def first_id_of(since: datetime | None) -> UUID:
    """The smallest id that a line received since then can have. Ids are UUIDv7."""
    if since is None:
        return UUID(int=0)
    milliseconds = (since - _CLOCKS_DIFFER - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
        milliseconds=1
    )
    return UUID(int=milliseconds << 80)


def _row(values: tuple[Any, ...]) -> InboxRow:
    row = InboxRow(*values)
    return row if row.excerpt is None else replace(row, excerpt=bytes(row.excerpt))
