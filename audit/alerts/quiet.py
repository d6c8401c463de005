"""When nobody is notified: a rule is muted, or a maintenance window is on. Each is on record."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from audit.alerts.maintenance import Maintenance, Recurrence
from audit.models import AlertRule, MaintenanceWindow
from tenants.actions import record_action
from tenants.models import Tenant, User, new_id
from tenants.scope import current_tenant_id

WINDOWS_MAX = 100


class TooManyWindowsError(Exception):
    """The tenant has the maximum of maintenance windows."""


class UnknownRuleError(Exception):
    """The tenant has no rule of this name."""


def quiet_rules(rules: Iterable[AlertRule], now: datetime) -> set[UUID]:
    """The ids of those rules of which nobody is notified now. One query."""
    listed = list(rules)
    quiet = {one.id for one in listed if one.muted_until is not None and now < one.muted_until}
    windows = MaintenanceWindow.objects.for_tenant(current_tenant_id()).filter(starts_at__lte=now)
    for window in windows:
        if maintenance_of(window, {}).ends_at(now) is None:
            continue
        if not window.rule_ids:
            return {one.id for one in listed}
        quiet |= set(window.rule_ids)
    return quiet & {one.id for one in listed}


def maintenance_of(stored: MaintenanceWindow, names: Mapping[UUID, str]) -> Maintenance:
    """A stored window as a value. `names` are those of the tenant's rules.

    A deleted rule is named by its id: a window of only deleted rules is none of all rules.
    """
    return Maintenance(
        name=stored.name,
        reason=stored.reason,
        starts_at=stored.starts_at,
        minutes=stored.minutes,
        repeats=Recurrence(stored.repeats),
        time_zone=stored.time_zone,
        rules=tuple(names.get(each, str(each)) for each in stored.rule_ids),
    )


def all_windows() -> list[MaintenanceWindow]:
    """The tenant's maintenance windows, by name. One query."""
    return list(MaintenanceWindow.objects.for_tenant(current_tenant_id()).order_by("name"))


def rule_names() -> dict[UUID, str]:
    """The names of the tenant's rules by id. One query."""
    rules = AlertRule.objects.for_tenant(current_tenant_id())
    return dict(rules.order_by("name").values_list("id", "name"))


def find_window(name: str) -> MaintenanceWindow | None:
    """The maintenance window of this name, locked until the scope ends."""
    windows = MaintenanceWindow.objects.for_tenant(current_tenant_id()).select_for_update()
    return windows.filter(name=name).first()


def save_window(tenant: Tenant, user: User | str, wanted: Maintenance, now: datetime) -> bool:
    """Create the window of this name or change it. Returns False if it is like this already.

    Raises TooManyWindowsError and UnknownRuleError.
    """
    names = rule_names()
    ids = {name: each for each, name in names.items()}
    stored = find_window(wanted.name)
    if stored is not None and wanted in _values_of(stored, names):
        return False
    for name in wanted.rules:
        if name not in ids:
            raise UnknownRuleError(f"There is no rule {name!r}.")
    windows = MaintenanceWindow.objects.for_tenant(tenant.id)
    if stored is None and windows.count() >= WINDOWS_MAX:
        raise TooManyWindowsError(f"A tenant can have at most {WINDOWS_MAX} maintenance windows.")
    values: dict[str, Any] = {
        "reason": wanted.reason,
        "starts_at": wanted.starts_at,
        "minutes": wanted.minutes,
        "repeats": wanted.repeats.value,
        "time_zone": wanted.time_zone,
        "rule_ids": [ids[name] for name in wanted.rules],
        "changed_at": now,
        "changed_by": user if isinstance(user, str) else user.get_username(),
    }
    verb = "maintenance.create" if stored is None else "maintenance.change"
    if stored is None:
        stored = MaintenanceWindow.objects.create(
            tenant_id=tenant.id, id=new_id(), name=wanted.name, **values
        )
    else:
        windows.filter(id=stored.id).update(**values)
    facts = wanted.model_dump(mode="json")
    record_action(tenant, user, verb, wanted.name, rows=[stored], **facts)
    return True


def _values_of(stored: MaintenanceWindow, names: Mapping[UUID, str]) -> Iterator[Maintenance]:
    """A stored window as it is listed, and without its deleted rules if others remain."""
    listed = maintenance_of(stored, names)
    yield listed
    if rules := tuple(sorted(names[each] for each in stored.rule_ids if each in names)):
        yield listed.model_copy(update={"rules": rules})


def delete_window(tenant: Tenant, user: User | str, stored: MaintenanceWindow) -> None:
    """Delete a maintenance window: if it is on, it ends."""
    MaintenanceWindow.objects.for_tenant(tenant.id).filter(id=stored.id).delete()
    record_action(tenant, user, "maintenance.delete", stored.name, rows=[stored])
