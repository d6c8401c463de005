"""Approves definitions of tools that changed, and withdraws approvals."""

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


def withdraw(
    tenant: Tenant, actor: User | str, one: ServedDefinition, reason: str, now: datetime
) -> bool:
    """Withdraw the approval of a definition, from now on. Returns whether it was approved.

    Needs the tenant's scope. Calls that were made while it was approved stay approved ones.
    """
    name = actor.get_username() if isinstance(actor, User) else actor
    parameters = {"id": one.id, "actor": name, "reason": reason, "now": now}
    if not rows("withdraw_approval", parameters):
        return False
    record_action(
        tenant,
        actor,
        "definition.withdraw",
        f"{one.tool_name} of {one.server}",
        definition=str(one.id),
        digest=one.digest,
        reason=reason,
    )
    return True
