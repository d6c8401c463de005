"""Puts the reading of texts that quote payloads, in lists, on record (docs/adr/0011)."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from tenants.access import TenantRequest
from tenants.actions import record_view

EVERY: Final = timedelta(hours=1)
"""A list that is open all day, and refreshes, is at most 24 entries of the ledger."""


def record_texts(request: TenantRequest, of: str, texts: Iterable[str | None]) -> None:
    """Record that a list showed error messages, reasons or received values to this member.

    `of` names the list. Nothing is recorded if it showed none, and at most one action for each
    member, list and hour.
    """
    if request.membership.sees_payloads and any(texts):
        record_view(request.tenant.id, request.user, "text.view", of, every=EVERY)
