"""Rows against entries: every act explains the rows it changed; what no act explains is found."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from audit.ledger.actions import enter_actions
from audit.ledger.baseline import enter_baseline
from audit.ledger.rows import unexplained
from audit.models import LegalHold, StoredServedDefinition
from tenants.keys import create_key
from tenants.models import ApiKey, Membership, Scope, TenantSetting
from tenants.row_digests import digests_of, proved_models
from tenants.scope import tenant_scope
from tenants.service_accounts import create_account
from tests.support.acts import (
    act_on_alerts,
    act_on_archive,
    act_on_channels,
    act_on_definitions,
    act_on_directory,
    act_on_floor,
    act_on_holds_and_erasures,
    act_on_incidents,
    act_on_keys,
    act_on_members,
    act_on_notes,
    act_on_prices,
    act_on_providers,
    act_on_reports,
    act_on_samples,
    act_on_settings,
    act_on_share_links,
    act_on_streams,
    act_on_tools,
    operators_key,
    row_of_each_table,
)
from tests.support.factories import (
    Cast,
    make_definition,
    make_definitions,
    make_user,
    send_events,
)
from tests.support.ledger_log import as_owner
from tests.support.pages import signed_in
from tests.support.registry_exchange import exported_registry, fill_registry
from tools_registry.models import ToolVersion


def begin(cast: Cast) -> None:
    """Append the tenant's baseline, as the worker does."""
    assert enter_baseline(cast.tenant.id, timezone.now())


def differences(cast: Cast) -> list[str]:
    """Enter what waits, then compare rows with entries."""
    enter_actions(cast.tenant.id, timezone.now())
    with tenant_scope(cast.tenant.id):
        return unexplained(cast.tenant.id)


ACTS = [
    *(act_on_keys, act_on_members, act_on_settings, act_on_holds_and_erasures),
    *(act_on_reports, act_on_tools, act_on_definitions, act_on_alerts),
    *(act_on_channels, act_on_notes, act_on_prices, act_on_providers, act_on_directory),
    *(act_on_share_links, act_on_streams, act_on_samples, act_on_floor, act_on_incidents),
    act_on_archive,
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


CHANGES = {
    "alert": "resolved_by = 'nobody'",
    "alert_rule": "condition = '{}'",
    "alert_channel": """settings = '{"url": "https://mallory.example/"}'""",
    "api_key": "scopes = '{ingest,read,payloads}'",
    "archive": "payload_days = 1",
    "audit_sample": "seed = 'forged'",
    "audit_sample_call": "conclusion = 'unjudged'",
    "definition": "content = '{}'",
    "definition_change": "client = 'another'",
    "directory_group": "display_name = 'owners'",
    "directory_user": "is_active = NULL",
    "erasure": "confirmed_by = 'ada'",
    "floor_request": "to_days = 184",
    "identity_provider": """role_by_group = '{"staff": "admin"}'""",
    "incident": "sha256 = 'forged'",
    "invitation": "role = 'admin'",
    "legal_hold": "trace_id = 'another'",
    "maintenance_window": "minutes = 10000",
    "note": "text = 'forged'",
    "share_link": "expires_at = expires_at + interval '1 day'",
    "stream": """settings = '{"url": "https://mallory.example/", "ca": ""}'""",
    "membership": "role = 'admin'",
    "polling_tool": "created_at = '2020-01-01'",
    "price_list": "prices = '{}'",
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
@pytest.mark.generated(1)
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
        lines = [one for one in differences(acme) if "was changed" in one]
        assert count and len(lines) >= 1, table
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


@pytest.mark.slow
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
    lines = differences(acme)
    assert sum("second baseline" in one for one in lines) == 1
    assert sum("membership" in one for one in lines) == 3


def test_columns_of_a_later_release_leave_the_digests_of_rows_that_do_not_use_them(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, _ = create_key(acme.tenant, "plain", [Scope.READ])
    bound, _ = create_key(acme.tenant, "bound", [Scope.READ], allowed_addresses=["10.0.0.0/8"])
    later = ApiKey.in_ledger_later
    with tenant_scope(acme.tenant.id):
        now = digests_of(acme.tenant.id, [plain, bound])
        earlier = tuple(name for name in ApiKey.in_ledger if name not in later)
        monkeypatch.setattr(ApiKey, "in_ledger", earlier)
        monkeypatch.setattr(ApiKey, "in_ledger_later", {})
        before = digests_of(acme.tenant.id, [plain, bound])
    same = {name for name, digest in now.items() if before[name] == digest}
    assert same == {f"api_key/{plain.pk}"}


def test_each_release_that_adds_columns_leaves_the_digests_of_the_ones_before(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tenant_scope(acme.tenant.id):
        plain = Membership.objects.filter(tenant=acme.tenant, user=acme.editor).get()
        service = create_account(acme.tenant, acme.admin, "deploy")
        now = digests_of(acme.tenant.id, [plain, service])
        first, *_ = Membership.in_ledger_later
        monkeypatch.setattr(Membership, "in_ledger", Membership.in_ledger[:5])
        monkeypatch.setattr(Membership, "in_ledger_later", first)
        assert digests_of(acme.tenant.id, [plain, service]) == now
