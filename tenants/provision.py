"""Creates tenants and members for operators and for `up`.

Every function is idempotent: it makes sure that the wanted state exists.
"""

from django.utils.text import slugify

from tenants.actions import operator, record_action
from tenants.models import Membership, Role, Tenant, User
from tenants.scope import tenant_scope


def ensure_tenant(slug: str, name: str) -> Tenant:
    """The tenant with this slug, created if missing; an existing one keeps its name.

    Raises ValueError for a slug that is longer than 63 characters or has characters other than
    lower-case letters, digits and dashes.
    """
    _check_slug(slug)
    tenant, is_new = Tenant.objects.get_or_create(slug=slug, defaults={"name": name})
    if is_new:
        with tenant_scope(tenant.id):
            record_action(tenant, operator(), "tenant.create", tenant.name, rows=[tenant])
    return tenant


def add_tenant(tenant: Tenant) -> None:
    """Store a new tenant. Needs its scope. Raises ValueError as `ensure_tenant`."""
    _check_slug(tenant.slug)
    tenant.save(force_insert=True)
    record_action(tenant, operator(), "tenant.create", tenant.name, rows=[tenant])


def ensure_member(
    tenant: Tenant,
    username: str,
    password: str | None = None,
    role: Role = Role.ADMIN,
    *,
    is_staff: bool = True,
) -> User:
    """The user with this name, made a member with this role and this password.

    With `password=None` an existing user keeps the password, and a new user cannot sign in.
    """
    user, is_new = User.objects.get_or_create(username=username)
    if password is not None and (is_new or not user.check_password(password)):
        user.set_password(password)
    elif is_new:
        user.set_unusable_password()
    user.is_staff = is_staff
    user.save()
    with tenant_scope(tenant.id):
        known = Membership.objects.filter(tenant=tenant, user=user).first()
        if known is None or known.role != role:
            member, _ = Membership.objects.update_or_create(
                tenant=tenant, user=user, defaults={"role": role}
            )
            record_action(tenant, operator(), "member.add", username, role=role, rows=[member])
    return user


def _check_slug(slug: str) -> None:
    if not slug or slug != slugify(slug) or len(slug) > 63:
        raise ValueError(f"not a slug: {slug!r} (lower-case letters, digits, dashes; at most 63)")
