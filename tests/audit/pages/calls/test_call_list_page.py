"""The list of calls: matches, pages, counts, live tail, invalid queries; and its API."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client

from audit.queries.call_list import call_page, count_calls
from audit.queries.call_query import parse
from audit.queries.call_walk import Budget
from audit.queries.cursor import Cursor
from audit.sql import QUERIES
from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.factories import (
    Cast,
    make_call,
    make_ingest_key,
    send_events,
)
from tests.support.pages import (
    FRAME,
    HOSTILE,
    PARTIAL,
    linked,
    listed_tools,
    signed_in,
    statements,
    text,
    walked,
)

NOW = datetime.now(UTC)
FAILED: dict[str, Any] = {
    "status": "error",
    "error": {
        "type": "UPSTREAM",
        "code": "RATE_LIMITED",
        "message": "Bad gateway",
        "upstream_status": 502,
    },
    "meta": {"took_ms": 3},
}


def broken(code: str, path: str) -> dict[str, Any]:
    violation = {"path": path, "severity": "error", "code": code, "expected": "C", "received": "K"}
    return {"strategy": "warn", "outcome": "passed", "violations": [violation]}


def used(prompt: int, *, cache_hit: bool) -> dict[str, Any]:
    usage = {"prompt": prompt, "completion": 0}
    return {
        "status": "ok",
        "data": {},
        "meta": {"took_ms": 1, "token_usage": usage, "cache_hit": cache_hit},
    }


def get_page(cast: Cast, query: str, **more: str) -> list[str]:
    answer = signed_in(cast.viewer).get("/calls/", {"q": query, **more})
    assert answer.status_code == 200
    return listed_tools(answer.content.decode())


def send_numbered(cast: Cast, count: int, **members: Any) -> None:
    """Send calls of `tool-000` (the oldest), `tool-001` and so on, a second apart."""
    events = (
        event
        for n in range(count)
        for event in make_call(
            tool_name=f"tool-{n:03}", started_at=NOW - timedelta(seconds=600 - n), **members
        )
    )
    send_events(cast.tenant, events)


@pytest.fixture(scope="module")
def recorded(request: pytest.FixtureRequest) -> Cast:
    """A tenant with one call of each kind, which the tool's name states."""
    from tests.support.factories import make_cast

    cast = make_cast("acme")
    old = NOW - timedelta(hours=30)
    send_events(
        cast.tenant,
        [
            *make_call(tool_name="plain", duration_ms=5),
            *make_call(tool_name="failed", output=FAILED),
            *make_call(tool_name="broken", guard=broken("WRONG_TYPE", "$.items[3].name")),
            *make_call(tool_name="enum", guard=broken("ENUM_MISMATCH", "$.unit")),
            *make_call(tool_name="open", is_open=True),
            *make_call(tool_name="slow", duration_ms=2500, timeouts_ms=2000, tool_version="4"),
            *make_call(tool_name="tokens", output=used(12_000, cache_hit=False)),
            *make_call(tool_name="cached", output=used(10, cache_hit=True)),
            *make_call(tool_name="old", started_at=old),
            *make_call(tool_name="run", run_id="graph_run_1", case_id="case-7"),
            *make_call(tool_name="ingested", ingestion_run_id="in-1", workflow_id="w-1"),
            *make_call(tool_name="document", document_id="doc-1", collection_id="col-1"),
            *make_call(tool_name="traced", trace_id="4bf92f3577", call_id="3f2a" + "0" * 60),
            *make_call(tool_name="two words", producer_id="web-17"),
        ],
    )
    return cast


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("tool:plain", {"plain"}),
        ("tool:pl*", {"plain"}),
        ("tool:pl", set()),
        ("tool:PLAIN", set()),
        ('tool:"two words"', {"two words"}),
        ('tool:"two w"*', {"two words"}),
        ("tool:%", set()),
        ("version:4", {"slow"}),
        ("state:error", {"failed"}),
        ("state:open", {"open"}),
        ("error:UPSTREAM", {"failed"}),
        ("error:*", {"failed"}),
        ("code:RATE_LIMITED", {"failed"}),
        ("code:RATE*", {"failed"}),
        ("violation:WRONG_TYPE", {"broken"}),
        ("violation:*", {"broken", "enum"}),
        ("path:$.items[*].name", {"broken"}),
        ("path:$.items[3].name", {"broken"}),
        ("path:$.items*", {"broken"}),
        ("violation:WRONG_TYPE path:$.unit", set()),
        ("duration:>2s", {"slow"}),
        ("duration:<10ms", {"plain"}),
        ("duration:2s..3s", {"slow"}),
        ("tokens:>10k", {"tokens"}),
        ("tokens:1..100", {"cached"}),
        ("cache:hit", {"cached"}),
        ("cache:miss", {"tokens"}),
        ("until:24h", {"old"}),
        ("run:graph_run_1", {"run"}),
        ("run:graph*", {"run"}),
        ("case:case-7", {"run"}),
        ("ingestion:in-1", {"ingested"}),
        ("workflow:w*", {"ingested"}),
        ("document:doc-1", {"document"}),
        ("collection:*", {"document"}),
        ("trace:4bf92f3577", {"traced"}),
        ("trace:4bf*", {"traced"}),
        ("call:3f2a*", {"traced"}),
        ("producer:web-17", {"two words"}),
        ("tool:slow state:ok duration:>2s version:4 since:1h", {"slow"}),
        ("tool:slow state:error", set()),
        ("tool:plain OR tool:failed", {"plain", "failed"}),
        ("state:failed OR is:retry OR cache:hit", {"failed", "cached"}),
        ("(tool:plain OR tool:failed) state:ok", {"plain"}),
        ("run:* OR trace:4bf* OR call:nothing*", {"run", "traced"}),
        ("violation:WRONG_TYPE OR path:$.unit", {"broken", "enum"}),
        ("(violation:WRONG_TYPE path:$.unit) OR tool:plain", {"plain"}),
        ("violation:* NOT violation:WRONG_TYPE", {"enum"}),
        ("duration:>2s OR tokens:>10k", {"slow", "tokens"}),
        ("is:running OR is:over-time", {"open", "slow"}),
        ("NOT duration:<2s NOT state:open", {"slow"}),
        ("since:1h UPSTREAM", {"failed"}),
        ("rate_lim", {"failed"}),
        ("WORDS", {"two words"}),
        ('"o w"', {"two words"}),
        ("NOT tool:a nothing-has-this", set()),
        ("%", set()),
    ],
)
def test_each_filter_matches_its_calls(recorded: Cast, query: str, expected: set[str]) -> None:
    assert parse(query).problems == ()
    assert set(get_page(recorded, query)) == expected


