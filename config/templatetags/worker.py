"""Why a job makes no progress: {% load worker %} {% worker_trouble search_id=pk %}."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django import template
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob, ProcrastinateWorker

register = template.Library()

_SILENCE = timedelta(seconds=30)
"""A worker sends a heartbeat every 10 s. After 30 s without one, others get its tasks."""


@register.inclusion_tag("components/_worker_trouble.html")
def worker_trouble(**argument: UUID) -> dict[str, Any]:
    """Show that the task with this argument keeps failing, or that no worker runs; else nothing.

    At most two SQL statements. Neither reads a tenant's data.
    """
    wanted = {name: str(value) for name, value in argument.items()}
    waiting = ProcrastinateJob.objects.filter(status="todo", args__contains=wanted)
    failing = waiting.filter(attempts__gt=0).first()
    if failing is not None:
        return {"attempts": failing.attempts, "again_at": failing.scheduled_at}
    heard_since = timezone.now() - _SILENCE
    workers = ProcrastinateWorker.objects.filter(last_heartbeat__gt=heard_since)
    return {"is_alone": not workers.exists()}
