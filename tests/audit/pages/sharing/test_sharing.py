"""Share links: who opens them, what they show, when they end, and what is on record."""

import json
import re
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core import signing
from django.test import Client
from django.utils import timezone

from audit.models import ShareLink
from audit.work.sharing import ANYBODY, read_token, token_of
from tenants.keys import create_key
from tenants.models import Action, Scope, Tenant
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import as_owner
from tests.support.pages import signed_in, text
from tests.support.reports import make

SECRET = "the payload of the call"


def sent_call(cast: Cast, **members: Any) -> tuple[str, dict[str, Any]]:
    """The address of a stored call, and its start event."""
    start, end = make_call(args={"q": SECRET}, **members)
    send_events(cast.tenant, [start, end])
    return f"/calls/{str(start['started_at'])[:10]}/{start['invocation_id']}", start


def share(cast: Cast, address: str, **members: Any) -> str:
    """The path of a new link."""
    body = {"address": address, "days": 7, **members}
    answer = signed_in(cast.editor).post("/share/new", body)
    assert answer.status_code == 200, text(answer.content.decode())
    return str(urlsplit(answer.context["made"].url).path)


def links(cast: Cast) -> list[ShareLink]:
    with tenant_scope(cast.tenant.id):
        return list(ShareLink.objects.for_tenant(cast.tenant.id).order_by("id"))


def acts(cast: Cast, verb: str) -> list[Action]:
    with tenant_scope(cast.tenant.id):
        actions = Action.objects.filter(tenant_id=cast.tenant.id, verb=verb)
        return list(actions.order_by("at", "id"))


def allow_anonymous(cast: Cast) -> None:
    Tenant.objects.filter(pk=cast.tenant.pk).update(anonymous_links=True)
    cast.tenant.refresh_from_db()


def shown(answer: Any) -> str:
    assert answer.status_code == 200, answer.status_code
    return text(answer.content.decode())


@pytest.mark.slow
def test_members_open_every_kind_of_link_as_viewers(acme: Cast, globex: Cast) -> None:
    call, start = sent_call(acme, trace_id="shared-trace")
    report = make(signed_in(acme.admin), kind="range", range="24h")
    for address, words in (
        (call, "in trace shared-trace"),
        ("/traces/shared-trace", "Trace shared-trace"),
        ("/traces/shared-trace/graph", "shared-trace"),
        ("/latency/?range=24h&tool=get_weather", "get_weather"),
        ("/violations/", "Violations"),
        ("/costs/", "Costs"),
        ("/repeats/", "Repeats"),
        ("/agents/", "Agents"),
        ("/apart/?q=tool:get_weather", "apart"),
        (f"/reports/{report}", acme.tenant.name),
    ):
        path = share(acme, address)
        for member in (acme.viewer, acme.editor):
            page = signed_in(member).get(path)
            assert words in shown(page), address
            assert f"Shared by {acme.editor.username}" in text(page.content.decode())
            assert SECRET not in page.content.decode(), "even an editor sees what the link shows"
            assert "Add a note" not in page.content.decode()
            assert 'aria-label="Main"' not in page.content.decode()
            assert page["Referrer-Policy"] == "no-referrer"
        assert signed_in(globex.admin).get(path).status_code == 404
        asked = Client().get(path)
        assert (asked.status_code, urlsplit(asked["Location"]).path) == (302, "/login")
    assert start["trace_id"] == "shared-trace"


def test_a_chart_has_the_range_and_the_query_of_when_it_was_shared(acme: Cast) -> None:
    share(acme, "/apart/?q=tool:get_weather since:2h&range=24h&pause=1")
    (link,) = links(acme)
    params = parse_qs(urlsplit(link.address).query)
    assert params.keys() == {"q", "from", "to"}
    assert "since:20" in params["q"][0]
    path = share(acme, "/latency/?range=1h")
    page = signed_in(acme.viewer).get(f"{path}?range=90d").context["requested"].range
    assert page.length == timedelta(hours=1), "the reader chooses nothing"


