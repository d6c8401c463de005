"""Orders of tables: rows, heads, and pages of lists that are sorted by a figure."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.test import RequestFactory

from audit.pages.show.ordering import Order, in_order, requested_order
from audit.queries.call_query import parse
from audit.queries.trace_order import sorted_traces
from audit.queries.traces import TraceFilter
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import HOSTILE, signed_in, text
from tests.support.traces import VIOLATED_GUARD

ROWS = [("b", 2), ("a", None), ("c", 9), ("d", 2)]
KEYS = {"name": lambda row: row[0], "size": lambda row: row[1]}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("size", "cbda"),
        ("-size", "bdca"),
        ("name", "abcd"),
        ("-name", "dcba"),
        ("nonsense", "cbda"),
        ("", "cbda"),
    ],
)
def test_rows_are_in_the_requested_order(asked: str, expected: str) -> None:
    order = requested_order(RequestFactory().get("/", {"sort": asked}), KEYS, "size")
    assert "".join(name for name, _ in in_order(ROWS, KEYS, order)) == expected


def test_equal_rows_keep_their_places() -> None:
    rows = [("x", n % 3) for n in range(30)]
    numbered = list(enumerate(rows))
    ordered = in_order(numbered, {"size": lambda one: one[1][1]}, Order("size"))
    assert ordered == sorted(numbered, key=lambda one: (-one[1][1], one[0]))


def durations(page: str) -> list[str]:
    return [text(one) for one in re.findall(r'<td class="r took[^>]*>.*?</td>', page, re.S)]


def many(cast: Cast, count: int) -> None:
    """Calls of 1, 2, … seconds in traces of their own, in a mixed order."""
    at = datetime.now(UTC) - timedelta(minutes=30)
    events = []
    for n in range(count):
        seconds = n * 37 % count + 1
        events += make_call(
            trace_id=f"t-{seconds:03}",
            started_at=at + timedelta(seconds=n),
            duration_ms=seconds * 1000,
            tool_name=f"tool {seconds:03}",
        )
    send_events(cast.tenant, events)


@pytest.mark.parametrize("page", ["calls", "traces"])
@pytest.mark.parametrize("sort", ["duration", "-duration"])
def test_pages_of_a_sorted_list_have_every_row_once(acme: Cast, page: str, sort: str) -> None:
    count = 113
    many(acme, count)
    client = signed_in(acme.viewer)
    address, found = f"/{page}/?sort={sort}", []
    while address:
        shown = client.get(address).content.decode()
        assert ('aria-sort="ascending"' in shown) == sort.startswith("-")
        found += re.findall(r'title="t-(\d\d\d)"', shown)
        older = re.search(r'rel="next"\s+href="([^"]*)"', shown)
        address = f"/{page}/{unescape(older[1])}" if older else ""
        # What arrives meanwhile changes nothing: the pages are of the calls before the first.
        send_events(acme.tenant, make_call(duration_ms=50_500, trace_id="late", tool_name="late"))
    found = list(dict.fromkeys(found))
    expected = [f"{n:03}" for n in range(count, 0, -1)]
    assert found == (expected[::-1] if sort.startswith("-") else expected)


def test_sorted_calls_match_the_query(acme: Cast) -> None:
    many(acme, 20)
    shown = (
        signed_in(acme.viewer)
        .get("/calls/", {"q": "duration:>15s", "sort": "duration"})
        .content.decode()
    )
    assert durations(shown) == ["20.0 s", "19.0 s", "18.0 s", "17.0 s", "16.0 s"]
    assert parse("duration:>15s").problems == ()


def test_only_the_newest_traces_are_sorted_and_this_is_known(acme: Cast) -> None:
    many(acme, 20)
    now = datetime.now(UTC)
    with tenant_scope(acme.tenant.id):
        page = sorted_traces(TraceFilter(), "duration", now=now, place=None, size=5, scan_limit=10)
        whole = sorted_traces(TraceFilter(), "duration", now=now, place=None, size=5)
    assert len(page.traces) == 5
    assert page.since is not None
    assert min(one.first_started_at for one in page.traces) >= page.since
    assert [one.trace_id for one in whole.traces] == [f"t-{n:03}" for n in range(20, 15, -1)]
    assert whole.since is None


@pytest.mark.parametrize("page", ["calls", "traces"])
@pytest.mark.parametrize("place", [*HOSTILE, "1,2,3", "2026-01-01T00:00:00+00:00,NaN,x,y", ",,,"])
def test_hostile_places_are_ignored(acme: Cast, page: str, place: str) -> None:
    answer = signed_in(acme.viewer).get(f"/{page}/", {"sort": "duration", "before": place})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "address",
    ["/", "/violations/", "/latency/", "/agents/", "/traces/", "/calls/", "/repeats/"],
)
def test_every_head_that_sorts_says_so(acme: Cast, address: str) -> None:
    at = datetime.now(UTC) - timedelta(minutes=5)
    for _ in range(3):  # so that it repeats
        send_events(acme.tenant, make_call(started_at=at, call_id="a", guard=VIOLATED_GUARD))
    client = signed_in(acme.viewer)
    page = client.get(address).content.decode()
    heads = re.findall(r'<th scope="col"[^>]*><a href="(\?[^"]*sort=[^"]*)" hx-get', page)
    assert len(heads) >= 3
    for head in heads:
        shown = client.get(f"{address}{unescape(head)}")
        assert shown.status_code == 200
        assert shown.content.decode().count("aria-sort=") >= 1
