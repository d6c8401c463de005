"""Payload search: the worker reads the payloads of the calls that match a query, and stores hits.

A search is a job in slices (`tenants.slices`). A step reads the next calls and their events from
the log, and writes the hits. `audit.queries.payload_match` does the matching. No payload is copied.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone

from audit.log.payload import read_events
from audit.models import PayloadHit, PayloadSearch
from audit.queries.call_list import call_chunk
from audit.queries.call_query import InvalidQueryError, Query, Reader
from audit.queries.call_query import parse as parse_query
from audit.queries.call_walk import AHEAD
from audit.queries.cursor import stored_cursor
from audit.queries.listed_call import ListedCall
from audit.queries.payload_match import excerpt
from tenants import slices
from tenants.models import User, new_id
from tenants.scope import current_tenant_id, tenant_scope
from tenants.slices import SLICE_SECONDS, UNDER_WAY, JobState, end_jobs

DEFAULT_RANGE = timedelta(hours=24)
"""The range if the query has no `since`: a search always has a bounded range."""
MAX_RANGE = timedelta(days=35)
MAX_HITS = 1_000
KEPT_FOR = timedelta(days=1)
"""How long a search is kept with its hits: the searched text may name a person."""
CHUNK = 250
"""Calls read at once; their batches are unpacked one by one."""

_STARTED = Reader(sees_payloads=True)
"""Users who start a search may see payloads, or gave a reason. The search stores its range."""


def start_search(user: User, needle: str, query: Query, now: datetime) -> PayloadSearch:
    """Record a search for the worker. The caller defers the task. Needs the scope."""
    until = min(query.wanted.to_instant(now) or now, now + AHEAD)
    since = query.wanted.from_instant(now) or until - DEFAULT_RANGE
    return PayloadSearch.objects.create(
        tenant_id=current_tenant_id(),
        id=new_id(),
        user_id=user.pk,
        created_at=now,
        needle=needle,
        query=str(query),
        since=max(since, until - MAX_RANGE),
        until=until,
        state=JobState.WAITING,
        searched_count=0,
        erased_count=0,
        found_count=0,
    )


def find_search(user: User, pk: UUID) -> PayloadSearch | None:
    """One of the user's own searches in the scope's tenant, or None."""
    searches = PayloadSearch.objects.for_tenant(current_tenant_id())
    return searches.filter(user_id=user.pk, id=pk).first()


def cancel_search(user: User, pk: UUID, now: datetime) -> bool:
    """Ask the worker to stop. Hits so far stay. False if there is nothing to stop."""
    searches = PayloadSearch.objects.for_tenant(current_tenant_id())
    return end_jobs(searches.filter(user_id=user.pk, id=pk), JobState.CANCELLED, now)


def forget_old(now: datetime) -> None:
    """Delete searches older than `KEPT_FOR`, in any state. Needs the scope."""
    searches = PayloadSearch.objects.for_tenant(current_tenant_id())
    searches.filter(created_at__lt=now - KEPT_FOR).delete()


def run_slice(tenant_id: UUID, pk: UUID, *, seconds: float = SLICE_SECONDS) -> bool:
    """Continue a search for about `seconds`. True if there is more to do.

    Raises LogPayloadError.
    """
    return slices.run_slice(lambda _: _run_chunk(tenant_id, pk), seconds)


def fail_search(tenant_id: UUID, pk: UUID) -> None:
    """Record that a search failed. Hits so far stay."""
    with tenant_scope(tenant_id):
        searches = PayloadSearch.objects.for_tenant(tenant_id).filter(id=pk)
        end_jobs(searches, JobState.FAILED, timezone.now())


def _run_chunk(tenant_id: UUID, pk: UUID) -> bool:
    """Run one chunk in one transaction. False when the search has ended."""
    with tenant_scope(tenant_id):
        search = (
            PayloadSearch.objects.for_tenant(tenant_id).filter(id=pk).select_for_update().first()
        )
        if search is None or search.state not in UNDER_WAY:
            return False
        try:
            parsed = parse_query(search.query, _STARTED).wanted
        except InvalidQueryError:  # stored by an earlier version
            search.state, search.finished_at = JobState.FAILED, timezone.now()
            search.save()
            return False
        wanted = replace(parsed, since=search.since, until=search.until)
        begin = stored_cursor(search.cursor_at, search.cursor_id)
        calls, cursor = call_chunk(
            wanted, now=search.created_at, before=begin, size=CHUNK, with_unrun=True
        )
        hits = _search(search, calls)[: max(0, MAX_HITS - search.found_count)]
        PayloadHit.objects.bulk_create(hits, ignore_conflicts=True)
        search.searched_count += len(calls)
        search.found_count += len(hits)
        search.state = JobState.RUNNING
        if search.found_count >= MAX_HITS:
            search.state = JobState.FULL
        elif cursor is None:
            search.state = JobState.DONE
        else:
            search.cursor_at, search.cursor_id = cursor.at, cursor.id
        if search.state != JobState.RUNNING:
            search.finished_at = timezone.now()
        search.save()
        return search.state == JobState.RUNNING


def _search(search: PayloadSearch, calls: Sequence[ListedCall]) -> list[PayloadHit]:
    """Hits: the calls' events that contain the searched text. Counts events without payload."""
    places: dict[tuple[UUID, int], tuple[ListedCall, str]] = {}
    for call in calls:
        for kind, place in (("start", call.start_place), ("end", call.end_place)):
            if place is not None:
                places[place] = (call, kind)
    hits = []
    for place, event in read_events(search.tenant_id, places).items():
        if event.raw is None:
            search.erased_count += 1
        elif excerpt(event.raw, search.needle) is not None:
            call, kind = places[place]
            hits.append(
                PayloadHit(
                    tenant_id=search.tenant_id,
                    search_id=search.id,
                    started_at=call.started_at,
                    invocation_id=call.invocation_id,
                    kind=kind,
                )
            )
    return sorted(hits, key=lambda hit: (hit.started_at, hit.invocation_id), reverse=True)