@pytest.mark.slow
def test_not_matches_all_other_calls(recorded: Cast) -> None:
    """Also calls without such a value."""
    everything = set(get_page(recorded, ""))
    for query in (
        *("state:failed", "code:RATE_LIMITED", "version:4", "violation:*", "cache:hit"),
        *("run:graph*", "duration:>2s", "tokens:>10k", "is:running", "upstream:502", "plain"),
        *("tool:plain OR tool:failed", "case:case-7 run:graph_run_1", "producer:web*"),
    ):
        matches = set(get_page(recorded, query))
        assert matches, query
        assert set(get_page(recorded, f"NOT ({query})")) == everything - matches, query
        assert set(get_page(recorded, f"NOT ({query}) OR {query}")) == everything, query


def test_message_search_requires_payload_access(recorded: Cast) -> None:
    """Messages quote payloads: members who may not see them cannot search them."""
    for user, expected in (
        (recorded.editor, ["failed"]),
        (recorded.admin, ["failed"]),
        (recorded.viewer, []),
    ):
        page = signed_in(user).get("/calls/", {"q": '"bad GATE"'}).content.decode()
        assert listed_tools(page) == expected
    for user in (recorded.viewer, recorded.auditor):
        page = signed_in(user).get("/calls/", {"q": "NOT gateway"}).content.decode()
        assert "failed" in listed_tools(page)
    scopes = {Scope.READ: [], Scope.PAYLOADS: ["failed"]}
    for scope, expected in scopes.items():
        _, secret = create_key(recorded.tenant, f"reader {scope}", [Scope.READ, scope])
        answer = read(recorded, secret, q="gateway").json()
        assert [call["tool_name"] for call in answer["calls"]] == expected


