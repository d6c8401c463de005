"""Revealing a payload to an auditor, for a reason that the audit log keeps (docs/adr/0011).

The entry in the audit log is also the permission: the auditor sees the payload for an hour. Needs
the tenant's scope.
"""

from datetime import datetime, timedelta
from typing import Any, Literal

from django import forms
from pydantic import Field

from tenants.access import TenantRequest, has_role
from tenants.actions import Actor, record_action
from tenants.api_acts import Body, Stripped
from tenants.models import Action, Role, Tenant
from tenants.scope import current_tenant_id

REVEALED_FOR = timedelta(hours=1)
REASON_MAX_LENGTH = 500
_LISTED = 20

Verb = Literal["call.reveal", "inbox.reveal", "payload.search"]


class RevealForm(forms.Form):
    """The reason to reveal a payload to an auditor."""

    reason = forms.CharField(min_length=3, max_length=REASON_MAX_LENGTH, strip=True)


class RevealBody(Body):
    """Why a payload is revealed."""

    reason: Stripped = Field(min_length=3, max_length=REASON_MAX_LENGTH)
    """It stays in the ledger."""


def reveal(request: TenantRequest, verb: Verb, subject: str, reason: str, **details: Any) -> None:
    """Record that this member reveals the payload, and why. From now on they see it."""
    record_reveal(request.tenant, request.user, verb, subject, reason, **details)


def record_reveal(
    tenant: Tenant, actor: Actor, verb: Verb, subject: str, reason: str, **details: Any
) -> None:
    """Record that somebody reveals a payload, and why. An API key sees it in this answer only."""
    record_action(tenant, actor, verb, subject, reason=reason, **details)


def is_shown(request: TenantRequest, verb: Verb, subject: str, now: datetime) -> bool:
    """Whether this member sees the payload: by their role, or because they revealed it."""
    if request.membership.sees_payloads:
        return True
    if not request.membership.may_reveal:
        return False
    lately = Action.objects.filter(
        tenant_id=current_tenant_id(),
        verb=verb,
        subject=subject,
        at__gt=now - REVEALED_FOR,
        details__has_key="reason",  # a search made while an editor has no reason
    )
    return lately.filter(user_id=request.user.pk).exists()


def reveals(request: TenantRequest, verb: Verb, subject: str) -> list[Action]:
    """Return the newest reveals of it, newest first. Empty if the member may not read them."""
    if not has_role(request.membership, Role.AUDITOR):
        return []
    actions = Action.objects.filter(tenant_id=current_tenant_id(), verb=verb, subject=subject)
    return list(actions.order_by("-at")[:_LISTED])
