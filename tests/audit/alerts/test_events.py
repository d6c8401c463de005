"""Rules of events: each kind is told once of what really happens, and ends when it is over."""

from collections import namedtuple
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from audit.alerts import life
from audit.alerts.events import SOURCES
from audit.alerts.rules import EventKind, Rule
from audit.alerts.starter import starter_rules
from audit.alerts.stored import all_rules, save_rule
from audit.alerts.watching import watch
from audit.ledger import checks
from audit.models import Alert, AlertState
from audit.retention.holds import release_hold
from tenants.scope import tenant_scope
from tests.support.erasures import confirm_erasure, preview_erasure
from tests.support.event_requests import post
from tests.support.factories import (
    Cast,
    make_call,
    make_definition,
    make_definitions,
    make_ingest_key,
    send_events,
)
from tests.support.ledger_log import append, as_owner, keep, leaves, own_folder
from tests.support.legal_holds import set_hold
from tests.support.pages import signed_in
from tests.support.registered_tools import register_tool, weather_contract
from tests.support.traces import VIOLATED_GUARD
from tools_registry.changes import Publisher
from tools_registry.models import Tool
from tools_registry.versions import publish_version

BREAKING = {
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "country": {"type": "string"}},
        "required": ["city", "country"],
    }
}


def make_rules(cast: Cast, *kinds: EventKind, at: datetime | None = None) -> None:
    with tenant_scope(cast.tenant.id):
        for kind in kinds:
            condition = {"on": "event", "event": kind, "severity": "alert"}
            rule = Rule.model_validate({"name": kind.value, "condition": condition})
            save_rule(cast.tenant, cast.editor, rule, at or timezone.now())


def watched(cast: Cast, after: timedelta = timedelta()) -> list[Alert]:
    """The alerts after the rules were judged."""
    with tenant_scope(cast.tenant.id):
        watch(timezone.now() + after)
        return list(Alert.objects.for_tenant(cast.tenant.id).order_by("opened_at", "id"))


def titles(cast: Cast) -> list[str]:
    return [each.title for each in watched(cast)]


def test_every_kind_has_a_source_and_a_page() -> None:
    assert SOURCES.keys() == set(EventKind)
    assert all(kind.label for kind in EventKind)


def test_first_violation_of_a_kind_and_new_tool_are_told_once(acme: Cast) -> None:
    send_events(acme.tenant, make_call(guard=VIOLATED_GUARD, tool_name="known"))
    make_rules(acme, EventKind.FIRST_VIOLATION, EventKind.NEW_TOOL)
    assert titles(acme) == [], "what was before the rule is not new"
    now = datetime.now(UTC)
    for _ in range(2):
        send_events(acme.tenant, make_call(guard=VIOLATED_GUARD, tool_name="new", started_at=now))
        send_events(acme.tenant, make_call(guard=VIOLATED_GUARD, tool_name="known", started_at=now))
        found = titles(acme)
        assert "new_tool: first call of new" in found
        assert len([each for each in found if each.startswith("first_violation:")]) == 1
        assert len(found) == 2


def test_what_people_do_is_told(acme: Cast) -> None:
    make_rules(
        acme,
        EventKind.HOLD_RELEASED,
        EventKind.ERASURE_CONFIRMED,
        EventKind.PAYLOAD_REVEALED,
        EventKind.SIGN_INS_FAIL,
    )
    call = make_call(case_id="gone")
    send_events(acme.tenant, call)
    hold = set_hold(acme, case_id="other")
    with tenant_scope(acme.tenant.id):
        release_hold(acme.tenant, acme.auditor, hold.id, "over", timezone.now())
    confirm_erasure(acme, preview_erasure(acme, "case:gone").id)
    day = call[0]["started_at"][:10]
    address = f"/calls/{day}/{call[0]['invocation_id']}/reveal"
    answer = signed_in(acme.auditor).post(address, {"reason": "an audit"})
    assert answer.status_code == 302
    by = acme.auditor.username
    assert sorted(titles(acme)) == [
        f"erasure_confirmed: {acme.admin.username} confirmed an erasure",
        f"hold_released: {by} released a legal hold",
        f"payload_revealed: {by} revealed payloads",
    ]
    assert len(titles(acme)) == 3


