"""Maintenance windows: when one is on, and that nobody is notified meanwhile."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from audit.alerts.evaluation import SETTLING, evaluate
from audit.alerts.maintenance import Maintenance
from audit.alerts.quiet import UnknownRuleError, delete_window, find_window, save_window
from audit.alerts.rules import Rule
from audit.alerts.stored import delete_rule, find_rule, save_rule
from audit.ledger.actions import enter_all_actions
from audit.ledger.baseline import enter_baseline
from audit.ledger.rows import unexplained
from audit.models import Alert, ChannelKind, MaintenanceWindow
from tenants.models import Action
from tenants.scope import tenant_scope
from tests.support.deliveries import deliveries, make_channel
from tests.support.factories import Cast, make_call, send_events

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
FIRST = datetime(2026, 3, 23, 1, 0, tzinfo=UTC)  # a Monday; two o'clock in Berlin, before summer


def window(**members: Any) -> Maintenance:
    return Maintenance.model_validate(
        {"name": "backup", "reason": "nightly", "starts_at": FIRST, "minutes": 60} | members
    )


def test_a_window_that_is_once_is_on_from_its_start_to_its_end() -> None:
    once = window()
    assert once.ends_at(FIRST - MINUTE) is None
    assert once.next_at(FIRST - MINUTE) == FIRST
    assert once.ends_at(FIRST) == FIRST + HOUR
    assert once.ends_at(FIRST + 59 * MINUTE) == FIRST + HOUR
    assert once.ends_at(FIRST + HOUR) is None
    assert once.next_at(FIRST) is None


@pytest.mark.parametrize(("repeats", "days"), [("daily", 1), ("weekly", 7)])
def test_a_window_that_repeats_follows_the_clock(repeats: str, days: int) -> None:
    berlin = window(repeats=repeats, time_zone="Europe/Berlin")
    utc = window(repeats=repeats)
    assert berlin.ends_at(FIRST - days * DAY) is None, "it has not begun yet"
    assert berlin.next_at(FIRST - 90 * DAY) == FIRST
    assert berlin.ends_at(FIRST + 10 * MINUTE) == FIRST + HOUR
    summer = FIRST + 70 * DAY  # two o'clock is an hour earlier there
    assert berlin.ends_at(summer + MINUTE) is None
    assert berlin.ends_at(summer - MINUTE) == summer
    assert utc.ends_at(summer + MINUTE) == summer + HOUR
    assert berlin.next_at(summer - 2 * HOUR) == summer - HOUR
    assert berlin.next_at(summer) == summer - HOUR + days * DAY
    if days == 7:
        assert berlin.ends_at(summer - MINUTE + DAY) is None


def test_a_window_over_midnight_and_one_of_days_are_on_to_their_end() -> None:
    late = window(starts_at=FIRST.replace(hour=23), minutes=180, repeats="daily")
    assert late.ends_at(FIRST + DAY) == FIRST.replace(hour=2) + DAY
    weekend = window(minutes=3 * 24 * 60, repeats="weekly")
    assert weekend.ends_at(FIRST + 7 * DAY + 71 * HOUR) == FIRST + 7 * DAY + 72 * HOUR
    assert weekend.ends_at(FIRST + 7 * DAY + 72 * HOUR) is None


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"minutes": 1441, "repeats": "daily"}, "before it begins again"),
        ({"minutes": 4}, "greater than or equal to 5"),
        ({"time_zone": "../etc/passwd"}, "no such time zone"),
        ({"starts_at": "2026-03-23T01:00:00"}, "timezone"),
        ({"starts_at": "0001-01-01T00:00:00Z"}, "greater than or equal"),
        ({"reason": " "}, "at least 1 item"),
        ({"repeats": "monthly"}, "'once', 'daily' or 'weekly'"),
    ],
)
def test_what_cannot_be_is_refused(members: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        window(**members)


def fire(cast: Cast, name: str, at: datetime) -> None:
    """Make a rule, and let it fire at this time."""
    condition = {"query": f"tool:{name}", "measure": "calls", "window_minutes": 5, "alert": 0}
    with tenant_scope(cast.tenant.id):
        rule = Rule.model_validate({"name": name, "condition": condition})
        save_rule(cast.tenant, cast.editor, rule, at - MINUTE)
    send_events(cast.tenant, make_call(tool_name=name, started_at=at - 30 * timedelta(seconds=1)))
    with tenant_scope(cast.tenant.id):
        evaluate(at + SETTLING)


def muted(cast: Cast) -> dict[str, bool]:
    with tenant_scope(cast.tenant.id):
        return dict(Alert.objects.for_tenant(cast.tenant.id).values_list("rule_name", "is_muted"))


def save(cast: Cast, wanted: Maintenance) -> bool:
    with tenant_scope(cast.tenant.id):
        return save_window(cast.tenant, cast.editor, wanted, datetime.now(UTC))


def delete(cast: Cast, name: str) -> None:
    with tenant_scope(cast.tenant.id):
        stored = find_window(name)
        assert stored is not None
        delete_window(cast.tenant, cast.editor, stored)


def test_while_a_window_is_on_alerts_are_recorded_and_nobody_is_notified(
    acme: Cast, globex: Cast
) -> None:
    at = datetime.now(UTC).replace(second=0, microsecond=0)
    for cast in (acme, globex):
        make_channel(cast, ChannelKind.WEBHOOK, url="https://alerts.example/")
    assert save(acme, window(starts_at=at - 3 * DAY - HOUR, minutes=180, repeats="daily"))
    for cast in (acme, globex):
        fire(cast, "during", at)
    assert muted(acme) == {"during": True}
    assert deliveries(acme) == []
    assert muted(globex) == {"during": False}, "another tenant has none"
    assert len(deliveries(globex)) == 1
    delete(acme, "backup")
    fire(acme, "after", at)
    assert muted(acme) == {"during": True, "after": False}
    assert len(deliveries(acme)) == 1


def test_a_window_of_some_rules_is_not_one_of_all_when_these_are_deleted(acme: Cast) -> None:
    at = datetime.now(UTC).replace(second=0, microsecond=0)
    of_one = window(starts_at=at - HOUR, minutes=120, rules=["chosen"])
    with pytest.raises(UnknownRuleError, match="no rule 'chosen'"):
        save(acme, of_one)
    fire(acme, "chosen", at - 5 * MINUTE)
    assert save(acme, of_one)
    fire(acme, "other", at)
    assert muted(acme) == {"chosen": False, "other": False}
    with tenant_scope(acme.tenant.id):
        stored = find_rule("chosen")
        assert stored is not None
        delete_rule(acme.tenant, acme.editor, stored, at)
    fire(acme, "third", at)
    assert muted(acme)["third"] is False


def test_windows_are_saved_once_and_on_record(acme: Cast) -> None:
    assert save(acme, window())
    assert not save(acme, window()), "it is like this already"
    assert save(acme, window(reason="weekly now", repeats="weekly"))
    enter_baseline(acme.tenant.id, datetime.now(UTC))
    enter_all_actions(acme.tenant.id)
    with tenant_scope(acme.tenant.id):
        assert not unexplained(acme.tenant.id, [MaintenanceWindow])
        MaintenanceWindow.objects.for_tenant(acme.tenant.id).update(minutes=10_000)
        assert unexplained(acme.tenant.id, [MaintenanceWindow])
        MaintenanceWindow.objects.for_tenant(acme.tenant.id).update(minutes=60)
    delete(acme, "backup")
    with tenant_scope(acme.tenant.id):
        verbs = Action.objects.filter(tenant=acme.tenant, verb__startswith="maintenance")
        assert list(verbs.order_by("at", "id").values_list("verb", flat=True)) == [
            "maintenance.create",
            "maintenance.change",
            "maintenance.delete",
        ]
