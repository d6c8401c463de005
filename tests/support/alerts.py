"""An alert, made by a rule that watches the calls of a tenant."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from audit.alerts.evaluation import evaluate
from audit.alerts.notifying import notify_again
from audit.alerts.rules import Rule
from audit.alerts.stored import save_rule
from audit.alerts.watching import watch
from audit.models import Alert
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events


def judge_all(tenant_id: UUID) -> None:
    """Judge all rules of a tenant in two minutes, and notify again, as the worker's tasks do."""
    for judge in (evaluate, watch, notify_again):
        with tenant_scope(tenant_id):
            judge(timezone.now() + timedelta(minutes=2))


def fired_alert(cast: Cast, **condition: Any) -> UUID:
    """The id of an alert of a new rule, "many calls": a call has just begun."""
    send_events(cast.tenant, make_call(started_at=timezone.now()))
    return alert_of_stored_calls(cast, **condition)


def alert_of_stored_calls(cast: Cast, **condition: Any) -> UUID:
    """The id of an alert of a new rule, "many calls", that the stored calls fulfil."""
    watched = {"measure": "calls", "window_minutes": 60, "warning": 0, **condition}
    rule = Rule.model_validate({"name": "many calls", "condition": watched})
    with tenant_scope(cast.tenant.id):
        save_rule(cast.tenant, cast.editor, rule, timezone.now())
        evaluate(timezone.now() + timedelta(minutes=2))
        return Alert.objects.for_tenant(cast.tenant.id).get(rule_name=rule.name).id