def test_failing_sign_ins_are_told_and_end(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    make_rules(acme, EventKind.SIGN_INS_FAIL)
    now = timezone.now()
    for minutes in (4, 3, 2):
        at = now - timedelta(minutes=minutes)
        monkeypatch.setattr("tenants.actions.timezone.now", lambda at=at: at)
        Client().post("/login", {"username": acme.viewer.username, "password": "wrong"})
    monkeypatch.undo()
    (alert,) = watched(acme)
    assert alert.title == f"sign_ins_fail: sign-ins as {acme.viewer.username} fail again and again"
    assert alert.held_to is None
    (alert,) = watched(acme, timedelta(minutes=20))
    assert alert.state == AlertState.RESOLVED


def test_a_version_that_breaks_is_told_and_a_compatible_one_is_not(acme: Cast) -> None:
    make_rules(acme, EventKind.VERSION_BREAKS)
    register_tool(acme)

    def publish(**members: Any) -> None:
        with tenant_scope(acme.tenant.id):
            tool = Tool.objects.get(tenant=acme.tenant, name="get_weather")
            publish_version(tool, weather_contract(**members), Publisher(acme.editor))

    publish(description="Only its description is another.")
    assert titles(acme) == []
    publish(**BREAKING)
    (title,) = titles(acme)
    assert title == "version_breaks: version 3 of get_weather may break callers or consumers"


def test_rejected_events_are_told_until_nobody_needs_to_look(acme: Cast) -> None:
    make_rules(acme, EventKind.INBOX_WAITING)
    assert titles(acme) == []
    post(make_ingest_key(acme.tenant), b"{ broken")
    (alert,) = watched(acme)
    assert (alert.title, alert.state) == (
        "inbox_waiting: 1 rejected event in the inbox",
        AlertState.OPEN,
    )
    post(make_ingest_key(acme.tenant), b"{ broken, too")
    assert len(watched(acme)) == 1
    client = signed_in(acme.editor)
    lines = client.get("/inbox/").context["lines"]
    for line in lines:
        client.post(f"/inbox/{line.row.id}/discard", {"reason": "a test"})
    (alert,) = watched(acme)
    assert alert.state == AlertState.RESOLVED


def test_gaps_silent_producers_and_unsigned_entries_are_told(acme: Cast) -> None:
    make_rules(acme, EventKind.GAP_REPORTED, EventKind.EXECUTOR_SILENT, EventKind.SIGNING_LATE)
    gap: dict[str, Any] = {"type": "gap", "producer_id": "worker-7", "reason": "full"}
    gap |= {"from_seq": 3, "to_seq": 5, "count": 3}
    gap |= {"event_id": "0199a000-0000-7000-8000-000000000001"}
    send_events(acme.tenant, [gap])
    send_events(acme.tenant, make_call(producer_id="worker-7", producer_seq=1)[:1])
    assert titles(acme) == ["gap_reported: worker-7 lost 3 events: full"]
    later = [each.title for each in watched(acme, timedelta(minutes=16))]
    assert "executor_silent: worker-7 is silent" in later
    assert any(each.startswith("signing_late: entries since") for each in later)
    assert len(later) == 3
    send_events(acme.tenant, make_call(producer_id="worker-7", producer_seq=2)[:1])
    again = watched(acme)
    (silent,) = [each for each in again if each.rule_name == "executor_silent"]
    assert silent.state == AlertState.RESOLVED


def test_refused_ledger_is_told_until_it_is_signed_again(
    acme: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_folder(tmp_path, monkeypatch)
    make_rules(acme, EventKind.LEDGER_REFUSED)
    append(acme.tenant, leaves(300))
    now = timezone.now()
    keep(acme.tenant, now)
    assert titles(acme) == []
    head = "UPDATE ledger_head SET size = size - 10 WHERE tenant_id = %s"
    as_owner(head, [acme.tenant.id])
    refusal = keep(acme.tenant, now + timedelta(minutes=1)).refusal
    (alert,) = watched(acme)
    assert alert.title == f"ledger_refused: the signer refuses the ledger: {refusal}"
    assert (alert.state, alert.held_to) == (AlertState.OPEN, None)
    assert len(watched(acme)) == 1
    as_owner(head.replace("-", "+"), [acme.tenant.id])
    assert keep(acme.tenant, now + timedelta(minutes=2)).refusal is None
    (alert,) = watched(acme)
    assert alert.state == AlertState.RESOLVED


def test_check_with_findings_is_told_and_one_without_is_not(
    acme: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_folder(tmp_path, monkeypatch)
    make_rules(acme, EventKind.CHECK_FAILED)

    def check() -> None:
        with tenant_scope(acme.tenant.id):
            started = checks.start_check("auditor", timezone.now())
        assert started is not None
        while checks.run_slice(acme.tenant.id, started.id):
            pass

    send_events(acme.tenant, make_call())
    keep(acme.tenant, timezone.now())
    check()
    assert titles(acme) == []
    changed = "UPDATE batch SET payload = NULL WHERE tenant_id = %s"
    assert as_owner(changed, [acme.tenant.id]) == 1
    check()
    (title,) = titles(acme)
    assert title == "check_failed: a check of the ledger has 1 finding"
    assert len(titles(acme)) == 1


def test_disk_and_partitions_that_run_out_are_told(
    acme: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    free = 200_000_000_000
    monkeypatch.setattr("audit.alerts.events.VAR", tmp_path)
    monkeypatch.setattr("audit.alerts.events.disk_usage", lambda _: usage(4e12, 2e12, free))
    make_rules(acme, EventKind.STORAGE_LOW)
    assert titles(acme) == []
    assert [each.title for each in watched(acme, timedelta(days=9))] == [
        "storage_low: days after today with partitions: 5, usually 14"
    ]
    free = 1_500_000_000
    monkeypatch.setattr("audit.alerts.events.disk_usage", lambda _: usage(1e11, 9.5e10, free))
    second, first = watched(acme)  # the other one was opened in nine days
    assert first.state == AlertState.RESOLVED, "in this minute there are partitions"
    full = "storage_low: the disk of the worker's host is nearly full: 1.5 GB are free"
    assert (second.title, second.state) == (full, AlertState.OPEN)


def test_calls_under_unapproved_definitions_are_told(acme: Cast) -> None:
    now = datetime.now(UTC)
    make_rules(acme, EventKind.UNAPPROVED_USED)
    for hint, minutes in ((False, 30), (True, 20)):
        definition = make_definition(annotations={"destructiveHint": hint})
        seen = make_definitions(definition, seen_at=now - timedelta(minutes=minutes))
        send_events(acme.tenant, [seen])
    assert titles(acme) == []
    call = make_call(started_at=now - timedelta(minutes=1))
    send_events(acme.tenant, call)
    (title,) = titles(acme)
    assert title == "unapproved_used: 1 call under definitions that are not approved"


def test_many_events_at_once_open_few_alerts_and_the_rest_is_counted(acme: Cast) -> None:
    make_rules(acme, EventKind.NEW_TOOL)
    now = datetime.now(UTC)
    for n in range(life.OPENED_AN_HOUR + 4):
        at = now + timedelta(milliseconds=n)
        send_events(acme.tenant, make_call(tool_name=f"tool-{n}", started_at=at))
    for _ in range(2):
        alerts = watched(acme)
        assert len(alerts) == life.OPENED_AN_HOUR
        assert sum(each.uncounted for each in alerts) == 4


def test_the_starter_set_is_one_click(acme: Cast) -> None:
    client = signed_in(acme.editor)
    for _ in range(2):
        client.post("/alerts/rules/starter")
        with tenant_scope(acme.tenant.id):
            assert {each.name for each in all_rules()} == {each.name for each in starter_rules()}
    assert "A signer that refuses the ledger" in client.get("/alerts/rules/").content.decode()


def test_a_rule_of_events_is_made_and_changed_on_its_page(acme: Cast) -> None:
    client = signed_in(acme.editor)
    form = {"name": "inbox", "event": "inbox_waiting", "severity": "warning", "is_enabled": "on"}
    assert client.post("/alerts/rules/event", form).status_code == 302
    with tenant_scope(acme.tenant.id):
        (stored,) = all_rules()
    page = client.get(f"/alerts/rules/{stored.id}").content.decode()
    assert 'value="inbox_waiting" selected' in page
    client.post(f"/alerts/rules/{stored.id}", form | {"severity": "alert"})
    post(make_ingest_key(acme.tenant), b"{ broken")
    (alert,) = watched(acme)
    assert alert.severity == "alert"
    detail = client.get(f"/alerts/{alert.id}").content.decode()
    assert 'href="/inbox/"' in detail and "View what it is about" in detail
