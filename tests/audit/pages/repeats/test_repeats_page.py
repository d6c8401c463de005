"""Repeats: identical calls, their results, and polling tools."""

import csv
import io
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from itertools import batched
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from audit import sql
from audit.log.payload import unpack
from audit.models import Batch
from audit.queries import polling
from audit.queries import repeats as repeats_module
from audit.queries.among import Among
from audit.queries.call_list import count_calls
from audit.queries.call_query import Reader, parse
from audit.queries.call_walk import Budget
from audit.queries.polling import add_polling_tool, polling_tools
from audit.queries.repeats import Repeats, compare_results, find_repeats
from audit.queries.repetition import LOOP
from audit.queries.time_range import TimeRange
from tenants.models import Action
from tenants.scope import tenant_scope
from tests.support.factories import (
    Cast,
    make_call,
    make_cast,
    make_ingest_key,
    send_events,
)
from tests.support.pages import (
    FRAME,
    HOSTILE,
    PARTIAL,
    signed_in,
    statements,
    text,
)
from tests.support.query_plans import days_read

NOW = timezone.now()
type Event = dict[str, Any]


def one_call(rng: random.Random, at: datetime) -> list[Event]:
    tool = rng.choice(["search", "roll_dice", "poll_job"])
    number = rng.randrange(8)
    usage = {"prompt": rng.randrange(99), "completion": rng.randrange(9)}
    data = {"n": number} if tool != "roll_dice" else {"n": rng.random()}
    output: Event = {"status": "ok", "data": data, "meta": {"took_ms": rng.randrange(9)}}
    if rng.random() < 0.1:
        output = {"status": "error", "error": {"type": "FATAL", "message": "no"}, "meta": {}}
        output["meta"] = {"took_ms": 1}
    output["meta"]["token_usage"] = usage
    return make_call(
        started_at=at,
        duration_ms=rng.lognormvariate(4, 1),
        tool_name=tool,
        call_id=f"{tool}-{number}" if rng.random() < 0.7 else f"{rng.getrandbits(60):x}",
        trace_id=f"t{rng.randrange(12)}",
        is_open=rng.random() < 0.05,
        output=output,
    )


@pytest.fixture(scope="module")
def cast() -> Cast:
    """300 calls of two days, in any order, some sent twice."""
    rng = random.Random(3)
    created = make_cast("repeats")
    key = make_ingest_key(created.tenant)
    events = [
        event
        for _ in range(300)
        for event in one_call(rng, NOW - timedelta(seconds=rng.uniform(1, 2 * 86_400)))
    ]
    events += rng.sample(events, 30)
    rng.shuffle(events)
    for some in batched(events, 200):
        assert send_events(created.tenant, some, key=key)["rejected"] == []
    return created


def recorded_calls(cast: Cast) -> list[Event]:
    """Every call of the log as its start event and its end event, if there is one."""
    starts: dict[str, Event] = {}
    ends: dict[str, Event] = {}
    with tenant_scope(cast.tenant.id):
        for batch in Batch.objects.for_tenant(cast.tenant.id):
            assert batch.payload is not None
            for _, raw in unpack(bytes(batch.payload)):
                event = json.loads(raw)
                kind = ends if event["type"] == "toolExecutionEnd" else starts
                kind[event["invocation_id"]] = event
    return [
        {**start, "at": datetime.fromisoformat(start["started_at"]), "end": ends.get(pk)}
        for pk, start in starts.items()
    ]


def wasted(own: list[Event]) -> tuple[int, int]:
    """Microseconds and tokens of all but the first."""
    rest = [one["end"] for one in sorted(own, key=lambda one: one["at"])[1:] if one["end"]]
    return (
        sum(round(end["duration_ms"] * 1000) for end in rest),
        sum(sum(end["output"]["meta"]["token_usage"].values()) for end in rest),
    )


