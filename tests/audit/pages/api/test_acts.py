"""Acts over the API: each does what its page does, and the audit log records both alike."""

import json
import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone

from audit.models import ErasureState, Invocation, LegalHold, RejectedEvent
from audit.work.payload_search import run_slice as run_search
from audit.work.replay.job import run_slice as run_replay
from tenants.keys import KeyRefused, authenticate, create_key
from tenants.members import add_member
from tenants.models import Action, ApiKey, Membership, Role, Scope, TenantSetting
from tenants.scope import tenant_scope
from tenants.service_accounts import create_account, disable_account
from tests.support.api_client import Program, program
from tests.support.contracts import make_contract
from tests.support.erasures import read_erasure, run_erasure
from tests.support.event_requests import post
from tests.support.factories import Cast, make_call, make_ingest_key, make_user, send_events
from tests.support.floor import requested_floor, set_floor
from tests.support.ledger_log import sign
from tests.support.pages import signed_in
from tools_registry.models import Tool

_WITNESS = {
    "url": "https://w1.example",
    "key": "w1.example+befa920a+BAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB",
}

type Way = tuple[Client, Program, Cast]


def _last_action(cast: Cast) -> Action:
    with tenant_scope(cast.tenant.id):
        return Action.objects.filter(tenant=cast.tenant).order_by("-at")[0]


def _refused_line(cast: Cast) -> UUID:
    post(make_ingest_key(cast.tenant), json.dumps({"type": "neither"}).encode())
    with tenant_scope(cast.tenant.id):
        line = RejectedEvent.objects.for_tenant(cast.tenant.id).order_by("-id")[0]
        return UUID(str(line.id))


def _call(cast: Cast) -> tuple[str, str]:
    """Day and id of a new call."""
    events = make_call()
    send_events(cast.tenant, events)
    with tenant_scope(cast.tenant.id):
        call = Invocation.objects.for_tenant(cast.tenant.id).get(
            invocation_id=events[0]["invocation_id"]
        )
    return f"{call.started_on}", str(call.invocation_id)


def _member(cast: Cast) -> Membership:
    with tenant_scope(cast.tenant.id):
        return add_member(cast.tenant, make_user("new"), Role.VIEWER)


def _hold(cast: Cast) -> UUID:
    api = program(cast.tenant, Scope.HOLDS)
    return UUID(api.do("holds", {"name": "n", "reason": "r", "trace_id": "t"})["id"])


def _invitation(cast: Cast) -> str:
    return str(program(cast.tenant, Scope.ADMIN).do("invitations", {"label": "Eve"})["id"])


def _service(cast: Cast, *, is_disabled: bool = False) -> Membership:
    with tenant_scope(cast.tenant.id):
        account = create_account(cast.tenant, cast.admin, f"program-{secrets.token_hex(4)}")
        if is_disabled:
            disable_account(cast.tenant, cast.admin, account)
    return account


def _tool(cast: Cast) -> str:
    key = create_key(cast.tenant, "executor", [Scope.REGISTRY])[1]
    name = f"tool-{timezone.now().timestamp()}"
    answer = Client().post(
        "/api/v1/tools",
        {"tools": [make_contract(name=name)]},
        content_type="application/json",
        headers={"Authorization": f"Bearer {key}"},
    )
    assert answer.status_code == 200
    with tenant_scope(cast.tenant.id):
        return str(Tool.objects.get(tenant=cast.tenant, name=name).pk)


def _polled(cast: Cast, name: str) -> str:
    program(cast.tenant, Scope.OPERATE).do("polling-tools", {"tool": name})
    return name


def _no_witnesses(cast: Cast) -> None:
    """As if none had been set: setting the same ones again is not recorded."""
    with tenant_scope(cast.tenant.id):
        TenantSetting.objects.filter(tenant=cast.tenant).update(witnesses=[], witnesses_needed=0)


