"""The record of what people did in a tenant."""

from typing import Any

from tenants.models import Action, Tenant, User

_SUBJECT_MAX = 300


def record_action(tenant: Tenant, user: User, verb: str, subject: str, **details: Any) -> None:
    """Write down that `user` did `verb` (as in "key.create") to `subject`, a name for people.

    `details` are JSON values. Needs the tenant's scope, hence stands or falls with the deed.
    """
    Action.objects.create(
        tenant=tenant,
        user_id=user.pk,
        user_name=user.get_username(),
        verb=verb,
        subject=subject[:_SUBJECT_MAX],
        details=details,
    )
