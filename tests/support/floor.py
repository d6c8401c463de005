"""Retention floors, and requests to lower them as a second admin makes them."""

import secrets
from uuid import UUID

from django.utils import timezone

from audit.models import FloorRequest
from audit.retention import floor
from tenants.actions import Person, record_action
from tenants.members import add_member
from tenants.models import Role, TenantSetting, User
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_user


def second_admin(cast: Cast) -> User:
    """Another admin of the tenant."""
    user = make_user(f"second-{secrets.token_hex(4)}")
    with tenant_scope(cast.tenant.id):
        member = add_member(cast.tenant, user, Role.ADMIN)
        record_action(cast.tenant, cast.admin, "member.add", user.get_username(), rows=[member])
    return user


def person(user: User) -> Person:
    """A user as who decides something on a page."""
    return Person(user, user)


def set_floor(cast: Cast, days: int | None) -> None:
    """Store a floor without a request; what waits is refused."""
    with tenant_scope(cast.tenant.id):
        if (waiting := floor.waiting_request()) is not None:
            floor.refuse(cast.tenant, person(cast.admin), waiting.id, "no", timezone.now())
        TenantSetting.objects.update_or_create(tenant=cast.tenant, defaults={"floor_days": days})


def floor_of(cast: Cast) -> int | None:
    """The floor as it is stored."""
    with tenant_scope(cast.tenant.id):
        return TenantSetting.objects.get(tenant=cast.tenant).floor_days


def requested_floor(cast: Cast) -> UUID:
    """A request of a second admin to remove a floor of 400 days."""
    set_floor(cast, 400)
    by = person(second_admin(cast))
    with tenant_scope(cast.tenant.id):
        return floor.request_lower(cast.tenant, by, None, "a test", timezone.now()).id


def read_request(cast: Cast, pk: UUID) -> FloorRequest:
    """A request as it is stored."""
    with tenant_scope(cast.tenant.id):
        found = floor.find_request(pk)
    assert found is not None
    return found