def test_empty_query_lists_all_calls_newest_first(recorded: Cast) -> None:
    tools = get_page(recorded, "")
    assert len(tools) == 14
    assert tools[-1] == "old"


def test_each_row_describes_its_call(recorded: Cast) -> None:
    page = signed_in(recorded.editor).get("/calls/").content.decode()
    rows = {tool: text(row) for row in page.split("<tr ") for tool in listed_tools(row)}
    assert "failed UPSTREAM 502 · Bad gateway" in rows["failed"]
    assert "violation $.items[3].name WRONG_TYPE" in rows["broken"]
    assert re.search(r"open for 1 min", rows["open"].replace("\xa0", " "))
    assert "ok cache" in rows["cached"]
    assert "2.50 s" in rows["slow"].replace("\xa0", " ")
    assert "v4" in rows["slow"]
    assert "exceeded 2.00 s timeout" in rows["slow"].replace("\xa0", " ")
    assert "12,000 ▸ 0" in rows["tokens"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("tool:nope", "match tool:nope"),
        ("state:open since:1h tool:x", "No calls since"),
    ],
)
def test_empty_result_repeats_the_query(recorded: Cast, query: str, expected: str) -> None:
    page = text(signed_in(recorded.viewer).get("/calls/", {"q": query}).content.decode())
    assert "No calls match" in page
    assert expected in page


def test_query_error_is_marked_and_nothing_is_listed(recorded: Cast) -> None:
    answer = signed_in(recorded.viewer).get("/calls/", {"q": "tool:plain stat:ok <script>"})
    page = answer.content.decode()
    assert "tool:plain <mark>stat</mark>:ok &lt;script&gt;" in page
    assert "Did you mean state?" in page
    assert listed_tools(page) == []
    assert 'value="tool:plain stat:ok &lt;script&gt;"' in page


def test_form_fields_become_a_query(recorded: Cast) -> None:
    client = signed_in(recorded.viewer)
    fields = {"q": "tool:old", "tool": "two words", "state": "", "duration": ">1ms", "run": " "}
    answer = client.get("/calls/", fields)
    assert answer.status_code == 302
    assert answer.headers["Location"] == "/calls/?" + urlencode(
        {"q": 'tool:"two words" duration:>1ms'}
    )
    page = client.get(answer.headers["Location"]).content.decode()
    assert listed_tools(page) == ["two words"]
    assert 'value="&quot;two words&quot;"' in page
    assert 'placeholder="graph_run_1"' in page
    assert client.get("/calls/", {"tool": ""}).headers["Location"] == "/calls/"
    wrong = client.get("/calls/", {"duration": "2"}, follow=True).content.decode()
    assert "duration:<mark>2</mark>" in wrong


def test_form_keeps_query_terms_without_a_field(recorded: Cast) -> None:
    client = signed_in(recorded.viewer)
    page = client.get("/calls/", {"q": "tool:plain (NOT state:ok OR x)"}).content.decode()
    fold = page.partition("All filters")[2]
    assert '<input type="hidden" name="q" value="tool:plain (NOT state:ok OR x)">' in fold
    answer = client.get("/calls/", {"q": "tool:plain (NOT state:ok OR x)", "tool": "other"})
    params = {"q": "(NOT state:ok OR x) tool:other"}
    assert answer.headers["Location"] == "/calls/?" + urlencode(params)


