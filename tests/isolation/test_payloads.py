"""Viewers see no payload, auditors only after a reveal; all others see them (docs/adr/0011)."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from audit.models import PayloadSearch, RejectedEvent
from audit.queries.call_list import call_page
from audit.queries.call_query import ANYBODY, parse
from audit.work.payload_search import run_slice
from tenants.keys import create_key
from tenants.members import add_member
from tenants.models import Action, Membership, Role, Scope, User
from tenants.scope import tenant_scope
from tests.isolation.routes import ROUTES, Listing, Object, Visit, opens_to
from tests.isolation.world import World, make_world
from tests.support.event_requests import post
from tests.support.factories import (
    make_call,
    make_decision,
    make_ingest_key,
    make_user,
    send_events,
)
from tests.support.ledger_log import as_owner
from tests.support.pages import signed_in

PAYLOAD = "payload3b1f"
"""Is in every payload, and in each text that quotes one."""

SHOWING = (
    "",
    "traces/",
    "traces/<text:trace_id>",
    "traces/<text:trace_id>/text",
    "calls/",
    "calls/export.<slug:kind>",
    "calls/search/<uuid:pk>",
    "calls/tail",
    "calls/<day:started_on>/<uuid:invocation_id>",
    "calls/<day:started_on>/<uuid:invocation_id>/<slug:kind>",
    "violations/",
    "inbox/",
    "inbox/export.<slug:kind>",
    "inbox/<uuid:pk>",
)
"""Routes that show the payload to members who may open them and see payloads."""


ON_REQUEST = {
    "actions/": "shows the queries of members",
    "actions/export.<slug:kind>": "contains the queries of members",
    "calls/search/<uuid:pk>": "requires a reason",
    "evidence/bundle.zip": "is recorded as an action",
    "inbox/export.<slug:kind>": "is recorded as an action",
}
"""Routes that may show an auditor payloads without a reveal, and why."""


@pytest.fixture(scope="module")
def world() -> World:
    """A tenant whose executor has sent the payload in every place that can hold one."""
    world = make_world("acme")
    key = make_ingest_key(world.tenant)
    at = datetime.now(UTC) - timedelta(seconds=30)
    violation = {
        "path": "$.city",
        "code": "ENUM_MISMATCH",
        "severity": "error",
        "message": PAYLOAD,
        "expected": "a city",
        "received": PAYLOAD,
        "receivedValue": PAYLOAD,
        "coercedValue": PAYLOAD,
        "llmMessage": PAYLOAD,
    }
    error = {"type": "FATAL", "message": PAYLOAD, "details": PAYLOAD, "cause": PAYLOAD}
    failed = make_call(
        trace_id=world.canary,
        started_at=at,
        args={"q": PAYLOAD, f"{PAYLOAD}@example.com": [{"deep": PAYLOAD}]},
        is_error=True,
        output={
            "status": "error",
            "error": {**error, "endpoint": PAYLOAD},
            "meta": {"took_ms": 20, "note": PAYLOAD},
        },
    )
    broken = make_call(
        trace_id=world.canary,
        started_at=at,
        args=PAYLOAD,
        output={"status": "ok", "data": PAYLOAD, "meta": {"took_ms": 20}},
        guard={
            "strategy": "coerce",
            "outcome": "coerced",
            "received": PAYLOAD,
            "violations": [violation],
        },
    )
    alone = make_call(trace_id=f"{world.canary} alone", output=failed[1]["output"], is_error=True)
    # Of a call that was refused, of one that ran, and of one that waits for an approval.
    quoting: dict[str, Any] = {
        "trace_id": world.canary,
        "args": {"q": PAYLOAD},
        "reason": PAYLOAD,
        "violations": [violation],
    }
    ran = {"invocation_id": failed[0]["invocation_id"]}
    decisions = [
        make_decision("rejectedArguments", decided_at=at, **quoting),
        make_decision("approved", decided_at=at, **quoting, **ran),
        make_decision("awaiting", decided_at=at, **quoting),
    ]
    send_events(world.tenant, [*failed, *broken, *alone, *decisions], key=key)
    post(key, json.dumps({"args": PAYLOAD, "type": "neither"}).encode())  # an invalid event
    post(key, json.dumps({**failed[0], "args": [PAYLOAD]}).encode())  # a conflict
    with tenant_scope(world.tenant.id):
        refused = RejectedEvent.objects.for_tenant(world.tenant.id).order_by("-id")[0]
    return replace(
        world, at=at, call_id=UUID(str(failed[0]["invocation_id"])), refused_id=refused.id
    )


@pytest.fixture(scope="module")
def members(world: World) -> dict[Role, User]:
    """A member of each role."""
    users = {role: make_user(role.value) for role in Role}
    with tenant_scope(world.tenant.id):
        for role, user in users.items():
            add_member(world.tenant, user, role)
    return users


@pytest.fixture
def clients(members: dict[Role, User]) -> dict[Role, Client]:
    """A signed-in client for each role."""
    return {role: signed_in(user) for role, user in members.items()}


def searched(world: World, client: Client) -> UUID:
    """The id of a completed search for the payload by this member."""
    answer = client.post("/calls/search", {"text": PAYLOAD, "reason": "Asked to by Ada."})
    assert answer.status_code == 302
    pk = UUID(answer["Location"].rpartition("/")[2])
    assert not run_slice(world.tenant.id, pk)
    return pk


def shown(visit: Visit, world: World, client: Client, **headers: str) -> str:
    """Bodies and headers of the responses to GET and an empty POST."""
    address = visit.path(world) if isinstance(visit, Object) else visit.path
    answers = client.get(address, headers=headers), client.post(address, headers=headers)
    return "".join(f"{one.getvalue().decode(errors='replace')}{one.headers!r}" for one in answers)


@pytest.mark.slow
@pytest.mark.generated(25)
@pytest.mark.parametrize("route", sorted(ROUTES))
def test_viewer_sees_no_payload(route: str, world: World, members: dict[Role, User]) -> None:
    viewer = signed_in(members[Role.VIEWER])  # not shared, because one route signs out
    for headers in ({}, {"HX-Request": "true"}):
        assert PAYLOAD not in shown(ROUTES[route], world, viewer, **headers)


@pytest.mark.slow
@pytest.mark.generated(25)
@pytest.mark.parametrize("route", sorted(ROUTES.keys() - ON_REQUEST.keys()))
def test_auditor_sees_no_payload_without_a_reveal(
    route: str, world: World, members: dict[Role, User]
) -> None:
    auditor = signed_in(members[Role.AUDITOR])
    for headers in ({}, {"HX-Request": "true"}):
        assert PAYLOAD not in shown(ROUTES[route], world, auditor, **headers)


@pytest.mark.parametrize("role", [Role.EDITOR, Role.ADMIN])
@pytest.mark.parametrize("route", SHOWING)
def test_payload_pages_show_payloads_to_editor_and_admin(
    route: str, role: Role, world: World, members: dict[Role, User]
) -> None:
    visit, client = ROUTES[route], signed_in(members[role])
    assert isinstance(visit, Listing | Object)
    if route.startswith("calls/search/"):
        world = replace(world, search_id=searched(world, client))
    may_open = opens_to(visit, role)
    is_shown = PAYLOAD in shown(visit, world, client)
    assert is_shown == may_open, "if nobody is shown it, the viewer's test proves nothing"


ABOUT_DECISIONS = {
    "/calls/?q=state:refused": True,
    "/calls/tail?q=state:refused&since=<day>T00:00:00Z": True,
    "/calls/export.ndjson?q=decision:rejected-arguments": False,
    "/calls/<day>/<refused>": True,
    "/calls/<day>/<refused>/start": True,
    "/calls/<day>/<ran>": True,
    "/traces/<trace>": True,
    "/traces/<trace>?call=<refused>": True,
    "/traces/<trace>/text": True,
    "/violations/?side=arguments": False,
    "/approvals/": False,
    "/approvals/export.ndjson": False,
}
"""Addresses about decisions, and whether they show what these quote to those who may see it."""


@pytest.mark.slow
@pytest.mark.parametrize("address", ABOUT_DECISIONS)
def test_what_decisions_quote_is_a_payload(
    address: str, world: World, members: dict[Role, User]
) -> None:
    with tenant_scope(world.tenant.id):
        (refused,) = call_page(
            parse(f'state:refused trace:"{world.canary}"', ANYBODY).wanted, now=datetime.now(UTC)
        ).calls
    places = {
        "<day>": str(world.at.date()),
        "<refused>": str(refused.invocation_id),
        "<ran>": str(world.call_id),
        "<trace>": world.canary,
    }
    path = address
    for name, value in places.items():
        path = path.replace(name, value)
    for role, user in members.items():
        client = signed_in(user)
        answers = [client.get(path, headers=each) for each in ({}, {"HX-Request": "true"})]
        body = "".join(each.getvalue().decode() for each in answers)
        sees = role in {Role.EDITOR, Role.ADMIN}
        assert {each.status_code for each in answers} == (
            {200} if sees or not path.endswith("/start") else {403}
        )
        assert (PAYLOAD in body) == (sees and ABOUT_DECISIONS[address]), role
    for scopes in ([Scope.READ], [Scope.READ, Scope.PAYLOADS]):
        key = create_key(world.tenant, "reader", scopes)[1]
        answer = Client().get(
            f"/api/v1/calls/{refused.invocation_id}", headers={"authorization": f"Bearer {key}"}
        )
        assert answer.status_code == 200
        assert (PAYLOAD in answer.content.decode()) == (Scope.PAYLOADS in scopes)


def test_auditor_reveals_a_refused_call(world: World) -> None:
    auditor = make_user("asking")
    with tenant_scope(world.tenant.id):
        add_member(world.tenant, auditor, Role.AUDITOR)
        (refused,) = call_page(
            parse(f'state:refused trace:"{world.canary}"', ANYBODY).wanted, now=datetime.now(UTC)
        ).calls
    client = signed_in(auditor)
    address = f"/calls/{world.at.date()}/{refused.invocation_id}"
    assert PAYLOAD not in client.get(address).content.decode()
    page = client.post(f"{address}/reveal", {"reason": "Case 4711"}, follow=True).content.decode()
    shown_reason = page.split('id="call-panel"')[1]
    assert shown_reason.count(PAYLOAD) >= 2, "the arguments and the reason"
    assert PAYLOAD in client.get(f"{address}/start").content.decode()
    assert PAYLOAD not in client.get("/calls/?q=state:refused").content.decode()
    with tenant_scope(world.tenant.id):
        verbs = [one.verb for one in Action.objects.filter(user_id=auditor.pk).order_by("at")]
    assert verbs[:2] == ["call.reveal", "call.view"]


@pytest.mark.parametrize("kind", ["start", "end"])
def test_viewer_is_informed_about_hidden_payloads(
    kind: str, world: World, clients: dict[Role, Client]
) -> None:
    viewer = clients[Role.VIEWER]
    call = ROUTES["calls/<day:started_on>/<uuid:invocation_id>"]
    page = shown(call, world, viewer)
    assert "Your role can't view payloads. Error messages are hidden" in page
    assert "Message hidden for your role" in page
    assert f"/{kind}" not in page.split('id="call-panel"')[1].split("</section>")[0]
    assert "received" in page, "the time of arrival is no payload"
    assert "Your role can't view payloads" in shown(ROUTES["violations/"], world, viewer)
    assert "Your role can't view payloads" in shown(ROUTES["inbox/<uuid:pk>"], world, viewer)
    assert "Search in payloads" not in shown(ROUTES["calls/"], world, viewer)
    address = f"/calls/{world.at.date()}/{world.call_id}/{kind}"
    answer = viewer.get(address)
    assert answer.status_code == 403
    assert "Your role can&#x27;t view payloads" in answer.content.decode()


@pytest.mark.slow
def test_trace_search_in_messages_requires_payload_access(
    world: World, clients: dict[Role, Client]
) -> None:
    for role, client in clients.items():
        page = client.get(f"/traces/{world.canary}?find={PAYLOAD}").content.decode()
        rows = page.split('<ol class="calls"')[1].split("</ol>")[0]
        assert ("get_weather" in rows) == (role in {Role.EDITOR, Role.ADMIN})


def test_payload_search_is_hidden_after_demotion_to_viewer(world: World) -> None:
    member = make_user("demoted")
    with tenant_scope(world.tenant.id):
        membership = add_member(world.tenant, member, Role.EDITOR)
    client = signed_in(member)
    pk = searched(world, client)
    assert PAYLOAD in client.get(f"/calls/search/{pk}").content.decode()
    with tenant_scope(world.tenant.id):
        Membership.objects.filter(tenant=world.tenant, pk=membership.pk).update(role=Role.VIEWER)
    assert client.get(f"/calls/search/{pk}").status_code == 403
    before = _searches(world)
    assert client.post("/calls/search", {"text": PAYLOAD}).status_code == 403
    assert _searches(world) == before


def test_former_editor_sees_their_search_as_auditor_after_a_reason(world: World) -> None:
    member = make_user("moved")
    with tenant_scope(world.tenant.id):
        membership = add_member(world.tenant, member, Role.EDITOR)
    client = signed_in(member)
    answer = client.post("/calls/search", {"text": PAYLOAD})
    run_slice(world.tenant.id, UUID(answer["Location"].rpartition("/")[2]))
    assert "<mark>" in client.get(answer["Location"]).content.decode()
    with tenant_scope(world.tenant.id):
        Membership.objects.filter(tenant=world.tenant, pk=membership.pk).update(role=Role.AUDITOR)
        views = Action.objects.filter(tenant=world.tenant, user_id=member.pk, verb="payload.found")
        before = views.count()
    page = client.get(answer["Location"]).content.decode()
    assert "<mark>" not in page
    assert "get_weather" not in page, "the matching calls must be hidden, too"
    assert "Search again" in page
    with tenant_scope(world.tenant.id):
        assert views.count() == before, "nothing was shown, so no view is recorded"
    assert "/calls/search/" not in client.post("/calls/search", {"text": PAYLOAD})["Location"]
    page = client.get(f"/calls/search/{searched(world, client)}").content.decode()
    assert "<mark>" in page
    assert "get_weather" in page
    with tenant_scope(world.tenant.id):
        assert views.count() == before + 1


@pytest.mark.one_node
def test_payload_search_of_an_auditor_is_shown_for_one_hour(world: World) -> None:
    auditor = make_user("finding")
    with tenant_scope(world.tenant.id):
        add_member(world.tenant, auditor, Role.AUDITOR)
    client = signed_in(auditor)
    address = f"/calls/search/{searched(world, client)}"
    page = client.get(address).content.decode()
    assert "<mark>" in page
    assert "get_weather" in page
    as_owner(
        "UPDATE action SET at = at - interval '61 minutes' WHERE tenant_id = %s AND subject = %s",
        [world.tenant.id, address.rpartition("/")[2]],
    )
    page = client.get(address).content.decode()
    assert "<mark>" not in page
    assert "Search again" in page
    again = f"/calls/search/{searched(world, client)}"
    assert "<mark>" in client.get(again).content.decode()


def _searches(world: World) -> int:
    with tenant_scope(world.tenant.id):
        return PayloadSearch.objects.for_tenant(world.tenant.id).count()


def test_viewer_export_has_every_member_except_messages(
    world: World, clients: dict[Role, Client]
) -> None:
    def lines(role: Role) -> list[dict[str, str]]:
        body = clients[role].get("/calls/export.ndjson").getvalue().decode()
        return [json.loads(line) for line in body.splitlines()[:-1]]

    quoted, plain = lines(Role.EDITOR), lines(Role.VIEWER)
    assert lines(Role.AUDITOR) == plain
    assert any(line["error_message"] == PAYLOAD for line in quoted)
    assert [{**line, "error_message": None} for line in quoted] == plain


def test_viewer_sees_the_structure_of_payloads(world: World, clients: dict[Role, Client]) -> None:
    page = shown(ROUTES["calls/<day:started_on>/<uuid:invocation_id>"], world, clients[Role.VIEWER])
    assert (
        f'&quot;q&quot;</span>: <span class="j-shape">text of {len(PAYLOAD)} characters</span>'
        in page
    )
    assert "member 2, 23 characters" in page, "an unsafe key is replaced by its length"
    assert "Reveal" not in page


@pytest.mark.slow
@pytest.mark.one_node
def test_auditor_reveals_one_call_with_a_reason(world: World, members: dict[Role, User]) -> None:
    auditor = make_user("asking")
    with tenant_scope(world.tenant.id):
        add_member(world.tenant, auditor, Role.AUDITOR)
    client, other = signed_in(auditor), signed_in(members[Role.AUDITOR])
    call = f"/calls/{world.at.date()}/{world.call_id}"
    closed = client.get(f"{call}/start")
    assert (closed.status_code, PAYLOAD.encode() in closed.content) == (403, False)
    assert client.post(f"{call}/reveal", {"reason": " "}).status_code == 302
    assert PAYLOAD not in client.get(call).content.decode()
    answer = client.post(f"{call}/reveal", {"reason": "Case 4711"}, follow=True)
    assert PAYLOAD in answer.content.decode()
    for address in (call, f"{call}/start", f"/traces/{world.canary}?call={world.call_id}"):
        assert PAYLOAD in client.get(address).content.decode()
        assert PAYLOAD not in other.get(address).content.decode(), "a reveal is for one auditor"
    assert "Case 4711" in other.get(call).content.decode(), "earlier reveals are listed"
    viewer = signed_in(members[Role.VIEWER]).get(call).content.decode()
    assert PAYLOAD not in viewer
    assert "Case 4711" not in viewer
    assert PAYLOAD not in client.get("/calls/").content.decode(), "a reveal is for one call only"
    with tenant_scope(world.tenant.id):
        actions = Action.objects.filter(tenant=world.tenant, user_id=auditor.pk).order_by("at")
        assert [one.verb for one in actions][:2] == ["call.reveal", "call.view"]
        revealed = actions[0]
    assert revealed.details["reason"] == "Case 4711"
    as_owner(
        "UPDATE action SET at = at - interval '61 minutes' WHERE tenant_id = %s AND id = %s",
        [world.tenant.id, revealed.id],
    )
    assert PAYLOAD not in client.get(call).content.decode(), "a reveal lasts one hour"
    assert client.get(f"{call}/start").status_code == 403


def test_auditor_reveals_a_rejected_event_and_searches_with_a_reason(
    world: World, members: dict[Role, User]
) -> None:
    auditor = make_user("asking")
    with tenant_scope(world.tenant.id):
        add_member(world.tenant, auditor, Role.AUDITOR)
    client = signed_in(auditor)
    line = f"/inbox/{world.refused_id}"
    assert PAYLOAD not in client.get(line).content.decode()
    answer = client.post(f"{line}/reveal", {"reason": "Case 4711"}, follow=True)
    assert PAYLOAD in answer.content.decode()
    before = _searches(world)
    client.post("/calls/search", {"text": PAYLOAD})
    assert _searches(world) == before, "without a reason there is no search"
    assert PAYLOAD in client.get(f"/calls/search/{searched(world, client)}").content.decode()
    editor = signed_in(members[Role.EDITOR])
    assert editor.post(f"{line}/reveal", {"reason": "Case 4711"}).status_code == 403
