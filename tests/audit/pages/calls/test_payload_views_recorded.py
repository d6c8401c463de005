"""Viewing payloads is recorded; a view without payloads is not."""

import json

import pytest
from django.test import Client

from audit.models import RejectedEvent
from tenants.keys import create_key
from tenants.models import Action, Scope
from tenants.scope import tenant_scope
from tests.support.event_requests import post
from tests.support.factories import (
    Cast,
    make_call,
    make_ingest_key,
    send_events,
)
from tests.support.pages import signed_in


def views(cast: Cast) -> list[tuple[str, str, str]]:
    """User, action and target of each recorded view, in order."""
    with tenant_scope(cast.tenant.id):
        actions = Action.objects.filter(tenant=cast.tenant).order_by("at")
        return list(actions.values_list("user_name", "verb", "subject"))


def sent(cast: Cast) -> tuple[str, str]:
    """Send a call; return its id and the address of its page."""
    events = make_call(trace_id="t1", args={"q": "secret"})
    send_events(cast.tenant, events)
    pk = str(events[0]["invocation_id"])
    return pk, f"/calls/{events[0]['started_at'][:10]}/{pk}"


@pytest.mark.parametrize(
    ("address", "verb"),
    [("{call}", "call.view"), ("/traces/t1?call={id}", "call.view"), ("{call}/start", "call.raw")],
)
def test_payload_view_is_recorded(acme: Cast, address: str, verb: str) -> None:
    pk, call = sent(acme)
    address = address.format(call=call, id=pk)
    assert b"secret" in signed_in(acme.editor).get(address).content
    assert views(acme) == [(acme.editor.username, verb, pk)]
    signed_in(acme.viewer).get(address)
    assert len(views(acme)) == 1, "viewers see no payload"
    signed_in(acme.editor).get("/calls/")
    assert len(views(acme)) == 1, "a list shows no payload"


@pytest.mark.slow
def test_repeated_views_within_a_minute_are_recorded_once(acme: Cast) -> None:
    _, call = sent(acme)
    client = signed_in(acme.editor)
    for _ in range(8):
        client.get(call)
    assert 1 <= len(views(acme)) <= 3
    before = len(views(acme))
    signed_in(acme.admin).get(call)
    assert len(views(acme)) == before + 1, "each person's view is recorded"


def test_views_of_rejected_events_and_payload_searches_are_recorded(acme: Cast) -> None:
    post(make_ingest_key(acme.tenant), json.dumps({"args": "secret", "type": "x"}).encode())
    with tenant_scope(acme.tenant.id):
        line = RejectedEvent.objects.for_tenant(acme.tenant.id).get()
    client = signed_in(acme.editor)
    client.get("/inbox/")
    client.get(f"/inbox/{line.id}")
    search = client.post("/calls/search", {"text": "secret"})["Location"]
    client.get(search)
    # The searched text is not recorded, because the ledger would keep it for ever.
    assert [(verb, subject) for _, verb, subject in views(acme)] == [
        ("inbox.view", "beginnings"),
        ("inbox.view", str(line.id)),
        ("payload.search", search.removeprefix("/calls/search/")),
        ("payload.found", search.removeprefix("/calls/search/")),
    ]


def reading(cast: Cast, *scopes: Scope) -> Client:
    text = create_key(cast.tenant, "wallboard", list(scopes))[1]
    return Client(headers={"Authorization": f"Bearer {text}"})


def test_payload_reads_by_api_key_are_recorded_by_operation(acme: Cast) -> None:
    pk, _ = sent(acme)
    reading(acme, Scope.READ).get(f"/api/v1/calls/{pk}")
    assert views(acme) == [], "this key gets no payload"
    client = reading(acme, Scope.READ, Scope.PAYLOADS)
    for _ in range(5):
        assert client.get(f"/api/v1/calls/{pk}").status_code == 200
    client.get("/api/v1/calls?limit=7")
    client.get("/api/v1/summary")
    recorded = views(acme)
    assert {(verb, subject) for _, verb, subject in recorded} == {
        ("payload.read", "read_call"),
        ("payload.read", "list_calls"),
    }
    assert len(recorded) <= 4
    assert all(name.startswith("API key wallboard (") for name, _, _ in recorded)
    with tenant_scope(acme.tenant.id):
        first = Action.objects.filter(tenant=acme.tenant, subject="read_call").order_by("at")[0]
    assert first.details == {"address": f"/api/v1/calls/{pk}"}


def test_report_created_by_an_api_key_is_recorded(acme: Cast) -> None:
    client = reading(acme, Scope.READ)
    answer = client.post("/api/v1/reports", {"range": "1h"}, content_type="application/json")
    with tenant_scope(acme.tenant.id):
        action = Action.objects.get(tenant=acme.tenant, verb="report.create")
    assert action.details.keys() == {"report", "sha256"}
    assert action.details["report"] == answer.json()["id"]
