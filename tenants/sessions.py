"""Chooses the tenant of a session and records what users do outside a tenant's pages."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from tenants.accounts.policy import opens
from tenants.actions import record_view
from tenants.models import Action, Membership, User
from tenants.scope import tenant_scope, user_scope

_NOBODY = 0
_NOWHERE = UUID(int=0)
"""Ids that no user and no tenant has."""


def memberships_of(user_id: int) -> list[Membership]:
    """A user's memberships with their tenants, including suspended ones, by tenant name.

    A service account has none: it opens no session.
    Opens the user's scope, so no other scope may be open.
    """
    with user_scope(user_id):
        return list(
            Membership.objects.filter(user_id=user_id, is_service=False)
            .select_related("tenant")
            .order_by("tenant__name", "tenant_id")
        )


def opened_by(session: Mapping[str, Any], memberships: Sequence[Membership]) -> list[Membership]:
    """Those whose tenants a session may open (`tenants.accounts.policy.opens`)."""
    return [one for one in memberships if opens(session, one)]


def choose(memberships: Sequence[Membership], *wanted: object) -> Membership | None:
    """The membership of the first of the `wanted` tenant ids that has one, else the oldest.

    The oldest, because nobody can change its age; a tenant's name can be changed by its admins.
    """
    by_tenant = {str(one.tenant_id): one for one in memberships}
    for tenant_id in wanted:
        if membership := by_tenant.get(str(tenant_id)):
            return membership
    return min(memberships, key=lambda one: (one.created_at, one.tenant_id), default=None)


def record_session(
    user: User | None,
    verb: str,
    *,
    chosen: object = None,
    session: Mapping[str, Any] | None = None,
    **details: Any,
) -> Membership | None:
    """Record, at most once a minute, what a user did outside a tenant's pages.

    Records it in one tenant and returns the membership there: the session's tenant (`chosen`), or
    the one in which it would open. Admins of other tenants must not learn of a sign-in here. With a
    `session`, only tenants count that it may open; without one, those open to a password. Opens
    the scopes of the user and of that tenant, so no scope may be open.

    Without a user or a membership it runs as many queries but writes nothing: the time of a
    failed sign-in must not reveal which names exist.
    """
    memberships = opened_by(session or {}, memberships_of(_NOBODY if user is None else user.pk))
    active = [one for one in memberships if one.tenant.suspended_at is None]
    membership = choose(active or memberships, chosen, user and user.last_tenant_id)
    with tenant_scope(_NOWHERE if membership is None else membership.tenant_id):
        if user is None or membership is None:
            Action.objects.filter(tenant_id=_NOWHERE, pk=_NOWHERE).exists()
        else:
            record_view(membership.tenant_id, user, verb, user.get_username(), **details)
    return membership
