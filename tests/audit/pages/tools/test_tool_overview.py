"""The overview of a tool: figures by version and caller, each leading to its calls."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from urllib.parse import parse_qs, urlsplit

from audit.queries.call_query import parse
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import FRAME, HOSTILE, PARTIAL, signed_in, statements, text
from tests.support.replays import publish_contract
from tests.support.traces import FAILED_OUTPUT, VIOLATED_GUARD
from tools_registry.models import Tool

SHORT = timedelta(minutes=5)


def used(cast: Cast) -> Tool:
    """A tool with calls of two versions by two agents and by none; and a call of another tool."""
    tool = publish_contract(cast)
    at = datetime.now(UTC) - SHORT
    lead, helper = {"agent": "lead"}, {"agent": "helper <b>"}
    calls = [
        *(make_call(tool_version="1", started_at=at, context=lead) for _ in range(3)),
        make_call(tool_version="1", started_at=at, context=lead, output=FAILED_OUTPUT),
        make_call(tool_version="9", started_at=at, context=helper, guard=VIOLATED_GUARD),
        make_call(started_at=at),
        make_call(tool_name="other", tool_version="1", started_at=at, context=lead),
    ]
    send_events(cast.tenant, [event for call in calls for event in call])
    return tool


def test_figures_are_of_this_tool_by_version_and_caller(acme: Cast) -> None:
    page = signed_in(acme.viewer).get(f"/tools/{used(acme).pk}/overview")
    shown = page.context
    versions = {
        row.version: (row.number, row.spent.calls, row.spent.failed, row.violations)
        for row in shown["versions"]
    }
    assert versions == {"1": (1, 4, 1, 0), "9": (None, 1, 0, 1), "": (None, 1, 0, 0)}
    callers = {each.name: (each.calls, each.failed) for each, _ in shown["callers"].rows}
    assert callers == {"lead": (4, 1), "helper <b>": (1, 0), "": (1, 0)}
    assert [row.calls for row in shown["errors"]] == [1]
    words = text(page.content.decode())
    assert "version 1 current" in words
    assert "9 not registered" in words
    assert "helper &lt;b&gt;" in page.content.decode()


def test_links_are_valid_queries_and_lead_to_the_calls_counted(acme: Cast) -> None:
    client, tool = signed_in(acme.viewer), used(acme)
    page = client.get(f"/tools/{tool.pk}/overview").content.decode()
    queries = {
        parse_qs(urlsplit(unescape(link)).query)["q"][0]
        for link in re.findall(r'href="(/calls/\?q=[^"]*)"', page)
    }
    assert len(queries) > 10
    assert [problem for query in queries for problem in parse(query).problems] == []
    (of_lead,) = [query for query in queries if query.endswith("agent:lead")]
    listed = client.get("/calls/", {"q": of_lead}).content.decode()
    assert listed.count('<td class="which">') == 4


def test_tabs_name_the_page_one_is_on(acme: Cast) -> None:
    client, tool = signed_in(acme.editor), publish_contract(acme)
    for page, label in (
        ("/overview", "Overview"),
        ("", "Versions"),
        ("/1", "Versions"),
        ("/drift", "Drift"),
        ("/effect", "Effect"),
        ("/regression-set", "Regression set"),
        ("/definitions", "Definitions"),
    ):
        shown = client.get(f"/tools/{tool.pk}{page}").content.decode()
        tabs = shown[shown.index('<nav class="tabs"') :]
        tabs = tabs[: tabs.index("</nav>")]
        assert re.findall(r'aria-current="page"\s*>([^<]*)', tabs) == [label], page
        assert tabs.count("<a") == 7


def test_tool_without_calls_and_invalid_range_say_so(acme: Cast) -> None:
    client, tool = signed_in(acme.viewer), publish_contract(acme)
    page = f"/tools/{tool.pk}/overview"
    assert "No completed calls in this range" in text(client.get(page).content.decode())
    assert "Nothing was searched" in text(client.get(page, {"from": "x"}).content.decode())
    assert client.get(page, headers=PARTIAL).content.lstrip().startswith(b"<div")


def test_hostile_versions_and_agents_are_text(acme: Cast) -> None:
    tool = publish_contract(acme)
    at = datetime.now(UTC) - SHORT
    calls = [
        make_call(tool_version=each, started_at=at, context={"agent": each}, is_error=True)
        for each in HOSTILE
        if "\x00" not in each
    ]
    send_events(acme.tenant, [event for call in calls for event in call])
    page = signed_in(acme.viewer).get(f"/tools/{tool.pk}/overview").content.decode()
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "a\u202eb" not in page


def test_page_takes_few_statements(acme: Cast) -> None:
    client, tool = signed_in(acme.viewer), used(acme)
    client.get(f"/tools/{tool.pk}/overview")
    with statements(FRAME + 11):
        client.get(f"/tools/{tool.pk}/overview")
