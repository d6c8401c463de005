"""Payload searches: start, progress, cancel and results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from audit.log.payload import LogPayloadError, read_events
from audit.models import PayloadHit, PayloadSearch
from audit.pages.calls.call_list import CallRow, call_rows
from audit.pages.calls.forms import PayloadSearchForm
from audit.pages.show.requested_query import invalid
from audit.pages.show.reveal import is_shown
from audit.queries.call_list import calls_by_id
from audit.queries.call_query import Query, Reader, parse
from audit.queries.cursor import Cursor, read_cursor
from audit.queries.listed_call import ListedCall
from audit.queries.payload_match import Excerpt, excerpt
from audit.tasks.requested import search_payloads
from audit.work import payload_search
from config.http.htmx import render_page
from tenants.access import TenantRequest, tenant_page
from tenants.actions import Actor, record_action, record_view
from tenants.models import Tenant, User
from tenants.slices import UNDER_WAY, JobState, percent

PAGE_SIZE = 25


@dataclass(frozen=True, slots=True)
class MatchingCall:
    """A call with the matches in its start, its end or both."""

    row: CallRow
    excerpts: dict[str, Excerpt | None]
    """By kind of event. None: the payload was erased since."""


@require_POST
@tenant_page(needs_payloads=True)
def search_start(request: TenantRequest) -> HttpResponseBase:
    """Start a search for `text` in the payloads of the calls that match `q`."""
    needs_reason = not request.membership.sees_payloads
    form = PayloadSearchForm(request.POST, needs_reason=needs_reason)
    # A search itself permits reading payloads; an auditor gives the reason for it here.
    reader = Reader(timezone.get_current_timezone(), sees_payloads=True)
    query = parse(request.POST.get("q", ""), reader)
    if query.problems:
        messages.error(request, invalid(query, "searched"))
    elif not form.is_valid():
        missing = "a text of 2 to 200 characters"
        if needs_reason and "text" not in form.errors:
            missing = "a reason for access"
        messages.error(request, f"Nothing was searched. Enter {missing}.")
    if query.problems or not form.is_valid():
        return redirect(f"{reverse('call_list')}?{urlencode({'q': query.text})}")
    now = timezone.now()
    search = begin_search(
        request.tenant,
        request.user,
        request.user,
        form.cleaned_data["text"],
        query,
        now,
        reason=form.cleaned_data["reason"],
    )
    return redirect("search_detail", search.id)


def begin_search(
    tenant: Tenant,
    actor: Actor,
    owner: User,
    text: str,
    query: Query,
    now: datetime,
    *,
    reason: str = "",
) -> PayloadSearch:
    """Let the worker search; `owner` sees the search. The pages and the API use this."""
    search = payload_search.start_search(owner, text, query, now)
    details: dict[str, Any] = {"query": query.on_record(now), "reason": reason}
    record_action(
        tenant,
        actor,
        "payload.search",
        str(search.id),  # not the search text: nothing is ever removed from the ledger
        **{name: value for name, value in details.items() if value},
    )
    search_payloads.defer(tenant_id=str(tenant.id), search_id=str(search.id))
    return search


@require_safe
@tenant_page(needs_payloads=True)
def search_detail(request: TenantRequest, pk: UUID) -> HttpResponse:
    """Show the progress of a search and its matches so far.

    An auditor who gave a reason sees the matches for an hour. Then the page asks for it again.
    """
    search = _own(request, pk)
    now = timezone.now()
    is_withheld = not is_shown(request, "payload.search", str(search.id), now)
    before = read_cursor(request.GET.get("before", ""), UUID)
    hits, older = ([], "") if is_withheld else hits_page(search, before, PAGE_SIZE)
    context: dict[str, object] = {
        "search": search,
        "is_under_way": search.state in UNDER_WAY,
        "state": JobState(search.state).label,
        "percent": percent_of(search),
        "matching_calls": _matching_calls(request, hits, search, now),
        "is_withheld": is_withheld,
        "older": older,
        "is_first_page": before is None,
        "limit": payload_search.MAX_HITS,
    }
    if not is_withheld:
        record_view(request.tenant.id, request.user, "payload.found", str(search.id))
    return render_page(request, "calls/payload_search.html", "payload-search", context)


@require_POST
@tenant_page(needs_payloads=True)
def search_cancel(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Cancel a search. Its matches stay."""
    _own(request, pk)
    payload_search.cancel_search(request.user, pk, timezone.now())
    return redirect("search_detail", pk)


def _own(request: TenantRequest, pk: UUID) -> PayloadSearch:
    search = payload_search.find_search(request.user, pk)
    if search is None:
        raise Http404("no such search")
    return search


def percent_of(search: PayloadSearch) -> int:
    """Return the percentage of the range that was searched. The newest part comes first."""
    if search.cursor_at is None:
        return 0
    searched, whole = search.until - search.cursor_at, search.until - search.since
    return percent(searched.total_seconds(), whole.total_seconds())


def hits_page(
    search: PayloadSearch, before: Cursor[UUID] | None, size: int
) -> tuple[list[PayloadHit], str]:
    """Return a page of hits, newest first, and the cursor to older ones. A call has 1 or 2."""
    hits = PayloadHit.objects.for_tenant(search.tenant_id).filter(search_id=search.id)
    if before is not None:
        hits = hits.filter(started_at__lte=before.at).exclude(
            started_at=before.at, invocation_id__gte=before.id
        )
    page = list(hits.order_by("-started_at", "-invocation_id", "-kind")[: 2 * size + 2])
    places = list(dict.fromkeys((hit.started_at, hit.invocation_id) for hit in page))
    shown = set(places[:size])
    older = str(Cursor(*places[size - 1])) if len(places) > size else ""
    return [hit for hit in page if (hit.started_at, hit.invocation_id) in shown], older


def _matching_calls(
    request: TenantRequest, hits: Sequence[PayloadHit], search: PayloadSearch, now: datetime
) -> list[MatchingCall]:
    kinds: dict[UUID, list[str]] = {}
    for hit in hits:
        kinds.setdefault(hit.invocation_id, []).append(hit.kind)
    calls = calls_by_id((hit.started_at, hit.invocation_id) for hit in hits)
    excerpts = _excerpts(calls, kinds, search)
    return [
        MatchingCall(
            row, {kind: excerpts.get((pk, kind)) for kind in sorted(kinds[pk], reverse=True)}
        )
        for row in call_rows(request, "search in payloads", calls, now)
        if (pk := row.call.invocation_id) in kinds
    ]


def _excerpts(
    calls: Sequence[ListedCall], kinds: Mapping[UUID, list[str]], search: PayloadSearch
) -> dict[tuple[UUID, str], Excerpt | None]:
    """Return the excerpts with the matches, read from the log."""
    places: dict[tuple[UUID, int], tuple[UUID, str]] = {}
    for call in calls:
        for kind, place in (("start", call.start_place), ("end", call.end_place)):
            if kind in kinds[call.invocation_id] and place is not None:
                places[place] = (call.invocation_id, kind)
    try:
        events = read_events(search.tenant_id, places)
    except LogPayloadError:
        return {}
    return {
        places[place]: excerpt(event.raw, search.needle)
        for place, event in events.items()
        if event.raw is not None
    }
