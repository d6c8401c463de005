"""Durations and tokens: figures equal those of the log; links lead to the calls they count."""

import csv
import io
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from html import unescape
from itertools import batched
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection, connections
from django.test import Client
from django.utils import timezone

from audit import sql
from audit.log.payload import unpack
from audit.models import Batch
from audit.pages.latency.page import charts, order_keys, version_rows
from audit.queries import newest as newest_module
from audit.queries.call_list import call_page, count_calls
from audit.queries.call_query import parse
from audit.queries.call_walk import Budget
from audit.queries.hour_cells import QUARTER
from audit.queries.latency import Latency, Spent, ToolFilter, edge_parameters, latency
from audit.queries.newest import newest
from audit.queries.over_time import FORMULA, slot_parameters
from audit.queries.time_range import LENGTHS, TimeRange
from config.http.ordering import Order, in_order
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tests.support.expected_calls import ExpectedCall, assert_percentiles
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
from tests.support.time_zones import ZONES

NOW = timezone.now()
SHARES = (0.5, 0.9, 0.95, 0.99)
type Event = dict[str, Any]


@dataclass
class CompletedCall(ExpectedCall):
    """A completed call as read from the log."""

    end: Event = field(default_factory=dict)

    @property
    def meta(self) -> Event:
        metadata: Event = self.end["output"]["meta"]
        return metadata

    @property
    def tokens(self) -> int:
        return sum(self.meta["token_usage"].values())


@dataclass
class Log:
    """A tenant and its completed calls, read back from what is stored."""

    cast: Cast
    calls: list[CompletedCall]

    @property
    def tenant(self) -> Tenant:
        return self.cast.tenant

    def within(self, of: TimeRange) -> list[CompletedCall]:
        return [call for call in self.calls if of.start <= call.at < of.end]


def one_call(rng: random.Random, at: datetime, number: int) -> list[Event]:
    usage = {"prompt": rng.randrange(900), "completion": rng.randrange(90)}
    meta: Event = {"took_ms": 1, "cache_hit": rng.random() < 0.3, "token_usage": usage}
    output: Event = {"status": "ok", "data": {}, "meta": meta}
    if rng.random() < 0.25:
        kind = rng.choice(["UPSTREAM", "TIMEOUT", "RATE_LIMIT"])
        error: Event = {"type": kind, "message": "no"}
        if kind != "TIMEOUT":
            error |= {"upstream_status": rng.choice([429, 500, 503])}
        output = {"status": "error", "error": error, "meta": meta}
    if rng.random() < 0.5:
        meta["routing"] = {"profile": rng.choice(["fast", "deep"]), "space": "laws"}
        meta["source_counts"] = {"laws": rng.randrange(5), "pages": 1}
    return make_call(
        started_at=at,
        duration_ms=rng.lognormvariate(4, 1.5),
        tool_name=rng.choice(["search", "fetch", "sum up"]),
        tool_version=rng.choice(["1", "2", ""]) or None,
        is_open=rng.random() < 0.05,
        output=output,
        trace_id=f"t{number // 10}",
        run_id=f"r{number // 40}" if number % 3 else None,
        timeouts_ms=rng.choice([None, 50, 200]),
        budget_tokens=rng.choice([None, 500]),
    )


def instants(rng: random.Random) -> Iterator[datetime]:
    """Instants around the edges of hours, and random ones."""
    hour = NOW.replace(minute=0, second=0, microsecond=0)
    for n in range(-30, 1):
        for offset_us in (-1, 0, 15 * 60_000_000, 45 * 60_000_000 - 1):
            yield hour + n * timedelta(hours=1) + timedelta(microseconds=offset_us)
    for _ in range(400):
        yield NOW - timedelta(seconds=rng.uniform(0, 34 * 86_400) ** rng.choice([0.6, 1]))


@pytest.fixture(scope="module")
def log() -> Log:
    """Some 500 calls of a month, in any order, some twice."""
    rng = random.Random(11)
    cast = make_cast("latency")
    key = make_ingest_key(cast.tenant)
    moments = [at for at in instants(rng) if at < NOW]
    events = [
        {name: value for name, value in event.items() if value is not None}
        for number, at in enumerate(moments)
        for event in one_call(rng, at, number)
    ]
    events += rng.sample(events, 40)
    rng.shuffle(events)
    for some in batched(events, 300):
        assert send_events(cast.tenant, some, key=key)["rejected"] == []
    ends: dict[str, Event] = {}
    with tenant_scope(cast.tenant.id):
        for batch in Batch.objects.for_tenant(cast.tenant.id):
            assert batch.payload is not None
            for _, raw in unpack(bytes(batch.payload)):
                event = json.loads(raw)
                if event["type"] == "toolExecutionEnd":
                    ends[event["invocation_id"]] = event
    end_metadata = [
        CompletedCall(
            tool=end["tool_name"],
            version=end.get("tool_version", ""),
            at=datetime.fromisoformat(end["started_at"]),
            end=end,
        )
        for end in ends.values()
    ]
    return Log(cast, end_metadata)


