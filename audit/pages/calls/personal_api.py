"""Saved views and payload searches over the API: those of the key's owner, as on their pages."""

from datetime import datetime
from typing import Any, Literal, cast
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query
from pydantic import Field

from audit.models import PayloadSearch, SavedView
from audit.pages.calls.payload_search import begin_search, hits_page, percent_of
from audit.pages.show.api_query import parsed_query, parsed_terms
from audit.pages.show.router import router
from audit.queries.cursor import parse_cursor
from audit.queries.payload_match import MAX_NEEDLE
from audit.queries.saved_views import (
    MAX_VIEWS,
    NAME_LENGTH,
    TooManyViewsError,
    ViewNameTakenError,
    change_view,
    delete_view,
    find_view,
    save_view,
    saved_views,
)
from audit.work import payload_search
from config.http.problems import ProblemError
from tenants.access import has_role
from tenants.api_acts import Act, Body, Stripped, acts
from tenants.api_auth import ApiRequest
from tenants.api_reads import Answer, ListParams, Page, paged, reads, seal, unseal, utc
from tenants.models import Membership, Role, Scope

_TAKEN = "The owner has another view of this name."


class View(Answer):
    """What a page lists, as the key's owner saved it under a name."""

    id: UUID
    name: str
    page: Literal["calls", "traces", "violations", "latency", "costs"]
    """The page that it is a view of."""
    q: str
    """Of calls: a query. Of other pages: what follows the ? of the page's address."""
    shared: bool
    """Whether all members of the tenant are offered it on the page."""
    created_at: datetime


class SavedViewPage(Page[View]):
    """Saved views by name."""

    OLD_NAME = "views"


class ViewBody(Body):
    """A query to save. It replaces a view of the same name."""

    name: Stripped = Field(min_length=1, max_length=NAME_LENGTH)
    q: str = Field(examples=["tool:search state:error"])


class ViewChange(Body):
    """What changes; a member that is left out stays."""

    name: Stripped | None = Field(None, min_length=1, max_length=NAME_LENGTH)
    shared: bool | None = None
    """Whether all members of the tenant are offered it. The owner must be an editor or admin."""


class SearchBody(Body):
    """What is searched for, and in which calls."""

    text: str = Field(min_length=2, max_length=MAX_NEEDLE)
    q: str = Field("", examples=["tool:search since:24h"])
    """A query of calls. Without `since`: those of the last 24 hours. At most 35 days."""


class Match(Answer):
    """A call with the text in its payload."""

    started_on: str
    """Its UTC day."""
    invocation_id: UUID
    events: list[Literal["start", "end"]]
    """Which of its events have it."""


class Search(Page[Match]):
    """A payload search and its matches so far, the newest call first. Kept for a day."""

    OLD_NAME = "matches"

    id: UUID
    state: Literal["waiting", "running", "done", "full", "cancelled", "failed"]
    created_at: datetime
    q: str
    from_: datetime = Field(alias="from")
    to: datetime
    percent: int
    searched: int
    """Calls that were read."""
    erased: int
    """Events without a payload: it was erased."""
    withheld: bool
    """Always false: only keys that may read payloads see a search."""