# What is needed first; the page's address and form; the API's method, address and body.
type Alike = tuple[
    Callable[[Cast], Any],
    Callable[[Any], tuple[str, dict[str, Any]]],
    Callable[[Any], tuple[str, str, Any]],
]
ALIKE: dict[str, Alike] = {
    "key.create": (
        lambda cast: None,
        lambda _: ("/settings/keys", {"name": "k", "scopes": ["read"], "purpose": "to test"}),
        lambda _: ("POST", "keys", {"name": "k", "scopes": ["read"], "purpose": "to test"}),
    ),
    "key.rotate": (
        lambda cast: create_key(cast.tenant, "old", [Scope.READ])[0].pk,
        lambda pk: (f"/settings/keys/{pk}/rotate", {"overlap": "1h"}),
        lambda pk: ("POST", f"keys/{pk}/rotate", {"overlap_seconds": 3600}),
    ),
    "key.revoke": (
        lambda cast: create_key(cast.tenant, "old", [Scope.READ])[0].pk,
        lambda pk: (f"/settings/keys/{pk}/revoke", {}),
        lambda pk: ("POST", f"keys/{pk}/revoke", None),
    ),
    "member.invite": (
        lambda cast: None,
        lambda _: ("/settings/members", {"label": "Eve", "role": "editor"}),
        lambda _: ("POST", "invitations", {"label": "Eve", "role": "editor"}),
    ),
    "member.uninvite": (
        _invitation,
        lambda pk: (f"/settings/members/invitations/{pk}/revoke", {}),
        lambda pk: ("POST", f"invitations/{pk}/revoke", None),
    ),
    "member.role": (
        _member,
        lambda one: (f"/settings/members/{one.pk}/role", {"role": "editor"}),
        lambda one: ("PUT", f"members/{one.pk}/role", {"role": "editor"}),
    ),
    "member.remove": (
        _member,
        lambda one: (f"/settings/members/{one.pk}/remove", {}),
        lambda one: ("POST", f"members/{one.pk}/remove", None),
    ),
    "service.create": (
        lambda cast: f"program-{secrets.token_hex(4)}",
        lambda name: ("/settings/service-accounts", {"name": name}),
        lambda name: ("POST", "service-accounts", {"name": name}),
    ),
    "service.disable": (
        lambda cast: _service(cast).pk,
        lambda pk: (f"/settings/service-accounts/{pk}/disable", {}),
        lambda pk: ("POST", f"service-accounts/{pk}/disable", None),
    ),
    "service.enable": (
        lambda cast: _service(cast, is_disabled=True).pk,
        lambda pk: (f"/settings/service-accounts/{pk}/enable", {}),
        lambda pk: ("POST", f"service-accounts/{pk}/enable", None),
    ),
    "service.delete": (
        lambda cast: _service(cast).pk,
        lambda pk: (f"/settings/service-accounts/{pk}/delete", {}),
        lambda pk: ("DELETE", f"service-accounts/{pk}", None),
    ),
    "tenant.redaction": (
        lambda cast: None,
        lambda _: ("/settings/redaction", {"names": "iban", "patterns": ""}),
        lambda _: (
            "PUT",
            "settings/redaction",
            {"names": ["iban"], "patterns": [], "otlp": False},
        ),
    ),
    "tenant.witnesses": (
        lambda cast: _no_witnesses(cast),
        lambda _: (
            "/settings/witnesses",
            {"witnesses": f"{_WITNESS['url']} {_WITNESS['key']}", "needed": "1"},
        ),
        lambda _: ("PUT", "settings/witnesses", {"needed": 1, "witnesses": [_WITNESS]}),
    ),
    "principal.look_up": (
        lambda cast: None,
        lambda _: ("/settings/redaction", {"person": "ada", "look_up": "1"}),
        lambda _: ("POST", "settings/principals/look-up", {"person": "ada"}),
    ),
    "report.schedule": (
        lambda cast: None,
        lambda _: ("/reports/schedule", {"kinds": "week", "time_zone": "UTC", "keep_days": "90"}),
        lambda _: ("PUT", "reports/schedule", {"kinds": ["week"], "keep_days": 90}),
    ),
    "polling.add": (
        lambda cast: None,
        lambda _: ("/repeats/polling", {"tool": "waits"}),
        lambda _: ("POST", "polling-tools", {"tool": "waits"}),
    ),
    "polling.remove": (
        lambda cast: _polled(cast, "waits"),
        lambda name: ("/repeats/polling/remove", {"tool": name}),
        lambda name: ("POST", "polling-tools/remove", {"tool": name}),
    ),
    "hold.set": (
        lambda cast: None,
        lambda _: ("/settings/holds", {"name": "n", "reason": "r", "tool_name": "t"}),
        lambda _: ("POST", "holds", {"name": "n", "reason": "r", "tool_name": "t"}),
    ),
    "hold.release": (
        _hold,
        lambda pk: (f"/settings/holds/{pk}/release", {"reason": "over"}),
        lambda pk: ("POST", f"holds/{pk}/release", {"reason": "over"}),
    ),
    "floor.raise": (
        lambda cast: set_floor(cast, None),
        lambda _: ("/settings/floor/raise", {"raise-days": "183", "raise-reason": "r"}),
        lambda _: ("POST", "floor", {"floor_days": 183, "reason": "r"}),
    ),
    "floor.request": (
        lambda cast: set_floor(cast, 400),
        lambda _: ("/settings/floor/request", {"lower-to_days": "200", "lower-reason": "r"}),
        lambda _: ("POST", "floor/requests", {"to_days": 200, "reason": "r"}),
    ),
    "floor.approve": (
        requested_floor,
        lambda pk: (f"/settings/floor/{pk}/approve", {"reason": "r"}),
        lambda pk: ("POST", f"floor/requests/{pk}/approve", {"reason": "r"}),
    ),
    "floor.refuse": (
        requested_floor,
        lambda pk: (f"/settings/floor/{pk}/refuse", {"reason": "r"}),
        lambda pk: ("POST", f"floor/requests/{pk}/refuse", {"reason": "r"}),
    ),
    "erasure.count": (
        lambda cast: None,
        lambda _: ("/settings/erasures/start", {"q": "case:mine"}),
        lambda _: ("POST", "erasures", {"q": "case:mine"}),
    ),
    "erasure.cancel": (
        lambda cast: program(cast.tenant, Scope.ERASE).do("erasures", {"q": "case:mine"})["id"],
        lambda pk: (f"/settings/erasures/{pk}/cancel", {}),
        lambda pk: ("POST", f"erasures/{pk}/cancel", None),
    ),
    "inbox.discard": (
        _refused_line,
        lambda pk: (f"/inbox/{pk}/discard", {"reason": "a test"}),
        lambda pk: ("POST", f"inbox/{pk}/discard", {"reason": "a test"}),
    ),
    "inbox.send": (
        _refused_line,
        lambda pk: (f"/inbox/{pk}/send", {"line": '{"type": "other"}'}),
        lambda pk: ("POST", f"inbox/{pk}/send", {"line": '{"type": "other"}'}),
    ),
    "call.reveal": (
        _call,
        lambda call: (f"/calls/{call[0]}/{call[1]}/reveal", {"reason": "a test"}),
        lambda call: ("POST", f"calls/{call[1]}/reveal", {"reason": "a test"}),
    ),
    "inbox.reveal": (
        _refused_line,
        lambda pk: (f"/inbox/{pk}/reveal", {"reason": "a test"}),
        lambda pk: ("POST", f"inbox/{pk}/reveal", {"reason": "a test"}),
    ),
    "payload.search": (
        lambda cast: None,
        lambda _: ("/calls/search", {"text": "secret", "q": "tool:t"}),
        lambda _: ("POST", "searches", {"text": "secret", "q": "tool:t"}),
    ),
    "payload.compare": (
        lambda cast: None,
        lambda _: ("/apart/arguments", {"q": "tool:t state:failed", "range": "24h"}),
        lambda _: ("POST", "apart/arguments", {"q": "tool:t state:failed"}),
    ),
    "tool.look-for-drift": (
        _tool,
        lambda pk: (f"/tools/{pk}/drift/analyze", {"limit": "10", "range": "24h"}),
        lambda pk: ("POST", f"tools/{pk}/drift", {"limit": 10, "range": "24h"}),
    ),
    "tool.draft": (
        _tool,
        lambda pk: (f"/tools/{pk}/draft/begin", {}),
        lambda pk: ("POST", f"tools/{pk}/draft/begin", None),
    ),
    "tool.deprecate": (
        _tool,
        lambda pk: (f"/tools/{pk}/1/deprecate", {"reason": "old"}),
        lambda pk: (
            "POST",
            f"tools/{pk}/versions/1/state",
            {"change": "deprecate", "reason": "old"},
        ),
    ),
    "tool.check-on-arrival": (
        _tool,
        lambda pk: (f"/tools/{pk}/arrivals", {"on": "on", "reason": "r"}),
        lambda pk: ("PUT", f"tools/{pk}/arrivals", {"is_on": True, "reason": "r"}),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("verb", ALIKE)
def test_act_is_recorded_alike_on_its_page_and_over_the_api(verb: str, acme: Cast) -> None:
    prepare, page, operation = ALIKE[verb]
    user = acme.auditor if verb.endswith(".reveal") else acme.admin
    address, form = page(prepare(acme))
    assert signed_in(user).post(address, form).status_code in {200, 302}
    by_page = _last_action(acme)
    method, path, body = operation(prepare(acme))
    program(acme.tenant, owner=acme.admin).do(path, body, method)
    by_key = _last_action(acme)
    assert (by_page.verb, by_key.verb) == (verb, verb)
    assert by_page.pk != by_key.pk
    assert by_key.details.keys() == by_page.details.keys() - (
        set() if "owner" in by_key.details else {"owner"}
    )
    assert sorted(name.partition("/")[0] for name in by_key.rows) == sorted(
        name.partition("/")[0] for name in by_page.rows
    )
    assert by_page.user_name == user.get_username()
    assert by_key.user_name.startswith("API key ")


def test_settings_change_one_by_one_and_shorter_retention_must_be_confirmed(acme: Cast) -> None:
    api = program(acme.tenant, Scope.ADMIN)
    assert (
        api.do("settings", {"name": "Acme Ltd", "payload_days": 90, "is_sure": True}, "PATCH")[
            "payload_days"
        ]
        == 90
    )
    assert api.do("settings", {"time_zone": "Europe/Berlin"}, "PATCH")["payload_days"] == 90
    assert api.refused("settings", {"payload_days": 30}, "PATCH") == (422, "invalid")
    assert api.refused("settings", {"time_zone": "No/Where"}, "PATCH") == (422, "invalid")
    assert api.get("settings")["name"] == "Acme Ltd"
    with tenant_scope(acme.tenant.id):
        assert TenantSetting.objects.get(tenant=acme.tenant).payload_days == 90


def test_redaction_is_tried_and_saved(acme: Cast) -> None:
    api = program(acme.tenant, Scope.ADMIN)
    rules = {"names": ["iban"], "patterns": ["^X+$"]}
    tried = api.do("settings/redaction/try", {**rules, "sample": '{"iban": "DE1", "a": "XX"}'})
    assert tried["removed"] == 2
    assert "DE1" not in tried["stored"]
    assert api.get("settings/redaction")["names"] == []
    assert api.do("settings/redaction", rules, "PUT")["patterns"] == ["^X+$"]
    wrong = {"names": [], "patterns": ["("]}
    assert api.refused("settings/redaction", wrong, "PUT") == (422, "invalid")


@pytest.mark.slow
def test_erasure_needs_the_number_and_digest_of_its_preview(acme: Cast) -> None:
    send_events(acme.tenant, make_call(case_id="mine"))
    send_events(acme.tenant, make_call(case_id="theirs"))
    api = program(acme.tenant, Scope.ERASE, Scope.READ)
    assert api.refused("erasures", {"q": ""}) == (422, "query")
    assert api.refused("erasures", {"q": "nope:1"}) == (422, "query")
    pk = api.do("erasures", {"q": "case:mine"})["id"]
    too_early = {"calls": 1, "digest": "0" * 64, "reason": "asked to"}
    assert api.refused(f"erasures/{pk}/confirm", too_early) == (409, "conflict")
    run_erasure(acme, UUID(pk))
    counted = api.get(f"erasures/{pk}")
    assert (counted["state"], counted["preview"]["calls"]) == ("counted", 1)
    confirmation = {**counted["preview"], "reason": "asked to"}
    for wrong in ({"calls": 2}, {"digest": "0" * 64}):
        assert api.refused(f"erasures/{pk}/confirm", confirmation | wrong) == (409, "conflict")
    without = {name: one for name, one in confirmation.items() if name != "digest"}
    assert api.refused(f"erasures/{pk}/confirm", without) == (400, "malformed")
    assert api.refused(f"erasures/{pk}/confirm", confirmation | {"reason": " "})[0] == 400
    assert read_erasure(acme, UUID(pk)).state == ErasureState.COUNTED
    assert api.do(f"erasures/{pk}/confirm", confirmation)["state"] == "confirmed"
    sign(acme.tenant)
    run_erasure(acme, UUID(pk))
    done = api.get(f"erasures/{pk}")
    assert (done["state"], done["erased_calls"], done["problem"]) == ("done", 1, "")
    assert done["confirmed_by"].startswith("API key ci (")


def test_hold_over_the_api_keeps_its_calls(acme: Cast) -> None:
    send_events(acme.tenant, make_call(case_id="mine", trace_id="held"))
    api = program(acme.tenant)
    assert api.refused("holds", {"name": "n", "reason": "r"}) == (422, "invalid")
    hold = api.do("holds", {"name": "n", "reason": "r", "trace_id": "held"})
    pk = api.do("erasures", {"q": "case:mine"})["id"]
    run_erasure(acme, UUID(pk))
    assert api.get(f"erasures/{pk}")["held_calls"] == 1
    assert [one["id"] for one in api.get("holds")["holds"]] == [hold["id"]]
    assert api.do(f"holds/{hold['id']}/release", {"reason": "over"})["released_at"]
    again = api.refused(f"holds/{hold['id']}/release", {"reason": "over"})
    assert again == (409, "conflict")
    with tenant_scope(acme.tenant.id):
        assert LegalHold.objects.for_tenant(acme.tenant.id).get().release_reason == "over"


def test_key_cannot_give_scopes_that_it_lacks(acme: Cast) -> None:
    api = program(acme.tenant, Scope.ADMIN, Scope.READ)
    wanted = {"name": "more", "scopes": ["read", "erase"]}
    assert api.refused("keys", wanted) == (403, "missing_scope")
    other, _ = create_key(acme.tenant, "eraser", [Scope.ERASE])
    assert api.refused(f"keys/{other.pk}/rotate", {}) == (403, "missing_scope")
    made = api.do("keys", {"name": "less", "scopes": ["read"]})
    assert authenticate(made["key"], Scope.READ).tenant_id == acme.tenant.id
    with tenant_scope(acme.tenant.id):
        assert not ApiKey.objects.filter(name="more").exists()


def test_key_has_owner_purpose_expiry_and_networks(acme: Cast) -> None:
    api = program(acme.tenant, owner=acme.admin)
    later = (timezone.now() + timedelta(days=1)).isoformat()
    made = api.do(
        "keys",
        {
            "name": "crawler",
            "scopes": ["read"],
            "purpose": "nightly figures",
            "owner": acme.editor.get_username(),
            "expires_at": later,
            "allowed_addresses": ["10.0.0.7/8", "::1"],
        },
    )
    assert made["owner"] == acme.editor.get_username()
    assert made["allowed_addresses"] == ["10.0.0.0/8", "::1/128"]
    assert authenticate(made["key"], Scope.READ, "10.9.9.9")
    with pytest.raises(KeyRefused, match="address"):
        authenticate(made["key"], Scope.READ, "192.0.2.1")
    for wrong in (
        {"owner": "nobody"},
        {"expires_at": "2020-01-01T00:00:00Z"},
        {"allowed_addresses": ["10.0.0.0/99"]},
    ):
        assert api.refused("keys", {"name": "k", "scopes": ["read"]} | wrong) == (422, "invalid")
    listed = {one["name"]: one for one in api.get("keys")["keys"]}
    assert listed["crawler"]["purpose"] == "nightly figures"
    assert "key" not in listed["crawler"]


def test_keys_that_nobody_used_for_90_days_are_listed(acme: Cast) -> None:
    api = program(acme.tenant, Scope.ADMIN)
    now = timezone.now()
    for name, created, used in (
        ("used", 200, 10),
        ("idle", 200, 100),
        ("never", 100, None),
        ("new", 10, None),
    ):
        key, _ = create_key(acme.tenant, name, [Scope.READ])
        with tenant_scope(acme.tenant.id):
            ApiKey.objects.filter(tenant=acme.tenant, pk=key.pk).update(
                created_at=now - timedelta(days=created),
                last_used_at=None if used is None else now - timedelta(days=used),
            )
    first = api.get("keys?state=idle&limit=1")
    rest = api.get(f"keys?state=idle&cursor={first['next']}")
    assert [one["name"] for one in first["keys"] + rest["keys"]] == ["idle", "never"]
    assert rest["next"] is None
    page = signed_in(acme.admin).get("/settings/keys").content.decode()
    assert page.count("unused for 90 days") == 2


def test_last_admin_stays(acme: Cast) -> None:
    api = program(acme.tenant, Scope.ADMIN)
    members = {one["role"]: one for one in api.get("members")["members"]}
    admin = members["admin"]["id"]
    assert api.refused(f"members/{admin}/remove") == (409, "conflict")
    assert api.refused(f"members/{admin}/role", {"role": "viewer"}, "PUT") == (409, "conflict")
    assert api.refused(f"members/{admin}/role", {"role": "king"}, "PUT") == (400, "malformed")


def test_views_are_those_of_the_key_s_owner(acme: Cast) -> None:
    api = program(acme.tenant, Scope.OPERATE, owner=acme.editor)
    made = api.do("views", {"name": "zebra", "q": "state:error"})
    assert b"zebra" in signed_in(acme.editor).get("/calls/").content
    assert b"zebra" not in signed_in(acme.viewer).get("/calls/").content
    assert [one["q"] for one in api.get("views")["views"]] == ["state:error"]
    assert api.do(f"views/{made['id']}", method="DELETE")["name"] == "zebra"
    assert api.refused(f"views/{made['id']}", method="DELETE") == (404, "not_found")
    nobodys = program(acme.tenant, Scope.OPERATE)
    assert nobodys.refused("views", {"name": "x", "q": "tool:a"}) == (409, "no_owner")
    with tenant_scope(acme.tenant.id):
        Membership.objects.filter(tenant=acme.tenant, user=acme.editor).delete()
    assert api.refused("views", {"name": "x", "q": "tool:a"}) == (409, "no_owner")


def test_search_finds_calls_by_their_payload(acme: Cast) -> None:
    call = make_call(args={"q": "needle in hay"})
    send_events(acme.tenant, call)
    api = program(acme.tenant, Scope.PAYLOADS, owner=acme.admin)
    started = api.do("searches", {"text": "needle"})
    run_search(acme.tenant.id, UUID(started["id"]))
    found = api.get(f"searches/{started['id']}")
    assert found["state"] == "done"
    assert [one["invocation_id"] for one in found["matches"]] == [call[0]["invocation_id"]]
    assert found["matches"][0]["events"] == ["start"]
    assert _last_action(acme).verb == "payload.read"


def test_reveal_shows_one_payload_to_a_key_that_sees_none(acme: Cast) -> None:
    call = make_call(args={"q": "secret"})
    send_events(acme.tenant, call)
    api = program(acme.tenant, Scope.READ, Scope.REVEAL)
    pk = call[0]["invocation_id"]
    assert api.get(f"calls/{pk}")["withheld"] is True
    assert api.refused(f"calls/{pk}/reveal", {"reason": "  "}) == (400, "malformed")
    shown = api.do(f"calls/{pk}/reveal", {"reason": "ticket 7"})
    assert shown["start"]["event"]["args"] == {"q": "secret"}
    assert _last_action(acme).details["reason"] == "ticket 7"
    assert api.get(f"calls/{pk}")["withheld"] is True


@pytest.mark.slow
def test_draft_is_written_checked_replayed_and_published(acme: Cast) -> None:
    api = program(acme.tenant)
    tool = api.do("tools/create", {"name": "get_weather"})["id"]
    assert api.refused("tools/create", {"name": "get_weather"}) == (409, "name_taken")
    described = api.do(f"tools/{tool}/description", {"owner": "Ann", "tags": ["a", "b"]}, "PATCH")
    assert (described["owner"], described["tags"]) == ("Ann", ["a", "b"])
    assert api.do(f"tools/{tool}/description", {"notes": "n"}, "PATCH")["tags"] == ["a", "b"]
    wrong = api.refused(f"tools/{tool}/description", {"link": "javascript:x"}, "PATCH")
    assert wrong == (422, "invalid")
    city = {"type": "object", "properties": {"city": {"type": "string"}}}
    number = {"type": "object", "properties": {"city": {"type": "integer"}}}
    check = api.do(
        f"tools/{tool}/draft/check", {"input_schema": city, "args_examples": [{"city": 7}]}
    )
    assert (check["can_be_saved"], check["examples"][0]["fits"]) == (True, False)
    invalid = {"revision": 0, "input_schema": {"type": "objekt"}}
    assert api.refused(f"tools/{tool}/draft", invalid, "PUT") == (422, "invalid")
    draft = api.do(f"tools/{tool}/draft", {"revision": 0, "input_schema": city}, "PUT")
    published = api.do(f"tools/{tool}/draft/publish", {"revision": draft["revision"]})
    assert (published["version"], published["is_current"]) == (1, True)
    send_events(acme.tenant, make_call(args={"city": "London"}))

    begun = api.do(f"tools/{tool}/draft/begin", {"version": 1})
    body = {"revision": begun["revision"], "input_schema": number}
    draft = api.do(f"tools/{tool}/draft", body, "PUT")
    assert draft["callers"] == "breaking"
    assert api.refused(f"tools/{tool}/draft", body, "PUT") == (409, "conflict")
    replay = api.do(f"tools/{tool}/replays", {"range": "1h"})
    run_replay(acme.tenant.id, UUID(replay["id"]))
    replayed = api.get(f"tools/{tool}/replays/{replay['id']}")
    assert (replayed["state"], replayed["newly_violating"]) == ("done", 1)
    (kind,) = (one for one in replayed["kinds"] if one["new"])
    assert (kind["side"], kind["path"], kind["code"]) == ("args", "$.city", "WRONG_TYPE")
    publish = {"revision": draft["revision"]}
    assert api.refused(f"tools/{tool}/draft/publish", publish) == (422, "invalid")
    published = api.do(f"tools/{tool}/draft/publish", publish | {"reason": "it is a number now"})
    assert published["version"] == 2
    state = f"tools/{tool}/versions/2/state"
    assert api.do(state, {"change": "retire", "reason": "no"})["state"] == "retired"
    assert api.refused(state, {"change": "retire"}) == (409, "conflict")
    assert api.refused(f"tools/{tool}/versions/9/state", {"change": "retire"}) == (
        404,
        "not_found",
    )


@pytest.mark.slow
def test_given_schemas_are_replayed_beside_the_draft(acme: Cast) -> None:
    api = program(acme.tenant)
    city = {"type": "object", "properties": {"city": {"type": "string"}}}
    tool = api.do("tools/create", {"name": "get_weather"})["id"]
    draft = api.do(f"tools/{tool}/draft", {"revision": 0, "input_schema": city}, "PUT")
    api.do(f"tools/{tool}/draft/publish", {"revision": draft["revision"]})
    send_events(acme.tenant, make_call(args={"city": "London"}))
    api.do(f"tools/{tool}/draft/begin", {"version": 1})
    of_draft = api.do(f"tools/{tool}/replays", {"range": "1h"})["id"]

    number = {"type": "object", "properties": {"city": {"type": "integer"}}}
    given = {"range": "1h", "schemas": {"input_schema": number, "output_schema": None}}
    first, second = (api.do(f"tools/{tool}/replays", given) for _ in range(2))
    assert first["draft_revision"] == 0
    assert _last_action(acme).details == {"of": "a given definition"}
    run_replay(acme.tenant.id, UUID(first["id"]))
    replayed = api.get(f"tools/{tool}/replays/{first['id']}")
    assert (replayed["state"], replayed["newly_violating"]) == ("done", 1)
    sides = {one["side"]: one for one in replayed["sides"]}
    assert (sides["args"]["judged"], sides["args"]["newly_violating"]) == (1, 1)
    for other in (of_draft, second["id"]):  # no replay of given schemas ends another
        assert api.get(f"tools/{tool}/replays/{other}")["state"] == "waiting"
    page = signed_in(acme.editor).get(f"/tools/{tool}/draft/review").content.decode()
    assert f"replays/{of_draft}" in page
    assert first["id"] not in page
    page = signed_in(acme.editor).get(f"/tools/{tool}/replays/{first['id']}").content.decode()
    assert "given to the" in page
    assert "have changed since this replay" not in page

    wrong = {"schemas": {"input_schema": {"type": "objekt"}, "output_schema": None}}
    assert api.refused(f"tools/{tool}/replays", wrong) == (400, "malformed")
    endless = {"type": "object", "properties": {"a": {"pattern": "(?=x)"}}}
    unusable = {"schemas": {"input_schema": endless, "output_schema": None}}
    assert api.refused(f"tools/{tool}/replays", unusable) == (409, "conflict")


def test_drift_is_analyzed_and_becomes_a_draft(acme: Cast) -> None:
    api = program(acme.tenant)
    tool = api.do("tools/create", {"name": "get_weather"})["id"]
    assert api.refused(f"tools/{tool}/drift/draft") == (409, "conflict")
    send_events(acme.tenant, make_call(args={"city": "London"}))
    analysis = api.do(f"tools/{tool}/drift", {"range": "1h"})
    assert (analysis["state"], analysis["calls"]) == ("done", 1)
    assert api.refused(f"tools/{tool}/drift", {"range": "soon"}) == (422, "range")
    draft = api.do(f"tools/{tool}/drift/draft")
    assert "city" in draft["input_schema"]["properties"]
    discarded = {"revision": draft["revision"], "reason": "no"}
    assert api.do(f"tools/{tool}/draft/discard", discarded)["revision"] == draft["revision"]
    assert api.send("GET", f"tools/{tool}/draft").status_code == 404


def test_ledger_check_runs_and_is_cancelled(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    sign(acme.tenant)
    api = program(acme.tenant)
    check = api.do("ledger/checks")
    assert api.refused("ledger/checks") == (409, "conflict")
    assert api.do(f"ledger/checks/{check['id']}/cancel")["state"] == "cancelled"
    assert api.get(f"ledger/checks/{check['id']}")["created_by"].startswith("API key")


def test_body_and_parameters_are_strict(acme: Cast) -> None:
    api = program(acme.tenant)
    assert api.refused("polling-tools", {"tool": "t", "more": 1}) == (400, "malformed")
    assert api.refused("polling-tools", {"tool": 7}) == (400, "malformed")
    assert api.refused("polling-tools?q=1", {"tool": "t"}) == (422, "parameter")
    assert api.refused("polling-tools", {"tool": "x" * 1_100_000}) == (413, "too_large")
    assert api.do("polling-tools", {"tool": "a\0b"})["tools"] == ["a\ufffdb"]
