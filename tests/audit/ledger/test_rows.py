"""Rows against entries: every act explains the rows it changed; what no act explains is found."""

import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from audit.ledger.actions import enter_actions
from audit.ledger.baseline import enter_baseline
from audit.ledger.rows import unexplained
from audit.models import LegalHold, StoredReport, StoredServedDefinition
from audit.tasks import keep_reports
from tenants.models import ApiKey, Invitation, Membership, TenantSetting
from tenants.row_digests import proved_models
from tenants.scope import tenant_scope
from tests.support.erasures import confirm_erasure, preview_erasure
from tests.support.factories import (
    Cast,
    make_call,
    make_definition,
    make_definitions,
    make_user,
    send_events,
)
from tests.support.ledger_log import as_owner
from tests.support.legal_holds import set_hold
from tests.support.pages import signed_in
from tests.support.registered_tools import register_tool, weather_contract
from tests.support.registry_exchange import exported_registry, fill_registry
from tools_registry.changes import Publisher
from tools_registry.drafts import create_draft, discard_draft, find_draft, publish, save_draft
from tools_registry.models import Tool, ToolVersion


def begin(cast: Cast) -> None:
    """Append the tenant's baseline, as the worker does."""
    assert enter_baseline(cast.tenant.id, timezone.now())


def differences(cast: Cast) -> list[str]:
    """Enter what waits, then compare rows with entries."""
    enter_actions(cast.tenant.id, timezone.now())
    with tenant_scope(cast.tenant.id):
        return unexplained(cast.tenant.id)


def post(client: Client, route: str, /, *arguments: Any, **data: Any) -> None:
    answer = client.post(reverse(route, args=arguments), data)
    assert answer.status_code in (200, 302), answer.content.decode()
    assert b"errorlist" not in answer.content, answer.content.decode()


def operators_key(cast: Cast, scope: str) -> str:
    """The text of a key that an operator makes."""
    out = io.StringIO()
    call_command("key", "create", cast.tenant.slug, "--name", scope, "--scope", scope, stdout=out)
    return out.getvalue().strip()


def act_on_keys(cast: Cast) -> None:
    admin = signed_in(cast.admin)
    for name in ("one", "two", "three"):
        post(admin, "key_list", name=name, scopes=["read"])
    call_command("key", "create", cast.tenant.slug, "--name", "four", "--scope", "ingest")
    with tenant_scope(cast.tenant.id):
        keys = {key.name: key for key in ApiKey.objects.filter(tenant=cast.tenant)}
    post(admin, "key_revoke", keys["one"].pk)
    post(admin, "key_rotate", keys["two"].pk, overlap="day")
    call_command("key", "revoke", cast.tenant.slug, keys["four"].key_id)


def act_on_members(cast: Cast) -> None:
    admin = signed_in(cast.admin)
    invited = admin.post(reverse("member_list"), {"label": "Ann", "role": "editor"})
    post(admin, "member_list", label="Bob", role="editor")
    with tenant_scope(cast.tenant.id):
        bob = Invitation.objects.get(tenant=cast.tenant, label="Bob")
        viewer = Membership.objects.get(tenant=cast.tenant, user=cast.viewer)
    post(admin, "invitation_revoke", bob.pk)
    guest = Client()
    guest.force_login(make_user("ann"))
    assert guest.post(invited.context["new_link"].address).status_code == 302
    post(admin, "member_role", viewer.pk, role="editor")
    post(admin, "member_remove", viewer.pk)
    # Old ones are deleted with the next invitation.
    as_owner("UPDATE invitation SET expires_at = '2020-01-01' WHERE id = %s", [bob.pk])
    post(admin, "member_list", label="Cid", role="viewer")


def act_on_settings(cast: Cast) -> None:
    admin = signed_in(cast.admin)
    post(admin, "tenant_settings", name="New", time_zone="", payload_days=30, is_sure="on")
    post(admin, "redaction_settings", names="password", patterns="", otlp="on")
    call_command("tenant", "suspend", cast.tenant.slug)
    call_command("tenant", "resume", cast.tenant.slug)
    editor = signed_in(cast.editor)
    post(editor, "polling_add", tool="poll")
    post(editor, "polling_add", tool="other")
    post(editor, "polling_remove", tool="poll")


def act_on_holds_and_erasures(cast: Cast) -> None:
    key = operators_key(cast, "ingest")
    send_events(cast.tenant, make_call(case_id="mine"), key=key)
    send_events(cast.tenant, make_call(case_id="gone", tool_name="unheld"), key=key)
    hold = set_hold(cast, case_id="other")
    set_hold(cast, tool_name="get_weather")
    post(signed_in(cast.auditor), "hold_release", hold.id, reason="over")
    confirm_erasure(cast, preview_erasure(cast, "case:gone").id)


