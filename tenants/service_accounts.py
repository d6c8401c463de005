"""Service accounts: members that are programs. A key that one of them owns outlives people.

Such an account belongs to one tenant. It has no password, opens no session and is in no list of
people; what its keys may do is in their scopes. All functions need the tenant's scope.
"""

import re

from django.contrib.auth.hashers import make_password
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from tenants.actions import Actor, record_action
from tenants.admin_acts import end_key
from tenants.keys import forget_verified
from tenants.models import ApiKey, Membership, Role, Tenant, User

PREFIX = "service:"
"""User names of people cannot have a colon."""
NAME_MAX = 60
_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?", re.ASCII)


class NameTakenError(Exception):
    """The tenant has a service account of this name."""


def service_accounts(tenant: Tenant) -> QuerySet[Membership]:
    """The tenant's service accounts with their users."""
    return Membership.objects.filter(tenant=tenant, is_service=True).select_related("user")


def name_in(account: Membership) -> str:
    """The name that an admin gave to a service account."""
    return account.user.username.removeprefix(PREFIX).rpartition("@")[0]


def working_keys(tenant: Tenant) -> dict[int, int]:
    """How many keys of each service account work, by the id of its user. One query."""
    now = timezone.now()
    account = Membership.objects.filter(
        tenant=tenant, user_id=OuterRef("owner_id"), is_service=True, disabled_at=None
    )
    keys = ApiKey.objects.filter(
        Exists(account), Q(expires_at=None) | Q(expires_at__gt=now), tenant=tenant, revoked_at=None
    )
    return dict(keys.values_list("owner_id").annotate(number=Count("pk")).order_by())


def create_account(tenant: Tenant, actor: Actor, name: str) -> Membership:
    """Make a service account. Raises ValueError for an invalid name, and NameTakenError."""
    if len(name) > NAME_MAX or not _NAME.fullmatch(name):
        raise ValueError(
            f"Use at most {NAME_MAX} lower-case letters, digits and . _ - between them."
        )
    # The account of a deleted service account is used again: accounts are never deleted.
    user, _ = User.objects.get_or_create(
        username=f"{PREFIX}{name}@{tenant.slug}", defaults={"password": make_password(None)}
    )
    if user.has_usable_password():
        raise NameTakenError
    account, is_new = Membership.objects.get_or_create(
        tenant=tenant, user=user, defaults={"role": Role.VIEWER, "is_service": True}
    )
    if not is_new:
        raise NameTakenError
    record_action(tenant, actor, "service.create", user.username, rows=[account])
    return account


def disable_account(tenant: Tenant, actor: Actor, account: Membership) -> None:
    """Refuse its keys until it is enabled. Other processes may accept events for 5 s more."""
    if account.disabled_at is None:
        account.disabled_at = timezone.now()
        _change(tenant, actor, account, "service.disable")


def enable_account(tenant: Tenant, actor: Actor, account: Membership) -> None:
    """Accept the keys of a disabled service account again."""
    if account.disabled_at is not None:
        account.disabled_at = None
        _change(tenant, actor, account, "service.enable")


def delete_account(tenant: Tenant, actor: Actor, account: Membership) -> None:
    """Revoke its keys permanently, each with its own action, and end the account."""
    for key in ApiKey.objects.filter(tenant=tenant, owner_id=account.user_id, revoked_at=None):
        end_key(tenant, actor, key)
    Membership.objects.filter(tenant=tenant, pk=account.pk).delete()
    record_action(tenant, actor, "service.delete", account.user.username, rows=[account])


def _change(tenant: Tenant, actor: Actor, account: Membership, verb: str) -> None:
    Membership.objects.filter(tenant=tenant, pk=account.pk).update(disabled_at=account.disabled_at)
    forget_verified()
    record_action(tenant, actor, verb, account.user.username, rows=[account])