@pytest.mark.parametrize(
    "address",
    [
        *("", "calls", "https://evil.example/latency/", "//evil.example/", "/settings/members"),
        *("/calls/", "/traces/nowhere", "/latency/?range=soon", "/apart/?q=nonsense:x"),
        *("/calls/2026-01-01/019ac0de-0000-7000-8000-000000000000", "/share/", "/latency"),
        "/reports/019ac0de-0000-7000-8000-000000000000",
    ],
)
def test_other_addresses_cannot_be_shared(acme: Cast, address: str) -> None:
    editor = signed_in(acme.editor)
    assert editor.get("/share/new", {"address": address}).status_code == 404
    assert editor.post("/share/new", {"address": address, "days": 7}).status_code == 404
    assert links(acme) == []


def test_anonymous_links_open_while_the_tenant_allows_them(acme: Cast, globex: Cast) -> None:
    call, _ = sent_call(acme)
    refused = signed_in(acme.editor).post(
        "/share/new", {"address": call, "days": 7, "is_anonymous": "on"}
    )
    assert not refused.context["made"].stored.is_anonymous, "the tenant does not allow it"
    allow_anonymous(acme)
    path = share(acme, call, is_anonymous="on")
    for client in (Client(), signed_in(globex.viewer), signed_in(acme.viewer)):
        page = client.get(path)
        assert "get_weather" in shown(page)
        assert SECRET not in page.content.decode()
    Tenant.objects.filter(pk=acme.tenant.pk).update(anonymous_links=False)
    assert Client().get(path).status_code == 302
    assert signed_in(globex.viewer).get(path).status_code == 404
    assert signed_in(acme.viewer).get(path).status_code == 200


def test_a_link_ends_when_it_expires_or_is_revoked(acme: Cast) -> None:
    allow_anonymous(acme)
    first, second = (share(acme, "/latency/", is_anonymous="on") for _ in range(2))
    expiring, revoked = links(acme)
    as_owner(
        "UPDATE share_link SET expires_at = now() - interval '1 second' WHERE id = %s",
        [expiring.id],
    )
    assert signed_in(acme.viewer).post(f"/share/{revoked.id}/revoke").status_code == 403
    assert signed_in(acme.editor).post(f"/share/{revoked.id}/revoke").status_code == 302
    for path in (first, second):
        assert Client().get(path).status_code == 404
        assert signed_in(acme.admin).get(path).status_code == 404
    page = signed_in(acme.editor).get("/share/").content.decode()
    assert "expired" in text(page) and "revoked" in text(page)
    assert first not in page and second not in page
    assert len(acts(acme, "share.revoke")) == 1


def test_only_what_this_server_signed_opens(acme: Cast, globex: Cast) -> None:
    allow_anonymous(acme)
    path = share(acme, "/latency/", is_anonymous="on")
    (link,) = links(acme)
    token = token_of(link)
    assert read_token(token) == (acme.tenant.id, link.id)
    assert path == f"/s/{token}"
    forged = ShareLink(tenant_id=globex.tenant.id, id=link.id)
    other = signing.Signer(salt="another", sep=".").sign(token.partition(".")[0])
    wrong = (token[:-1] + ("A" if token[-1] != "A" else "B"), token.partition(".")[0], other)
    for each in (*wrong, "x" * 5000, token_of(forged), "%00", "é"):
        assert Client().get(f"/s/{each}").status_code == 404, each


def test_payloads_are_shown_once_an_auditor_allows_it(acme: Cast) -> None:
    allow_anonymous(acme)
    call, start = sent_call(acme)
    path = share(acme, call, is_anonymous="on")
    (link,) = links(acme)
    address = f"/share/{link.id}/payloads"
    assert signed_in(acme.editor).post(address, {"reason": "because"}).status_code == 403
    auditor = signed_in(acme.auditor)
    auditor.post(address, {"reason": ""})
    assert SECRET not in Client().get(path).content.decode()
    auditor.post(address, {"reason": "the vendor needs it"})
    assert SECRET in Client().get(path).content.decode()
    (act,) = acts(acme, "share.payloads")
    assert act.details["reason"] == "the vendor needs it"
    (view,) = acts(acme, "call.view")
    assert (view.user_name, view.subject) == (f"share link {link.id}", start["invocation_id"])


