"""The life of an alert: opened, worse, acknowledged, resolved. Each is an entry of the ledger.

At most `OPENED_AN_HOUR` alerts of a rule are opened in an hour. Further times at which it fires are
only counted, on the last alert: a rule that flaps must not fill the ledger.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from audit.alerts.notifying import notify
from audit.alerts.quiet import quiet_rules
from audit.alerts.rules import Severity
from audit.models import Alert, AlertRule, AlertState
from tenants.actions import THE_SERVER, record_action
from tenants.models import Tenant, User, new_id
from tenants.scope import current_tenant_id

OPENED_AN_HOUR = 6
NOTE_MAX = 1_000
LATE = timedelta(minutes=5)
"""An alert that is found so long after it began is late: its events were, or the worker."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found: why there is an alert."""

    occasion: str
    """Names what it is about; a rule raises one alert for each occasion."""
    severity: Severity
    held_from: datetime
    title: str
    query: str = ""
    """Of the calls that it is about."""
    held_to: datetime | None = None
    """When it ended, if it is over already."""
    value: float | None = None
    compared_with: float | None = None
    threshold: float | None = None


def open_alert(rule: AlertRule, finding: Finding, now: datetime) -> Alert | None:
    """Open an alert. Returns None if it is known, or only counted. Needs the scope."""
    known = Alert.objects.for_tenant(rule.tenant_id).filter(rule_id=rule.id)
    if known.filter(occasion=finding.occasion).exists():
        return None
    lately = opened_lately(rule, now)
    if len(lately) >= OPENED_AN_HOUR:
        last = lately[0]
        known.filter(id=last.id).update(uncounted=last.uncounted + 1, held_to=finding.held_to)
        return None
    alert = Alert.objects.create(
        tenant_id=rule.tenant_id,
        id=new_id(),
        rule_id=rule.id,
        rule_name=rule.name,
        occasion=finding.occasion,
        severity=finding.severity.value,
        state=AlertState.OPEN,
        held_from=finding.held_from,
        held_to=finding.held_to,
        opened_at=now,
        is_late=now - finding.held_from > LATE,
        is_muted=bool(quiet_rules([rule], now)),
        title=finding.title,
        query=finding.query,
        value=finding.value,
        compared_with=finding.compared_with,
        threshold=finding.threshold,
        uncounted=0,
    )
    _record(alert, THE_SERVER, "alert.fire", severity=alert.severity)
    notify(alert, "fired")
    return alert


def opened_lately(rule: AlertRule, now: datetime) -> list[Alert]:
    """The alerts of a rule that were opened in the last hour, newest first. One query."""
    alerts = Alert.objects.for_tenant(rule.tenant_id).filter(rule_id=rule.id)
    lately = alerts.filter(opened_at__gt=now - timedelta(hours=1))
    return list(lately.order_by("-opened_at", "-id"))


def worsen(alert: Alert, finding: Finding) -> None:
    """A warning has become an alert: it is open again, even if it was acknowledged."""
    alert.severity, alert.state = finding.severity.value, AlertState.OPEN
    alert.value, alert.threshold = finding.value, finding.threshold
    alert.compared_with, alert.title = finding.compared_with, finding.title
    names = ("severity", "state", "value", "threshold", "compared_with", "title")
    _store(alert, *names)
    _record(alert, THE_SERVER, "alert.worsen", severity=alert.severity)
    notify(alert, "fired")


def end(alert: Alert, held_to: datetime, now: datetime, note: str = "") -> None:
    """The condition holds no longer. This resolves the alert, unless a person has."""
    alert.held_to = held_to
    if alert.state == AlertState.RESOLVED:
        _store(alert, "held_to")
        return
    alert.state, alert.resolved_at, alert.resolved_by = AlertState.RESOLVED, now, THE_SERVER
    alert.resolve_note = note or "The condition no longer holds."
    _store(alert, "held_to", "state", "resolved_at", "resolved_by", "resolve_note")
    _record(alert, THE_SERVER, "alert.resolve", note=alert.resolve_note)
    notify(alert, "resolved", alert.resolve_note)


def acknowledge(alert: Alert, user: User | str, note: str, now: datetime) -> bool:
    """Somebody takes care of an alert. Returns False if it is not open."""
    if alert.state != AlertState.OPEN:
        return False
    alert.state, alert.acknowledged_at = AlertState.ACKNOWLEDGED, now
    alert.acknowledged_by, alert.acknowledge_note = _name_of(user), note
    _store(alert, "state", "acknowledged_at", "acknowledged_by", "acknowledge_note")
    _record(alert, user, "alert.acknowledge", note=note)
    return True


def resolve(alert: Alert, user: User | str, note: str, now: datetime) -> bool:
    """A person closes an alert. Returns False if it is resolved.

    While the condition still holds, its rule opens no other one.
    """
    if alert.state == AlertState.RESOLVED:
        return False
    alert.state, alert.resolved_at = AlertState.RESOLVED, now
    alert.resolved_by, alert.resolve_note = _name_of(user), note
    _store(alert, "state", "resolved_at", "resolved_by", "resolve_note")
    _record(alert, user, "alert.resolve", note=note)
    notify(alert, "resolved", note)
    return True


def find_alert(pk: UUID) -> Alert | None:
    """An alert of the scope's tenant, locked until the scope ends."""
    alerts = Alert.objects.for_tenant(current_tenant_id())
    return alerts.select_for_update().filter(id=pk).first()


def _store(alert: Alert, *names: str) -> None:
    alerts = Alert.objects.for_tenant(alert.tenant_id).filter(id=alert.id)
    alerts.update(**{name: getattr(alert, name) for name in names})


def _record(alert: Alert, user: User | str, verb: str, **details: Any) -> None:
    facts = {"alert": str(alert.id), "rule": alert.rule_name, "title": alert.title}
    record_action(
        Tenant(id=alert.tenant_id), user, verb, alert.title, rows=[alert], **facts, **details
    )


def _name_of(user: User | str) -> str:
    return user if isinstance(user, str) else user.get_username()
