"""Saved views: what a page lists, saved under a name by a user, in one tenant.

A view is its owner's. A shared one is offered to all members, who can make it their default.
"""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from audit.models import PageChoice, SavedView
from audit.sql.run import rows
from tenants.models import User, new_id
from tenants.scope import current_tenant_id

CALLS: Final = "calls"
PAGES: Final[Mapping[str, str]] = {
    CALLS: "Calls",
    "traces": "Traces",
    "violations": "Violations",
    "latency": "Latency & tokens",
    "costs": "Costs",
}
"""The pages that have views, by name: their titles."""
MAX_VIEWS = 50
"""Maximum views of one user in one tenant."""
NAME_LENGTH = 60
QUERY_LENGTH = 2_000


class TooManyViewsError(Exception):
    """A user already has the maximum of saved views."""


class ViewNameTakenError(Exception):
    """A user already has another view of this name."""


def saved_views(user: User) -> list[SavedView]:
    """The user's own views in the scope's tenant, by name. One query."""
    views = SavedView.objects.for_tenant(current_tenant_id()).filter(user_id=user.pk)
    return list(views.order_by("name"))


def offered_views(user: User, page: str = "") -> list[SavedView]:
    """The user's own views and those that others share, by name; of one page. One statement."""
    names = ("id", "user_id", "name", "query", "page", "is_shared", "created_at")
    tenant_id = current_tenant_id()
    return [
        SavedView(tenant_id=tenant_id, **dict(zip(names, row, strict=True)))
        for row in rows("offered_views", {"user_id": user.pk or 0, "page": page})
    ]


def save_view(user: User, name: str, query: str, page: str = CALLS) -> None:
    """Save a query under a name; replaces a view of that name and page.

    Raises TooManyViewsError, and ViewNameTakenError if a view of another page has the name.
    """
    own = saved_views(user)
    if any(view.name == name and view.page != page for view in own):
        raise ViewNameTakenError
    if sum(view.name != name for view in own) >= MAX_VIEWS:
        raise TooManyViewsError
    SavedView.objects.bulk_create(
        [
            SavedView(
                tenant_id=current_tenant_id(),
                id=new_id(),
                user_id=user.pk,
                name=name,
                query=query,
                page=page,
                is_shared=False,
                created_at=timezone.now(),
            )
        ],
        update_conflicts=True,
        unique_fields=["tenant_id", "user_id", "name"],
        update_fields=["query"],
    )


def find_view(user: User, pk: UUID, *, manages_shared: bool = False) -> SavedView | None:
    """A view that the user may change: an own one, or with `manages_shared` any shared one."""
    views = SavedView.objects.for_tenant(current_tenant_id()).filter(id=pk)
    may_change = Q(user_id=user.pk)
    if manages_shared:
        may_change |= Q(is_shared=True)
    view: SavedView | None = views.filter(may_change).first()
    return view


def change_view(view: SavedView, *, name: str, is_shared: bool) -> None:
    """Give a view another name, share it or take it back. Raises ViewNameTakenError."""
    others = SavedView.objects.for_tenant(view.tenant_id).filter(user_id=view.user_id, name=name)
    if others.exclude(id=view.id).exists():
        raise ViewNameTakenError
    view.name, view.is_shared = name, is_shared
    view.save(update_fields=["name", "is_shared"])


def delete_view(user: User, pk: UUID, *, manages_shared: bool = False) -> SavedView | None:
    """Delete a view that the user may change and return it; None if there is none."""
    view = find_view(user, pk, manages_shared=manages_shared)
    if view is not None:
        view.delete()
    return view


def page_choice(user: User, page: str) -> PageChoice | None:
    """What a user chose for a page; None: nothing. One statement."""
    for columns, default_view in rows("page_choice", {"user_id": user.pk or 0, "page": page}):
        return PageChoice(
            tenant_id=current_tenant_id(),
            user_id=user.pk,
            page=page,
            columns=columns,
            default_view=default_view,
        )
    return None


def choose_default(user: User, page: str, view_id: UUID | None) -> None:
    """Set the view that the page opens with; None: the page itself."""
    _choose(user, page, "default_view", view_id)


def choose_columns(user: User, page: str, columns: list[str] | None) -> None:
    """Set the columns of the page's table; None: those of the page."""
    _choose(user, page, "columns", columns)


def _choose(user: User, page: str, field: str, value: object) -> None:
    choice = PageChoice(tenant_id=current_tenant_id(), user_id=user.pk, page=page)
    setattr(choice, field, value)
    PageChoice.objects.bulk_create(
        [choice],
        update_conflicts=True,
        unique_fields=["tenant_id", "user_id", "page"],
        update_fields=[field],
    )