def assert_spent(spent: Spent, calls: Sequence[CompletedCall]) -> None:
    usage = [call.meta["token_usage"] for call in calls]
    assert (
        spent.calls,
        spent.failed,
        spent.prompt_tokens,
        spent.completion_tokens,
        spent.cache_hits,
        sum(spent.latency),
    ) == (
        len(calls),
        sum(call.end["output"]["status"] == "error" for call in calls),
        sum(one["prompt"] for one in usage),
        sum(one["completion"] for one in usage),
        sum(call.meta["cache_hit"] for call in calls),
        len(calls),
    )
    assert_percentiles(spent.duration_ms, list(calls))


def assert_equal(report: Latency, log: Log, matches: Callable[[CompletedCall], bool]) -> None:
    calls = [call for call in log.within(report.of) if matches(call)]
    assert_spent(report.total, calls)
    assert_spent(report.previous, [one for one in log.within(report.of.previous) if matches(one)])
    for part, (start, end) in zip(report.parts, report.of.parts, strict=True):
        assert_spent(part, [call for call in calls if start <= call.at < end])
    by_version: dict[tuple[str, str], list[CompletedCall]] = {}
    errors: dict[tuple[str, str], int] = {}
    for call in calls:
        by_version.setdefault((call.tool, call.version), []).append(call)
        if error := call.end["output"].get("error"):
            errors[call.tool, error["type"]] = errors.get((call.tool, error["type"]), 0) + 1
    assert report.versions.keys() == by_version.keys()
    for key, own in by_version.items():
        assert_spent(report.versions[key], own)
    assert report.errors == errors


@pytest.mark.generated(12)
@pytest.mark.parametrize("zone", ZONES, ids=lambda zone: str(zone.tzname(NOW)))
@pytest.mark.parametrize("name", LENGTHS)
def test_figures_equal_a_recount_of_the_log(log: Log, name: str, zone: tzinfo) -> None:
    of = TimeRange(NOW - LENGTHS[name][1], NOW, zone, name)
    with tenant_scope(log.tenant.id):
        assert_equal(latency(of, ToolFilter()), log, lambda call: True)


@pytest.mark.parametrize("seed", range(8))
def test_figures_for_a_tool_and_version_equal_a_recount_of_the_log(log: Log, seed: int) -> None:
    rng = random.Random(seed)
    start = NOW - timedelta(seconds=rng.uniform(1, 33 * 86_400))
    length = timedelta(seconds=rng.uniform(1, 40 * 86_400) ** rng.choice([0.5, 1]))
    of = TimeRange(start, start + length, rng.choice(ZONES))
    tool, version = rng.choice(["search", "fetch"]), rng.choice(["", "1", None])
    with tenant_scope(log.tenant.id):
        report = latency(of, ToolFilter(tool, version))
    assert_equal(report, log, lambda call: call.tool == tool and version in {None, call.version})


def listed(query: str) -> int:
    """How many calls the list matches; the query must be valid."""
    parsed = parse(query)
    assert parsed.problems == (), query
    counted = count_calls(parsed.wanted, now=NOW, budget=Budget(seconds=30))
    assert counted.until is None
    return counted.count


def test_every_chart_mark_links_to_the_calls_counted(log: Log) -> None:
    of = TimeRange(NOW - timedelta(hours=7, minutes=10), NOW, ZONES[2])
    with tenant_scope(log.tenant.id):
        for wanted in (ToolFilter(), ToolFilter("sum up", "1")):
            report = latency(of, wanted)
            assert report.total.calls
            drawn = charts(report)
            for chart in (drawn["over_time"], drawn["histogram"]):
                total = 0.0
                for n, slot in enumerate(chart.slots):
                    for one in chart.series:
                        if not one.role and (value := one.values[n]):
                            # The tool is in the query of the series, and of a histogram's slot.
                            assert listed(f"{slot.query} {one.query} ".strip()) >= value
                            total += value
                assert total == report.total.calls
            for row in version_rows(report):
                if row.version:  # no query matches calls without one
                    opened = listed(f"{row.query} state:open")
                    assert listed(row.query) == row.spent.calls + opened


