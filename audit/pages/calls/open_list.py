"""Open calls: running, overdue or presumed crashed; and ends without a start."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.pages.show.choice import choice
from audit.pages.show.requested_query import mistakes, read_query, record_payload_query
from audit.queries.call_filter import OPEN, CallFilter
from audit.queries.call_list import call_page
from audit.queries.cursor import read_cursor
from audit.queries.listed_call import ListedCall
from audit.queries.open_calls import Condition, condition_of, overdue_ms
from audit.queries.open_list import COUNT_LIMIT, open_tally, producers_heard
from audit.show.figures import milliseconds
from config.http.htmx import render_page
from config.http.ordering import SORTED_MAX, Key, Order, page_in_order, requested_order
from tenants.access import TenantRequest, tenant_page

PAGE_SIZE = 50

_KINDS = {
    "": ("All open", "open"),
    "running": ("Running", "running"),
    "overdue": ("Overdue", "overdue"),
    "crashed": ("Presumed crashed", "crashed"),
    "orphan": ("Orphan ends", "orphan"),
}
"""The kinds to choose from: the label on the page, and the name in the tally."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A choice of the page, with its number of calls."""

    value: str
    label: str
    count: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class OpenRow:
    """An open call, or an end without its start, as a row of the list."""

    call: ListedCall
    condition: Condition
    age_us: int
    over: str
    heard_at: datetime | None


_COLUMNS: Mapping[str, Key[OpenRow]] = {
    "started": lambda row: row.call.started_at,
    "tool": lambda row: row.call.tool_name,
    "status": lambda row: row.condition,
    "age": lambda row: row.age_us,
    "timeout": lambda row: row.call.timeouts_ms,
    "trace": lambda row: row.call.trace_id,
    "heard": lambda row: row.heard_at,
}
"""The columns by which open calls are sorted."""
_NEWEST = Order("started")


@require_safe
@tenant_page()
def open_list(request: TenantRequest) -> HttpResponse:
    """Show the calls without an end, or without a start, of the kind that the URL names."""
    now = timezone.now()
    kind = choice(request, "kind", _KINDS)
    query = read_query(request)
    record_payload_query(request, query, now)
    order = requested_order(request, _COLUMNS, "started")
    rows: list[OpenRow] = []
    pager: dict[str, Any] = {"is_first_page": True}
    if not query.problems:
        wanted = query.wanted.also(*(("condition", kind) if kind else ("state", "open")))
        rows, pager = _page(request, wanted, order, now)
    tally = open_tally(now)
    context: dict[str, object] = {
        "kind": kind,
        "kinds": [
            Kind(value, label, _tallied(getattr(tally, name)), value == kind)
            for value, (label, name) in _KINDS.items()
        ],
        "query": query,
        "mistakes": mistakes(query),
        "rows": rows,
        "order": order,
        **pager,
    }
    return render_page(request, "calls/open_list.html", "open-list", context)


def _page(
    request: TenantRequest, wanted: CallFilter, order: Order, now: datetime
) -> tuple[list[OpenRow], dict[str, Any]]:
    """Return the rows of the page that the address names, and the context of its pager."""
    place = request.GET.get("before", "")
    if order != _NEWEST:
        newest = call_page(wanted, now=now, size=SORTED_MAX + 1)
        page = page_in_order(
            _rows(newest.calls, now),
            _COLUMNS,
            order,
            identify=lambda row: row.call.invocation_id,
            after=place,
            size=PAGE_SIZE,
        )
        return page.rows, page.pager | {"sorted_since": newest.searched_until}
    before = read_cursor(place, UUID)
    listed = call_page(wanted, now=now, before=before, size=PAGE_SIZE)
    return _rows(listed.calls, now), {
        "older": str(listed.older or ""),
        "searched_until": listed.searched_until,
        "is_first_page": before is None,
    }


def _rows(calls: Sequence[ListedCall], now: datetime) -> list[OpenRow]:
    heard = producers_heard(call.producer_id for call in calls if call.producer_id)
    rows = []
    for call in calls:
        heard_at = heard.get(call.producer_id or "")
        over = None if call.state in OPEN[1:] else overdue_ms(call, now)
        age = (call.ended_at or now) - call.started_at
        rows.append(
            OpenRow(
                call=call,
                condition=condition_of(call, heard_at, now),
                age_us=age // timedelta(microseconds=1),
                over=milliseconds(over) if over is not None else "",
                heard_at=heard_at,
            )
        )
    return rows


def _tallied(count: int) -> str:
    return f"{COUNT_LIMIT:,}+" if count >= COUNT_LIMIT else f"{count:,}"
