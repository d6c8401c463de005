"""Approves definitions of tools that changed, and withdraws approvals."""

from datetime import datetime

from audit.models import StoredServedDefinition
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
    return _decide(
        tenant, actor, one, reason, now, statement="approve_definition", verb="definition.approve"
    )


def withdraw(
    tenant: Tenant, actor: User | str, one: ServedDefinition, reason: str, now: datetime
) -> bool:
    """Withdraw the approval of a definition, from now on. Returns whether it was approved.

    Needs the tenant's scope. Calls that were made while it was approved stay approved ones.
    """
    return _decide(
        tenant, actor, one, reason, now, statement="withdraw_approval", verb="definition.withdraw"
    )


def _decide(
    tenant: Tenant,
    actor: User | str,
    one: ServedDefinition,
    reason: str,
    now: datetime,
    *,
    statement: str,
    verb: str,
) -> bool:
    """Run the statement, and record the action if it changed the definition."""
    name = actor.get_username() if isinstance(actor, User) else actor
    if not rows(statement, {"id": one.id, "actor": name, "reason": reason, "now": now}):
        return False
    record_action(
        tenant,
        actor,
        verb,
        f"{one.tool_name} of {one.server}",
        rows=[StoredServedDefinition(id=one.id)],
        definition=str(one.id),
        digest=one.digest,
        reason=reason,
    )
    return True
