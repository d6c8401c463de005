"""The audit log: actions of people and programs. The worker enters each in the ledger."""

import getpass
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid5

from django.db import DEFAULT_DB_ALIAS, models
from django.utils import timezone

from tenants.models import Action, Tenant, User
from tenants.row_digests import digests_of

THE_SERVER = "Tooltrail"

type Actor = User | str
"""Who acts: a user, or the name of an actor without an account (`record_action`)."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who decides something as a person, on a page or with a key of their own."""

    account: User
    actor: Actor
    """As the audit log names them."""


_SUBJECT_MAX = 300
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def operator() -> str:
    """The name in the audit log of the person who runs a command on the server's machine."""
    try:
        return f"operator {getpass.getuser()}"
    except OSError:  # a container's user often has no name
        return "operator"


def name_of(actor: Actor) -> str:
    """The actor's name, to be stored as a copy that outlives the account."""
    return actor.get_username() if isinstance(actor, User) else actor


def account_of(actor: Actor) -> int | None:
    """The id of the actor's account; None without one."""
    return actor.pk if isinstance(actor, User) else None


def record_action(
    tenant: Tenant,
    user: Actor,
    verb: str,
    subject: str,
    *,
    rows: Iterable[models.Model] = (),
    using: str = DEFAULT_DB_ALIAS,
    **details: Any,
) -> None:
    """Record in the audit log that `user` did `verb` (such as "key.create") to `subject`.

    `subject` is a readable name. `user` is a string for an actor without an account: an operator,
    a program with its key, or `THE_SERVER`, which carries out an admin's settings. `details` are
    JSON values. `rows` are the rows that were stored, changed or deleted, if their model is proved
    (`tenants.row_digests`); call this after the change. Needs the tenant's scope: the action is
    committed or rolled back with the change.
    """
    action = _action(tenant.pk, user, verb, subject, details)
    action.rows = digests_of(tenant.pk, rows, using=using)
    action.save(using=using, force_insert=True)


def record_actions(
    tenant_id: UUID,
    user: Actor,
    entries: Iterable[tuple[str, str, Mapping[str, Any]]],
    *,
    rows: Iterable[models.Model] = (),
) -> None:
    """Record many actions in one statement; `entries` has verb, subject and details of each.

    The last one names all `rows`, as in `record_action`.
    """
    actions = [_action(tenant_id, user, *one) for one in entries]
    if actions:
        actions[-1].rows = digests_of(tenant_id, rows)
    Action.objects.bulk_create(actions, ignore_conflicts=True)  # new ids: no conflict is possible


def record_view(
    tenant_id: UUID,
    user: Actor,
    verb: str,
    subject: str,
    *,
    apart: str = "",
    every: timedelta = timedelta(minutes=1),
    **details: Any,
) -> None:
    """Record a repeated read action once a minute, or `every`, with the first one's details.

    This limits how fast reading makes the ledger grow. Actions with different `apart` are recorded
    separately: an export of payloads passes its query, so two queries are two entries.
    """
    action = _action(tenant_id, user, verb, subject, details)
    slot = int(timezone.now().timestamp() // every.total_seconds())
    action.id = uuid5(tenant_id, f"{action.user_name}\n{verb}\n{action.subject}\n{slot}\n{apart}")
    Action.objects.bulk_create([action], ignore_conflicts=True)


def record_once(tenant_id: UUID, user: Actor, verb: str, subject: str, **details: Any) -> None:
    """Record an action unless this verb was recorded with this subject by this function."""
    action = _action(tenant_id, user, verb, subject, details)
    action.id = uuid5(tenant_id, f"{verb}\n{action.subject}")
    Action.objects.bulk_create([action], ignore_conflicts=True)


def storable_text(text: str) -> str:
    """A text that PostgreSQL can store: U+FFFD replaces U+0000 and lone surrogates."""
    return _UNSTORABLE.sub("\ufffd", text)


def storable(value: Any) -> Any:
    """A JSON value that PostgreSQL can store: U+FFFD replaces U+0000 and lone surrogates."""
    match value:
        case str():
            return storable_text(value)
        case Mapping():
            return {storable(name): storable(member) for name, member in value.items()}
        case list() | tuple():
            return [storable(item) for item in value]
        case _:
            return value


def _action(
    tenant_id: UUID, user: Actor, verb: str, subject: str, details: Mapping[str, Any]
) -> Action:
    return Action(
        tenant_id=tenant_id,
        user_id=account_of(user),
        user_name=name_of(user),
        verb=verb,
        subject=storable(subject[:_SUBJECT_MAX]),
        details=storable(details),
    )
