"""The audit log as a file and as documents of the API.

Both forms end with the number of actions: without it, a file was cut off. `ledger_index` is the
ledger entry with the same content, which proves the action.
"""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from audit.exports.forms import text_forms
from audit.queries.actions import ActionFilter, action_page
from audit.queries.cursor import Cursor
from config.instants import iso_exact
from tenants.models import Action
from tenants.scope import tenant_scope

COLUMNS = ("id", "at", "actor", "actor_id", "verb", "subject", "details", "ledger_index")
"""Members and columns, in order."""
_CHUNK = 1_000


def document(action: Action) -> dict[str, Any]:
    """An action's members: JSON values, its instant as RFC 3339 in UTC."""
    return {
        "id": str(action.id),
        "at": iso_exact(action.at),
        "actor": action.user_name,
        "actor_id": action.user_id,
        "verb": action.verb,
        "subject": action.subject,
        "details": action.details,
        "ledger_index": action.ledger_index,
    }


def chunks(tenant_id: UUID, wanted: ActionFilter) -> Iterator[list[dict[str, Any]]]:
    """All actions that match, newest first, as documents. One scope for each chunk."""
    before: Cursor[UUID] | None = None
    while True:
        with tenant_scope(tenant_id):
            page = action_page(wanted, before=before, size=_CHUNK)
        if page.actions:
            yield [document(action) for action in page.actions]
        if page.older is None:
            return
        before = page.older


FORMS = text_forms(COLUMNS)
"""The forms of the file, by file extension."""
