"""Every figure of a report equals that of the pages and the API for the same range."""

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import pytest
from django.db import connections
from django.test import Client

from audit.alerts.life import acknowledge, find_alert
from audit.index.partitions import PARTITIONED_TABLES, Partition, apply
from audit.index.window import INDEX_DAYS
from audit.models import Alert
from audit.queries.latency import latency
from audit.reports.queries import Report
from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.alerts import fired_alert
from tests.support.contracts import make_contract
from tests.support.event_requests import post
from tests.support.factories import (
    Cast,
    make_call,
    make_cast,
    make_ingest_key,
    send_events,
)
from tests.support.open_calls import send_each_kind, tools_by_kind
from tests.support.pages import signed_in, text
from tests.support.reports import days_ago, record, report_of
from tools_registry.changes import Publisher
from tools_registry.models import Tool
from tools_registry.schemas import ToolContract
from tools_registry.versions import register_contracts

NOW = datetime.now(UTC)
ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu")


@pytest.fixture(scope="module")
def cast() -> Cast:
    """900 calls of ten days, a declared gap, two missing numbers, a rejected line."""
    created = make_cast("reports")
    record(created, NOW - timedelta(days=10), NOW - timedelta(minutes=1), 900)
    key = make_ingest_key(created.tenant)
    gap = {"type": "gap", "producer_id": "q", "from_seq": 5, "to_seq": 9, "count": 5}
    send_events(created.tenant, [gap | {"reason": "spool full"}], key=key)
    post(key, b"this is no event")
    with tenant_scope(created.tenant.id):
        register_contracts(
            created.tenant,
            [ToolContract.model_validate(make_contract(name=f"new {n}")) for n in range(3)],
            Publisher(created.editor),
        )
        assert Tool.objects.count() >= 3
    signed_in(created.auditor).get("/calls/export.csv?q=tool:search")
    signed_in(created.editor).get("/latency/export.ndjson?range=7d")
    return created


def range_query(report: Report) -> str:
    start, end = (at.isoformat().replace("+00:00", "Z") for at in (report.of.start, report.of.end))
    return urlencode({"from": start, "to": end})


