"""Making tenants and members from the outside: for operators and for `up`.

Every function says what shall be and may be called again.
"""

from django.utils.text import slugify

from tenants.models import Membership, Role, Tenant, User
from tenants.scope import tenant_scope


def ensure_tenant(slug: str, name: str) -> Tenant:
    """The tenant with this slug, made if there is none; a known one keeps its name.

    Raises ValueError for a slug of other than lower-case letters, digits and dashes.
    """
    if not slug or slug != slugify(slug) or len(slug) > 63:
        raise ValueError(f"not a slug: {slug!r} (lower-case letters, digits, dashes; at most 63)")
    tenant, _ = Tenant.objects.get_or_create(slug=slug, defaults={"name": name})
    return tenant


def ensure_member(
    tenant: Tenant,
    username: str,
    password: str | None = None,
    role: Role = Role.ADMIN,
    *,
    is_staff: bool = True,
) -> User:
    """The user, a member with this role who can sign in with this password.

    `password=None` leaves a known user's password alone and gives a new one none.
    """
    user, is_new = User.objects.get_or_create(username=username)
    if password is not None and (is_new or not user.check_password(password)):
        user.set_password(password)
    elif is_new:
        user.set_unusable_password()
    user.is_staff = is_staff
    user.save()
    with tenant_scope(tenant.id):
        Membership.objects.update_or_create(tenant=tenant, user=user, defaults={"role": role})
    return user
