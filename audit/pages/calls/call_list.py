"""The list of calls: those that match a query, newest first, and the live tail."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from audit.exports.calls import FORMS
from audit.pages.calls.completion import complete, last_name
from audit.pages.show.columns import column_choices, shown_columns
from audit.pages.show.requested_query import mistakes, read_query, record_payload_query
from audit.pages.show.saved_views import default_address, view_address
from audit.pages.show.texts import record_texts
from audit.queries.call_filter import OPEN
from audit.queries.call_list import NO_CALLS, CallPage, call_page, count_calls, violations_of
from audit.queries.call_order import FIGURES, sorted_calls
from audit.queries.call_query import (
    ANYBODY,
    Query,
    parse,
    quoted,
)
from audit.queries.call_values import known_values
from audit.queries.calls import FirstViolation
from audit.queries.cursor import Cursor, read_cursor, read_place
from audit.queries.decisions import latest_decisions
from audit.queries.filter_names import FILTER_NAMES, FilterName
from audit.queries.listed_call import ListedCall
from audit.queries.saved_views import CALLS, page_choice
from audit.queries.withheld import without_messages, without_reasons
from audit.show import reasons
from audit.show.figures import duration
from config.http.htmx import render_page
from config.http.ordering import Order, requested_order
from tenants.access import TenantRequest, tenant_page

PAGE_SIZE = 50
TAIL_SIZE = 100
"""Rows of the live tail. Older calls are on the next pages."""
TAIL_BEGINS = timedelta(minutes=2)
"""How far back the live tail reads again, so that late events and ends of calls appear."""

_STATES = (
    ("", "All"),
    ("failed", "Failed"),
    ("open", "Open"),
    ("ok", "OK"),
    ("refused", "Refused"),
    ("awaiting", "Awaiting"),
    ("approved", "Approved"),
    ("waiting", "Waiting"),
    ("working", "Working"),
    ("cancelled", "Cancelled"),
)
_RANGES = (("", "Any time"), ("15m", "15 min"), ("1h", "1 h"), ("24h", "24 h"), ("7d", "7 d"))


@dataclass(frozen=True, slots=True)
class CallRow:
    """A call as a row of the list."""

    call: ListedCall
    reason: str
    tokens: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A link that changes one term of the query."""

    label: str
    query: str
    is_current: bool
    state: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """A filter as a form field, with its value from the query."""

    name: FilterName
    value: str


@require_safe
@tenant_page()
def call_list(request: TenantRequest) -> HttpResponse:
    """Show a page of the tenant's calls that match the URL's query."""
    now = timezone.now()
    query = read_query(request)
    if filled := {name: request.GET[name] for name in FILTER_NAMES if name in request.GET}:
        return _to_query(with_fields(query, filled))
    choice = page_choice(request.user, CALLS)
    if default := default_address(request, CALLS, choice):
        return redirect(default)
    record_payload_query(request, query, now)
    order = requested_order(request, ("started", *FIGURES), "started")
    columns = shown_columns(CALLS, choice)
    context = {
        **_bar(query, now),
        **_listed(request, query, now, order),
        "order": order,
        "columns": columns,
        "choices": column_choices(CALLS, columns),
        "is_usual": choice is None or choice.columns is None,
        "exports": () if query.problems else tuple(FORMS),
        "pinned": "" if query.problems else view_address(CALLS, query.pinned(now)),
    }
    return render_page(request, "calls/call_list.html", "call-list", context)


def _listed(request: TenantRequest, query: Query, now: datetime, order: Order) -> dict[str, Any]:
    """Return the context of the rows: a page by time, the live tail, or a page by a figure."""
    if order.column in FIGURES and not query.problems and not query.wanted.payload:
        return _by_figure(request, query, now, order)
    before, after = _cursor(request, "before"), _cursor(request, "after")
    is_first_page = before is None and after is None
    is_live = is_first_page and "live" in request.GET and not query.problems
    since = now - TAIL_BEGINS
    if is_live:
        before = Cursor(since, UUID(int=0))
    page = matching_page(query, now, before=before, after=after)
    if after is not None and page.newer is None:  # nothing is newer: show the newest page in full
        is_first_page = True
        page = matching_page(query, now)
    return {
        "rows": call_rows(request, "calls", page.calls, now),
        "newer": "" if is_first_page else str(page.newer or ""),
        "older": str(page.older or ""),
        "searched_until": page.searched_until,
        "is_first_page": is_first_page,
        "is_live": is_live,
        **(_tail(request, query, since, now) if is_live else {}),
    }