def act_on_reports(cast: Cast) -> None:
    admin = signed_in(cast.admin)
    post(admin, "report_schedule", kinds=["day"], time_zone="UTC", keep_days=40)
    post(admin, "report_create", kind="day", day="2026-01-01")
    later = timezone.now() + timedelta(days=41)
    with patch("audit.tasks.timezone.now", return_value=later):
        keep_reports(0)
    with tenant_scope(cast.tenant.id):
        assert not StoredReport.objects.for_tenant(cast.tenant.id).exists()


def act_on_tools(cast: Cast) -> None:
    fill_registry(cast)
    by = Publisher(cast.admin)
    with tenant_scope(cast.tenant.id):
        tool = Tool.objects.get(tenant=cast.tenant, name="get_weather")
        create_draft(tool, weather_contract(description="d"), by)
        draft = find_draft(tool)
        assert draft is not None
        save_draft(draft, weather_contract(description="e"), by, expected_revision=1)
        publish(draft, by, expected_revision=2, newly_violating=0, reason="because")
        draft = create_draft(tool, weather_contract(description="f"), by)
        discard_draft(draft, by, expected_revision=1)
    register_tool(cast, description="g", on_collision="throw")  # refused: an attempt


def act_on_definitions(cast: Cast) -> None:
    """Lists that change, flap and arrive late; an approval, and one that is withdrawn."""
    key = operators_key(cast, "ingest")
    good = make_definition()
    worse = make_definition(annotations={"destructiveHint": True})
    lists = [(good, 90), (worse, 80), (good, 70), (worse, 60), (good, 95), (worse, 85)]
    lists += [(make_definition("other"), 90), *((make_definition(str(n)), n) for n in range(9))]
    for definition, seconds in lists:
        at = timezone.now() - timedelta(seconds=seconds)
        send_events(cast.tenant, [make_definitions(definition, seen_at=at)], key=key)
    editor = signed_in(cast.editor)
    with tenant_scope(cast.tenant.id):
        pending = StoredServedDefinition.objects.for_tenant(cast.tenant.id).filter(state="pending")
        ids = [one.id for one in pending.order_by("id")[:2]]
    for pk in ids:
        post(editor, "definition_approve", pk, reason="read")
    post(editor, "definition_withdraw", ids[0], reason="not read")


ACTS = [
    *(act_on_keys, act_on_members, act_on_settings, act_on_holds_and_erasures),
    *(act_on_reports, act_on_tools, act_on_definitions),
]


@pytest.mark.slow
@pytest.mark.parametrize("act", ACTS)
def test_every_act_explains_the_rows_that_it_changed(
    act: Callable[[Cast], None], acme: Cast
) -> None:
    begin(acme)
    act(acme)
    assert differences(acme) == []


@pytest.mark.slow
def test_import_of_a_registry_explains_its_rows(acme: Cast, globex: Cast) -> None:
    fill_registry(acme)
    begin(globex)
    key = operators_key(globex, "registry")
    answer = Client().post(
        "/api/v1/registry?as=published&reason=moved",
        exported_registry(acme.tenant),
        content_type="application/json",
        headers={"Authorization": f"Bearer {key}"},
    )
    assert answer.status_code == 200, answer.content
    assert differences(globex) == []
    with tenant_scope(globex.tenant.id):
        assert ToolVersion.objects.filter(tenant=globex.tenant).count() == 4


def row_of_each_table(cast: Cast) -> None:
    """At least one row of each proved model."""
    act_on_keys(cast)
    act_on_members(cast)
    act_on_settings(cast)
    act_on_holds_and_erasures(cast)
    act_on_definitions(cast)
    fill_registry(cast)
    admin = signed_in(cast.admin)
    post(admin, "report_schedule", kinds=["day"], time_zone="UTC", keep_days=40)
    post(admin, "report_create", kind="day", day="2026-01-01")
    with tenant_scope(cast.tenant.id):
        tool = Tool.objects.get(tenant=cast.tenant, name="get_weather")
        create_draft(tool, weather_contract(description="d"), Publisher(cast.admin))


CHANGES = {
    "api_key": "scopes = '{ingest,read,payloads}'",
    "definition": "content = '{}'",
    "definition_change": "client = 'another'",
    "erasure": "confirmed_by = 'ada'",
    "invitation": "role = 'admin'",
    "legal_hold": "trace_id = 'another'",
    "membership": "role = 'admin'",
    "polling_tool": "created_at = '2020-01-01'",
    "report": "figures = '{}'",
    "report_schedule": "keep_days = 41",
    "served_definition": "state = 'first', approved_at = NULL, approved_by = NULL,"
    " approval_reason = NULL",
    "tenant": "name = 'Forged'",
    "tenant_setting": "payload_days = 1",
    "tool": "owner = 'Mallory'",
    "tool_change": "reason = 'forged'",
    "tool_draft": "description = 'forged'",
    "tool_version": "description = 'forged'",
}
"""What an attacker changes by SQL, by table."""