def test_no_control_drops_an_invalid_term(recorded: Cast) -> None:
    client = signed_in(recorded.viewer)
    params = {"q": "tool:plain stat:ok"}
    page = client.get("/calls/", params).content.decode()
    links = set(re.findall(r'href="\?q=([^&"]*)', page))
    assert {_decoded(link) for link in links} <= {params["q"]}
    assert "All filters" not in page
    filled = client.get("/calls/", params | {"state": "ok"})
    assert filled.headers["Location"] == "/calls/?" + urlencode(params)


def test_links_change_one_term_and_keep_the_others(recorded: Cast) -> None:
    page = signed_in(recorded.viewer).get("/calls/?q=tool:plain+state:ok").content.decode()
    links = {unescape(q) for q in re.findall(r'<a href="\?q=([^"]*)"', page)}
    params = {parse(_decoded(link)).text for link in links}
    assert {"tool:plain", "tool:plain state:failed", "tool:plain state:open"} <= params
    assert "tool:plain violation:*" in params
    assert "tool:plain state:ok since:24h" in params


def _decoded(query: str) -> str:
    from urllib.parse import unquote_plus

    return unquote_plus(query)


def test_pages_are_contiguous_in_both_directions(acme: Cast) -> None:
    send_numbered(acme, 120)
    client = signed_in(acme.viewer)
    pages = walked(client, "/calls/", "?q=state:ok")
    forward = [listed_tools(page) for page in pages]
    expected = [f"tool-{n:03}" for n in reversed(range(120))]
    assert [len(part) for part in forward] == [50, 50, 20]
    assert [tool for part in forward for tool in part] == expected
    back = client.get(f"/calls/{linked(pages[-1], 'prev')}").content.decode()
    assert listed_tools(back) == forward[1]
    first = client.get(f"/calls/{linked(back, 'prev')}").content.decode()
    assert listed_tools(first) == forward[0]
    assert linked(first, "prev") is None


def test_calls_with_the_same_time_are_paged_by_id(acme: Cast) -> None:
    send_events(
        acme.tenant,
        (event for n in range(60) for event in make_call(tool_name=f"t{n}", started_at=NOW)),
    )
    client = signed_in(acme.viewer)
    first = client.get("/calls/").content.decode()
    link = re.search(r'rel="next" href="([^"]*)"', first)
    assert link is not None
    second = client.get(f"/calls/{unescape(link[1])}").content.decode()
    assert sorted(listed_tools(first) + listed_tools(second)) == sorted(f"t{n}" for n in range(60))


def test_search_for_a_rare_call_stops_at_the_budget(acme: Cast) -> None:
    send_numbered(acme, 30)
    send_events(
        acme.tenant, make_call(tool_name="rare", case_id="c-7", started_at=NOW - timedelta(hours=1))
    )
    wanted, budget = parse("case:c-7").wanted, Budget(rows=20)
    with tenant_scope(acme.tenant.id):
        first = call_page(wanted, now=NOW, budget=budget)
        assert (first.calls, first.searched_until) == ([], NOW - timedelta(seconds=590))
        assert first.older is not None
        rest = call_page(wanted, now=NOW, before=first.older, budget=budget)
        assert [call.tool_name for call in rest.calls] == ["rare"]
        assert (rest.searched_until, rest.older) == (None, None)
        forward = call_page(
            wanted, now=NOW, after=Cursor(NOW - timedelta(hours=2), first.older.id), budget=budget
        )
        assert [call.tool_name for call in forward.calls] == ["rare"]
        assert forward.newer is not None, "twenty were searched, ten are left"


def test_search_in_many_steps_omits_no_call(acme: Cast) -> None:
    send_numbered(acme, 30)
    for days in (3, 4, 10, 20, 30):
        send_events(acme.tenant, make_call(case_id="c-7", started_at=NOW - timedelta(days=days)))
    wanted, budget = parse("case:c-7").wanted, Budget(seconds=60, first=3)
    with tenant_scope(acme.tenant.id):
        page = call_page(wanted, now=NOW, budget=budget)
        assert [(NOW - call.started_at).days for call in page.calls] == [3, 4, 10, 20, 30]
        assert (page.searched_until, page.older) == (None, None)
        some = call_page(wanted, now=NOW, size=2, budget=budget)
        assert [(NOW - call.started_at).days for call in some.calls] == [3, 4]
        oldest = Cursor(NOW - timedelta(days=32), UUID(int=0))
        forward = call_page(wanted, now=NOW, after=oldest, budget=budget)
        assert forward.calls == page.calls
        counted = count_calls(parse("").wanted, now=NOW, budget=budget)
        assert (counted.count, counted.until) == (35, None)


