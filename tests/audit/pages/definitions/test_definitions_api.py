"""Definitions as served over the API, and on the pages of calls and tools."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from tooltrail.tools.digest import definition_digest

from tenants.keys import create_key
from tenants.models import Action, Scope
from tenants.scope import tenant_scope
from tests.support.factories import (
    Cast,
    make_call,
    make_definition,
    make_definitions,
    send_events,
)
from tests.support.pages import signed_in, text
from tests.support.registered_tools import register_tool

NOW = datetime.now(UTC)
GOOD = make_definition()
WORSE = make_definition(annotations={"destructiveHint": True})


def ago(seconds: int) -> datetime:
    return NOW - timedelta(seconds=seconds)


def client(cast: Cast, scope: Scope) -> Client:
    key = create_key(cast.tenant, "program", [scope])[1]
    return Client(headers={"Authorization": f"Bearer {key}"})


def change(cast: Cast, server: str = "weather") -> None:
    send_events(cast.tenant, [make_definitions(GOOD, server=server, seen_at=ago(50))])
    send_events(cast.tenant, [make_definitions(WORSE, server=server, seen_at=ago(30))])


def listed(cast: Cast, **params: Any) -> list[dict[str, Any]]:
    answer = client(cast, Scope.READ).get("/api/v1/definitions", params)
    assert answer.status_code == 200, answer.content
    listed: list[dict[str, Any]] = answer.json()["definitions"]
    return listed


def test_list_and_one_definition(acme: Cast) -> None:
    change(acme)
    send_events(acme.tenant, make_call(started_at=ago(10)))
    (one,) = listed(acme)
    assert (one["state"], one["digest"]) == ("pending", definition_digest(WORSE))
    assert one["unapproved_calls"] == 1
    assert listed(acme, state="unapproved") == [one]
    assert listed(acme, server="other") == []
    document = client(acme, Scope.READ).get(f"/api/v1/definitions/{one['id']}").json()
    assert document["definition"] == WORSE
    assert document["classes"] == ["risk-raising", "wording"]
    assert len(document["history"]) == 2 and len(document["changes"]) == 2
    assert document["history"][0]["ledger_index"] == 1


def test_pages_of_the_list_join(acme: Cast) -> None:
    tools = [make_definition(f"t\n{number}") for number in range(5)]
    send_events(acme.tenant, [make_definitions(*tools, server="s\n1", seen_at=ago(9))])
    reader = client(acme, Scope.READ)
    names: list[str] = []
    cursor = ""
    while True:
        document = reader.get(f"/api/v1/definitions?limit=2&cursor={cursor}").json()
        names += [each["tool"] for each in document["definitions"]]
        if not (cursor := document["next"]):
            break
    assert names == [f"t\n{number}" for number in range(5)]


@pytest.mark.parametrize("cursor", ["x", "ZGVmaW5pdGlvbnMKW10", "ZGVmaW5pdGlvbnM"])
def test_invalid_cursor_is_a_problem(acme: Cast, cursor: str) -> None:
    answer = client(acme, Scope.READ).get("/api/v1/definitions", {"cursor": cursor})
    assert answer.json()["code"] == "cursor"


def test_approval_needs_the_scope_and_a_reason(acme: Cast, globex: Cast) -> None:
    change(acme)
    path = f"/api/v1/definitions/{listed(acme)[0]['id']}/approve"

    def approve(who: Client, body: Any) -> Any:
        return who.post(path, body, content_type="application/json")

    reason = {"reason": "we asked"}
    assert approve(client(acme, Scope.READ), reason).status_code == 403
    assert approve(client(globex, Scope.REGISTRY), reason).status_code == 404
    allowed = client(acme, Scope.REGISTRY)
    invalid: list[Any] = [{}, {"reason": " "}, {"reason": 1}, {"reason": "a", "b": 1}, [], "x" * 9]
    for wrong in invalid:
        assert approve(allowed, wrong).json()["code"] == "malformed"
    for _ in range(2):
        document = approve(allowed, reason).json()
        assert document["state"] == "approved"
        assert document["approval_reason"] == "we asked"
    assert document["approved_by"].startswith("API key program")
    assert actions(acme, "definition.approve") == 1


def test_several_definitions_are_approved_with_one_reason_or_none(acme: Cast, globex: Cast) -> None:
    for tools, seconds in (("abc", 60), ("a", 50)):
        served = [make_definition(name, description=tools) for name in tools]
        send_events(acme.tenant, [make_definitions(*served, server="s", seen_at=ago(seconds))])
    change(acme)
    by_tool = {one["tool"]: one["id"] for one in listed(acme)}
    assert sorted(by_tool) == ["a", "b", "c", "get_weather"]

    def approve(
        ids: list[str], who: Cast = acme, scope: Scope = Scope.REGISTRY, **more: Any
    ) -> Any:
        body = {"server": "s", "definitions": ids, "reason": "release 7"} | more
        path = "/api/v1/definitions/approve"
        return client(who, scope).post(path, body, content_type="application/json")

    chosen = [by_tool["a"], by_tool["b"]]
    assert approve(chosen, scope=Scope.READ).status_code == 403
    for refused in (
        approve(chosen, globex),
        approve([*chosen, by_tool["get_weather"]]),
        approve(chosen, server="weather"),
        approve(chosen, server="\0"),
    ):
        assert (refused.status_code, refused.json()["code"]) == (404, "not_found")
    for wrong in (approve([]), approve(["x"]), approve(chosen * 51), approve(chosen, reason=" ")):
        assert (wrong.status_code, wrong.json()["code"]) == (400, "malformed")
    assert actions(acme, "definition.approve") == 0
    assert approve([*chosen, chosen[0]]).json() == {"approved": chosen[:1], "unchanged": chosen[1:]}
    assert approve(chosen).json() == {"approved": [], "unchanged": chosen}
    assert actions(acme, "definition.approve") == 1


def test_approval_is_withdrawn(acme: Cast, globex: Cast) -> None:
    change(acme)
    path, reason = f"/api/v1/definitions/{listed(acme)[0]['id']}", {"reason": "a mistake"}

    def post(verb: str, who: Cast = acme, scope: Scope = Scope.REGISTRY) -> Any:
        sent = client(who, scope).post(f"{path}/{verb}", reason, content_type="application/json")
        return sent.json() if sent.status_code == 200 else sent.status_code

    assert post("withdraw", scope=Scope.READ) == 403
    assert post("withdraw", globex) == 404
    assert post("withdraw")["state"] == "pending"
    assert post("approve")["state"] == "approved"
    assert [post("withdraw")["state"] for _ in range(2)] == ["pending"] * 2
    assert actions(acme, "definition.withdraw") == 1
    assert listed(acme, state="unapproved")


def actions(cast: Cast, verb: str) -> int:
    with tenant_scope(cast.tenant.id):
        return Action.objects.filter(tenant=cast.tenant, verb=verb).count()


def panel(cast: Cast, **members: Any) -> str:
    call = make_call(**members)
    send_events(cast.tenant, call)
    at = datetime.fromisoformat(call[0]["started_at"]).astimezone(UTC)
    address = f"/calls/{at:%Y-%m-%d}/{call[0]['invocation_id']}"
    return signed_in(cast.viewer).get(address).text


@pytest.mark.slow
def test_call_links_the_definition_in_force(acme: Cast) -> None:
    change(acme)
    by_digest = {
        each["digest"]: each["id"]
        for each in client(acme, Scope.READ)
        .get(f"/api/v1/definitions/{listed(acme)[0]['id']}")
        .json()["history"]
    }
    before, after = panel(acme, started_at=ago(40)), panel(acme, started_at=ago(20))
    assert f"/definitions/{by_digest[definition_digest(GOOD)]}" in before
    assert "unapproved" not in before
    assert f"/definitions/{by_digest[definition_digest(WORSE)]}" in after
    assert "unapproved definition" in after
    assert "/definitions/0" not in panel(acme, started_at=ago(60))


def test_call_that_names_its_server_links_that_definition_alone(acme: Cast) -> None:
    change(acme)
    send_events(acme.tenant, [make_definitions(GOOD, server="other", seen_at=ago(50))])
    named = panel(acme, started_at=ago(20), mcp={"server": {"name": "other", "version": "1"}})
    assert "unapproved" not in named
    unnamed = text(panel(acme, started_at=ago(20)))
    assert "other" in unnamed and "weather unapproved" in unnamed


def test_tool_page_marks_an_unapproved_definition(acme: Cast) -> None:
    tool, viewer = register_tool(acme, name="get_weather"), signed_in(acme.viewer)
    assert "is not approved" not in viewer.get(tool.get_absolute_url()).text
    change(acme)
    page = text(viewer.get(tool.get_absolute_url()).text)
    assert "weather serves for this tool changed and is not approved" in page