@pytest.mark.slow
def test_readers_do_not_make_the_ledger_grow(acme: Cast) -> None:
    allow_anonymous(acme)
    call, _ = sent_call(acme, case_id="ada")
    path = share(acme, call, is_anonymous="on")
    share(acme, "/apart/?q=case:ada")
    for _ in range(5):
        Client().get(path)
    viewer = signed_in(acme.viewer)
    for _ in range(5):
        viewer.get(path)
    opened = links(acme)[0]
    assert opened.opened_count == 10
    entries = acts(acme, "share.open")
    by = {entry.user_name for entry in entries}
    assert by == {ANYBODY, acme.viewer.username}
    # One entry a reader and minute; the minute may change once while the test runs.
    assert len(entries) <= 4
    assert entries[0].details["opened_before"] == 0
    recorded = json.dumps([one.details for one in acts(acme, "share.create")])
    assert "ada" not in recorded, "a query may name a person"


def test_programs_make_list_and_revoke_links(acme: Cast, globex: Cast) -> None:
    scopes = [Scope.READ, Scope.OPERATE, Scope.REVEAL]
    client = Client(
        headers={"Authorization": f"Bearer {create_key(acme.tenant, 'bot', scopes)[1]}"}
    )

    def send(method: str, path: str, body: Any = None) -> tuple[int, Any]:
        content = b"" if body is None else json.dumps(body).encode()
        answer = client.generic(method, f"/api/v1/{path}", content, "application/json")
        return answer.status_code, answer.json()

    status, link = send("POST", "share-links", {"address": "/latency/?range=1h", "days": 1})
    assert (status, link["kind"], link["is_open"]) == (201, "chart", True)
    path = urlsplit(link["url"]).path
    assert signed_in(acme.viewer).get(path).status_code == 200
    for body, expected in (
        ({"address": "/calls/"}, 404),
        ({"address": "/latency/?range=soon"}, 422),
        ({"address": "/latency/", "is_anonymous": True}, 422),
        ({"address": "/latency/", "days": 91}, 400),
        ({"address": "/latency/", "extra": 1}, 400),
    ):
        assert send("POST", "share-links", body)[0] == expected, body
    (listed,) = send("GET", "share-links")[1]["items"]
    assert "url" not in listed and listed["opened_count"] == 1
    status, allowed = send("POST", f"share-links/{link['id']}/payloads", {"reason": "asked"})
    assert (status, allowed["payloads_reason"]) == (200, "asked")
    assert send("POST", f"share-links/{link['id']}/revoke")[1]["is_open"] is False
    assert signed_in(acme.viewer).get(path).status_code == 404
    with tenant_scope(acme.tenant.id):
        assert ShareLink.objects.get(id=link["id"]).expires_at > timezone.now()
    others = create_key(globex.tenant, "bot", scopes)[1]
    client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {others}"
    assert send("POST", f"share-links/{link['id']}/revoke")[0] == 404
    assert send("GET", "share-links")[1]["items"] == []


def test_a_shared_page_loads_no_part_of_another(acme: Cast) -> None:
    sent_call(acme)
    page = signed_in(acme.viewer).get(share(acme, "/latency/?range=24h")).content.decode()
    assert not re.search("<script[^>]*htmx", page)
    assert re.search("<script[^>]*htmx", signed_in(acme.viewer).get("/latency/").content.decode())


@pytest.mark.slow
def test_shared_pages_show_no_notes(acme: Cast) -> None:
    violation = {"path": "$.a", "code": "WRONG_TYPE", "received": "string", "expected": "number"}
    guard = {"strategy": "throw", "outcome": "failed", "violations": [violation]}
    call, start = sent_call(acme, trace_id="noted", guard=guard)
    kind = {"tool_name": start["tool_name"], "code": "WRONG_TYPE", "path": "$.a"}
    editor = signed_in(acme.editor)
    for about in (
        {"about": "call", "invocation_id": start["invocation_id"]},
        {"about": "trace", "trace_id": "noted"},
        {"about": "violation", **kind},
    ):
        says = {"text": "between us", "label": "our-secret", "state": "open"}
        assert editor.post("/notes/new", about | says).status_code == 302
    for address in (call, "/traces/noted", "/violations/"):
        assert "our-secret" in editor.get(address).content.decode()
        page = editor.get(share(acme, address)).content.decode()
        assert "our-secret" not in page and "between us" not in page, address
