"""Overview and violations as pages, files and API; and the plans of their queries."""

import csv
import io
import json
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any
from unittest.mock import patch
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test import Client

from audit import sql
from audit.queries.over_time import FORMULA, slot_parameters
from audit.queries.time_range import TimeRange
from audit.queries.violations import ViolationFilter
from audit.queries.violations import _parameters as violation_parameters
from config import instance
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
    HOSTILE,
    PARTIAL,
    signed_in,
    statements,
    text,
)
from tests.support.query_plans import days_read, index_conditions

NOW = datetime.now(UTC)
FAILED = {"status": "error", "error": {"type": "FATAL", "message": "no"}, "meta": {"took_ms": 1}}
PAGES = ("/", "/violations/")


def broken(path: str = "$.unit", **more: str) -> dict[str, Any]:
    violation = {"path": path, "severity": "error", "code": "WRONG_TYPE", "expected": "C"}
    return {
        "strategy": "warn",
        "outcome": "passed",
        "violations": [violation | {"received": "K"} | more],
    }


def test_page_without_calls_explains_how_to_send_one(acme: Cast) -> None:
    page = text(signed_in(acme.admin).get("/").content.decode())
    assert "No tool calls yet" in page
    send_events(acme.tenant, make_call(started_at=NOW - timedelta(days=3)))
    page = text(signed_in(acme.admin).get("/").content.decode())
    assert "No tool call" not in page
    assert "No calls ended in this range." in page


@pytest.mark.parametrize(
    ("port", "words"),
    [(0, "an operator opens with TOOLTRAIL_GRPC_PORT ."), (4317, "OTLP over gRPC has port 4317.")],
)
def test_page_without_calls_says_where_grpc_goes(acme: Cast, port: int, words: str) -> None:
    with patch.object(instance, "GRPC_PORT", port):
        page = text(signed_in(acme.viewer).get("/").content.decode())
    assert f"{words} At this address its exporters report Socket closed or" in page


def test_figures_are_compared_with_the_previous_range(acme: Cast) -> None:
    calls = [make_call(started_at=NOW - timedelta(hours=30)) for _ in range(4)]
    calls += [make_call(started_at=NOW - timedelta(hours=40), output=FAILED)]
    calls += [make_call(started_at=NOW - timedelta(hours=3)) for _ in range(8)]
    calls += [make_call(started_at=NOW - timedelta(hours=3), output=FAILED, guard=broken())] * 2
    calls += [make_call(started_at=NOW - timedelta(hours=60))]
    calls += [make_call(is_open=True, started_at=NOW - timedelta(hours=n)) for n in (2, 3, 30)]
    send_events(acme.tenant, [event for call in calls for event in call])
    client = signed_in(acme.viewer)
    tiles = {one.name: one for one in client.get("/").context["tiles"]}
    changes = {
        name: (one.change.text.replace("\xa0", " "), one.change.goodness)
        for name, one in tiles.items()
        if one.change
    }
    assert tiles["Calls"].value == "9"  # one failed call was sent twice
    assert changes["Calls"] == ("+80 %", "other")
    assert changes["Failed"] == ("−8.89 pt", "better")
    assert changes["Schema violations"] == ("+11.11 pt", "worse")
    assert changes["p50 · p95"] == ("+0.0 % · +0.0 %", "other")
    notes = {name: one.note_change.text for name, one in tiles.items() if one.note_change}
    assert notes == {"Calls": "+1", "p50 · p95": "+0.0\xa0%"}
    # There are no calls of the seven days before, so there is no comparison.
    assert not any(one.change for one in client.get("/?range=7d").context["tiles"])


def test_possible_data_loss_is_shown_first(acme: Cast) -> None:
    key = make_ingest_key(acme.tenant)
    numbered = [
        make_call(producer_id="web-1", producer_seq=n, is_open=True)[0] for n in (1, 2, 3, 9)
    ]
    gap = {"type": "gap", "producer_id": "web-1", "from_seq": 4, "to_seq": 6, "count": 3}
    gap |= {"reason": "spool full"}
    send_events(acme.tenant, [*numbered, gap, {"type": "nonsense"}], key=key)
    page = text(signed_in(acme.viewer).get("/").content.decode())
    assert "Data completeness Possible loss" in page
    assert "Dropped events 3" in page
    assert "Sequence gaps 2" in page
    assert "spool full" in page
    assert "Rejected events 1" in page


