"""Conversations: their traces in order, on one axis of time."""

from collections.abc import Mapping
from operator import attrgetter

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.pages.show.graph_view import shown_graph
from audit.pages.show.range_bar import invalid_range, range_bar, requested_range
from audit.queries.call_graph import graph_of_conversation
from audit.queries.conversations import (
    CALLS_MAX,
    LISTED,
    Conversation,
    Placed,
    conversation,
    conversations_in,
)
from audit.queries.costs import cost_of_conversation
from audit.queries.price_lists import prices_held
from audit.queries.token_costs import token_costs_of
from audit.show.costs import cost_facts
from config.http.htmx import render_page
from config.http.ordering import Key, sorted_table
from tenants.access import TenantRequest, tenant_page

_COLUMNS: Mapping[str, Key[Conversation]] = {
    "conversation": attrgetter("run_id"),
    "latest": attrgetter("last_at"),
    "began": attrgetter("first_at"),
    **{name: attrgetter(name) for name in ("traces", "calls", "failed", "violations", "tokens")},
}
"""The columns by which conversations are sorted."""
_TRACES: Mapping[str, Key[Placed]] = {
    "trace": lambda one: one.turn.first_tool.casefold(),
    "started": lambda one: one.turn.first_at,
    "duration": lambda one: one.turn.duration_us,
    "calls": lambda one: one.turn.calls,
    "failed": lambda one: one.turn.failed,
    "violations": lambda one: one.turn.violations,
    "tokens": lambda one: one.turn.tokens,
}
"""The columns by which the traces of a conversation are sorted."""


@require_safe
@tenant_page()
def conversation_list(request: TenantRequest) -> HttpResponse:
    """Show the conversations of the URL's range, the latest first."""
    requested = requested_range(request, timezone.now())
    page = "conversations/conversation_list.html"
    if requested.problem:
        return invalid_range(request, requested, page, "Conversations")
    listed = conversations_in(requested.range)
    context = {
        **range_bar(request, requested),
        "conversations": sorted_table(request, listed[:LISTED], _COLUMNS, "latest"),
        "has_more": len(listed) > LISTED,
    }
    return render_page(request, page, "conversations", context)


@require_safe
@tenant_page()
def conversation_detail(request: TenantRequest, run_id: str) -> HttpResponse:
    """Show a conversation's traces, the first one first, and its graph; 404 if no call names it."""
    detail = conversation(run_id)
    if detail is None:
        raise Http404("no such conversation")
    held = prices_held()
    context = {
        "detail": detail,
        "traces": sorted_table(request, detail.placed, _TRACES, "-started"),
        "calls_max": CALLS_MAX,
        "costs": cost_facts(
            cost_of_conversation(held, run_id), token_costs_of(held, run_id=run_id)
        ),
        "graph": shown_graph(graph_of_conversation(run_id)),
    }
    return render(request, "conversations/conversation_detail.html", context)
