"""Saved views: call queries that a user has saved under a name, separately in each tenant."""

from uuid import UUID

from django.utils import timezone

from audit.models import SavedView
from tenants.models import User, new_id
from tenants.scope import current_tenant_id

MAX_VIEWS = 50
"""Maximum views of one user in one tenant."""
NAME_LENGTH = 60


class TooManyViewsError(Exception):
    """A user already has the maximum of saved views."""


def saved_views(user: User) -> list[SavedView]:
    """The user's views in the scope's tenant, by name. One query."""
    views = SavedView.objects.for_tenant(current_tenant_id()).filter(user_id=user.pk)
    return list(views.order_by("name"))


def save_view(user: User, name: str, query: str) -> None:
    """Save a query under a name; replaces a view of that name. Raises TooManyViewsError."""
    if sum(view.name != name for view in saved_views(user)) >= MAX_VIEWS:
        raise TooManyViewsError
    SavedView.objects.bulk_create(
        [
            SavedView(
                tenant_id=current_tenant_id(),
                id=new_id(),
                user_id=user.pk,
                name=name,
                query=query,
                created_at=timezone.now(),
            )
        ],
        update_conflicts=True,
        unique_fields=["tenant_id", "user_id", "name"],
        update_fields=["query"],
    )


def delete_view(user: User, pk: UUID) -> SavedView | None:
    """Delete one of the user's views and return it; None if the user has no such view."""
    views = SavedView.objects.for_tenant(current_tenant_id())
    view = views.filter(user_id=user.pk, id=pk).first()
    if view is not None:
        view.delete()
    return view
