"""User actions in the ledger: actions become entries, and rows are checked against the entries.

A change and its action row are committed together (`tenants.actions`). The worker enters the rows
before it folds, each row once: rows, batch and ledger head change in one transaction. After that,
a row that is changed, deleted or inserted outside the ledger disagrees with it. Changes made
directly in the database in the seconds before that cannot be detected.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils import timezone
from tooltrail.ledger import Kind

from audit.ledger.entries import append_batch, raw_of
from audit.sql import arrays
from audit.sql.run import run
from tenants.models import Action
from tenants.scope import tenant_scope

BATCH = 500
"""Actions entered in one transaction."""
TOLERANCE = timedelta(minutes=10)
"""How much older an action may be than one entered before it. An action is recorded with its
start time, so it may end after a later one. A row inserted by hand with an older time is detected.
"""
_LISTED = 20


def enter_actions(tenant_id: UUID, now: datetime, *, batch: int = BATCH) -> int:
    """Enter the actions that are not in the ledger yet, oldest first. Returns how many.

    A second worker waits for the row locks and then has nothing left to enter.
    """
    with tenant_scope(tenant_id):
        waiting = Action.objects.filter(tenant_id=tenant_id, ledger_index=None)
        actions = list(waiting.order_by("at", "id").select_for_update()[:batch])
        if actions:
            events = [(action.id, action_raw(action)) for action in actions]
            first_index = append_batch(tenant_id, Kind.ACTION, events, now)
            run(
                "note_entered",
                ids=arrays.uuids([action.id for action in actions]),
                indexes=arrays.bigints(list(range(first_index, first_index + len(actions)))),
            )
    return len(actions)


def enter_all_actions(tenant_id: UUID) -> None:
    """Enter all actions. Before something is erased: what justifies it comes first."""
    while enter_actions(tenant_id, timezone.now()) == BATCH:
        pass


def action_raw(action: Action) -> bytes:
    """The bytes an action enters the ledger with. An altered row gives different bytes."""
    members: dict[str, Any] = {
        "actor": action.user_name,
        "actor_id": action.user_id,
        "verb": action.verb,
        "subject": action.subject,
        "details": action.details,
    }
    if action.rows:  # actions of older releases name no rows, and their bytes stay
        members["rows"] = action.rows
    return raw_of(Kind.ACTION, action.id, action.at.astimezone(UTC), members)


def disagreements(
    tenant_id: UUID, first_index: int, end_index: int, entered: Mapping[int, bytes]
) -> Iterator[str]:
    """Differences between action rows and the ledger entries from `first_index` to `end_index`.

    `entered` maps the index of each action entry to its raw bytes. `end_index` is exclusive.
    One query; needs the tenant's scope.
    """
    stored = Action.objects.filter(
        tenant_id=tenant_id, ledger_index__gte=first_index, ledger_index__lt=end_index
    )
    rows = {action.ledger_index: action for action in stored}
    for index, raw in entered.items():
        action = rows.pop(index, None)
        if action is None:
            yield f"entry {index:,}: its action was deleted from the audit log"
        elif action_raw(action) != raw:
            yield f"entry {index:,}: its action was changed in the audit log"
    for claimed in rows:
        yield f"entry {claimed:,}: an action that was inserted claims this entry"


def strays(tenant_id: UUID, size: int) -> Iterator[str]:
    """Actions whose index is outside a ledger of `size` entries, or out of order. Two queries."""
    rows = Action.objects.filter(tenant_id=tenant_id)
    beside = rows.filter(Q(ledger_index__lt=0) | Q(ledger_index__gte=size))[:_LISTED]
    for action in beside:
        claimed = f"{action.ledger_index:,}"
        yield f"an action that was inserted claims entry {claimed}, which does not exist"
    for index, at, latest in run(
        "actions_out_of_order",
        tolerance=TOLERANCE,
        row_limit=_LISTED,
    ):
        yield (
            f"entry {index:,}: an action of {at:%Y-%m-%d %H:%M} UTC follows one of"
            f" {latest:%Y-%m-%d %H:%M}: it was inserted later, or a clock was wrong"
        )
