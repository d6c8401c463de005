"""Notifies people of an alert: messages to the channels of its rule, or to all of the tenant."""

from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from audit.alerts.quiet import quiet_rules
from audit.alerts.rules import read_condition
from audit.alerts.shown import sentence
from audit.deliveries import outbox
from audit.deliveries.message import Kind, Message, Severity
from audit.models import Alert, AlertChannel, AlertRule, AlertState
from audit.queries.price_lists import currency_used
from tenants.models import new_id
from tenants.scope import current_tenant_id

_WORDS: dict[Kind, str] = {"fired": "", "repeated": "Still open: ", "resolved": "Resolved: "}
REPEATED_AT_ONCE = 200
"""Alerts that are repeated in one transaction; the rest follows with the next one."""


def notify(alert: Alert, kind: Kind, note: str = "") -> None:
    """Send a message, unless the alert or its rule is muted. It leaves when the scope is committed.

    A rule without channels of its own notifies all channels of the tenant: so does a rule whose
    channels were all deleted, as an alert must not be lost.
    """
    now = timezone.now()
    rule = AlertRule.objects.for_tenant(alert.tenant_id).filter(id=alert.rule_id).first()
    if alert.is_muted or (rule is not None and quiet_rules([rule], now)):
        return
    channels = set(AlertChannel.objects.for_tenant(alert.tenant_id).values_list("id", flat=True))
    chosen = channels.intersection(rule.channel_ids) if rule is not None else set()
    severity: Severity = "alert" if alert.severity == "alert" else "warning"
    message = Message(
        id=new_id(),
        kind=kind,
        rule=alert.rule_name,
        severity=severity,
        title=f"{_WORDS[kind]}{alert.title}",
        text=note,
        link=f"/alerts/{alert.id}",
        facts={
            "alert": str(alert.id),
            "condition": sentence(read_condition(rule.condition), currency_used())
            if rule
            else None,
            "query": alert.query or None,
            "severity": severity,
            "value": alert.value,
            "threshold": alert.threshold,
            "compared with": alert.compared_with,
            "from": alert.held_from.isoformat(),
            "to": alert.held_to.isoformat() if alert.held_to else None,
        },
        at=now,
    )
    outbox.enqueue(alert.tenant_id, message, chosen or channels)
    if kind != "resolved" and channels:
        alert.notified_at = now
        Alert.objects.for_tenant(alert.tenant_id).filter(id=alert.id).update(notified_at=now)


def notify_again(now: datetime) -> int:
    """Notify again of the scope's alerts that are open and whose rules say so. Returns how many.

    A repeat that a mute kept back is sent when the mute has ended.
    """
    rules = AlertRule.objects.for_tenant(current_tenant_id())
    repeating = list(rules.filter(is_enabled=True, repeat_minutes__gt=0))
    quiet = quiet_rules(repeating, now) if repeating else set()
    waits = {rule.id: rule.repeat_minutes for rule in repeating if rule.id not in quiet}
    if not waits:
        return 0
    is_due = Q()
    for minutes in set(waits.values()):
        of_these = [rule for rule, wait in waits.items() if wait == minutes]
        is_due |= Q(rule_id__in=of_these, notified_at__lte=now - timedelta(minutes=minutes))
    alerts = Alert.objects.for_tenant(current_tenant_id()).filter(is_due, state=AlertState.OPEN)
    due = list(alerts.order_by("notified_at", "id").select_for_update()[:REPEATED_AT_ONCE])
    for alert in due:
        opened = f"{alert.opened_at:%Y-%m-%d %H:%M} UTC"
        notify(alert, "repeated", f"Nobody has acknowledged it since {opened}.")
    return len(due)