def _by_figure(request: TenantRequest, query: Query, now: datetime, order: Order) -> dict[str, Any]:
    """Return the context of a page of calls that are sorted by a figure."""
    place = read_place(request.GET.get("before", ""), UUID)
    try:
        page = sorted_calls(
            query.wanted,
            order.column,
            now=now,
            place=place,
            is_smallest_first=order.is_reversed,
            size=PAGE_SIZE,
        )
    except TimeoutError:
        return {"rows": [], "older": "", "is_first_page": True, "took_too_long": True}
    return {
        "rows": call_rows(request, "calls", page.calls, now),
        "older": str(page.next or ""),
        "is_first_page": place is None,
        "is_sorted": True,
        "sorted_since": page.since,
    }


@require_safe
@tenant_page()
def call_tail(request: TenantRequest) -> HttpResponse:
    """Return the calls since an instant, newest first. A live page polls this view."""
    now = timezone.now()
    try:
        since = datetime.fromisoformat(request.GET.get("since", "")).astimezone(UTC)
    except (ValueError, OverflowError):
        since = now - TAIL_BEGINS
    query = read_query(request)
    record_payload_query(request, query, now)
    choice = page_choice(request.user, CALLS)
    columns = shown_columns(CALLS, choice)
    context = {"query": query, "columns": columns, **_tail(request, query, since, now)}
    return render(request, "calls/call_list.html#call-tail", context)


@require_safe
@tenant_page()
def call_count(request: TenantRequest) -> HttpResponse:
    """Return how many calls match the query, and whether the count is complete."""
    query, now = read_query(request), timezone.now()
    record_payload_query(request, query, now)
    total = None if query.problems else count_calls(query.wanted, now=now)
    return render(request, "calls/call_list.html#call-count", {"total": total})


@require_safe
@tenant_page()
def call_complete(request: TenantRequest) -> HttpResponse:
    """Suggest how to continue a query that is being typed."""
    text = request.GET.get("q", "")
    known = known_values(last_name(text), now=timezone.now())
    context = {"suggestions": complete(text, known)}
    return render(request, "calls/call_list.html#call-terms", context)


def matching_page(
    query: Query,
    now: datetime,
    *,
    before: Cursor[UUID] | None = None,
    after: Cursor[UUID] | None = None,
) -> CallPage:
    """Return a page of the calls that match. An invalid query gives none, without SQL."""
    if query.problems:
        return NO_CALLS
    return call_page(query.wanted, now=now, before=before, after=after, size=PAGE_SIZE)


def call_rows(
    request: TenantRequest, of: str, calls: Sequence[ListedCall], now: datetime
) -> list[CallRow]:
    """Return the rows of the list `of` as this member may see them, and put that on record.

    One SQL statement if any has violations, one if any did not run, and one if any has a text.
    """
    decisions = latest_decisions(calls)
    if not request.membership.sees_payloads:
        calls, decisions = without_messages(calls), without_reasons(decisions)
    texts = chain(
        (call.error_message for call in calls), (one.reason for one in decisions.values())
    )
    record_texts(request, of, texts)
    violations = violations_of(list(calls))
    return [
        CallRow(
            call=call,
            reason=reasons.of_decision(decision)
            if (decision := decisions.get(call.invocation_id)) is not None
            else _reason(call, violations.get(call.invocation_id), now),
            tokens=reasons.tokens(call.prompt_tokens, call.completion_tokens),
        )
        for call in calls
    ]


