"""The rules of a tenant, as stored: save, delete and mute them. Each is an entry of the ledger."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from audit.alerts import life
from audit.alerts.rules import Condition, EventCondition, Rule, is_summed, read_condition
from audit.models import Alert, AlertChannel, AlertRule
from tenants.actions import record_action
from tenants.models import Tenant, User, new_id
from tenants.scope import current_tenant_id

RULES_MAX = 1_000
SINGLE_MAX = 100
"""Rules of a tenant whose calls are read for them alone."""


class TooManyRulesError(Exception):
    """The tenant has the maximum of rules."""


class UnknownChannelError(Exception):
    """The tenant has no channel of this name."""


def condition_of(stored: AlertRule) -> Condition:
    """The condition of a stored rule as a value."""
    return read_condition(stored.condition)


def channel_names() -> dict[UUID, str]:
    """The names of the tenant's channels by id. One query."""
    channels = AlertChannel.objects.for_tenant(current_tenant_id())
    return dict(channels.order_by("name").values_list("id", "name"))


def rule_of(stored: AlertRule, names: Mapping[UUID, str]) -> Rule:
    """A stored rule as a value. `names` are those of the tenant's channels; deleted ones are left
    out.
    """
    return Rule(
        name=stored.name,
        condition=condition_of(stored),
        is_enabled=stored.is_enabled,
        channels=tuple(names[each] for each in stored.channel_ids if each in names),
        repeat_minutes=stored.repeat_minutes,
    )


def all_rules() -> list[AlertRule]:
    """The tenant's rules, by name. One query."""
    return list(AlertRule.objects.for_tenant(current_tenant_id()).order_by("name"))


def find_rule(name: str) -> AlertRule | None:
    """The rule of this name, locked until the scope ends."""
    rules = AlertRule.objects.for_tenant(current_tenant_id()).select_for_update()
    return rules.filter(name=name).first()


def save_rule(
    tenant: Tenant, user: User | str, rule: Rule, now: datetime, *, former_name: str = ""
) -> bool:
    """Create the rule of this name or change it. Returns False if it is like this already.

    With `former_name`, that rule is changed and gets the new name. Raises TooManyRulesError,
    UnknownChannelError, and NameTakenError if another rule has the new name.
    """
    names = channel_names()
    channel_ids = _channel_ids(rule, names)
    stored = find_rule(former_name or rule.name)
    if former_name and former_name != rule.name and find_rule(rule.name) is not None:
        raise NameTakenError(rule.name)
    if stored is not None and rule_of(stored, names) == rule:
        return False
    _check_numbers(rule, stored)
    by = _name_of(user)
    values: dict[str, Any] = {
        "name": rule.name,
        "condition": rule.condition.model_dump(mode="json"),
        "is_enabled": rule.is_enabled,
        "channel_ids": channel_ids,
        "repeat_minutes": rule.repeat_minutes,
        "changed_at": now,
        "changed_by": by,
    }
    rules = AlertRule.objects.for_tenant(tenant.id)
    if stored is None:
        verb = "alert_rule.create"
        stored = AlertRule.objects.create(
            tenant_id=tenant.id,
            id=new_id(),
            created_at=now,
            created_by=by,
            judged_to=now,
            problem="",
            **values,
        )
    else:
        verb = "alert_rule.change"
        was_enabled = stored.is_enabled
        rules.filter(id=stored.id).update(**values)
        if was_enabled and not rule.is_enabled:
            _end_alerts(stored, now, "The rule was disabled.")
    record_action(tenant, user, verb, rule.name, rows=[stored], **rule.model_dump(mode="json"))
    return True


def delete_rule(tenant: Tenant, user: User | str, stored: AlertRule, now: datetime) -> None:
    """Delete a rule. Its alerts stay; those that are not resolved are resolved."""
    _end_alerts(stored, now, "The rule was deleted.")
    AlertRule.objects.for_tenant(tenant.id).filter(id=stored.id).delete()
    record_action(tenant, user, "alert_rule.delete", stored.name, rows=[stored])


def mute_rule(
    tenant: Tenant, user: User | str, stored: AlertRule, minutes: int, reason: str, now: datetime
) -> None:
    """Tell nobody about alerts of this rule for some minutes; 0 ends that."""
    until = now + timedelta(minutes=minutes) if minutes else None
    AlertRule.objects.for_tenant(tenant.id).filter(id=stored.id).update(
        muted_until=until, muted_by=_name_of(user), mute_reason=reason
    )
    details: dict[str, Any] = {
        "until": None if until is None else until.isoformat(),
        "reason": reason,
    }
    verb = "alert_rule.mute" if minutes else "alert_rule.unmute"
    record_action(tenant, user, verb, stored.name, rows=[stored], **details)


class NameTakenError(Exception):
    """Another rule of the tenant has this name."""


def is_single(condition: Condition) -> bool:
    """Whether calls are read for the rule of this condition alone."""
    if isinstance(condition, EventCondition):
        return False
    return not condition.measure.is_summed or not is_summed(condition.filter)


def _check_numbers(rule: Rule, stored: AlertRule | None) -> None:
    rules = AlertRule.objects.for_tenant(current_tenant_id())
    if stored is None and rules.count() >= RULES_MAX:
        raise TooManyRulesError(f"A tenant can have at most {RULES_MAX:,} rules.")
    # Only where it decides: reading the queries of 1,000 rules for each of 1,000 takes minutes.
    if not is_single(rule.condition) or (stored is not None and is_single(condition_of(stored))):
        return
    if sum(is_single(condition_of(each)) for each in rules.all()) >= SINGLE_MAX:
        raise TooManyRulesError(
            f"At most {SINGLE_MAX} rules can have a query of more than tool and version, or"
            " watch open calls or loops."
        )


def _channel_ids(rule: Rule, names: Mapping[UUID, str]) -> list[UUID]:
    ids = {name: each for each, name in names.items()}
    for name in rule.channels:
        if name not in ids:
            raise UnknownChannelError(f"There is no channel {name!r}.")
    return [ids[name] for name in rule.channels]


def _end_alerts(stored: AlertRule, now: datetime, note: str) -> None:
    for alert in Alert.objects.for_tenant(stored.tenant_id).filter(rule_id=stored.id, held_to=None):
        life.end(alert, now, now, note)


def _name_of(user: User | str) -> str:
    return user if isinstance(user, str) else user.get_username()