def assert_equal(report: Repeats, calls: list[Event]) -> None:
    def groups(key: Callable[[Event], Any]) -> dict[Any, list[Event]]:
        by_key: dict[Any, list[Event]] = {}
        for call in calls:
            by_key.setdefault(key(call), []).append(call)
        return by_key

    looping = {
        key: own
        for key, own in groups(lambda c: (c["tool_name"], c["call_id"], c["trace_id"])).items()
        if len(own) >= LOOP
    }
    assert looping
    assert (report.loop_count, report.loop_calls) == (
        len(looping),
        sum(map(len, looping.values())),
    )
    assert {
        (one.tool_name, one.call_id, one.trace_id): (one.calls, one.wasted_tokens)
        for one in report.loops
    } == {key: (len(own), wasted(own)[1]) for key, own in looping.items()}
    for one in report.loops:
        expected_us = wasted(looping[one.tool_name, one.call_id, one.trace_id])[0]
        assert abs(one.wasted_us - expected_us) <= one.calls
    again = {
        key: own
        for key, own in groups(lambda c: (c["tool_name"], c["call_id"])).items()
        if len(own) > 1
    }
    assert (report.repeated, report.repeated_calls) == (len(again), sum(map(len, again.values())))
    assert {
        (one.tool_name, one.call_id): (
            one.calls,
            one.traces,
            one.failed,
            one.wasted_tokens,
            one.first_at,
            one.last_at,
        )
        for one in report.repeats
    } == {
        key: (
            len(own),
            len({one["trace_id"] for one in own}),
            sum(bool(one["end"]) and one["end"]["output"]["status"] == "error" for one in own),
            wasted(own)[1],
            min(one["at"] for one in own),
            max(one["at"] for one in own),
        )
        for key, own in again.items()
    }


@pytest.mark.parametrize("hours", [49.0, 24.0, 30.3])
@pytest.mark.parametrize("left_out", [[], ["poll_job"]])
def test_repeats_equal_a_recount_of_the_log(cast: Cast, hours: float, left_out: list[str]) -> None:
    of = TimeRange(NOW - timedelta(hours=hours), NOW, UTC)
    with tenant_scope(cast.tenant.id):
        report = find_repeats(of, None, left_out)
    assert report.is_all
    calls = [
        call
        for call in recorded_calls(cast)
        if of.start <= call["at"] < of.end and call["tool_name"] not in left_out
    ]
    assert_equal(report, calls)


def test_repeats_of_a_query_equal_a_recount_of_its_calls(cast: Cast) -> None:
    of = TimeRange(NOW - timedelta(hours=49), NOW, UTC)
    query = parse("tool:roll_dice OR trace:t1 OR trace:t2", Reader())
    with tenant_scope(cast.tenant.id):
        report = find_repeats(of, None, [], among=Among.those_of(query.wanted, NOW))
    among = [
        call
        for call in recorded_calls(cast)
        if call["at"] >= of.start
        and (call["tool_name"] == "roll_dice" or call["trace_id"] in {"t1", "t2"})
    ]
    assert len(among) < len(recorded_calls(cast))
    assert_equal(report, among)