def _bar(query: Query, now: datetime) -> dict[str, Any]:
    """Return the context above the rows: the query, its problems, and links that change it."""
    return {
        "query": query,
        "mistakes": mistakes(query),
        "states": _states(query),
        "ranges": [
            Choice(label, query.having("since", value), query.value("since") == value)
            for value, label in _RANGES
        ],
        "fields": [Field(one, query.value(one.name)) for one in FILTER_NAMES.values()],
        "since": query.readable.from_instant(now),
        "until": query.readable.to_instant(now),
        "query_text": str(query),
        "zone_name": timezone.get_current_timezone_name(),
        "searches_payloads": bool(query.readable.payload),
        "is_filtered": bool(query.terms),
        "leaves_out_unrun": query.readable.state is None and not query.readable.is_about_unrun,
    }


def _states(query: Query) -> list[Choice]:
    """Return a choice for each state, and one for calls with violations."""
    wanted = query.readable
    is_any_violation = wanted.violation is not None and wanted.violation.is_anything
    rest = parse(query.having("state", ""), ANYBODY)
    if is_any_violation:
        rest = parse(rest.having("violation", ""), ANYBODY)
    choices = [
        Choice(label, rest.having("state", value), (wanted.state or "") == value, value)
        for value, label in _STATES
    ]
    if is_any_violation and not wanted.state:
        choices[0] = replace(choices[0], is_current=False)
    violating = rest.having("violation", "*")
    choices.insert(2, Choice("Violations", violating, is_any_violation, "violation"))
    return choices


def _tail(request: TenantRequest, query: Query, since: datetime, now: datetime) -> dict[str, Any]:
    """Return the calls since an instant. The instant moves forward if there are too many."""
    if query.problems:
        return {"tail_rows": [], "tail_from": since, "tail_since": since.isoformat()}
    begins = max(since, query.wanted.from_instant(now) or since)
    page = call_page(replace(query.wanted, since=begins), now=now, size=TAIL_SIZE)
    if page.older is not None and page.calls:
        since = page.calls[-1].started_at
    rows = call_rows(request, "calls", page.calls, now)
    return {"tail_rows": rows, "tail_from": since, "tail_since": since.isoformat()}


def with_fields(query: Query, filled: Mapping[str, str]) -> str:
    """Return the query with its terms replaced by the values that were typed into fields.

    An invalid query is returned unchanged: without the invalid part it would mean something else.
    """
    if query.problems:
        return query.text
    parts = [term.closed for term in query.terms if term.name not in filled]
    for name, typed in filled.items():
        value = typed.strip()
        if (
            value
            and not _is_one_term(name, f"{name}:{value}")
            and _is_one_term(name, f"{name}:{quoted(value)}")
        ):
            value = quoted(value)  # free text with spaces or quotes
        if value:
            parts.append(f"{name}:{value}")
    return " ".join(parts)


def _is_one_term(name: str, text: str) -> bool:
    query = parse(text)
    return [term.name for term in query.terms] == [name] and not query.problems


def _to_query(text: str) -> HttpResponse:
    address = reverse("call_list")
    return redirect(f"{address}?{urlencode({'q': text})}" if text else address)


def _cursor(request: TenantRequest, name: str) -> Cursor[UUID] | None:
    return read_cursor(request.GET.get(name, ""), UUID)


def _reason(call: ListedCall, violation: FirstViolation | None, now: datetime) -> str:
    """Return what is notable about a call, the worst first; '' if nothing is."""
    parts: list[str] = []
    if call.state in OPEN:
        parts.append(f"for {duration((now - call.started_at) // timedelta(microseconds=1))}")
    parts += reasons.problems(call, violation)
    if call.start_batch_id is None:
        parts.append("start missing")
    if outcome := reasons.changed_by_guard(call):
        parts.append(outcome)
    if over := reasons.over_limit(call):
        parts.append(over)
    if call.attempt is not None and call.attempt > 1:
        parts.append(f"attempt {call.attempt}")
    if call.cache_hit:
        parts.append("cache hit")
    return " · ".join(parts)
