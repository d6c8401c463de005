"""Puts the reading of texts that quote payloads, in lists, on record (docs/adr/0011)."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from tenants.access import TenantRequest
from tenants.actions import record_view

EVERY: Final = timedelta(hours=1)
"""A list that is open all day, and refreshes, is at most 24 entries of the ledger."""
_REMEMBERED: Final = 10_000

type _View = tuple[UUID, Any, str, int]
"""Tenant, user, list and hour."""

_recorded: set[_View] = set()
"""What this process has recorded lately: otherwise each request would try again, for 1 ms."""


def record_texts(request: TenantRequest, of: str, texts: Iterable[str | None]) -> None:
    """Record that a list showed error messages, reasons or received values to this member.

    `of` names the list. Nothing is recorded if it showed none, and at most one action for each
    member, list and hour.
    """
    if not request.membership.sees_payloads or not any(texts):
        return
    hour = int(timezone.now().timestamp() // EVERY.total_seconds())
    view = (request.tenant.id, request.user.pk, of, hour)
    if view not in _recorded:
        record_view(request.tenant.id, request.user, "text.view", of, every=EVERY)
        transaction.on_commit(lambda: _remember(view))


def _remember(view: _View) -> None:
    if len(_recorded) >= _REMEMBERED:
        _recorded.clear()
    _recorded.add(view)
