"""Reports over the API: the same figures as on the pages."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client

from tenants.keys import create_key
from tenants.models import Scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import signed_in
from tests.support.reports import (
    days_ago,
    make,
    record,
    stored,
)

NOW = datetime.now(UTC)


def key(cast: Cast, *scopes: Scope) -> Client:
    text = create_key(cast.tenant, "wallboard", list(scopes or (Scope.READ,)))[1]
    return Client(headers={"Authorization": f"Bearer {text}"})


def post(client: Client, body: Any) -> Any:
    text = body if isinstance(body, bytes) else json.dumps(body)
    return client.post("/api/v1/reports", text, content_type="application/json")


def test_report_is_created_and_read(acme: Cast) -> None:
    record(acme, NOW - timedelta(days=2), NOW, 60)
    client = key(acme)
    params = {"kind": "day", "day": days_ago(NOW, 1), "time_zone": "Asia/Kathmandu"}
    answer = post(client, params)
    assert answer.status_code == 201
    created = answer.json()
    assert (created["made_by"], created["made_as"], created["kind"]) == ("wallboard", "key", "day")
    assert created["from"].endswith("T18:15:00.000Z")
    assert client.get(f"/api/v1/reports/{created['id']}").json() == created
    report = stored(acme, UUID(created["id"]))
    assert report.figures == created["figures"]
    file = signed_in(acme.viewer).get(f"/reports/{created['id']}/export.json").json()
    assert {name: value for name, value in file.items() if name != "tenant"} == created
    page = signed_in(acme.viewer).get(f"/reports/{created['id']}").content.decode()
    assert "the API key wallboard" in page


def test_report_created_again_lists_later_arrivals(acme: Cast) -> None:
    client = key(acme)
    first = post(client, {"range": "24h"}).json()
    send_events(acme.tenant, make_call())
    second = post(client, {"again_of": first["id"]}).json()
    assert (second["from"], second["to"], second["again_of"]) == (
        first["from"],
        first["to"],
        first["id"],
    )
    since = second["figures"]["since"]
    assert (since["ledger_size"], second["ledger_size"]) == (0, 2)
    assert {"figure": "Calls", "unit": "count", "before": 0, "now": 1} in since["changes"]


@pytest.mark.slow
def test_list_is_paged_and_contains_reports_from_page_and_api(acme: Cast) -> None:
    client = key(acme)
    on_page = make(signed_in(acme.editor), kind="day", day=days_ago(NOW, 1))
    ids = [str(on_page), *(post(client, {"range": "1h"}).json()["id"] for _ in range(4))]
    seen, cursor = [], ""
    while True:
        page = client.get(f"/api/v1/reports?limit=2&cursor={cursor}").json()
        seen += [one["id"] for one in page["reports"]]
        if page["next"] is None:
            break
        cursor = page["next"]
        post(client, {"range": "1h"})  # a new report between two pages shifts nothing
    assert seen == ids[::-1]


def test_reports_of_another_tenant_are_not_found(acme: Cast, globex: Cast) -> None:
    pk = post(key(acme), {"range": "1h"}).json()["id"]
    other_client = key(globex)
    assert other_client.get(f"/api/v1/reports/{pk}").status_code == 404
    assert other_client.get("/api/v1/reports").json()["reports"] == []
    assert post(other_client, {"again_of": pk}).status_code == 404


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "malformed"),
        (b"{", 400, "malformed"),
        (b"[]", 400, "malformed"),
        (b"[" * 9_000, 400, "malformed"),
        (b'"' + b"x" * 20_000 + b'"', 400, "malformed"),
        (b"\xff", 400, "malformed"),
        ({"kind": "year"}, 400, "malformed"),
        ({"day": 20261120}, 400, "malformed"),
        ({"range": "7d", "tool": "x"}, 400, "malformed"),
        ({}, 422, "range"),
        ({"kind": "day"}, 422, "range"),
        ({"kind": "day", "day": "\x00"}, 422, "range"),
        ({"range": "1y"}, 422, "range"),
        ({"from": "2026-11-20", "to": "2026-11-19"}, 422, "range"),
        ({"range": "1h", "time_zone": "Mars"}, 422, "range"),
        ({"again_of": "x"}, 404, "not_found"),
        ({"again_of": str(uuid4())}, 404, "not_found"),
    ],
)
def test_invalid_request_gets_a_problem(acme: Cast, body: Any, status: int, code: str) -> None:
    client = key(acme)
    answer = post(client, body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer["Content-Type"] == "application/problem+json"
    assert client.get("/api/v1/reports").json()["reports"] == []


def test_key_without_the_read_scope_is_rejected(acme: Cast) -> None:
    client = key(acme, Scope.INGEST)
    assert client.get("/api/v1/reports").status_code == 403
    assert post(client, {"range": "1h"}).status_code == 403
