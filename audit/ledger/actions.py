"""What people did, in the ledger: actions become entries, and are held against them.

A deed and its row stand or fall together (`tenants.actions`); the worker enters rows before it
folds, each once: rows, batch and head change in one transaction. From then on a row that is
changed, deleted or put in beside the ledger disagrees with it. What somebody with the database
in hand does to a row in the seconds before, nothing can tell.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db.models import Q
from tooltrail.ledger import Kind

from audit.ledger.entries import append_batch, raw_of
from audit.sql import arrays
from audit.sql.run import run
from tenants.models import Action
from tenants.scope import tenant_scope

BATCH = 500
"""Entered at once."""
TOLERANCE = timedelta(minutes=10)
"""A deed is on record as of its beginning, and may end after a later one, but not so long after:
a row put in by hand has to be of now, or stands behind later ones."""
_TOLD = 20


def enter_actions(tenant_id: UUID, now: datetime, *, batch: int = BATCH) -> int:
    """Make entries of the actions that are none yet, the oldest first; how many it were.

    A second worker waits for the rows and then finds them entered.
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


def action_raw(action: Action) -> bytes:
    """The bytes an action enters the ledger with; of an altered row, others."""
    return raw_of(
        Kind.ACTION,
        action.id,
        action.at.astimezone(UTC),
        {
            "actor": action.user_name,
            "actor_id": action.user_id,
            "verb": action.verb,
            "subject": action.subject,
            "details": action.details,
        },
    )


def disagreements(
    tenant_id: UUID, first_index: int, end_index: int, entered: Mapping[int, bytes]
) -> Iterator[str]:
    """What is wrong with the actions of a stretch of the ledger, whose entries are `entered`: raw
    by index. One query; needs the tenant's scope.
    """
    found = Action.objects.filter(
        tenant_id=tenant_id, ledger_index__gte=first_index, ledger_index__lt=end_index
    )
    rows = {action.ledger_index: action for action in found}
    for index, raw in entered.items():
        action = rows.pop(index, None)
        if action is None:
            yield f"entry {index:,}: the action it records was deleted"
        elif action_raw(action) != raw:
            yield f"entry {index:,}: the action it records was changed"
    for claimed in rows:
        yield f"entry {claimed:,}: an action was put in that claims it"


def strays(tenant_id: UUID, size: int) -> Iterator[str]:
    """Actions that have no place in a ledger of so many entries, or not that one. Two queries."""
    rows = Action.objects.filter(tenant_id=tenant_id)
    beside = rows.filter(Q(ledger_index__lt=0) | Q(ledger_index__gte=size))[:_TOLD]
    for action in beside:
        yield f"an action was put in that claims entry {action.ledger_index:,}, which there is not"
    for index, at, latest in run(
        "actions_out_of_order",
        tolerance=TOLERANCE,
        row_limit=_TOLD,
    ):
        yield (
            f"entry {index:,}: an action of {at:%Y-%m-%d %H:%M} UTC was entered behind one of"
            f" {latest:%Y-%m-%d %H:%M}: it was put in later, or a clock was wrong"
        )
