"""The record of what people and programs did in a tenant; the worker makes each a ledger entry."""

import getpass
import re
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID, uuid5

from django.db import DEFAULT_DB_ALIAS
from django.utils import timezone

from tenants.models import Action, Tenant, User

THE_SERVER = "Tooltrail"
_SUBJECT_MAX = 300
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def operator() -> str:
    """What the record calls whoever runs a command on the server's machine."""
    try:
        return f"operator {getpass.getuser()}"
    except OSError:  # a container's user often has no name
        return "operator"


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

    A text names who has no account: an operator, a program by its key, or `THE_SERVER` itself,
    keeping to what an admin decided. `details` are JSON values. Needs
    the tenant's scope, hence stands or falls with the deed.
    """
    _action(tenant.pk, user, verb, subject, details).save(using=using, force_insert=True)


def record_actions(
    tenant_id: UUID, user: User | str, done: Iterable[tuple[str, str, Mapping[str, Any]]]
) -> None:
    """The same of many deeds at once: verb, subject and details of each. One statement."""
    actions = [_action(tenant_id, user, *one) for one in done]
    Action.objects.bulk_create(actions, ignore_conflicts=True)  # their ids are new


def record_look(
    tenant_id: UUID, user: User | str, verb: str, subject: str, *, apart: str = "", **details: Any
) -> None:
    """The same of what readers do over and over: once a minute, with the first one's details.

    So reading cannot make the ledger grow without end. An export of payloads is recorded for
    each query: `apart` is the query, and two queries are two entries.
    """
    action = _action(tenant_id, user, verb, subject, details)
    minute = int(timezone.now().timestamp()) // 60
    action.id = uuid5(tenant_id, f"{action.user_name}\n{verb}\n{action.subject}\n{minute}\n{apart}")
    Action.objects.bulk_create([action], ignore_conflicts=True)


def storable(value: Any) -> Any:
    """A JSON value as PostgreSQL can hold it: U+FFFD for U+0000 and for half surrogate pairs."""
    match value:
        case str():
            return _UNSTORABLE.sub("\ufffd", value)
        case Mapping():
            return {storable(name): storable(member) for name, member in value.items()}
        case list() | tuple():
            return [storable(item) for item in value]
        case _:
            return value


def _action(
    tenant_id: UUID, user: User | str, verb: str, subject: str, details: Mapping[str, Any]
) -> Action:
    return Action(
        tenant_id=tenant_id,
        user_id=user.pk if isinstance(user, User) else None,
        user_name=user.get_username() if isinstance(user, User) else user,
        verb=verb,
        subject=storable(subject[:_SUBJECT_MAX]),
        details=storable(details),
    )