@pytest.mark.slow
@pytest.mark.parametrize("baseline", ["before", "after"])
def test_changes_and_deletions_without_an_entry_are_found(baseline: str, acme: Cast) -> None:
    assert set(CHANGES) == {model._meta.db_table for model in proved_models()}
    if baseline == "before":
        begin(acme)
    row_of_each_table(acme)
    if baseline == "after":
        begin(acme)
    assert differences(acme) == []
    for table, change in CHANGES.items():
        tenant = "id" if table == "tenant" else "tenant_id"
        scope = [acme.tenant.id]
        count = as_owner(f"UPDATE {table} SET {change} WHERE {tenant} = %s", scope)
        found = [one for one in differences(acme) if "was changed" in one]
        assert count and len(found) >= 1, table
    before = set(differences(acme))
    gone = ("tool_change", "legal_hold", "api_key", "invitation", "report", "erasure_call")
    for table in (*gone, "definition_change"):
        as_owner(f"DELETE FROM {table} WHERE tenant_id = %s", [acme.tenant.id])
    new = set(differences(acme)) - before
    assert {one.split()[1] for one in new if "was deleted" in one} >= {"change", "legal", "API"}


def test_inserted_rows_are_found(acme: Cast) -> None:
    begin(acme)
    with tenant_scope(acme.tenant.id):
        Membership.objects.create(tenant=acme.tenant, user=make_user("eve"), role="admin")
        TenantSetting.objects.create(tenant=acme.tenant)  # defaults: code that locks it makes it
        LegalHold.objects.create(
            tenant_id=acme.tenant.id,
            id=UUID(int=7),
            name="forged",
            reason="forged",
            trace_id="forged",
            set_at=timezone.now(),
            set_by="ada",
        )
    assert differences(acme) == [
        f"the legal hold {UUID(int=7)} was inserted, and no entry of the ledger says so",
        next(one for one in differences(acme) if one.startswith("the membership")),
    ]


_APPROVAL = "state = 'approved', approved_at = now(), approved_by = 'ada', approval_reason = 'r'"
FORGED = [
    f"UPDATE served_definition SET {_APPROVAL} WHERE state = 'pending' AND",
    "UPDATE served_definition SET state = 'first' WHERE state = 'pending' AND",
    "UPDATE served_definition SET approved_during = '{[2020-01-01,2030-01-01)}' WHERE",
    "UPDATE definition_change SET digest = '' WHERE",
]


@pytest.mark.parametrize("statement", FORGED)
def test_forged_approval_is_found(statement: str, acme: Cast) -> None:
    begin(acme)
    now = timezone.now()
    worse = make_definition(annotations={"destructiveHint": True})
    for number, definition in enumerate([make_definition(), worse]):
        at = now - timedelta(seconds=9 - number)
        send_events(acme.tenant, [make_definitions(definition, seen_at=at)])
    assert [one for one in differences(acme) if "API key" not in one] == []
    as_owner(f"{statement} tenant_id = %s", [acme.tenant.id])
    assert [one for one in differences(acme) if "definition" in one]


def test_server_that_is_taken_out_gets_no_first_list_again(acme: Cast) -> None:
    now = timezone.now()
    for seconds, name in [(9, "one"), (5, "two"), (5, "three")]:
        list_ = make_definitions(make_definition(name), seen_at=now - timedelta(seconds=seconds))
        as_owner("DELETE FROM definition_server WHERE tenant_id = %s", [acme.tenant.id])
        send_events(acme.tenant, [list_])
    with tenant_scope(acme.tenant.id):
        stored = StoredServedDefinition.objects.for_tenant(acme.tenant.id)
        states = dict(stored.values_list("tool_name", "state"))
    assert states == {"one": "first", "two": "pending", "three": "pending"}


def test_without_a_baseline_nothing_is_compared(acme: Cast) -> None:
    signed_in(acme.admin).post(reverse("key_list"), {"name": "one", "scopes": ["read"]})
    as_owner("UPDATE api_key SET name = 'forged' WHERE tenant_id = %s", [acme.tenant.id])
    assert differences(acme) == []


def test_second_baseline_does_not_count(acme: Cast) -> None:
    begin(acme)
    assert not enter_baseline(acme.tenant.id, timezone.now())
    as_owner("UPDATE membership SET role = 'admin' WHERE tenant_id = %s", [acme.tenant.id])
    as_owner("UPDATE ledger_head SET has_baseline = false WHERE tenant_id = %s", [acme.tenant.id])
    begin(acme)
    found = differences(acme)
    assert sum("second baseline" in one for one in found) == 1
    assert sum("membership" in one for one in found) == 3
