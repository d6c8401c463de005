"""Orders of tables on pages: heads, and pages of lists that are sorted by a figure."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape
from pathlib import Path

import pytest
from django.conf import settings

from audit.prices.lists import save_list
from audit.queries.call_query import parse
from audit.queries.price_lists import ToolPrice
from audit.queries.trace_order import sorted_traces
from audit.queries.traces import TraceFilter
from audit.work.sightings import note_tools
from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.isolation.world import make_world
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import HOSTILE, signed_in, text


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


HEAD = re.compile(
    r'<th scope="col"[^>]*><a(?: id="([^"]*)")? href="([^"]*)" hx-get="([^"]*)">([^<]*)</a>', re.S
)
TABLES = {
    "/": 6,
    "/violations/": 7,
    "/latency/": 6,
    "/latency/newest": 0,
    "/settings/security": 3,
    "/agents/": 8,
    "/conversations/": 8,
    "/conversations/{canary}": 7,
    "/traces/": 4,
    "/calls/": 1,
    "/calls/open": 0,
    "/repeats/": 0,
    "/costs/": 5,
    "/approvals/": 0,
    "/alerts/?state=all": 4,
    "/alerts/rules/": 3,
    "/alerts/maintenance/": 4,
    "/notes/": 6,
    "/boards/": 4,
    "/tools/": 5,
    "/tools/{tool_id}": 3,
    "/tools/{tool_id}/overview": 12,
    "/tools/{tool_id}/regression-set": 3,
    "/tools/import/{import_id}": 3,
    "/definitions/": 4,
    "/definitions/{definition_id}": 6,
    "/inbox/?state=discarded": 3,
    "/reports/": 5,
    "/incidents/": 5,
    "/incidents/{incident_id}": 5,
    "/samples/": 5,
    "/samples/{sample_id}": 5,
    "/actions/": 4,
    "/ledger/": 6,
    "/settings/members": 3,
    "/settings/keys": 6,
    "/settings/service-accounts": 4,
    "/settings/sign-in": 4,
    "/settings/channels": 4,
    "/settings/channels/{channel_id}": 4,
    "/settings/streams": 6,
    "/settings/prices": 5,
    "/settings/holds": 3,
    "/settings/erasures": 4,
    "/share/": 5,
    "/skipped/": 7,
}
"""Pages with tables, and how many of their heads sort, at least, with one row in each."""


NOT_SORTED = {
    "alerts/rule_form.html": "when a rule would have fired: a course of time beside its chart",
    "apart/_rows.html": "a ranking: what sets calls apart most is first",
    "apart/arguments.html": "a ranking: what sets calls apart most is first",
    "apart/compare.html": "fixed measures of two selections",
    "api_docs.html": "a reference",
    "components/_call_panel.html": "decisions and violations of one call, as they came",
    "components/_chart.html": "the points of a chart, along its axis",
    "definitions/definition_detail.html": "a difference of two documents, in their order",
    "inbox/inbox_detail.html": "a difference of two events, in their order",
    "incidents/timeline.html": "a file of an evidence bundle, without a server",
    "mfa/index.html": "the ways to prove who one is, each with what can be done",
    "prices/price_list.html": "fields of a form",
    "reports/_report_section.html": "a document: its rows are as its PDF has them",
    "tools/_replay.html": "the differing cases of a set, by call",
    "tools/draft_review.html": "a difference of two contracts, in their order",
    "tools/effect.html": "fixed measures before and after a version",
    "tools/tool_diff.html": "a difference of two contracts, in their order",
    "traces/trace_compare.html": "two traces side by side, in their order",
    "violations/violation_list.html": "a map of tools and codes, and the newest violations",
}
"""Templates with tables that no head sorts, and why."""


def test_every_table_of_records_sorts() -> None:
    """A new table has heads that sort, or a reason why not."""
    folder = Path(settings.BASE_DIR) / "templates"
    unsorted = {
        str(template.relative_to(folder))
        for template in folder.rglob("*.html")
        for table in re.findall(r"<table.*?</table>", template.read_text(), re.S)
        if "{% sort_head" not in table
    }
    assert unsorted == NOT_SORTED.keys()


@pytest.mark.slow
def test_every_head_that_sorts_says_so() -> None:
    """Each head leads to the page again, where it alone says how its table is sorted."""
    world = make_world("acme")
    client = world.client()
    names = vars(world)
    few: list[str] = []
    for address, least in TABLES.items():
        path = address.format(**names)
        answer = client.get(path)
        assert answer.status_code == 200, path
        heads = HEAD.findall(answer.content.decode())
        few += [f"{address}: {[label for *_, label in heads]}"] * (len(heads) < least)
        ids = [name for name, *_ in heads if name]
        assert len(set(ids)) == len(ids), f"{path}: ids are not unique"
        for name, href, asked, _ in heads:
            assert href == asked
            if not name:  # another table of the same order
                continue
            target = unescape(href)
            shown = client.get(f"{path.partition('?')[0]}{target}" if target[0] == "?" else target)
            assert shown.status_code == 200, f"{path} {target}"
            current = re.findall(
                r'<th scope="col"[^>]*aria-sort="(\w+)"><a id="([^"]*)"', shown.content.decode()
            )
            own = [way for way, one in current if one == name]
            expected = "ascending" if f'="-{name}' in target else None
            assert len(own) == 1, f"{path} {target}: {current}"
            assert expected in {None, own[0]}
    assert few == []


def column(page: str, label: str) -> list[str]:
    """The texts of a column, of the table that has it."""
    for table in re.findall(r"<table.*?</table>", page, re.S):
        heads = [text(one) for one in re.findall(r"<th .*?</th>", table, re.S)]
        place = next((n for n, head in enumerate(heads) if head.startswith(label)), None)
        if place is not None:
            rows = re.findall(r"<tr.*?</tr>", table.partition("<tbody")[2], re.S)
            return [text(re.findall(r"<td.*?</td>", row, re.S)[place]) for row in rows]
    raise AssertionError(f"no column {label}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "label", "first"),
    [
        ("/settings/keys?sort=name", "Name", "alpha"),
        ("/settings/keys?sort=-name", "Name", "Omega"),
        ("/settings/members?sort=-user", "User", None),
        ("/tools/?sort=calls", "Tool", "often"),
        ("/tools/?sort=-calls", "Tool", "once"),
        ("/calls/open?sort=tool", "Tool", "often"),
        ("/calls/open?sort=age", "Tool", "once"),
        ("/actions/?sort=target", "Target", None),
        ("/actions/?sort=-target", "Target", None),
        ("/reports/?sort=report", "Report", "Wed 7 Jan"),
        ("/costs/?sort=tool", "Tool", "often"),
    ],
)
def test_rows_of_pages_are_in_the_order_of_their_heads(
    sortable: Cast, address: str, label: str, first: str | None
) -> None:
    shown = signed_in(sortable.admin).get(address).content.decode()
    texts = column(shown, label)
    assert len(texts) >= 2
    if first is not None:
        assert texts[0].startswith(first), texts
        return
    ordered = sorted(texts, key=str.casefold, reverse="-" in address or "report" in address)
    assert texts == ordered


@pytest.fixture
def sortable(acme: Cast) -> Cast:
    """Tools with a different number of open calls, two keys, actions, reports, and prices."""
    at = datetime.now(UTC) - timedelta(minutes=30)
    events = make_call(tool_name="once", started_at=at)
    for n in range(3):
        events += make_call(tool_name="often", started_at=at + timedelta(minutes=n + 1))
    waiting = [
        make_call(tool_name=name, started_at=at - timedelta(minutes=n))[0]
        for n, name in enumerate(["often", "once"])
    ]
    send_events(acme.tenant, [*events, *waiting])
    client = signed_in(acme.admin)
    with tenant_scope(acme.tenant.id):
        note_tools(datetime.now(UTC))
        for name in ("Omega", "alpha"):
            create_key(acme.tenant, name, [Scope.READ], created_by=acme.admin)
        save_list(
            acme.tenant,
            acme.admin,
            (at - timedelta(days=2)).date(),
            "EUR",
            [ToolPrice("once", Decimal(1), ""), ToolPrice("often", Decimal(2), "")],
            at,
        )
    for day in ("2026-01-05", "2026-01-07", "2026-01-06"):
        client.post("/reports/create", {"kind": "day", "day": day})
    return acme
