"""Tasks that wait in the queue at most once."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone
from procrastinate.exceptions import AlreadyEnqueued
from procrastinate.tasks import Task

from tenants.models import Tenant
from tenants.scope import tenant_scope


def defer_once(task: "Task[..., Any, Any]", lock: str, **arguments: Any) -> None:
    """Defer a task, unless one with this lock waits in the queue already."""
    with suppress(AlreadyEnqueued):
        task.configure(queueing_lock=lock).defer(**arguments)


def defer_where_due(
    task: "Task[..., Any, Any]", name: str, is_due: Callable[[UUID, datetime], bool]
) -> None:
    """Defer a task for each tenant for which it is due, once by `name`. Suspended ones have none.

    `is_due` runs in the tenant's scope.
    """
    now = timezone.now()
    for tenant_id in Tenant.objects.filter(suspended_at=None).values_list("id", flat=True):
        with tenant_scope(tenant_id):
            due = is_due(tenant_id, now)
        if due:
            defer_once(task, f"{name} {tenant_id}", tenant_id=str(tenant_id))
