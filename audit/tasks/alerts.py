"""Tasks of alerts: judge rules, and deliver what they have to say."""

import logging
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from django.db import InterfaceError, OperationalError
from django.utils import timezone
from procrastinate.contrib.django import app

from audit.alerts.evaluation import evaluate
from audit.alerts.notifying import notify_again
from audit.alerts.watching import watch
from audit.deliveries import delivering
from audit.deliveries.outbox import SOON
from audit.tasks.once import defer_where_due
from tenants.models import Tenant
from tenants.scope import tenant_scope

_log = logging.getLogger(__name__)


# The sixth field is seconds: an instant is judged 20 seconds after it (audit/alerts/evaluation.py),
# and 20 seconds later if the worker was busy.
@app.periodic(cron="* * * * * 20,40")
@app.task(name="audit.tasks.judge_alert_rules", queueing_lock="judge_alert_rules", priority=SOON)
def judge_alert_rules(timestamp: int) -> None:
    """Judge the rules of windows of each tenant: open alerts and end them."""
    _for_each_tenant("windows", evaluate)


@app.periodic(cron="* * * * *")
@app.task(name="audit.tasks.repeat_alerts", queueing_lock="repeat_alerts")
def repeat_alerts(timestamp: int) -> None:
    """Notify again of alerts that nobody has acknowledged, where rules say so."""
    _for_each_tenant("repeats", notify_again)


# People are notified of an event within 15 seconds: it runs before other tasks, such as those that
# wait for a worker that has just started.
@app.periodic(cron="* * * * * */10")
@app.task(name="audit.tasks.watch_for_events", queueing_lock="watch_for_events", priority=SOON)
def watch_for_events(timestamp: int) -> None:
    """Judge the rules of events of each tenant."""
    _for_each_tenant("events", watch)


def _for_each_tenant(what: str, judge: Callable[[datetime], int]) -> None:
    """Judge rules of each tenant, in its scope. What fails for one is logged."""
    for tenant_id in Tenant.objects.filter(suspended_at=None).values_list("id", flat=True):
        try:
            with tenant_scope(tenant_id):
                judge(timezone.now())
        except (OperationalError, InterfaceError):
            raise  # the database is down for all tenants
        except Exception:
            _log.exception("%s of tenant %s: not judged", what, tenant_id)


@app.task(name="audit.tasks.deliver", queue="deliveries", priority=SOON)
def deliver(tenant_id: str) -> None:
    """Deliver a tenant's messages that are due, a few at once, then let other tasks run."""
    if delivering.run_slice(UUID(tenant_id)):
        deliver.defer(tenant_id=tenant_id)


# For messages that are tried again, and for those of a killed worker.
@app.periodic(cron="* * * * *")
@app.task(name="audit.tasks.keep_deliveries", queue="deliveries", queueing_lock="keep_deliveries")
def keep_deliveries(timestamp: int) -> None:
    """Defer a task for each tenant with messages that are due."""
    defer_where_due(deliver, "deliver", delivering.is_due)
