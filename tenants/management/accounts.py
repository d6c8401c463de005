"""What commands about an account share: find it, and record the act in each of its tenants."""

from typing import Any

from django.core.management.base import CommandError

from tenants.actions import operator, record_action
from tenants.models import User
from tenants.scope import tenant_scope
from tenants.sessions import memberships_of


def account_named(username: str) -> User:
    """The account of this name. Raises CommandError."""
    user = User.objects.filter(username=username).first()
    if user is None:
        raise CommandError(f"unknown user {username!r}")
    return user


def record_in_tenants(user: User, verb: str, **details: Any) -> None:
    """Record an act of the operator in each tenant of the account: each of them trusted it."""
    for membership in memberships_of(user.pk):
        with tenant_scope(membership.tenant_id):
            record_action(membership.tenant, operator(), verb, user.get_username(), **details)