@pytest.mark.slow
def test_search_step_over_the_time_budget_is_abandoned(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page shows the results of the earlier steps, and later statements have a new timeout."""
    send_numbered(acme, 30)
    wanted, budget = parse("case:c-7").wanted, Budget(seconds=2, first=5)
    for name in ("calls_before", "calls_counted_before"):
        late = "FROM (SELECT pg_sleep(60) WHERE %(scan_limit)s > 5) AS late RIGHT JOIN ("
        slow = QUERIES[name].replace("FROM (", late, 1).replace("AS walked", "AS walked ON TRUE")
        monkeypatch.setitem(QUERIES, name, slow)
    with tenant_scope(acme.tenant.id):
        page = call_page(wanted, now=NOW, budget=budget)
        assert (page.calls, page.searched_until) == ([], NOW - timedelta(seconds=575))
        counted = count_calls(parse("").wanted, now=NOW, budget=budget)
        assert (counted.count, counted.until) == (5, NOW - timedelta(seconds=575))
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            assert cursor.fetchall() == [("0",)]


def test_few_calls_are_searched_completely_without_time_budget(acme: Cast) -> None:
    for days in (1, 10, 30):
        send_events(acme.tenant, make_call(case_id="c-7", started_at=NOW - timedelta(days=days)))
    with tenant_scope(acme.tenant.id):
        page = call_page(parse("case:c-7").wanted, now=NOW, budget=Budget(seconds=0))
        assert (len(page.calls), page.searched_until) == (3, None)
        counted = count_calls(parse("").wanted, now=NOW, budget=Budget(seconds=0))
        assert (counted.count, counted.until) == (3, None)
        few = count_calls(parse("").wanted, now=NOW, budget=Budget(seconds=0, first=1))
        assert (few.count, few.until is None) == (1, False)


def test_failed_calls_are_matched_despite_many_later_successes(acme: Cast) -> None:
    """Only possible matches use the budget: an hour of successful calls uses nothing."""
    send_numbered(acme, 30)
    an_hour_ago = NOW - timedelta(hours=1)
    guard = broken("WRONG_TYPE", "data.c")
    for call in (
        make_call(tool_name="rare", started_at=an_hour_ago, output=FAILED),
        make_call(tool_name="rare", started_at=an_hour_ago, guard=guard),
    ):
        send_events(acme.tenant, call)
    with tenant_scope(acme.tenant.id):
        for query in (
            *("state:failed", "error:UPSTREAM", "code:RATE_LIMITED", "error:UP* code:*"),
            *("violation:*", "violation:WRONG_TYPE tool:rare", "path:data.*"),
        ):
            page = call_page(parse(query).wanted, now=NOW, budget=Budget(rows=3))
            assert [call.tool_name for call in page.calls] == ["rare"], query
            assert page.searched_until is None, query


def test_exhausted_search_offers_to_continue(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    send_numbered(acme, 30)
    monkeypatch.setattr("audit.queries.call_list.Budget", lambda: Budget(rows=20))
    client = signed_in(acme.viewer)
    page = client.get("/calls/?q=case:c-7").content.decode()
    assert "No matches so far" in page
    assert "Search further back than" in text(page)
    link = re.search(r'class="btn btn-primary" href="([^"]*)"', page)
    assert link is not None
    rest = text(client.get(f"/calls/{unescape(link[1])}").content.decode())
    assert "No calls match" in rest
    counted = text(client.get("/calls/count?q=state:ok").content.decode())
    assert counted == "20+"


def test_count_reports_exactness(acme: Cast) -> None:
    send_numbered(acme, 30)
    with tenant_scope(acme.tenant.id):
        assert count_calls(parse("tool:tool-01*").wanted, now=NOW).count == 10
        whole = count_calls(parse("").wanted, now=NOW)
        part = count_calls(parse("").wanted, now=NOW, budget=Budget(rows=7))
    assert (whole.count, whole.until) == (30, None)
    assert (part.count, part.until) == (7, NOW - timedelta(seconds=577))
    answer = signed_in(acme.viewer).get("/calls/count?q=state:ok").content.decode()
    assert text(answer) == "30"
    assert "Exact count" in answer


def test_live_tail_shows_new_and_newly_completed_calls(acme: Cast) -> None:
    now = datetime.now(UTC)  # NOW is as old as the test run, and the tail starts two minutes ago
    call = make_call(tool_name="running", started_at=now - timedelta(seconds=30))
    send_events(
        acme.tenant,
        [*make_call(tool_name="before", started_at=now - timedelta(minutes=9)), call[0]],
    )
    client = signed_in(acme.viewer)
    page = client.get("/calls/?live=1").content.decode()
    assert listed_tools(page) == ["running", "before"]
    link = re.search(r'hx-get="(/calls/tail[^"]*)"', page)
    assert link is not None
    address = unescape(link[1])
    assert listed_tools(client.get(address).content.decode()) == ["running"]
    # a late call that started before the newest, and the end of a running call
    send_events(
        acme.tenant, [call[1], *make_call(tool_name="late", started_at=now - timedelta(seconds=40))]
    )
    tail = client.get(address).content.decode()
    assert listed_tools(tail) == ["running", "late"]
    assert tail.lstrip().startswith('<tbody id="call-tail"')
    assert "open for" not in text(tail)


def test_busy_tail_advances(acme: Cast) -> None:
    send_events(
        acme.tenant,
        (
            event
            for n in range(120)
            for event in make_call(
                tool_name=f"t{n:03}", started_at=NOW - timedelta(seconds=60 - n / 10)
            )
        ),
    )
    client = signed_in(acme.viewer)
    tail = client.get(
        "/calls/tail", {"since": (NOW - timedelta(minutes=5)).isoformat()}
    ).content.decode()
    assert listed_tools(tail) == [f"t{n:03}" for n in reversed(range(20, 120))]
    assert quote((NOW - timedelta(seconds=58)).isoformat()) in tail
    assert client.get("/calls/tail?since=nonsense").status_code == 200


def test_completions_come_from_stored_calls(recorded: Cast) -> None:
    client = signed_in(recorded.viewer)

    def suggested(query: str) -> list[str]:
        answer = client.get("/calls/complete", {"q": query}).content.decode()
        return [unescape(one) for one in re.findall(r'<option value="([^"]*)"', answer)]

    assert suggested("to") == ["tool:", "tokens:"]
    assert suggested("state:ok tool:pl") == ["state:ok tool:plain"]
    assert suggested('tool:"') == ['tool:"two words"']
    assert suggested("version:") == ["version:4"]
    assert suggested("error:U") == ["error:UPSTREAM"]
    assert suggested("code:R") == ["code:RATE_LIMITED"]
    assert set(suggested("violation:")) == {
        "violation:WRONG_TYPE",
        "violation:ENUM_MISMATCH",
        "violation:*",
    }
    assert "path:$.items[*].name" in suggested("path:$")
    assert suggested("run:") == ["run:*"]


@pytest.mark.parametrize(
    "address",
    [
        "/calls/?q=%00",
        "/calls/?q=tool:a%00b",
        "/calls/?q=" + "x" * 3000,
        "/calls/?q=since:99999w",
        "/calls/?q=until:99999w",
        "/calls/?q=since:9999-12-31",
        "/calls/?q=duration:>999999999999d",
        "/calls/?q=tokens:>999999999999999M",
        "/calls/?q=tool:%ED%A0%80",
        "/calls/?q=trace:%F4%8F%BF%BF*",
        "/calls/?before=nonsense",
        "/calls/?before=2026-13-45T99:00:00Z,x",
        "/calls/?after=0001-01-01T00:00:00Z,00000000-0000-0000-0000-000000000000",
        "/calls/?after=9998-12-31T00:00:00Z,ffffffff-ffff-ffff-ffff-ffffffffffff",
        "/calls/?before=2026-11-20T10:00:00,00000000-0000-0000-0000-000000000000",
        "/calls/tail?since=0001-01-01T00:00:00%2B14:00",
        "/calls/tail?since=9999-12-31T23:59:59-14:00",
        "/calls/count?q=nonsense:1",
        "/calls/complete?q=tool:%00",
        '/calls/complete?q="',
    ],
)
def test_unusual_urls_cause_no_error(recorded: Cast, address: str) -> None:
    assert signed_in(recorded.viewer).get(address).status_code == 200


def test_extreme_numbers_do_not_overflow(acme: Cast) -> None:
    """The smallest and largest valid numbers: sums and differences must not overflow."""
    usage = {"prompt": 2**63 - 1, "completion": 2**63 - 1}
    output = {"status": "ok", "data": {}, "meta": {"took_ms": 1, "token_usage": usage}}
    send_events(
        acme.tenant,
        [
            *make_call(tool_name="many", output=output),
            *make_call(tool_name="patient", timeouts_ms=2**63 - 1, is_open=True),
        ],
    )
    assert get_page(acme, "tokens:>10M") == ["many"]
    assert get_page(acme, "is:running") == ["patient"]
    assert get_page(acme, "is:overdue") == []


@pytest.mark.slow
@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_is_escaped(acme: Cast, hostile: str) -> None:
    error = {"type": hostile, "code": hostile, "message": hostile}
    output = {"status": "error", "error": error, "meta": {"took_ms": 1}}
    answer = send_events(
        acme.tenant,
        make_call(
            trace_id=hostile,
            tool_name=hostile,
            tool_version=hostile,
            run_id=hostile,
            output=output,
            guard=broken("WRONG_TYPE", f"$.{hostile}"),
        ),
    )
    assert answer["rejected"] == []
    client = signed_in(acme.viewer)
    params = {"q": f"tool:{hostile} nothing"}
    for address, data in (
        ("/calls/", {}),
        ("/calls/", params),
        ("/calls/?live=1", {}),
        ("/calls/tail", {}),
        ("/calls/complete", {"q": "tool:"}),
        ("/calls/complete", {"q": "error:"}),
    ):
        page = client.get(address, data).content.decode()
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        if "tbody" in page:
            assert "\u202e" not in page.split("<tbody")[1]


def test_htmx_request_gets_the_list_without_the_frame(recorded: Cast) -> None:
    client = signed_in(recorded.viewer)
    page, part = client.get("/calls/?q=state:ok"), client.get("/calls/?q=state:ok", headers=PARTIAL)
    assert part.content.decode().lstrip().startswith('<div id="call-list"')
    assert listed_tools(page.content.decode()) == listed_tools(part.content.decode())
    assert "HX-Request" in page.headers["Vary"]


def test_page_without_calls_explains_the_first_step(acme: Cast) -> None:
    page = text(signed_in(acme.viewer).get("/calls/").content.decode())
    assert "No tool calls yet" in page


def test_calls_are_not_visible_to_another_tenant(recorded: Cast, globex: Cast) -> None:
    assert get_page(globex, "") == []
    assert get_page(globex, "tool:plain") == []


def test_anonymous_user_is_redirected_to_sign_in(acme: Cast) -> None:
    answer = Client().get("/calls/?q=state:failed")
    assert answer.headers["Location"] == f"/login?next={quote('/calls/?q=state:failed')}"


def test_list_rejects_post(acme: Cast) -> None:
    assert signed_in(acme.viewer).post("/calls/").status_code == 405


def test_full_page_uses_a_fixed_number_of_statements(acme: Cast) -> None:
    send_numbered(acme, 60)
    client = signed_in(acme.viewer)
    with statements(FRAME + 3):  # chosen columns, rows, views
        client.get("/calls/")
    send_events(acme.tenant, make_call(guard=broken("WRONG_TYPE", "$.a")))
    with statements(FRAME + 4):  # and violations
        client.get("/calls/")
    with statements(FRAME + 5):  # newest days, all days, how far was searched
        client.get("/calls/?q=state:failed")


# the API


def read(cast: Cast, key: str | None = None, **query: str) -> Any:
    key = key or create_key(cast.tenant, "reader", [Scope.READ])[1]
    return Client().get("/api/v1/calls", query, headers={"Authorization": f"Bearer {key}"})


def test_api_lists_the_same_calls_in_pages(acme: Cast) -> None:
    send_numbered(acme, 25)
    listed: list[str] = []
    query = {"q": "state:ok", "limit": "10"}
    while True:
        answer = read(acme, **query).json()
        listed += [call["tool_name"] for call in answer["calls"]]
        if answer["next"] is None:
            break
        query["cursor"] = answer["next"]
    assert listed == [f"tool-{n:03}" for n in reversed(range(25))]


def test_api_call_contains_every_member(acme: Cast) -> None:
    call = make_call(
        tool_name="get_weather",
        tool_version="4",
        output=FAILED,
        guard=broken("WRONG_TYPE", "$.unit"),
        run_id="graph_run_1",
    )
    send_events(acme.tenant, call)
    (document,) = read(acme).json()["calls"]
    assert document["invocation_id"] == call[0]["invocation_id"]
    assert document["started_at"].endswith("Z")
    expected = {
        "state": "failed",
        "duration_ms": 20.0,
        "tool_name": "get_weather",
        "tool_version": "4",
        "error_type": "UPSTREAM",
        "error_code": "RATE_LIMITED",
        "upstream_status": 502,
        "violation_count": 1,
        "violation_path": "$.unit",
        "violation_code": "WRONG_TYPE",
        "run_id": "graph_run_1",
        "case_id": None,
    }
    assert {name: document[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("query", "code", "more"),
    [
        ({"q": "tool:a nope:b"}, "query", {"position": 7, "length": 4}),
        ({"q": "tool:\x00"}, "query", {"position": 5, "length": 1}),
        ({"cursor": "nonsense"}, "cursor", {}),
        ({"limit": "0"}, "limit", {}),
        ({"limit": "1001"}, "limit", {}),
        ({"limit": "9" * 5000}, "limit", {}),
        ({"limit": "²"}, "limit", {}),
    ],
)
def test_api_rejects_invalid_parameters(
    acme: Cast, query: dict[str, str], code: str, more: dict[str, int]
) -> None:
    answer = read(acme, **query)
    assert answer.status_code == 422
    document = answer.json()
    assert document["code"] == code
    assert document["message"]
    assert {name: document[name] for name in more} == more


def test_api_requires_the_read_scope(acme: Cast) -> None:
    send_events(acme.tenant, make_call(), key=make_ingest_key(acme.tenant))
    _, ingest_only = create_key(acme.tenant, "sender", [Scope.INGEST])
    assert read(acme, ingest_only).status_code == 403


@pytest.mark.slow
@pytest.mark.parametrize("query", ["NOT state:k", "state:ok OR", "(state:ok", "bad:", "state:k"])
def test_invalid_query_matches_no_calls(recorded: Cast, query: str) -> None:
    browser = signed_in(recorded.admin)
    params = urlencode({"q": query})
    assert listed_tools(browser.get("/calls/").content.decode())
    for address in (f"/calls/?{params}", f"/calls/?{params}&live=1", f"/calls/open?{params}"):
        page = browser.get(address).content.decode()
        assert "Invalid query. Nothing was searched." in text(page), address
        assert listed_tools(page) == [], address
        assert query in unescape(page)
        assert "No open calls" not in text(page), address
    assert listed_tools(browser.get(f"/calls/tail?{params}").content.decode()) == []
    count = browser.get(f"/calls/count?{params}").content.decode()
    assert text(count) == "Invalid query. Nothing was searched."
