"""The retention floor: no way leads below it without two people."""

import io
import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from audit.models import AlertDelivery, ChannelKind, FloorState
from audit.retention import floor
from audit.retention.floor import FLOOR_DAYS_MIN, OPEN_FOR, FloorError
from audit.retention.retention import limits, run_slice
from audit.tasks.tenants import keep_to_retention
from tenants.keys import create_key
from tenants.models import Action, Scope, Tenant, TenantSetting, Tombstone
from tenants.scope import tenant_scope
from tests.support.api_client import Program, program
from tests.support.deliveries import make_channel
from tests.support.erasures import preview_erasure, read_erasure
from tests.support.factories import Cast, make_call, send_events
from tests.support.floor import (
    floor_of,
    person,
    read_request,
    requested_floor,
    second_admin,
    set_floor,
)
from tests.support.pages import signed_in
from tests.support.retention import recorded_actions, send_old_calls, set_retention


def shown(client: Client, route: str, *arguments: Any, **data: Any) -> str:
    """The page after a form was posted, whether it was taken or not."""
    answer = client.post(reverse(route, args=arguments), data, follow=True)
    return answer.content.decode()


@pytest.mark.slow
def test_settings_keep_to_the_floor_on_page_and_over_the_api(acme: Cast) -> None:
    set_retention(acme, payload_days=400, index_days=None, floor_days=365)
    client, api = signed_in(acme.admin), program(acme.tenant, Scope.ADMIN)
    page = {"name": "Acme", "time_zone": "", "index_days": "", "is_sure": "on"}
    for field in ("payload_days", "index_days"):
        refused = shown(client, "tenant_settings", **{**page, "payload_days": 400, field: 364})
        assert "The retention floor of this tenant is 365 days." in refused
        body = {field: 364, "is_sure": True}
        assert api.refused("settings", body, "PATCH") == (422, "invalid")
    assert "Saved." in shown(client, "tenant_settings", **{**page, "payload_days": 365})
    assert api.get("settings")["floor_days"] == 365
    assert api.do("settings", {"payload_days": None}, "PATCH")["payload_days"] is None


@pytest.mark.parametrize(
    "days",
    [
        {"payload_days": 364, "index_days": None, "floor_days": 365},
        {"payload_days": 400, "index_days": 364, "floor_days": 365},
        {"payload_days": None, "index_days": None, "floor_days": FLOOR_DAYS_MIN - 1},
    ],
)
def test_database_refuses_less_than_the_floor(acme: Cast, days: dict[str, int | None]) -> None:
    with pytest.raises(IntegrityError, match="tenant_setting_floor_check"):
        set_retention(acme, **days)


def test_one_admin_raises_the_floor_and_never_lowers_it(acme: Cast) -> None:
    client = signed_in(acme.admin)

    def tried(days: int) -> str:
        return shown(client, "floor_raise", **{"raise-days": days, "raise-reason": "a law"})

    assert "greater than or equal to 183" in tried(FLOOR_DAYS_MIN - 1)
    set_retention(acme, payload_days=200)
    assert "Payloads: kept for 200 days only. Make retention longer first." in tried(365)
    assert "The retention floor is 183 days now." in tried(183)
    assert "The retention floor is 200 days now." in tried(200)
    assert "The floor is 200 days. To lower it, two admins are needed." in tried(190)
    assert floor_of(acme) == 200
    assert recorded_actions(acme, "floor.raise") == [
        {"by": acme.admin.username, "before": None, "after": 183, "reason": "a law"},
        {"by": acme.admin.username, "before": 183, "after": 200, "reason": "a law"},
    ]