def test_loops_are_the_same_with_too_many_candidates_for_the_index(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = TimeRange(NOW - timedelta(hours=49), NOW, UTC)
    with tenant_scope(cast.tenant.id):
        by_index = find_repeats(of, None, [])
        monkeypatch.setattr(repeats_module, "CANDIDATES", 2)
        report = find_repeats(of, None, [])
    assert report.loops == by_index.loops
    assert (report.loop_count, report.loop_calls) == (by_index.loop_count, by_index.loop_calls)
    assert (report.repeated, len(report.repeats)) == (by_index.repeated, 2)


def test_only_the_newest_whole_hours_are_examined_over_the_limit(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeats_module, "CALLS", 120)
    of = TimeRange(NOW - timedelta(hours=49), NOW, UTC)
    with tenant_scope(cast.tenant.id):
        report = find_repeats(of, None, [])
    assert not report.is_all
    assert (report.since.minute, report.since.second) == (0, 0)
    calls = [call for call in recorded_calls(cast) if report.since <= call["at"] < of.end]
    assert 60 < len(calls) <= 120
    assert_equal(report, calls)
    page = signed_in(cast.viewer).get("/repeats/?range=7d").content.decode()
    assert "too many calls to analyze" in page


def test_results_are_classified_as_same_or_different_by_tool(cast: Cast) -> None:
    of = TimeRange(NOW - timedelta(hours=49), NOW, UTC)
    with tenant_scope(cast.tenant.id):
        report = find_repeats(of, None, [])
        compared = compare_results(of, report, None, [])
    assert len(compared) > 10
    verdicts = Counter((one.repeat.tool_name, one.verdict) for one in compared)
    assert {name for name, verdict in verdicts if verdict == "different"} == {"roll_dice"}
    assert {name for name, verdict in verdicts if verdict == "same"} == {"search", "poll_job"}
    page = text(signed_in(cast.viewer).get("/repeats/results?range=7d").content.decode())
    assert "roll_dice" in page.partition("Non-deterministic")[2]
    assert "search" in page.partition("Non-deterministic")[0]


def test_arguments_require_payload_access_and_views_are_logged(acme: Cast) -> None:
    """The newest call's arguments, shortened to a line; logged once a minute, not for each view."""
    args = ({"city": "Lagos"}, {"city": "<b>Lima</b>", "note": "x" * 400})
    events = [
        event
        for n, one in enumerate(args)
        for ago in (3, 2, 1)
        for event in make_call(
            started_at=NOW - timedelta(minutes=ago), args=one, call_id=f"{n:064x}", trace_id=f"t{n}"
        )
    ]
    send_events(acme.tenant, events, key=make_ingest_key(acme.tenant))
    for address in ("/repeats/?range=24h", "/repeats/results?range=24h"):
        shown = text(signed_in(acme.editor).get(address).content.decode())
        assert '{"city":"Lagos"}' in shown.replace(": ", ":")
        assert "<b>Lima</b>" in shown
        assert re.search("x{50,130}…", shown)
        for user in (acme.viewer, acme.auditor):
            page = signed_in(user).get(address).content.decode()
            assert "Lagos" not in page
            assert "0" * 10 in page
    with tenant_scope(acme.tenant.id):
        views = Action.objects.filter(tenant=acme.tenant, verb="repeat.view")
        assert {one.user_name for one in views} == {acme.editor.username}
        assert len(views) <= 2  # a minute may have ended


def test_links_lead_to_the_counted_calls(cast: Cast) -> None:
    page = signed_in(cast.viewer).get("/repeats/?range=7d").content.decode()
    links = re.findall(r'href="(/calls/\?q=[^"]*)">([\d,]+)<', page)
    assert len(links) > 20
    with tenant_scope(cast.tenant.id):
        for link, count in links:
            parsed = parse(parse_qs(urlsplit(unescape(link)).query)["q"][0])
            assert parsed.problems == ()
            counted = count_calls(parsed.wanted, now=timezone.now(), budget=Budget(seconds=30))
            assert (counted.count, counted.until) == (int(count), None)


def test_editors_manage_polling_tools_and_changes_are_logged(acme: Cast) -> None:
    looping = [
        make_call(tool_name="poll_job", started_at=NOW - timedelta(seconds=n + 1)) for n in range(4)
    ]
    send_events(acme.tenant, [event for call in looping for event in call])
    viewer, editor = signed_in(acme.viewer), signed_in(acme.editor)
    assert "poll_job" in text(viewer.get("/repeats/").content.decode())
    assert viewer.post("/repeats/polling", {"tool": "poll_job"}).status_code == 403
    answer = editor.post("/repeats/polling", {"tool": "poll_job", "range": "7d"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/repeats/?range=7d")
    page = text(viewer.get("/repeats/").content.decode())
    assert "No repeated calls" in page
    assert "poll_job" in page
    assert "Include" not in page
    assert editor.post("/repeats/polling", {"tool": "poll_job"}).status_code == 302
    with tenant_scope(acme.tenant.id):
        assert polling_tools() == ["poll_job"]
    assert editor.post("/repeats/polling/remove", {"tool": "poll_job"}).status_code == 302
    assert editor.post("/repeats/polling/remove", {"tool": "poll_job"}).status_code == 404
    assert "Loops" in text(viewer.get("/repeats/").content.decode())
    with tenant_scope(acme.tenant.id):
        verbs = list(Action.objects.filter(tenant=acme.tenant).values_list("verb", flat=True))
    assert {"polling.add", "polling.remove"} <= set(verbs)


@pytest.mark.parametrize("name", ["", "x" * 513, "nul\x00"])
def test_invalid_polling_tool_name_is_rejected(acme: Cast, name: str) -> None:
    answer = signed_in(acme.editor).post("/repeats/polling", {"tool": name}, follow=True)
    assert "Nothing was changed" in text(answer.content.decode())
    with tenant_scope(acme.tenant.id):
        assert polling_tools() == []


def test_number_of_polling_tools_is_limited(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "MAX_TOOLS", 1)
    with tenant_scope(acme.tenant.id):
        add_polling_tool("one")
    answer = signed_in(acme.editor).post("/repeats/polling", {"tool": "two"}, follow=True)
    assert "Nothing was changed" in text(answer.content.decode())


def test_export_and_api_match_the_page(cast: Cast) -> None:
    of = {"from": (NOW - timedelta(hours=40)).isoformat(), "to": NOW.isoformat()}
    client = signed_in(cast.viewer)
    lines = [
        json.loads(one) for one in client.get("/repeats/export.ndjson", of).content.splitlines()
    ]
    file = client.get("/repeats/export.csv", of).content.decode()
    rows = list(csv.DictReader(io.StringIO(file)))
    key = {"Authorization": f"Bearer {make_ingest_key(cast.tenant)}"}
    document = Client(headers=key).get("/api/v1/repeats", of).json()
    assert document["listed"] == lines[:-1]
    assert lines[-1] == {"count": len(lines) - 1}
    assert document["loops"] == sum(one["kind"] == "loop" for one in lines[:-1])
    assert document["repeated"] == sum(one["kind"] == "repeat" for one in lines[:-1])
    assert [row["call_id"] for row in rows[:-1]] == [one["call_id"] for one in lines[:-1]]
    assert Client(headers=key).get("/api/v1/repeats?range=2y").status_code == 422
    assert client.get("/repeats/export.csv?range=2y").status_code == 400
    assert client.get("/repeats/export.xml").status_code == 404


def test_csv_cells_are_not_formulas(acme: Cast) -> None:
    calls = [make_call(tool_name="=1+1", call_id="@SUM(A1)", trace_id="+1") for _ in range(3)]
    send_events(acme.tenant, [event for call in calls for event in call])
    body = signed_in(acme.viewer).get("/repeats/export.csv").content.decode()
    assert "'=1+1,'@SUM(A1),'+1," in body


def test_empty_range_is_explained(acme: Cast) -> None:
    client = signed_in(acme.viewer)
    assert "No repeated calls" in text(client.get("/repeats/").content.decode())
    assert "Show all calls" in text(client.get("/repeats/?tool=none").content.decode())
    assert "None of the most frequent" in text(client.get("/repeats/results").content.decode())


def test_page_uses_few_statements_and_partials_omit_the_frame(cast: Cast) -> None:
    client = signed_in(cast.viewer)
    client.get("/repeats/")
    with statements(FRAME + 6):
        whole = client.get("/repeats/?range=7d")
    assert b"<html" in whole.content
    for address in ("/repeats/?range=7d", "/repeats/results?range=7d"):
        assert b"<html" not in client.get(address, headers=PARTIAL).content


@pytest.mark.parametrize("value", [*HOSTILE, "x" * 5000, "\ud800"])
def test_arbitrary_parameters_are_answered(acme: Cast, value: str) -> None:
    client = signed_in(acme.editor)
    value = value.encode(errors="replace").decode()
    for name in ("tool", "range", "from", "pause"):
        for address in ("/repeats/", "/repeats/results"):
            page = client.get(address, {name: value})
            assert page.status_code == 200
            assert b"<script>alert" not in page.content
            assert b"<img src=x" not in page.content


def test_queries_read_only_the_days_of_the_range(cast: Cast) -> None:
    parameters = {
        "tenant_id": cast.tenant.id,
        "tool": None,
        "polling": ["poll_job"],
        "start": NOW - timedelta(hours=20),
        "end": NOW,
        "first_day": (NOW - timedelta(hours=20)).date(),
        "last_day": NOW.date(),
        "repeat_limit": 9,
        "loop_limit": 9,
        "loop_calls": 3,
        "call_ids": ["a", "b"],
        "call_id": "a",
        "result_limit": 5,
    }
    days = {(NOW - timedelta(hours=20)).date(), NOW.date()}
    for name in (
        "calls_by_hour",
        "repeated_calls",
        "looping_calls",
        "repeats_in_traces",
        "newest_results",
    ):
        with tenant_scope(cast.tenant.id), connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN {sql.QUERIES[name]}", parameters)
            plan = "\n".join(row[0] for row in cursor.fetchall())
        assert days_read(plan) | days_read(plan, "rollup") <= days, name
        assert "Seq Scan" not in plan


def send_loops_of_two_agents(cast: Cast) -> None:
    """The same call in one trace: four times by one agent, three times by another."""
    for agent, count in (("lead", 4), ("<b>", 3)):
        for n in range(count):
            output = {"status": "ok", "data": agent, "meta": {"took_ms": 1}}
            at = NOW - timedelta(minutes=n + 1)
            members: dict[str, Any] = {"call_id": "same", "trace_id": "t", "started_at": at}
            members |= {"output": output, "args": {"by": agent}}
            context = {"agent": agent, "environment": "live"}
            event, *end = make_call(tool_name="poll", **members)
            send_events(cast.tenant, [event | {"context": context}, *end])


def test_page_results_and_export_are_of_the_query(acme: Cast) -> None:
    send_loops_of_two_agents(acme)
    client = signed_in(acme.editor)

    def loops(query: str) -> list[tuple[str, int]]:
        page = client.get("/repeats/", {"range": "1h", "q": query})
        return [(row.one.tool_name, row.one.calls) for row in page.context["loops"]]

    assert loops("") == [("poll", 7)]
    assert loops("agent:lead environment:live") == [("poll", 4)]
    assert loops('agent:"<b>" OR agent:none') == [("poll", 3)]
    before_the_last = f"{NOW - timedelta(seconds=90):%Y-%m-%dT%H:%M:%SZ}"
    assert loops(f"agent:lead until:{before_the_last}") == [("poll", 3)]
    page = client.get("/repeats/", {"range": "1h", "q": 'tool:po* agent:"<b>"'})
    (row,) = page.context["loops"]
    assert "<b>" not in page.content.decode()
    with tenant_scope(acme.tenant.id):
        wanted = parse(row.query).wanted
        assert count_calls(wanted, now=timezone.now()).count == 3
    assert "lead" not in row.arguments
    compared = client.get("/repeats/results", {"range": "1h", "q": "agent:lead"})
    assert [one.one.verdict for one in compared.context["same"]] == ["same"]
    both = client.get("/repeats/results", {"range": "1h"})
    assert [one.one.verdict for one in both.context["different"]] == ["different"]
    body = client.get("/repeats/export.ndjson", {"range": "1h", "q": "agent:lead"}).content
    exported = [json.loads(line) for line in body.splitlines()]
    assert {one["calls"] for one in exported[:-1]} == {4}
    nothing = client.get("/repeats/", {"q": "agent:nobody"}).content.decode()
    assert "These calls have no repeats" in text(nothing)


@pytest.mark.parametrize("query", ["agent:", "nonsense:1", "args.city:London", "since:2d until:3d"])
def test_invalid_query_finds_no_repeats_and_says_why(acme: Cast, query: str) -> None:
    send_loops_of_two_agents(acme)
    client = signed_in(acme.editor)
    page = client.get("/repeats/", {"range": "1h", "q": query})
    assert "loops" not in page.context
    assert "Nothing was searched." in text(page.content.decode())
    for address in ("/repeats/results", "/repeats/export.csv"):
        assert client.get(address, {"range": "1h", "q": query}).status_code == 400
