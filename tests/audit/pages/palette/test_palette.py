"""The palette: what a text leads to, for each role, and the current page of the navigation."""

import re
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from django.urls import reverse

from audit.queries.call_query import parse
from audit.queries.saved_views import save_view
from audit.show.navigation import ELSEWHERE, PAGES
from audit.work.sightings import note_tools
from tenants.models import Role, User
from tenants.scope import tenant_scope
from tests.support.contracts import make_contract
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import signed_in
from tools_registry.changes import Publisher
from tools_registry.schemas import ToolContract
from tools_registry.versions import register_contracts


def found(user: User, text: str) -> list[tuple[str, str, str]]:
    """Label, kind and address of each entry."""
    answer = signed_in(user).get(f"/go/?q={quote(text)}", headers={"HX-Request": "true"})
    assert answer.status_code == 200
    entries = re.findall(
        r'<a href="([^"]*)">\s*<span class="free">(.*?)</span> <span class="dim">(.*?)</span>',
        answer.content.decode(),
    )
    return [(label, kind, address) for address, label, kind in entries]


def pages(user: User, text: str) -> list[str]:
    return [label for label, kind, _ in found(user, text) if kind == "page"]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("late", ["Latency & tokens"]),
        ("LATENCY tok", ["Latency & tokens"]),
        ("open", ["Open calls", "Skipped spans", "API documentation"]),
        ("sched", ["Reports"]),
        ("lat ency", []),
    ],
)
def test_beginnings_of_words_find_pages(text: str, labels: list[str], acme: Cast) -> None:
    assert [each.replace("&amp;", "&") for each in pages(acme.viewer, text)] == labels


@pytest.mark.slow
@pytest.mark.parametrize("role", Role)
def test_each_page_that_is_offered_opens_for_its_role(role: Role, acme: Cast) -> None:
    user = getattr(acme, role.value)
    client = signed_in(user)
    offered = {address for _, kind, address in found(user, "") if kind == "page"}
    for each in (*PAGES, *ELSEWHERE):
        assert (reverse(each.route) in offered) == (role in each.roles), each
        assert client.get(reverse(each.route)).status_code == (200 if role in each.roles else 403)


def test_tool_view_trace_and_call_are_found(acme: Cast) -> None:
    call = make_call(
        tool_name="search_docs", trace_id="trace-palette", started_at=datetime.now(UTC)
    )
    send_events(acme.tenant, call)
    with tenant_scope(acme.tenant.id):
        note_tools(datetime.now(UTC))
        save_view(acme.viewer, "Search is slow", str(parse("tool:search_docs")))
        contract = ToolContract.model_validate(make_contract(name="search_web"))
        register_contracts(acme.tenant, [contract], Publisher(acme.admin))
    registered = found(acme.viewer, "search_w")
    assert [each[:2] for each in registered] == [
        ("search_web", "tool"),
        ("Search calls for search_w", "search"),
    ]
    assert registered[0][2].startswith("/tools/")
    views = [each for each in found(acme.viewer, "search is") if each[1] == "saved view"]
    assert views == [("Search is slow", "saved view", "/calls/?q=tool%3Asearch_docs")]
    assert ("search_docs", "tool", "/calls/?q=tool%3Asearch_docs") in found(acme.viewer, "docs")
    traces = [each for each in found(acme.viewer, "trace-pal") if each[1] == "trace"]
    assert ("trace-palette", "trace", "/traces/trace-palette") in traces
    (of_id,) = [each for each in found(acme.viewer, call[0]["invocation_id"]) if each[1] == "call"]
    assert signed_in(acme.viewer).get(of_id[2], follow=True).status_code == 200


def test_views_of_others_are_not_offered(acme: Cast) -> None:
    with tenant_scope(acme.tenant.id):
        save_view(acme.admin, "mine alone", str(parse("tool:a")))
    assert [kind for _, kind, _ in found(acme.viewer, "mine alone")] == ["search"]


def test_unusual_texts_are_searched_as_they_are(acme: Cast) -> None:
    assert found(acme.viewer, "\x00")[-1][0] == "Search calls for \ufffd"
    for text in ("%_\\", "'; --", "<b>", "é" * 300, "*"):
        assert found(acme.viewer, text)[-1][1] == "search"


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("/", "Overview"),
        ("/calls/", "Calls"),
        ("/calls/open", "Open calls"),
        ("/alerts/rules/new", "Alerts"),
        ("/settings/prices/new", "Price lists"),
        ("/evidence/", "Evidence"),
        ("/compare/", None),
        ("/go/", None),
    ],
)
def test_navigation_marks_the_page_one_is_on(path: str, label: str | None, acme: Cast) -> None:
    page = signed_in(acme.admin).get(path).content.decode()
    nav = page[page.index("nav-links") : page.index("nav-foot")]
    current = re.findall(r'aria-current="page"\s*><svg.*?nav-label"\s*>([^<]*)', nav)
    assert [each.strip() for each in current] == ([label] if label else [])