@reads(
    router,
    "/views",
    SavedViewPage,
    scope=Scope.OPERATE,
    tag="calls",
    problems=("no_owner", "cursor", "limit"),
)
def list_views(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List the saved views of the key's owner."""
    views = saved_views(Act(request, cast(ApiRequest, request).auth).owner)
    shown, after = paged("views", views, params, lambda view: view.name)
    return {"items": [_view(one) for one in shown], "next": after}


@acts(
    router,
    "POST",
    "/views",
    View,
    scope=Scope.OPERATE,
    tag="calls",
    body=ViewBody,
    status=201,
    problems=("query", "no_owner", "conflict"),
)
def create_view(act: Act) -> dict[str, Any]:
    """Save a query of calls for the key's owner."""
    body, owner = act.read(ViewBody), act.owner
    query = parsed_terms(act.request, body.q)
    try:
        save_view(owner, body.name, str(query))
    except TooManyViewsError as error:
        full = f"The owner already has {MAX_VIEWS} views. Delete one first."
        raise ProblemError("conflict", full) from error
    except ViewNameTakenError as error:
        raise ProblemError("conflict", _TAKEN) from error
    return _view(next(one for one in saved_views(owner) if one.name == body.name))


@acts(
    router,
    "PATCH",
    "/views/{uuid:view_id}",
    View,
    scope=Scope.OPERATE,
    tag="calls",
    body=ViewChange,
    problems=("not_found", "no_owner", "conflict"),
)
def edit_view(act: Act, view_id: Path[UUID]) -> dict[str, Any]:
    """Rename a saved view of the key's owner, share it with all members, or take it back."""
    view = find_view(act.owner, view_id)
    if view is None:
        raise ProblemError("not_found", "View not found.")
    body = act.read(ViewChange)
    is_shared = view.is_shared if body.shared is None else body.shared
    if is_shared and not view.is_shared and not _may_share(act):
        raise ProblemError(
            "conflict", "Only editors and admins can share, and the key's owner is neither."
        )
    try:
        change_view(view, name=body.name or view.name, is_shared=is_shared)
    except ViewNameTakenError as error:
        raise ProblemError("conflict", _TAKEN) from error
    return _view(view)


@acts(
    router,
    "DELETE",
    "/views/{uuid:view_id}",
    View,
    scope=Scope.OPERATE,
    tag="calls",
    problems=("not_found", "no_owner"),
)
def remove_view(act: Act, view_id: Path[UUID]) -> dict[str, Any]:
    """Delete a saved view of the key's owner. Returns it as it was."""
    stored = delete_view(act.owner, view_id)
    if stored is None:
        raise ProblemError("not_found", "View not found.")
    return _view(stored) | {"id": view_id}


@acts(
    router,
    "POST",
    "/searches",
    Search,
    scope=Scope.PAYLOADS,
    tag="calls",
    body=SearchBody,
    status=201,
    problems=("query", "no_owner"),
)
def start_search(act: Act) -> dict[str, Any]:
    """Search for a text in the payloads of calls, in the background. Read the progress by its id.

    The ledger keeps the query and not the text.
    """
    body = act.read(SearchBody)
    query, now = parsed_query(act.request, body.q), timezone.now()
    return _search(begin_search(act.tenant, act.actor, act.owner, body.text, query, now))


@reads(
    router,
    "/searches/{uuid:search_id}",
    Search,
    scope=Scope.PAYLOADS,
    tag="calls",
    problems=("not_found", "no_owner", "cursor"),
)
def read_search(
    request: HttpRequest, search_id: Path[UUID], params: Query[ListParams]
) -> dict[str, Any]:
    """Get the progress of a search of the key's owner, and its matches so far."""
    search = _search_of(Act(request, cast(ApiRequest, request).auth), search_id)
    before = unseal(
        f"search {search.id}", params.cursor, lambda place: parse_cursor("\n".join(place), UUID)
    )
    hits, older = hits_page(search, before, params.limit)
    kinds: dict[tuple[datetime, UUID], list[str]] = {}
    for hit in hits:
        kinds.setdefault((hit.started_at, hit.invocation_id), []).append(hit.kind)
    return _search(search) | {
        "items": [
            {
                "started_on": f"{utc(started_at).date()}",
                "invocation_id": pk,
                "events": sorted(events, reverse=True),
            }
            for (started_at, pk), events in kinds.items()
        ],
        "next": seal(f"search {search.id}", older) if older else None,
    }


@acts(
    router,
    "POST",
    "/searches/{uuid:search_id}/cancel",
    Search,
    scope=Scope.PAYLOADS,
    tag="calls",
    problems=("not_found", "no_owner"),
)
def cancel_search(act: Act, search_id: Path[UUID]) -> dict[str, Any]:
    """Cancel a search. Its matches stay."""
    _search_of(act, search_id)
    payload_search.cancel_search(act.owner, search_id, timezone.now())
    return _search(_search_of(act, search_id))


def _search_of(act: Act, pk: UUID) -> PayloadSearch:
    search = payload_search.find_search(act.owner, pk)
    if search is None:
        raise ProblemError("not_found", "Search not found.")
    return search


def _search(one: PayloadSearch) -> dict[str, Any]:
    return {
        "id": one.id,
        "state": one.state,
        "created_at": utc(one.created_at),
        "q": one.query,
        "from": utc(one.since),
        "to": utc(one.until),
        "percent": percent_of(one),
        "searched": one.searched_count,
        "erased": one.erased_count,
        "items": [],
        "next": None,
        "withheld": False,
    }


def _may_share(act: Act) -> bool:
    membership = Membership.objects.get(tenant=act.tenant, user=act.owner)
    return has_role(membership, Role.EDITOR)


def _view(one: SavedView) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "page": one.page,
        "q": one.query,
        "shared": one.is_shared,
        "created_at": utc(one.created_at),
    }
