"""A set of rules to begin with, made by one click. Each can be changed and deleted."""

from datetime import datetime

from audit.alerts.rules import EventKind, Rule, Severity
from audit.alerts.stored import find_rule, save_rule
from tenants.models import Tenant, User

_WINDOWS = {
    "Calls fail": {"measure": "failed_share", "warning": 20, "alert": 50, "for_minutes": 5},
    "Results break their schema": {"measure": "violating_share", "warning": 5, "alert": 20},
    "Calls are overdue": {"measure": "overdue", "window_minutes": 360, "warning": 0},
    "Calls repeat in loops": {"measure": "looped", "warning": 0},
}
_EVENTS = {
    "Ledger refused": (EventKind.LEDGER_REFUSED, Severity.ALERT),
    "Ledger check failed": (EventKind.CHECK_FAILED, Severity.ALERT),
    "Signing late": (EventKind.SIGNING_LATE, Severity.WARNING),
    "Witness missing": (EventKind.WITNESS_MISSING, Severity.ALERT),
    "Archive late": (EventKind.ARCHIVE_BEHIND, Severity.WARNING),
    "Events rejected": (EventKind.INBOX_WAITING, Severity.WARNING),
    "Events lost": (EventKind.GAP_REPORTED, Severity.WARNING),
    "Breaking version": (EventKind.VERSION_BREAKS, Severity.WARNING),
    "Unapproved definitions": (EventKind.UNAPPROVED_USED, Severity.WARNING),
    "Erasure confirmed": (EventKind.ERASURE_CONFIRMED, Severity.WARNING),
    "Sign-ins fail": (EventKind.SIGN_INS_FAIL, Severity.ALERT),
    "Storage runs out": (EventKind.STORAGE_LOW, Severity.ALERT),
}


def starter_rules() -> list[Rule]:
    """The rules of the set."""
    windows = [
        Rule.model_validate({"name": name, "condition": condition})
        for name, condition in _WINDOWS.items()
    ]
    events = [
        Rule.model_validate(
            {"name": name, "condition": {"on": "event", "event": event, "severity": severity}}
        )
        for name, (event, severity) in _EVENTS.items()
    ]
    return windows + events


def add_starter_rules(tenant: Tenant, user: User, now: datetime) -> int:
    """Make those rules of the set whose names no rule has. Returns how many were made."""
    missing = [rule for rule in starter_rules() if find_rule(rule.name) is None]
    for rule in missing:
        save_rule(tenant, user, rule, now)
    return len(missing)