def test_another_admin_approves_and_everybody_is_notified(acme: Cast) -> None:
    make_channel(acme, ChannelKind.WEBHOOK, url="https://hooks.example/floor")
    set_floor(acme, 400)
    ada, bob = signed_in(acme.admin), signed_in(second_admin(acme))
    assert "Requested." in shown(
        ada, "floor_request", **{"lower-to_days": 200, "lower-reason": "The law changed"}
    )
    with tenant_scope(acme.tenant.id):
        request = floor.waiting_request()
    assert request is not None
    for reader in (signed_in(acme.auditor), bob):
        page = reader.get(reverse("floor_page")).content.decode()
        assert "Lower the floor to 200 days" in page
        assert "The law changed" in page
    own = shown(ada, "floor_approve", request.id, reason="me")
    assert "Another admin must approve it: you have requested it." in own
    assert floor_of(acme) == 400
    again = shown(bob, "floor_request", **{"lower-to_days": "", "lower-reason": "all"})
    assert "A request is waiting already." in again
    assert "Approved." in shown(bob, "floor_approve", request.id, reason="checked")
    assert floor_of(acme) == 200
    assert "no longer waits" in shown(bob, "floor_approve", request.id, reason="checked")
    with tenant_scope(acme.tenant.id):
        sent = AlertDelivery.objects.for_tenant(acme.tenant.id).order_by("id")
        titles = [one.message["title"] for one in sent]
        rows = Action.objects.get(tenant=acme.tenant, verb="floor.approve").rows
    change = "to lower the retention floor from 400 to 200 days"
    ada_name, bob_name = acme.admin.username, read_request(acme, request.id).decided_by
    assert titles == [
        f"{ada_name} requests {change}",
        f"{bob_name} approved {change}, as {ada_name} requested",
    ]
    assert {name.partition("/")[0] for name in rows} == {"tenant_setting", "floor_request"}


def test_request_is_refused_withdrawn_or_expires(acme: Cast) -> None:
    refused = requested_floor(acme)
    admin = signed_in(acme.admin)
    assert "Enter a reason." in shown(admin, "floor_refuse", refused)
    assert "Refused." in shown(admin, "floor_refuse", refused, reason="no")
    assert floor_of(acme) == 400
    assert read_request(acme, refused).state == FloorState.REFUSED
    late = requested_floor(acme)
    after = timezone.now() + OPEN_FOR
    with tenant_scope(acme.tenant.id):
        with pytest.raises(FloorError, match="has expired"):
            floor.approve(acme.tenant, person(acme.admin), late, "late", after)
        TenantSetting.objects.filter(tenant=acme.tenant).update(floor_days=401)
        with pytest.raises(FloorError, match="was raised since"):
            floor.approve(acme.tenant, person(acme.admin), late, "early", timezone.now())
        assert not floor.expire_request(after - timedelta(seconds=1))
        assert floor.expire_request(after)
        assert floor.waiting_request() is None
    assert read_request(acme, late).state == FloorState.EXPIRED
    verbs = ("floor.refuse", "floor.expire")
    assert [len(recorded_actions(acme, verb)) for verb in verbs] == [1, 1]


