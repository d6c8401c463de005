"""Showing an auditor a payload, for a reason that stays on record (docs/adr/0011).

The record is the permission, too: who revealed something sees it for an hour. Needs the scope.
"""

from datetime import datetime, timedelta
from typing import Literal

from django import forms

from tenants.access import TenantRequest, has_role
from tenants.actions import record_action
from tenants.models import Action, Role
from tenants.scope import current_tenant_id

REVEALED_FOR = timedelta(hours=1)
REASON_MAX_LENGTH = 500
_TOLD = 20

Verb = Literal["call.reveal", "inbox.reveal", "payload.search"]


class RevealForm(forms.Form):
    """Why an auditor is shown a payload."""

    reason = forms.CharField(min_length=3, max_length=REASON_MAX_LENGTH, strip=True)


def reveal(request: TenantRequest, verb: Verb, subject: str, reason: str, **details: str) -> None:
    """Put on record that this member wants to see it, and why; from now on they do."""
    record_action(request.tenant, request.user, verb, subject, reason=reason, **details)


def is_shown(request: TenantRequest, verb: Verb, subject: str, now: datetime) -> bool:
    """Whether this member sees the payload: unasked, or having revealed it."""
    if request.membership.sees_payloads:
        return True
    if not request.membership.may_reveal:
        return False
    lately = Action.objects.filter(
        tenant_id=current_tenant_id(),
        verb=verb,
        subject=subject,
        at__gt=now - REVEALED_FOR,
        details__has_key="reason",  # who was an editor then searched without one
    )
    return lately.filter(user_id=request.user.pk).exists()


def reveals(request: TenantRequest, verb: Verb, subject: str) -> list[Action]:
    """Who has revealed it, newest first, for whoever may read the record; the newest few."""
    if not has_role(request.membership, Role.AUDITOR):
        return []
    found = Action.objects.filter(tenant_id=current_tenant_id(), verb=verb, subject=subject)
    return list(found.order_by("-at")[:_TOLD])
