"""Members of a tenant: adding, removing, roles, and the rule that an admin always remains.

People are added by accepting an invitation (`tenants.invitations`).

All functions need the tenant's scope.
"""

from typing import Any

from django.db.models import QuerySet

from tenants.models import AnyProvider, InstallationProvider, Membership, Role, Tenant, User


class LastAdminError(Exception):
    """The change would leave the tenant without an admin, or without the one who breaks the glass,
    so nobody could undo it."""


class AlreadyMemberError(Exception):
    """The user is a member of this tenant already."""


def members_of(tenant: Tenant) -> QuerySet[User]:
    """The accounts that can own a key: members and enabled service accounts, by user name."""
    ids = Membership.objects.filter(tenant=tenant, disabled_at=None).values("user_id")
    return User.objects.filter(pk__in=ids).order_by("username")


def people_of(tenant: Tenant) -> QuerySet[Membership]:
    """The memberships of people, with their users: all but service accounts."""
    return Membership.objects.filter(tenant=tenant, is_service=False).select_related("user")


def add_member(
    tenant: Tenant, user: User, role: Role, provider: AnyProvider | None = None
) -> Membership:
    """Make a user a member. Raises AlreadyMemberError; an existing role does not change.

    With a `provider`, only its sessions open the membership, and it decides the role.
    """
    defaults: dict[str, Any] = {"role": role}
    if isinstance(provider, InstallationProvider):
        defaults["installation_provider_id"] = provider.pk
    elif provider is not None:
        defaults["identity_provider_id"] = provider.pk
    membership, is_new = Membership.objects.get_or_create(
        tenant=tenant, user=user, defaults=defaults
    )
    if not is_new:
        raise AlreadyMemberError
    _admit_to_admin_site(user, role)
    return membership


def change_role(membership: Membership, role: Role) -> None:
    """Give a member another role. Raises LastAdminError. Locks the tenant's admins."""
    if role is not Role.ADMIN:
        _another_admin_remains(membership)
        _is_not_behind_glass(membership)
    membership.role = role
    Membership.objects.filter(tenant_id=membership.tenant_id, pk=membership.pk).update(role=role)
    _admit_to_admin_site(membership.user, role)


def remove_member(membership: Membership) -> None:
    """End a membership; the user's account stays. Raises LastAdminError. Locks the admins."""
    _another_admin_remains(membership)
    _is_not_behind_glass(membership)
    Membership.objects.filter(tenant_id=membership.tenant_id, pk=membership.pk).delete()


def _another_admin_remains(leaving: Membership) -> None:
    # Locked, because two admins may remove each other at the same time: the second one waits
    # here and then sees the change of the first.
    admins = set(
        Membership.objects.select_for_update()
        .filter(tenant_id=leaving.tenant_id, role=Role.ADMIN)
        .order_by("pk")
        .values_list("pk", flat=True)
    )
    if admins == {leaving.pk}:
        raise LastAdminError


def _is_not_behind_glass(leaving: Membership) -> None:
    if leaving.breaks_glass:
        raise LastAdminError("the admin who breaks the glass")


def _admit_to_admin_site(user: User, role: Role) -> None:
    # The flag alone gives no access: the admin site checks the role in the session's tenant, too.
    if role in {Role.EDITOR, Role.ADMIN} and not user.is_staff:
        user.is_staff = True
        user.save(update_fields=["is_staff"])
