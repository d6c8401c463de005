"""Which of a user's tenants a session is in, and the record of what is done outside its pages."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tenants.actions import record_look
from tenants.models import Action, Membership, User
from tenants.scope import tenant_scope, user_scope

_NOBODY = 0
_NOWHERE = UUID(int=0)
"""Ids that no user and no tenant has."""


def memberships_of(user_id: int) -> list[Membership]:
    """A user's memberships with their tenants, suspended ones too, by the tenant's name.

    Opens the user's scope: no other may be open.
    """
    with user_scope(user_id):
        return list(
            Membership.objects.filter(user_id=user_id)
            .select_related("tenant")
            .order_by("tenant__name", "tenant_id")
        )


def choose(memberships: Sequence[Membership], *wanted: object) -> Membership | None:
    """The membership of the first wanted tenant (by id) that there is, else the oldest one.

    The oldest, because nobody else can change it: a tenant's name is for its admin to choose.
    """
    by_tenant = {str(one.tenant_id): one for one in memberships}
    for tenant_id in wanted:
        if found := by_tenant.get(str(tenant_id)):
            return found
    return min(memberships, key=lambda one: (one.created_at, one.tenant_id), default=None)


def record_session(
    user: User | None, verb: str, *, chosen: object = None, **details: Any
) -> Membership | None:
    """Write down, once a minute, what a user did outside a tenant's pages; returns where.

    It is on record in one tenant, the one the session is in (`chosen`) or would open in: when
    somebody signs in to another tenant is not for this one's admins to know. Opens the scopes
    of the user and of that tenant: none may be open.

    For nobody, and for who is a member nowhere, it asks as much of the database and writes
    nothing: how long a refusal takes must not tell which names there are.
    """
    memberships = memberships_of(_NOBODY if user is None else user.pk)
    active = [one for one in memberships if one.tenant.suspended_at is None]
    membership = choose(active or memberships, chosen, user and user.last_tenant_id)
    with tenant_scope(_NOWHERE if membership is None else membership.tenant_id):
        if user is None or membership is None:
            Action.objects.filter(tenant_id=_NOWHERE, pk=_NOWHERE).exists()
        else:
            record_look(membership.tenant_id, user, verb, user.get_username(), **details)
    return membership