def api(cast: Cast, address: str) -> dict[str, Any]:
    key = create_key(cast.tenant, "reader", [Scope.READ])[1]
    answer = Client().get(address, headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200, answer.content
    document: dict[str, Any] = answer.json()
    return document


def which(one: dict[str, Any]) -> tuple[str, str]:
    return one["tool_name"], one["tool_version"] or ""


REPORTS = [
    pytest.param(zone, params, id=f"{zone}-{params['kind']}")
    for zone in ZONES
    for params in (
        {"kind": "day", "day": days_ago(NOW, 2)},
        {"kind": "week", "day": days_ago(NOW, 5)},
        {"kind": "month", "day": days_ago(NOW, 1)},
        {"kind": "range", "from": f"{NOW - timedelta(days=9):%Y-%m-%dT%H:%M:%S}"},
    )
]


@pytest.mark.generated(4)
@pytest.mark.slow
@pytest.mark.parametrize(("zone", "params"), REPORTS)
def test_every_figure_matches_the_api(cast: Cast, zone: str, params: dict[str, str]) -> None:
    report = report_of(cast, zone, **params)
    figures, at = report.figures, range_query(report)
    latency = api(cast, f"/api/v1/latency?{at}")
    total = latency["total"]
    assert figures["volume"]["calls"] == total["calls"] > 0
    assert figures["reliability"]["failed"] == total["failed"]
    assert {name: figures["latency"][f"{name}_ms"] for name in ("p50", "p90", "p95", "p99")} == {
        name: total[f"{name}_ms"] for name in ("p50", "p90", "p95", "p99")
    }
    assert {name: figures["tokens"][name] for name in figures["tokens"] if name != "previous"} == {
        name: total[name] for name in ("prompt_tokens", "completion_tokens", "cache_hits")
    }
    assert figures["latency"]["version_count"] == len(latency["versions"])
    assert sorted(figures["latency"]["versions"], key=which) == latency["versions"]

    violations = api(cast, f"/api/v1/violations?{at}")["violations"]
    assert figures["violations"]["kinds"] == violations[:50]
    assert figures["violations"]["kind_count"] == len(violations)
    assert figures["violations"]["violations"] == sum(one["violations"] for one in violations)

    repeats = api(cast, f"/api/v1/repeats?{at}")
    assert {name: figures["repeats"][name] for name in ("loops", "loop_calls", "repeated")} == {
        name: repeats[name] for name in ("loops", "loop_calls", "repeated")
    }
    for kind in ("loop", "repeat"):
        listed = [one for one in repeats["listed"] if one["kind"] == kind][:20]
        assert [one for one in figures["repeats"]["listed"] if one["kind"] == kind] == listed

    assert sum(part["calls"] for part in figures["volume"]["parts"]) == figures["volume"]["calls"]
    assert sum(part["failed"] for part in figures["volume"]["parts"]) == total["failed"]
    assert sum(one["calls"] for one in figures["reliability"]["errors"]) == total["failed"]


@pytest.mark.generated(4)
@pytest.mark.slow
@pytest.mark.parametrize(("zone", "params"), REPORTS)
def test_every_figure_matches_the_pages(cast: Cast, zone: str, params: dict[str, str]) -> None:
    report = report_of(cast, zone, **params)
    client = signed_in(cast.viewer)
    client.cookies["timezone"] = zone
    context = client.get(f"/?{range_query(report)}").context
    page, figures, losses = context["range_figures"].total, report.figures, context["losses"]
    assert (
        figures["volume"]["calls"],
        figures["reliability"]["failed"],
        figures["reliability"]["error_rate"],
        figures["violations"]["violations"],
        figures["violations"]["violating"],
        figures["violations"]["violation_rate"],
        figures["open"]["started_in_range"],
        figures["tokens"]["prompt_tokens"],
    ) == (
        page.calls,
        page.failed,
        page.error_rate,
        page.violations,
        page.violating,
        page.violation_rate,
        page.open,
        page.prompt_tokens,
    )
    assert figures["latency"]["p95_ms"] == pytest.approx(page.duration_ms(0.95), abs=0.001)
    assert [one["tool_name"] for one in figures["reliability"]["tools"]][:8] == [
        tool.name for tool in context["tools"]
    ]
    own = figures["completeness"]
    assert (own["lost"], own["missing"], own["inbox"], own["producers"]) == (
        losses.lost,
        losses.missing,
        losses.inbox,
        losses.producer_count,
    )
    # The numbers of two calls are missing, and the ends of the open calls.
    assert own["missing"] == 4 + figures["open"]["open"]
    assert (own["inbox"], own["is_complete"]) == (1, False)
    tally = {
        kind.value or "open": kind.count for kind in client.get("/calls/open").context["kinds"]
    }
    assert {name: f"{figures['open'][name]:,}" for name in tally} == tally
    repeats = client.get(f"/repeats/?{range_query(report)}").context["analysis"]
    assert figures["repeats"]["repeated_calls"] == repeats.repeated_calls


@pytest.mark.slow
def test_open_call_figures_match_the_open_page(acme: Cast) -> None:
    """Also overdue, crashed and orphan ones, which the random calls do not contain."""
    send_each_kind(acme)
    figures = report_of(
        acme, kind="range", **{"from": f"{NOW - timedelta(days=1):%Y-%m-%d}"}
    ).figures
    own = {
        name: count
        for name, count in figures["open"].items()
        if name in tools_by_kind(acme) or name == "open"
    }
    listed = {kind or "open": len(tools) for kind, tools in tools_by_kind(acme).items()}
    assert own == listed
    assert listed == {"open": 7, "running": 4, "overdue": 2, "crashed": 2, "orphan": 1}
    for kind, number in listed.items():
        assert len(api(acme, f"/api/v1/open?kind={kind}")["calls"]) == number


@pytest.mark.slow
def test_comparison_with_the_previous_range_matches_the_overview(cast: Cast) -> None:
    report = report_of(cast, kind="day", day=days_ago(NOW, 3))
    page = signed_in(cast.viewer).get(f"/?{range_query(report)}").context
    assert page["is_comparable"]
    figures = report.figures
    assert figures["volume"]["previous"] == page["range_figures"].previous.calls
    shown = text(signed_in(cast.viewer).get(f"/reports/{report.id}").content.decode())
    assert text(page["tiles"][0].change.text) in shown


def test_registry_changes_gaps_and_exports_are_from_the_range(cast: Cast) -> None:
    now = f"{NOW - timedelta(hours=1):%Y-%m-%dT%H:%M:%S}"
    figures = report_of(cast, kind="range", **{"from": now}).figures
    assert (figures["registry"]["published"], figures["registry"]["new_tools"]) == (3, 3)
    assert {one["tool_name"] for one in figures["registry"]["versions"]} == {
        "new 0",
        "new 1",
        "new 2",
    }
    assert all(one["by"] == cast.editor.username for one in figures["registry"]["versions"])
    assert figures["completeness"]["gaps"] == [{"reason": "spool full", "lost": 5, "producers": 1}]
    mine = [one for one in figures["exports"]["listed"] if one["what"] == "call"]
    assert [(one["user"], one["form"], one["query"]) for one in mine] == [
        (cast.auditor.username, "csv", "tool:search")
    ]
    assert ("latency", cast.editor.username) in [
        (one["what"], one["user"]) for one in figures["exports"]["listed"]
    ]
    before = report_of(cast, kind="day", day=days_ago(NOW, 4)).figures
    assert (before["registry"]["published"], before["exports"]["exports"]) == (0, 0)
    assert before["completeness"]["lost"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [("Europe/Berlin", "2026-10-25", 25), ("Asia/Kathmandu", "2026-10-25", 24)],
)
def test_figures_are_correct_for_a_25_hour_day_and_a_quarter_hour_offset(
    zone: str, day: str, hours: int
) -> None:
    cast = make_cast("clocks")
    start = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    end = start + timedelta(hours=hours)
    first = (start - timedelta(days=1)).date()
    apply(
        Partition(first + timedelta(days=n), table)
        for n in range(4)
        for table in PARTITIONED_TABLES
    )
    INDEX_DAYS.refresh()
    inside = [start, start + timedelta(hours=hours) / 2, end - timedelta(microseconds=1)]
    outside = [start - timedelta(microseconds=1), end]
    for at in [*inside, *outside]:
        send_events(cast.tenant, make_call(started_at=at))
    report = report_of(cast, zone, kind="day", day=day)
    assert report.figures["volume"]["calls"] == 3
    assert report.of.length == timedelta(hours=hours)
    assert len(report.figures["volume"]["parts"]) == hours


def test_figures_and_ledger_size_are_from_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events stored while a report is created are in none of its figures."""
    from concurrent.futures import ThreadPoolExecutor

    from audit.reports import figures

    cast = make_cast("moment")
    key = make_ingest_key(cast.tenant)
    send_events(cast.tenant, make_call(), key=key)
    original = latency

    def meanwhile(*given: Any) -> Any:
        def send() -> None:
            send_events(cast.tenant, make_call(), key=key)
            connections.close_all()

        with ThreadPoolExecutor(1) as pool:
            pool.submit(send).result()
        return original(*given)

    monkeypatch.setattr(figures, "latency", meanwhile)
    report = report_of(cast, kind="range", range="1h")
    assert report.ledger_size == 2
    assert report.figures["volume"]["calls"] == 1
    assert [one["calls"] for one in report.figures["latency"]["versions"]] == [1]


def reads_of_index(statements: list[str]) -> Counter[str]:
    """How often each statement, without its values, reads the tables of the calls."""
    tables = re.compile(rf"\b(FROM|JOIN) ({'|'.join(PARTITIONED_TABLES)})\b")
    shapes = (re.sub(r"'[^']*'(::[\w[\]]+)?|\b[\d.]+\b", "?", one) for one in statements)
    return Counter(shape for shape in shapes if tables.search(shape))


@pytest.mark.slow
def test_report_uses_only_statements_of_the_pages(cast: Cast) -> None:
    """Bounded for any range: `invocation` is read only at its edges and for the newest calls."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    client = signed_in(cast.auditor)
    client.cookies["timezone"] = "UTC"
    form = {"kind": "month", "day": days_ago(NOW, 1)}
    with CaptureQueriesContext(connection) as captured:
        client.post("/reports/create", form)
    assert len(captured.captured_queries) < 50
    statements = [query["sql"] for query in captured.captured_queries]
    at = range_query(report_of(cast, **form))
    with CaptureQueriesContext(connection) as captured:
        for page in ("/", "/latency/", "/violations/", "/repeats/", "/agents/"):
            assert client.get(f"{page}?{at}").status_code == 200
    of_pages = reads_of_index([query["sql"] for query in captured.captured_queries])
    assert len(of_pages) > 5
    assert reads_of_index(statements) - of_pages == Counter()
    assert any(re.search("ISOLATION LEVEL REPEATABLE READ", one) for one in statements)


def test_alerts_of_the_range_are_a_section(acme: Cast, globex: Cast) -> None:
    pk = fired_alert(acme)
    with tenant_scope(acme.tenant.id):
        alert = find_alert(pk)
        assert alert is not None
        acknowledge(alert, acme.editor, "on it", NOW)
        alerts = Alert.objects.for_tenant(acme.tenant.id)
        alerts.update(held_from=NOW - timedelta(hours=1), uncounted=2)
    start = f"{NOW - timedelta(hours=2):%Y-%m-%dT%H:%M:%S}"
    report = report_of(acme, kind="range", **{"from": start})
    own = report.figures["alerts"]
    counts = {"fired": 3, "alerts": 0, "muted": 0, "acknowledged": 1, "unresolved": 1}
    assert own == {**counts, "rule_count": 1, "rules": [{"rule": "many calls", **counts}]}
    page = text(signed_in(acme.viewer).get(f"/reports/{report.id}").content.decode())
    assert "many calls 3 0 0 1 1" in page
    other = report_of(globex, kind="range", **{"from": start})
    assert other.figures["alerts"]["rules"] == []
    shown = text(signed_in(globex.viewer).get(f"/reports/{other.id}").content.decode())
    assert "No rule fired." in shown
