"""The record of what people did in a tenant."""

from typing import Any

from django.db import DEFAULT_DB_ALIAS

from tenants.models import Action, Tenant, User

THE_SERVER = "Tooltrail"
_SUBJECT_MAX = 300


def record_action(
    tenant: Tenant,
    user: User | str,
    verb: str,
    subject: str,
    *,
    using: str = DEFAULT_DB_ALIAS,
    **details: Any,
) -> None:
    """Write down that `user` did `verb` (as in "key.create") to `subject`, a name for people.

    A text names who has no account: an operator, or `THE_SERVER` itself, keeping to what an admin
    decided. `details` are JSON values. Needs
    the tenant's scope, hence stands or falls with the deed.
    """
    Action.objects.using(using).create(
        tenant_id=tenant.pk,
        user_id=user.pk if isinstance(user, User) else None,
        user_name=user.get_username() if isinstance(user, User) else user,
        verb=verb,
        subject=subject[:_SUBJECT_MAX],
        details=details,
    )