def test_worker_ends_requests(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = requested_floor(acme)
    later = timezone.now() + OPEN_FOR
    monkeypatch.setattr("audit.tasks.tenants.timezone.now", lambda: later)
    monkeypatch.setattr("audit.tasks.tenants._tenant_ids", lambda: [acme.tenant.id])
    keep_to_retention(0)
    assert read_request(acme, waiting).state == FloorState.EXPIRED


def test_key_approves_only_for_the_person_who_made_it(acme: Cast) -> None:
    waiting = requested_floor(acme)
    second = read_request(acme, waiting).requested_by
    path = f"floor/requests/{waiting}/approve"
    for forged in (
        # An admin knows the secret of a key that they made for somebody else.
        create_key(acme.tenant, "k", [Scope.ADMIN], created_by=acme.viewer, owner=acme.admin)[1],
        create_key(acme.tenant, "k", [Scope.ADMIN], owner=acme.admin)[1],
        create_key(acme.tenant, "k", [Scope.ADMIN], created_by=acme.auditor)[1],
    ):
        answer = Program(acme.tenant, forged).refused(path, {"reason": "r"})
        assert answer == (403, "needs_person")
    api = program(acme.tenant, Scope.ADMIN, Scope.READ, owner=acme.admin)
    assert api.do(path, {"reason": "r"})["state"] == "approved"
    assert api.get("floor") == {"floor_days": None}
    assert [one["requested_by"] for one in api.get("floor/requests")["items"]] == [second]
    assert api.do("floor", {"floor_days": 300, "reason": "r"}) == {"floor_days": 300}
    assert api.refused("floor", {"floor_days": 200, "reason": "r"}) == (409, "conflict")
    mine = api.do("floor/requests", {"to_days": None, "reason": "r"})["id"]
    assert api.refused(f"floor/requests/{mine}/approve", {"reason": "r"}) == (409, "conflict")


def test_earlier_requests_sort(acme: Cast) -> None:
    set_floor(acme, 300)
    client = signed_in(acme.admin)
    for days in (200, 250, 190):
        reason = {"reason": f"to {days}"}
        client.post(reverse("floor_request"), {"lower-to_days": days, "lower-reason": "r"})
        with tenant_scope(acme.tenant.id):
            waiting = floor.all_requests()[0]
        client.post(reverse("floor_refuse", args=[waiting.id]), reason)
    found = {
        order: re.findall(r"to (\d+)<", client.get(f"/settings/floor?{order}").content.decode())
        for order in ("", "sort=request", "sort=-request")
    }
    assert found[""] == ["190", "250", "200"]
    assert found["sort=request"] == ["250", "200", "190"]
    assert found["sort=-request"] == ["190", "200", "250"]


@pytest.mark.slow
def test_erasure_below_the_floor_takes_two_people(acme: Cast) -> None:
    send_events(acme.tenant, make_call(case_id="mine"))
    set_floor(acme, 200)
    one = preview_erasure(acme)
    admin, second = signed_in(acme.admin), signed_in(second_admin(acme))
    refusal = "another admin must confirm this erasure"
    assert refusal in admin.get(reverse("erasure_detail", args=[one.id])).content.decode()
    assert refusal in shown(admin, "erasure_confirm", one.id, reason="asked to")
    preview = {"calls": 1, "digest": "", "reason": "asked to"}
    api = program(acme.tenant, Scope.ERASE, Scope.READ)
    preview["digest"] = api.get(f"erasures/{one.id}")["preview"]["digest"]
    assert api.refused(f"erasures/{one.id}/confirm", preview) == (403, "needs_person")
    assert read_erasure(acme, one.id).state == "counted"
    assert refusal not in shown(second, "erasure_confirm", one.id, reason="asked to")
    assert read_erasure(acme, one.id).state == "confirmed"


def test_tenant_with_a_floor_is_not_deleted(acme: Cast) -> None:
    Tenant.objects.filter(pk=acme.tenant.pk).update(
        suspended_at=timezone.now() - timedelta(hours=1)
    )
    set_floor(acme, 200)
    with pytest.raises(CommandError, match="two of its admins must remove it first"):
        call_command(
            *("tenant", "delete", acme.tenant.slug, "--yes", acme.tenant.name),
            stdout=io.StringIO(),
            stderr=io.StringIO(),
        )
    assert not Tombstone.objects.filter(pk=acme.tenant.pk).exists()
    assert floor_of(acme) == 200


def test_slice_under_way_stops_when_retention_was_made_longer(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_old_calls(acme, timedelta(days=300))
    set_retention(acme, payload_days=200)

    def longer(setting: Any, now: Any) -> Any:
        found = limits(setting, now)
        set_retention(acme, payload_days=400, floor_days=365)
        return found

    monkeypatch.setattr("audit.retention.retention.limits", longer)
    assert run_slice(acme.tenant.id, timezone.now()), "the next slice reads the settings again"
    assert recorded_actions(acme, "retention.payloads") == []
