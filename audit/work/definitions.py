"""Approves definitions of tools that changed."""

from datetime import datetime

from audit.queries.definitions import ServedDefinition
from audit.sql.run import rows
from tenants.actions import record_action
from tenants.models import Tenant, User

REASON_MAX = 500
"""Characters of a reason."""


def approve(
    tenant: Tenant, actor: User | str, one: ServedDefinition, reason: str, now: datetime
) -> bool:
    """Approve a pending definition of a tool, from now on. Returns whether it was pending.

    Needs the tenant's scope. Calls that were made before stay calls under an unapproved one.
    """
    name = actor.get_username() if isinstance(actor, User) else actor
    parameters = {"id": one.id, "actor": name, "reason": reason, "now": now}
    if not rows("approve_definition", parameters):
        return False
    record_action(
        tenant,
        actor,
        "definition.approve",
        f"{one.tool_name} of {one.server}",
        definition=str(one.id),
        digest=one.digest,
        reason=reason,
    )
    return True