@pytest.mark.slow
@pytest.mark.parametrize("address", PAGES)
def test_invalid_range_is_reported_and_the_default_is_used(acme: Cast, address: str) -> None:
    send_events(acme.tenant, make_call(guard=broken()))
    client = signed_in(acme.viewer)
    for bad in ("range=1y", "from=yesterday", "from=2026-11-20&to=2026-11-19", "to=2026-11-20"):
        answer = client.get(f"{address}?{bad}")
        assert answer.status_code == 200
        assert 'role="alert"' in answer.content.decode(), bad
        assert answer.context["range"].name == "24h"
    for hostile in HOSTILE:
        for name in ("range", "from", "to", "tool", "code", "path", "version", "outcome"):
            answer = client.get(address, {name: hostile})
            assert answer.status_code == 200
            assert "<script>alert" not in answer.content.decode()
            assert "<img src=x" not in answer.content.decode()


@pytest.mark.parametrize("address", PAGES)
def test_partial_omits_the_frame(acme: Cast, address: str) -> None:
    client = signed_in(acme.viewer)
    part = client.get(address, headers=PARTIAL).content.decode()
    assert "<html" not in part
    assert 'id="figures"' in part


@pytest.mark.parametrize(("address", "number"), [("/?range=7d", 24), ("/violations/?range=7d", 19)])
def test_pages_use_a_fixed_number_of_statements(acme: Cast, address: str, number: int) -> None:
    client = signed_in(acme.viewer)
    for _ in range(2):
        calls = [
            make_call(tool_name=f"tool-{n}", guard=broken(f"$.a{n}"), output=FAILED)
            for n in range(20)
        ]
        send_events(acme.tenant, [event for call in calls for event in call])
        with statements(number):
            client.get(address)


def test_api_and_exports_match_the_page(acme: Cast) -> None:
    for path, tool in (("$.unit", "=HYPERLINK(1)"), ("$.items[3].id", "search")):
        send_events(acme.tenant, make_call(tool_name=tool, tool_version="4", guard=broken(path)))
    client = signed_in(acme.auditor)
    shown = {
        (row.kind.tool_name, row.kind.path_pattern)
        for row in client.get("/violations/").context["rows"]
    }
    assert shown == {("=HYPERLINK(1)", "$.unit"), ("search", "$.items[*].id")}
    key = create_key(acme.tenant, "reader", [Scope.READ])[1]
    document = Client().get("/api/v1/violations", headers={"Authorization": f"Bearer {key}"}).json()
    assert {(one["tool_name"], one["path_pattern"]) for one in document["violations"]} == shown
    lines = client.get("/violations/export.ndjson").content.decode().splitlines()
    assert json.loads(lines[-1]) == {"count": 2}
    by_tool = {one["tool_name"]: one for one in map(json.loads, lines[:-1])}
    assert by_tool["search"] == {one["tool_name"]: one for one in document["violations"]}["search"]
    assert by_tool["search"]["share"] == 1
    file = client.get("/violations/export.csv").content.decode()
    head, *rows, tail = csv.reader(io.StringIO(file))
    assert {row[head.index("tool_name")] for row in rows} == {"'=HYPERLINK(1)", "search"}
    assert tail == ["# count", "2"]


def test_api_and_exports_reject_invalid_parameters(acme: Cast) -> None:
    key = create_key(acme.tenant, "reader", [Scope.READ])[1]
    answer = Client().get("/api/v1/violations?range=1y", headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 422
    assert "15m" in answer.json()["message"]
    client = signed_in(acme.auditor)
    assert client.get("/violations/export.csv?range=1y").status_code == 400
    assert client.get("/violations/export.xlsx").status_code == 404


def explained(cast: Cast, name: str, of: TimeRange) -> str:
    parameters = slot_parameters((of.previous.start, *of.bounds)) | FORMULA
    parameters |= violation_parameters(of, ViolationFilter()) | {
        "tenant_id": cast.tenant.id,
        "limit": 10,
        "bounds": list(of.bounds),
        "at": of.end,
        "id": UUID(int=0),
        "ordinal": 0,
    }
    with tenant_scope(cast.tenant.id), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {sql.QUERIES[name]}", parameters)
        return "\n".join(row[0] for row in cursor.fetchall())


@pytest.mark.parametrize(
    "name",
    [
        *("figures_over_time", "version_calls"),
        *("violation_kinds", "violation_samples"),
    ],
)
def test_queries_read_only_the_days_of_the_range_by_index(acme: Cast, name: str) -> None:
    of = TimeRange(NOW - timedelta(days=3, minutes=20), NOW, ZoneInfo("Asia/Kathmandu"))
    plan = explained(acme, name, of)
    assert "Seq Scan" not in plan, plan
    assert all("tenant_id = " in line for line in index_conditions(plan).splitlines()), plan
    tables = set(re.findall(r" on (\w+)_\d{8}", plan))
    assert tables
    first = of.start if name.startswith("violation") else of.previous.start
    # Primary keys that begin with the day, and pruning by the planner, limit the other tables.
    allowed: set[date] = {(first + timedelta(days=n) - timedelta(hours=1)).date() for n in range(9)}
    for table in tables:
        assert days_read(plan, table) <= allowed, table
