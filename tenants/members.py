"""Members of a tenant: adding, removing, roles, and the rule that an admin always remains.

People are added by accepting an invitation (`tenants.invitations`).

All functions need the tenant's scope.
"""

from tenants.models import Membership, Role, Tenant, User


class LastAdminError(Exception):
    """The deed would leave the tenant without an admin, hence nobody to undo it."""


class AlreadyMemberError(Exception):
    """The user is a member of this tenant already."""


def add_member(tenant: Tenant, user: User, role: Role) -> Membership:
    """Make a user a member. Raises AlreadyMemberError; the role of a member is left alone."""
    membership, is_new = Membership.objects.get_or_create(
        tenant=tenant, user=user, defaults={"role": role}
    )
    if not is_new:
        raise AlreadyMemberError
    _admit_to_admin_site(user, role)
    return membership


def change_role(membership: Membership, role: Role) -> None:
    """Give a member another role. Raises LastAdminError. Locks the tenant's admins."""
    if role is not Role.ADMIN:
        _another_admin_remains(membership)
    membership.role = role
    Membership.objects.filter(tenant_id=membership.tenant_id, pk=membership.pk).update(role=role)
    _admit_to_admin_site(membership.user, role)


def remove_member(membership: Membership) -> None:
    """End a membership; the user's account stays. Raises LastAdminError. Locks the admins."""
    _another_admin_remains(membership)
    Membership.objects.filter(tenant_id=membership.tenant_id, pk=membership.pk).delete()


def _another_admin_remains(leaving: Membership) -> None:
    # Locked, because two admins may remove each other in the same moment: the second one
    # waits here and then sees what the first has done.
    admins = set(
        Membership.objects.select_for_update()
        .filter(tenant_id=leaving.tenant_id, role=Role.ADMIN)
        .order_by("pk")
        .values_list("pk", flat=True)
    )
    if admins == {leaving.pk}:
        raise LastAdminError


def _admit_to_admin_site(user: User, role: Role) -> None:
    # The flag alone opens nothing: the admin site asks for the role in the session's tenant.
    if role in {Role.EDITOR, Role.ADMIN} and not user.is_staff:
        user.is_staff = True
        user.save(update_fields=["is_staff"])
