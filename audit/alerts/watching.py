"""Watches for events: opens an alert for what happened, and for as long as something is the case.

What happened is read again for `LOOK_BACK`, as an action or an event may be stored later than its
own time; its occasion tells what is known. A worker that was away reads all that it missed.
"""

from datetime import datetime, timedelta

from audit.alerts import life
from audit.alerts.events import SOURCES, Event
from audit.alerts.life import Finding
from audit.alerts.rules import EventCondition, Severity
from audit.alerts.stored import condition_of
from audit.models import Alert, AlertRule
from tenants.scope import current_tenant_id

LOOK_BACK = timedelta(hours=1)
CATCH_UP = timedelta(days=7)


def watch(now: datetime) -> int:
    """Judge the scope's rules of events. Returns how many there are."""
    rules = AlertRule.objects.for_tenant(current_tenant_id())
    events = rules.filter(is_enabled=True, condition__on="event")
    number = 0
    for stored in events.order_by("id").select_for_update():
        condition = condition_of(stored)
        assert isinstance(condition, EventCondition), "the query says so"
        source = SOURCES[condition.event]
        since = max(stored.judged_to - LOOK_BACK, stored.changed_at, now - CATCH_UP)
        listed = list(source.read(since, now))
        if source.is_state:
            _compare(stored, condition.severity, listed, now)
        else:
            _open(stored, condition.severity, listed, now)
        rules.filter(id=stored.id).update(judged_to=now)
        number += 1
    return number


def _open(stored: AlertRule, severity: Severity, events: list[Event], now: datetime) -> None:
    """Open an alert for each event that is not known."""
    if not events:
        return
    alerts = Alert.objects.for_tenant(stored.tenant_id).filter(rule_id=stored.id)
    occasions = [each.subject for each in events]
    known = set(alerts.filter(occasion__in=occasions).values_list("occasion", flat=True))
    # Those that were only counted are within the time of the alert that counted them.
    counted = list(alerts.filter(uncounted__gt=0, held_to__gte=now - CATCH_UP))
    for event in events:
        is_counted = any(
            one.held_to is not None and one.held_from <= event.at <= one.held_to for one in counted
        )
        if event.subject in known or is_counted:
            continue
        title = f"{stored.name}: {event.title}"
        life.open_alert(
            stored,
            Finding(event.subject, severity, event.at, title, event.query, held_to=event.at),
            now,
        )


def _compare(stored: AlertRule, severity: Severity, events: list[Event], now: datetime) -> None:
    """Open an alert for each subject that has none, and end those that are over."""
    alerts = Alert.objects.for_tenant(stored.tenant_id).filter(rule_id=stored.id, held_to=None)
    current = {each.occasion.partition(" ")[2]: each for each in alerts.select_for_update()}
    # Those beyond the limit wait: an hour later they are opened, if they are still the case.
    left = life.OPENED_AN_HOUR - len(life.opened_lately(stored, now))
    for event in events:
        if event.subject not in current and left > 0:
            left -= 1
            title = f"{stored.name}: {event.title}"
            occasion = f"{event.at:%Y-%m-%dT%H:%M:%S.%fZ} {event.subject}"
            life.open_alert(stored, Finding(occasion, severity, event.at, title, event.query), now)
    listed = {each.subject for each in events}
    for subject, alert in current.items():
        if subject not in listed:
            life.end(alert, now, now)
