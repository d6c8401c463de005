"""What a text leads to: pages, boards, views, tools, traces and calls. Needs the tenant's scope."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.urls import reverse
from django.utils.http import urlencode

from audit.pages.show.saved_views import view_address
from audit.queries.boards import boards_of
from audit.queries.call_list import call_day
from audit.queries.call_query import quoted
from audit.queries.decisions import decided_day
from audit.queries.saved_views import offered_views
from audit.queries.tools import ToolFilter, list_tools
from audit.queries.traces import TraceFilter, trace_page
from audit.show.addresses import trace_address
from audit.show.navigation import destinations_matching
from tenants.models import Role, User

TEXT_MAX = 200
OF_A_KIND = 6
"""Tools, traces, boards and views that are offered at once."""
_TRACE_MIN = 4
"""Characters of a trace id from which on traces are searched."""


class Entry(NamedTuple):
    """A place to go to."""

    label: str
    kind: str
    address: str


def entries(text: str, role: Role, user: User, now: datetime) -> list[Entry]:
    """Where a text may lead, the most exact first; for an empty text all pages and views.

    At most ten statements.
    """
    pages = [Entry(each.label, "page", each.address) for each in destinations_matching(text, role)]
    if not text:
        return [*pages, *_boards("", user), *_views("", user)]
    search = Entry(f"Search calls for {text}", "search", _calls(text))
    return [
        *_call(text, now),
        *pages,
        *_boards(text, user),
        *_views(text, user),
        *_tools(text, now),
        *_traces(text),
        search,
    ]


def _call(text: str, now: datetime) -> Iterator[Entry]:
    try:
        invocation_id = UUID(text)
    except ValueError:
        return
    day = call_day(invocation_id, now=now) or decided_day(invocation_id)
    if day is not None:
        yield Entry(text, "call", reverse("call_detail", args=[day, invocation_id]))


def _boards(text: str, user: User) -> Iterator[Entry]:
    boards = [each for each in boards_of(user) if text.casefold() in each.name.casefold()]
    for board in boards[:OF_A_KIND]:
        yield Entry(board.name, "board", reverse("board_detail", args=[board.id]))


def _views(text: str, user: User) -> Iterator[Entry]:
    views = [each for each in offered_views(user) if text.casefold() in each.name.casefold()]
    for view in views[:OF_A_KIND]:
        yield Entry(view.name, "saved view", view_address(view.page, view.query))


def _tools(text: str, now: datetime) -> Iterator[Entry]:
    for tool in list_tools(ToolFilter(text=text), now, after="", size=OF_A_KIND):
        address = _calls(f"tool:{quoted(tool.name)}")
        if tool.id is not None:
            address = reverse("tool_overview", args=[tool.id])
        yield Entry(tool.name, "tool", address)


def _traces(text: str) -> Iterator[Entry]:
    if len(text) < _TRACE_MIN or len(text.split()) > 1:
        return
    for trace in trace_page(TraceFilter(prefix=text), size=OF_A_KIND).traces:
        yield Entry(trace.trace_id, "trace", trace_address(trace.trace_id))


def _calls(query: str) -> str:
    return f"{reverse('call_list')}?{urlencode({'q': query})}"
