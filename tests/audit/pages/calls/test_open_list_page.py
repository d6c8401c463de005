"""Open calls: each kind, late ends that close them, and ends without a start."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from audit.models import Producer
from audit.queries.call_filter import CallFilter
from audit.queries.call_list import call_page
from audit.queries.listed_call import ListedCall
from audit.queries.open_calls import condition_of
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.open_calls import NOW, open_call, send_each_kind, set_last_heard, tools_by_kind
from tests.support.pages import (
    FRAME,
    HOSTILE,
    PARTIAL,
    listed_tools,
    signed_in,
    statements,
    text,
)


@pytest.fixture(autouse=True)
def fresh_now() -> None:
    """Set NOW for each test: the page reads the clock, and a run may take half an hour."""
    global NOW
    NOW = datetime.now(UTC)


LONG_AGO = NOW - timedelta(hours=1)


def test_each_kind_of_open_call_is_listed_separately(acme: Cast) -> None:
    send_each_kind(acme)
    assert tools_by_kind(acme) == {
        "": ["anonymous", "both", "crashed", "fresh", "just-begun", "overdue", "within"],
        "running": ["anonymous", "fresh", "just-begun", "within"],
        "overdue": ["both", "overdue"],
        "crashed": ["both", "crashed"],
        "orphan": ["orphan"],
    }


def test_counts_match_the_listed_calls(acme: Cast) -> None:
    send_each_kind(acme)
    page = text(signed_in(acme.viewer).get("/calls/open").content.decode())
    assert "All open 7 Running 4 Overdue 2 Presumed crashed 2 Orphan ends 1" in page


def test_python_and_sql_classify_open_calls_alike(acme: Cast) -> None:
    send_each_kind(acme)
    now = datetime.now(UTC)
    with tenant_scope(acme.tenant.id):
        heard = dict(
            Producer.objects.for_tenant(acme.tenant.id).values_list("producer_id", "last_heard_at")
        )

        def matches(wanted: CallFilter) -> list[ListedCall]:
            return call_page(wanted, now=now).calls

        by_rule = {
            call.tool_name: condition_of(call, heard.get(call.producer_id or ""), now)
            for call in matches(CallFilter(state="open"))
        }
        listed = {
            kind: {call.tool_name for call in matches(CallFilter(condition=kind))}
            for kind in ("running", "overdue", "crashed")
        }
    for tool, condition in by_rule.items():
        assert tool in listed[condition]
        assert (tool in listed["crashed"]) == (condition == "crashed")
        assert (tool in listed["running"]) == (condition == "running")


@pytest.mark.slow
def test_late_end_completes_its_call(acme: Cast) -> None:
    start, end = make_call(
        tool_name="late", started_at=LONG_AGO, timeouts_ms=1000, producer_id="silent"
    )
    send_events(acme.tenant, [start])
    set_last_heard(acme, "silent", LONG_AGO)
    assert tools_by_kind(acme)["crashed"] == tools_by_kind(acme)["overdue"] == ["late"]
    send_events(acme.tenant, [end])
    assert set(map(tuple, tools_by_kind(acme).values())) == {()}
    page = signed_in(acme.viewer).get("/calls/?q=state:ok").content.decode()
    assert listed_tools(page) == ["late"]


@pytest.mark.slow
def test_late_start_completes_an_orphan_end(acme: Cast) -> None:
    start, end = make_call(tool_name="orphan")
    send_events(acme.tenant, [end])
    assert tools_by_kind(acme)["orphan"] == ["orphan"]
    listed_as = text(signed_in(acme.viewer).get("/calls/?q=is:orphan").content.decode())
    assert "start missing" in listed_as
    send_events(acme.tenant, [start])
    assert tools_by_kind(acme)["orphan"] == []


def test_each_row_shows_its_state(acme: Cast) -> None:
    send_each_kind(acme)
    page = signed_in(acme.viewer).get("/calls/open").content.decode()
    rows = {
        tool: text(row).replace("\xa0", " ")
        for row in page.split("<tr>")
        for tool in listed_tools(row)
    }
    assert re.search(r"presumed crashed overdue by (59 min|1 h)", rows["both"])
    assert re.search(r"presumed crashed 1 h", rows["crashed"])
    assert re.search(r"overdue by (59 min|1 h)", rows["overdue"])
    assert "running" in rows["fresh"]
    assert "1.00 s" in rows["overdue"]
    assert "alive" in rows["fresh"]


@pytest.mark.slow
def test_query_filters_the_open_calls(acme: Cast) -> None:
    send_each_kind(acme)
    client = signed_in(acme.viewer)
    assert listed_tools(client.get("/calls/open", {"q": "tool:fre*"}).content.decode()) == ["fresh"]
    page = client.get("/calls/open", {"q": "tool:fre* nonsense:1"}).content.decode()
    assert listed_tools(page) == []
    assert "tool:fre* <mark>nonsense</mark>:1" in page
    assert "Unknown filter “nonsense”." in page
    closed = client.get("/calls/open", {"q": "NOT tool:fre* NOT state:open"}).content.decode()
    assert listed_tools(closed) == []
    others = client.get("/calls/open", {"q": "NOT tool:fre*"}).content.decode()
    assert set(listed_tools(others)) == set(tools_by_kind(acme)[""]) - {"fresh"}
    none = text(client.get("/calls/open", {"q": "tool:none"}).content.decode())
    assert "None match tool:none" in none


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("", "No open calls"),
        ("overdue", "No overdue calls"),
        ("crashed", "No calls presumed crashed"),
        ("orphan", "No orphan ends"),
    ],
)
def test_empty_list_is_explained_for_each_kind(acme: Cast, kind: str, expected: str) -> None:
    answer = signed_in(acme.viewer).get("/calls/open", {"kind": kind})
    assert expected in text(answer.content.decode())


def test_pages_are_contiguous(acme: Cast) -> None:
    send_events(
        acme.tenant,
        (
            e
            for n in range(70)
            for e in open_call(f"t{n:02}", started_at=NOW - timedelta(seconds=n))
        ),
    )
    client = signed_in(acme.viewer)
    first = client.get("/calls/open").content.decode()
    link = re.search(r'rel="next" href="([^"]*)"', first)
    assert link is not None
    rest = client.get(
        "/calls/open" + link[1].replace("&amp;", "&"), headers=PARTIAL
    ).content.decode()
    assert rest.lstrip().startswith('<div id="open-list"')
    assert listed_tools(first) + listed_tools(rest) == [f"t{n:02}" for n in range(70)]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_is_escaped(acme: Cast, hostile: str) -> None:
    send_events(acme.tenant, open_call(hostile, trace_id=hostile, producer_id=hostile))
    for query in ("", f"no:{hostile}"):  # the second is invalid: nothing is listed
        page = signed_in(acme.viewer).get("/calls/open", {"q": query}).content.decode()
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "\u202e" not in page.partition("<tbody>")[2]
        assert ("<tbody>" in page) is (not query)


def test_open_calls_are_not_visible_to_another_tenant(acme: Cast, globex: Cast) -> None:
    send_each_kind(acme)
    assert set(map(tuple, tools_by_kind(globex).values())) == {()}


def test_page_uses_a_fixed_number_of_statements(acme: Cast) -> None:
    send_each_kind(acme)
    client = signed_in(acme.viewer)
    # Rows of the newest days, of all days, how far was searched, counts, producers. One more,
    # because the counts are planned once.
    with statements(FRAME + 5):
        client.get("/calls/open")


def test_orphan_query_uses_an_index(acme: Cast) -> None:
    send_each_kind(acme)
    with tenant_scope(acme.tenant.id), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(
            "EXPLAIN SELECT FROM invocation WHERE tenant_id = %s AND started_on = %s"
            " AND start_batch_id IS NULL",
            [acme.tenant.id, NOW.date()],
        )
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Index" in plan
    assert "Seq Scan" not in plan
