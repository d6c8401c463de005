"""Plain functions that make valid, dull rows; a test overrides what it is about."""

import secrets
from dataclasses import dataclass

from tenants.models import Membership, Role, Tenant, User
from tenants.scope import tenant_scope

PASSWORD = "correct horse battery staple"


@dataclass(frozen=True)
class Cast:
    """A tenant and one member of each role, with password `PASSWORD`."""

    tenant: Tenant
    admin: User
    editor: User
    auditor: User
    viewer: User


def make_user(name: str) -> User:
    """A user whose name starts with `name` and is nobody else's."""
    return User.objects.create_user(f"{name}-{secrets.token_hex(4)}", password=PASSWORD)


def make_tenant(name: str) -> Tenant:
    """A tenant whose slug starts with `name` and is nobody else's."""
    return Tenant.objects.create(slug=f"{name}-{secrets.token_hex(4)}", name=name.capitalize())


def make_cast(name: str) -> Cast:
    """A tenant of its own for one test, with a member of each role."""
    tenant = make_tenant(name)
    members = {role: make_user(f"{name}-{role.value}") for role in Role}
    with tenant_scope(tenant.id):
        for role, user in members.items():
            Membership.objects.create(tenant=tenant, user=user, role=role)
    return Cast(
        tenant=tenant,
        admin=members[Role.ADMIN],
        editor=members[Role.EDITOR],
        auditor=members[Role.AUDITOR],
        viewer=members[Role.VIEWER],
    )