def test_figures_of_newest_calls_equal_a_recount_of_the_log(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = TimeRange(NOW - timedelta(days=20), NOW, UTC)
    calls = sorted(log.within(of), key=lambda call: call.at, reverse=True)
    for most in (20_000, 100):
        monkeypatch.setattr(newest_module, "CALLS", most)
        monkeypatch.setattr(newest_module, "ENDS", most)
        newest_calls = calls[:most]
        with tenant_scope(log.tenant.id):
            report = newest(of, ToolFilter())
        assert (report.calls, report.since) == (len(newest_calls), newest_calls[-1].at)
        assert report.is_all == (most > len(calls))
        for tool, spent in report.tools.items():
            own = [call for call in newest_calls if call.tool == tool]
            timed = [
                one.end["duration_ms"] / one.end["timeouts_ms"]
                for one in own
                if "timeouts_ms" in one.end
            ]
            assert spent.timeout.bands == in_bands(timed)
            assert (spent.timeout.low, spent.timeout.high) == (50, 200)
            budgeted = [one.tokens / 500 for one in own if "budget_tokens" in one.end]
            assert spent.budget.bands == in_bands(budgeted)
            assert spent.budget.most == max(one.tokens for one in own if "budget_tokens" in one.end)
            answered: dict[tuple[str, int], int] = {}
            for one in own:
                error = one.end["output"].get("error", {})
                if "upstream_status" in error:
                    key = error["type"], error["upstream_status"]
                    answered[key] = answered.get(key, 0) + 1
            assert spent.upstream == answered
        end_metadata = report.end_metadata
        assert (end_metadata.calls, end_metadata.erased) == (len(newest_calls), 0)
        routed = [one for one in newest_calls if "routing" in one.meta]
        assert sum(one.calls for one in end_metadata.routes.values()) == len(routed)
        for route, way in end_metadata.routes.items():
            own = [
                call
                for call in routed
                if call.tool == route.tool_name and call.meta["routing"]["profile"] == route.profile
            ]
            assert (way.calls, way.tokens) == (len(own), sum(call.tokens for call in own))
        assert sum(one.results for one in end_metadata.sources.values()) == sum(
            sum(call.meta["source_counts"].values()) for call in routed
        )


def in_bands(used: list[float]) -> list[int]:
    """Shares of a timeout, counted by `newest.BANDS`."""
    return [
        sum(low < share <= high or (not low and share == 0) for share in used)
        for low, high in ((0, 0.5), (0.5, 0.9), (0.9, 1), (1, 10**9))
    ]


def test_runs_come_from_traces_started_in_the_range(acme: Cast) -> None:
    meta = {"token_usage": {"prompt": 7, "completion": 2}, "took_ms": 1}
    usage = {"status": "ok", "data": {}, "meta": meta}
    events = []
    for n in range(30):
        at = NOW - timedelta(minutes=n + 1)
        run: Event = {"run_id": f"r{n % 4}"} if n % 5 else {}
        events += make_call(trace_id=f"t{n}", started_at=at, output=usage, **run)
    send_events(acme.tenant, events)
    of = TimeRange(NOW - timedelta(minutes=20, seconds=30), NOW, UTC)
    with tenant_scope(acme.tenant.id):
        report = newest(of, ToolFilter())
        assert {one.run_id: (one.calls, one.prompt_tokens, one.tokens) for one in report.runs} == {
            f"r{run}": (count, 7 * count, 9 * count)
            for run in range(4)
            if (count := sum(n % 4 == run and n % 5 > 0 for n in range(20)))
        }
        assert (report.traces, report.traces_since) == (20, NOW - timedelta(minutes=20))


def test_compliance_with_retry_after_is_reported(acme: Cast) -> None:
    def failing(after_s: float, attempt: int, **members: Any) -> list[Event]:
        error = {"type": "RATE_LIMIT", "message": "no", "retry_after_ms": 2000, "attempt": attempt}
        return make_call(
            started_at=NOW - timedelta(minutes=9) + timedelta(seconds=after_s),
            duration_ms=100,
            output={"status": "error", "error": error, "meta": {"took_ms": 1}},
            **members,
        )

    events = [
        *failing(0, 1, trace_id="good", call_id="a"),
        *failing(2.1, 2, trace_id="good", call_id="b"),
        *failing(3, 3, trace_id="good", call_id="c"),
        *failing(0, 1, trace_id="other", call_id="a"),
    ]
    send_events(acme.tenant, events)
    of = TimeRange(NOW - timedelta(hours=1), NOW, UTC)
    with tenant_scope(acme.tenant.id):
        report = newest(of, ToolFilter())
        assert listed("is:retry") == 2
    verdicts = {(one.refusal.trace_id, one.refusal.call_id): one.verdict for one in report.waits}
    assert verdicts == {
        ("good", "a"): "waited",
        ("good", "b"): "early",
        ("good", "c"): "none",
        ("other", "a"): "none",
    }
    assert report.tools["get_weather"].retries == 2
    page = text(signed_in(acme.viewer).get("/latency/newest").content.decode())
    assert "Retried too early 1" in page
    assert "retried after 800 ms (requested 2.00 s)" in page


def test_exceeded_limits_and_upstream_status_can_be_queried(acme: Cast) -> None:
    tokens = {"token_usage": {"prompt": 9, "completion": 2}, "took_ms": 1}
    failed = {"type": "UPSTREAM", "message": "no", "upstream_status": 503}
    output = {"status": "error", "error": failed, "meta": tokens}
    send_events(
        acme.tenant,
        [
            *make_call(call_id="late", duration_ms=20.001, timeouts_ms=20),
            *make_call(call_id="in-time", duration_ms=20, timeouts_ms=20),
            *make_call(call_id="costly", output=output, budget_tokens=10),
            *make_call(call_id="cheap", output=output, budget_tokens=11),
            *make_call(
                call_id="largest", output=output, budget_tokens=2**63 - 1, timeouts_ms=2**63 - 1
            ),
        ],
    )
    matches: dict[str, list[str]] = {}
    with tenant_scope(acme.tenant.id):
        for query in ("is:over-time", "is:over-budget", "upstream:503", "upstream:>=504"):
            assert parse(query).problems == ()
            now = timezone.now() + timedelta(minutes=1)
            page = call_page(parse(query).wanted, now=now)
            matches[query] = sorted(call.call_id for call in page.calls)
        spent = newest(TimeRange(NOW - timedelta(hours=1), now, UTC), ToolFilter())
    assert matches == {
        "is:over-time": ["late"],
        "is:over-budget": ["costly"],
        "upstream:503": ["cheap", "costly", "largest"],
        "upstream:>=504": [],
    }
    assert spent.tools["get_weather"].timeout.bands == [1, 0, 1, 1]
    assert spent.tools["get_weather"].budget.bands == [1, 0, 1, 1]


def test_pages_use_few_statements_and_partials_omit_the_frame(log: Log) -> None:
    client = signed_in(log.cast.viewer)
    client.get("/latency/")
    with statements(FRAME + 7):
        whole = client.get("/latency/", {"range": "30d"})
    with statements(FRAME + 5):
        more = client.get("/latency/newest", {"range": "30d"})
    assert b"Per-call details" in more.content
    part = client.get("/latency/", {"range": "30d"}, headers=PARTIAL)
    assert b"<html" in whole.content
    assert b"<html" not in part.content
    assert b"<html" not in client.get("/latency/newest", headers=PARTIAL).content


def test_page_links_are_valid_queries(log: Log) -> None:
    client = signed_in(log.cast.viewer)
    params = {"range": "7d", "tool": "sum up", "version": "1"}
    for address, given in (
        ("/latency/", params),
        ("/latency/newest", params),
        ("/latency/", {}),
        ("/latency/newest", {"range": "30d"}),
    ):
        page = client.get(address, given).content.decode()
        queries = [
            parse_qs(urlsplit(unescape(link)).query)["q"][0]
            for link in re.findall(r'href="(/calls/\?q=[^"]*)"', page)
        ]
        assert len(queries) > 10
        assert [problem for query in queries for problem in parse(query).problems] == []


@pytest.mark.parametrize("order", ["p50", "p99", "calls", "tokens", "cache", "nonsense"])
def test_table_is_sorted_by_the_requested_column(log: Log, order: str) -> None:
    of = TimeRange(NOW - timedelta(days=30), NOW, UTC)
    client = signed_in(log.cast.viewer)
    page = client.get("/latency/", {"range": "30d", "sort": order}).content.decode()
    assert page.count('aria-sort="descending"') == 1
    shown = "p95" if order == "nonsense" else order
    with tenant_scope(log.tenant.id):
        rows = in_order(version_rows(latency(of, ToolFilter())), order_keys(), Order(shown))
    sizes = [
        {"calls": row.spent.calls, "tokens": row.spent.tokens, "cache": row.spent.cache_share}
        | row.percentiles
        for row in rows
    ]
    column = [one[shown] or 0 for one in sizes]
    assert column == sorted(column, reverse=True)


def test_export_and_api_match_the_page(log: Log) -> None:
    of = {"from": (NOW - timedelta(days=9)).isoformat(), "to": NOW.isoformat()}
    client = signed_in(log.cast.viewer)
    lines = [
        json.loads(line) for line in client.get("/latency/export.ndjson", of).content.splitlines()
    ]
    rows = list(csv.DictReader(io.StringIO(client.get("/latency/export.csv", of).content.decode())))
    key = {"Authorization": f"Bearer {make_ingest_key(log.tenant)}"}
    document = Client(headers=key).get("/api/v1/latency", of).json()
    with tenant_scope(log.tenant.id):
        report = latency(TimeRange(NOW - timedelta(days=9), NOW, UTC), ToolFilter())
    assert document["versions"] == lines[:-1]
    assert lines[-1] == {"count": len(report.versions)}
    assert sum(one["calls"] for one in document["versions"]) == document["total"]["calls"]
    assert document["total"]["calls"] == report.total.calls
    assert [row["calls"] for row in rows[:-1]] == [str(one["calls"]) for one in lines[:-1]]
    assert Client(headers=key).get("/api/v1/latency?range=2y").status_code == 422
    assert client.get("/latency/export.csv?range=2y").status_code == 400
    assert client.get("/latency/export.xml").status_code == 404


def test_csv_cells_are_not_formulas(acme: Cast) -> None:
    send_events(acme.tenant, make_call(tool_name="=1+1", tool_version="@SUM(A1)"))
    body = signed_in(acme.viewer).get("/latency/export.csv").content.decode()
    assert "'=1+1,'@SUM(A1)," in body


def test_empty_range_is_explained(acme: Cast) -> None:
    client = signed_in(acme.viewer)
    assert "No completed calls in this range" in text(client.get("/latency/").content.decode())
    assert "Show all tools" in text(client.get("/latency/?tool=none").content.decode())
    assert "No completed calls" in text(client.get("/latency/newest").content.decode())


@pytest.mark.slow
@pytest.mark.parametrize("value", [*HOSTILE, "x" * 5000, "\ud800"])
def test_arbitrary_parameters_are_answered(acme: Cast, value: str) -> None:
    send_events(acme.tenant, make_call())
    client = signed_in(acme.viewer)
    value = value.encode(errors="replace").decode()
    for name in ("tool", "version", "sort", "range", "from", "pause"):
        for address in ("/latency/", "/latency/newest"):
            page = client.get(address, {name: value})
            assert page.status_code == 200
            assert b"<script>alert" not in page.content
            assert b"<img src=x" not in page.content


def fill_days(cast: Cast, ends: Sequence[datetime]) -> None:
    """Enough calls before each of these instants, and statistics, to make the planner choose."""
    moments = (at - timedelta(seconds=30 * n) for at in ends for n in range(500))
    events_of = (event for at in moments for event in make_call(started_at=at))
    for events in batched(events_of, 1000):
        assert send_events(cast.tenant, events)["rejected"] == []
    with connections["owner"].cursor() as cursor:
        for day in {at.date() for at in ends}:
            cursor.execute(f"ANALYZE invocation_{day:%Y%m%d}")


@pytest.mark.slow
def test_queries_read_only_the_days_of_the_range_by_index(acme: Cast) -> None:
    of = TimeRange(NOW - timedelta(days=3), NOW, UTC)
    fill_days(acme, [of.previous.start, of.start, of.end])
    parameters = {
        **slot_parameters((of.previous.start, *of.bounds)),
        **edge_parameters(of),
        **FORMULA,
        **ToolFilter().parameters,
        "call_limit": 1000,
        "trace_limit": 1000,
        "limit": 9,
        "wait_limit": 9,
        "tenant_id": acme.tenant.id,
    }
    # The first and last quarter of an hour are counted as a whole if most of it is in the range.
    first, last = (of.previous.start - QUARTER).date(), (of.end + QUARTER).date()
    for name in (
        "latency_by_version",
        *("tokens_by_run", "newest_spent", "newest_waits", "newest_ends"),
    ):
        with tenant_scope(acme.tenant.id), connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN {sql.QUERIES[name]}", parameters)
            plan = "\n".join(row[0] for row in cursor.fetchall())
        for table in ("invocation", "rollup", "quarter_rollup", "error_rollup", "trace"):
            read = days_read(plan, table)
            assert all(first <= day <= last for day in read), (name, table)
        assert "Seq Scan on" not in plan, plan
        if "by_version" in name:  # otherwise each piece of an hour would read its whole day
            assert re.search(r"Index Cond: .*started_at >= piece\.start_at", plan), plan
