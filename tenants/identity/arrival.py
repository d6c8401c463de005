"""Who arrives by a provider of the installation, and in which tenants its groups give a role.

Memberships that it made are its own: at each sign-in they are made, changed and ended as the groups
say. Who was invited keeps that membership. Opens tenants' scopes, so none may be open.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.db import transaction
from django.urls import Resolver404, resolve
from django.utils import timezone
from django.utils.text import slugify

from tenants.actions import record_action
from tenants.admin_acts import end_membership, give_role
from tenants.identity.admission import Identity, RefusedError, groups_in, make_account
from tenants.identity.providers import end_sessions, strongest_of
from tenants.invitations import InvitationOverError, check_open, read_token
from tenants.members import LastAdminError, add_member
from tenants.models import InstallationProvider, Membership, Role, Tenant, User
from tenants.scope import tenant_scope
from tenants.sessions import memberships_of


def roles_for(provider: InstallationProvider, claims: Mapping[str, Any]) -> dict[UUID, Role]:
    """The strongest role of somebody's groups in each tenant to which they lead."""
    groups = set(groups_in(provider, claims))
    given: dict[UUID, list[str]] = {}
    for one in provider.roles:
        if one["group"] in groups:
            given.setdefault(UUID(one["tenant"]), []).append(one["role"])
    roles = {tenant_id: strongest_of(each) for tenant_id, each in given.items()}
    return {tenant_id: role for tenant_id, role in roles.items() if role is not None}


def arrive(
    provider: InstallationProvider, identity: Identity, user: User | None, target: str
) -> tuple[User, list[UUID]]:
    """Bring somebody's memberships up to date before the session opens.

    Returns the account, and the tenants to which the groups lead. An account is made only for
    somebody whom a group leads to a tenant, or who comes from an open invitation (`target`, its
    path), because a provider may know the whole world. Raises RefusedError.
    """
    roles = roles_for(provider, identity.claims)
    open_tenants = list(
        Tenant.objects.filter(pk__in=roles, suspended_at=None).order_by("created_at", "id")
    )
    if user is None:
        if not open_tenants and not _leads_to_invitation(target):
            raise RefusedError(
                f"None of your groups at {provider.name} leads to a tenant here. If you were"
                " invited, open the link of the invitation and sign in there."
            )
        with transaction.atomic():
            account = make_account(identity, slugify(provider.name) or "provider")
    else:
        account = user
        _end_lost(provider, account, roles)
    led_to = []
    for tenant in open_tenants:
        with tenant_scope(tenant.pk):
            if _join(provider, tenant, account, roles[tenant.pk]):
                led_to.append(tenant.pk)
    return account, led_to


def _join(provider: InstallationProvider, tenant: Tenant, user: User, role: Role) -> bool:
    """Make somebody a member with a role; False if the last admin should have another one."""
    members = Membership.objects.filter(tenant_id=tenant.pk, user=user)
    member = members.select_related("user").first()
    if member is None:
        member = add_member(tenant, user, role, provider)
        record_action(
            tenant,
            provider.name,
            "member.accept",
            user.get_username(),
            role=member.role,
            provider=provider.name,
            rows=[member],
        )
    elif member.installation_provider_id == provider.pk and member.role != role:
        try:
            give_role(tenant, provider.name, member, role)
        except LastAdminError:
            return False
    return True


def _end_lost(provider: InstallationProvider, user: User, roles: Mapping[UUID, Role]) -> None:
    """End the memberships that the groups gave and give no more, and the provider's sessions."""
    lost = [
        one
        for one in memberships_of(user.pk)
        if one.installation_provider_id == provider.pk
        and one.tenant_id not in roles
        and one.tenant.suspended_at is None
    ]
    for one in lost:
        with tenant_scope(one.tenant_id), suppress(LastAdminError):
            one.user = user
            end_membership(one.tenant, provider.name, one)
    if lost:
        # A session remembers where the groups led when it began.
        end_sessions(provider, user.pk)


def _leads_to_invitation(target: str) -> bool:
    try:
        match = resolve(target.partition("?")[0])
    except Resolver404:
        return False
    token = read_token(match.kwargs["token"]) if match.url_name == "invitation_accept" else None
    if token is None:
        return False
    with tenant_scope(token.tenant_id):
        invitation = token.find()
        if invitation is None or invitation.tenant.suspended_at is not None:
            return False
        try:
            check_open(invitation, timezone.now())
        except InvitationOverError:
            return False
    return True
