"""Approvals: what awaits one, how long answers took, by whom; page, export and API."""

import csv
import io
import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from tenants.keys import create_key
from tenants.models import Scope
from tests.support.factories import Cast, make_call, make_decision, send_events
from tests.support.pages import HOSTILE, PARTIAL, signed_in, statements, text

pytestmark = pytest.mark.usefixtures("clear_principals")

NOW = datetime.now(UTC)
POLICY = {"kind": "policy", "id": "four-eyes", "name": "Four eyes"}


def person(name: str) -> dict[str, Any]:
    return {"kind": "person", "id": name, "name": name.capitalize()}


def requested(
    *answers: tuple[str, float, dict[str, Any] | None],
    minutes_ago: float = 60,
    ran: bool = False,
    **members: Any,
) -> list[dict[str, Any]]:
    """A request by the policy, and its answers after some minutes: decision, minutes, by."""
    at = datetime.now(UTC) - timedelta(minutes=minutes_ago)
    shared: dict[str, Any] = {"trace_id": "t", "tool_name": "refund"}
    shared["invocation_id"] = str(uuid.uuid4())
    shared |= {name: members.pop(name) for name in shared.keys() & members.keys()}
    events = [make_decision("awaiting", decided_at=at, by=POLICY, **shared, **members)]
    events += [
        make_decision(decision, decided_at=at + timedelta(minutes=minutes), by=by, **shared)
        for decision, minutes, by in answers
    ]
    return events + (make_call(started_at=at + timedelta(minutes=50), **shared) if ran else [])


def send_all(cast: Cast) -> None:
    """Four answered requests, two that wait, one that ran unanswered, one approval unasked."""
    send_events(
        cast.tenant,
        [
            *requested(("approved", 1, person("bob")), requested_by="ada", ran=True),
            *requested(("approved", 3, person("ada")), requested_by="ada", ran=True),
            *requested(("denied", 20, person("bob")), requested_by="eve", tool_name="wire"),
            *requested(("cancelled", 2, None)),
            *requested(minutes_ago=30, requested_by="ada"),
            *requested(("awaiting", 5, POLICY), minutes_ago=3 * 24 * 60, tool_name="wire"),
            *requested(ran=True),
            make_decision("approved", tool_name="refund", by=person("bob")),
            make_decision("approved", tool_name="refund", by=POLICY),
            make_decision("denied", tool_name="refund", by=person("bob")),
        ],
    )


def api(cast: Cast, path: str) -> Any:
    key = create_key(cast.tenant, "reader", [Scope.READ])[1]
    answer = Client().get(f"/api/v1/{path}", headers={"authorization": f"Bearer {key}"})
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_page_shows_what_waits_and_who_answered(acme: Cast) -> None:
    send_all(acme)
    answer = signed_in(acme.viewer).get("/approvals/")
    waiting = [(one.tool_name, us // 60_000_000) for one, us in answer.context["waiting"].rows]
    assert waiting[0][0] == "refund" and 30 <= waiting[0][1] <= 35
    assert waiting[1][0] == "wire" and waiting[1][1] >= 3 * 24 * 60, "since the first request"
    deciders = {
        one.words: (one.answers.approved, one.answers.refused, one.answers.self_approved)
        for one in answer.context["deciders"].rows
    }
    assert deciders == {"Bob": (2, 1, 0), "Ada": (1, 0, 1), "": (0, 1, 0)}
    shown = text(answer.content.decode())
    for expected in ("self-approved", "ran without an answer", "without a request", "Four eyes"):
        assert expected in shown
    total = answer.context["figures"].total
    minute = 60_000_000
    assert (total.approved, total.refused, total.unasked) == (3, 2, 1)
    assert (total.p50_us, total.p95_us) == (2 * minute, 20 * minute)
    assert [number for _, number, _ in answer.context["bands"]] == [0, 0, 3, 0, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("query", "waiting", "answered"),
    [
        ("tool=wire", 1, 1),
        ("by=bob", 2, 3),
        ("by=Bob", 2, 3),
        ("policy=four-eyes", 2, 5),
        ("policy=Four+eyes&tool=refund", 1, 4),
        ("requested_by=ada", 1, 2),
        ("self=1", 2, 1),
        ("tool=nothing", 0, 0),
    ],
)
def test_filters(acme: Cast, query: str, waiting: int, answered: int) -> None:
    send_all(acme)
    context = signed_in(acme.viewer).get(f"/approvals/?{query}").context
    assert (len(context["waiting"].rows), len(context["answered"].rows)) == (waiting, answered)
    of_api = api(acme, f"approvals?{query.replace('self=1', 'only_self=true')}")["approvals"]
    is_open = [one["state"] == "awaiting" for one in of_api]
    assert len(is_open) - sum(is_open) == answered


def test_request_is_in_its_range_whenever_it_is_answered(acme: Cast) -> None:
    hours = 60 * 30
    send_events(acme.tenant, requested(("approved", hours - 1, person("bob")), minutes_ago=hours))
    client = signed_in(acme.viewer)
    assert client.get("/approvals/?range=24h").context["answered"].rows == []
    (one,) = client.get("/approvals/?range=7d").context["answered"].rows
    assert one.waited_us == (hours - 1) * 60_000_000


def test_api_has_the_figures_of_the_page(acme: Cast) -> None:
    send_all(acme)
    summary = api(acme, "approvals/summary?range=7d")
    assert (summary["awaiting"], summary["ran"]) == (2, 1)
    assert summary["total"] == {
        "answers": 5,
        "approved": 3,
        "refused": 2,
        "self_approved": 1,
        "unasked": 1,
        "p50_ms": 120_000.0,
        "p95_ms": 1_200_000.0,
    }
    assert {one["name"] for one in summary["deciders"]} == {"Bob", "Ada", None}
    assert sum(band["requests"] for band in summary["waits"]) == 4
    waiting = api(acme, "approvals?state=awaiting&range=30d")["approvals"]
    assert [one["tool_name"] for one in waiting] == ["refund", "wire"]
    assert {one["state"] for one in waiting} == {"awaiting"}
    listed: list[str] = []
    cursor: str | None = ""
    at = f"from={NOW - timedelta(days=9):%Y-%m-%d}&to={NOW + timedelta(days=1):%Y-%m-%d}"
    while cursor is not None:
        page = api(acme, f"approvals?{at}&limit=3" + (f"&cursor={cursor}" if cursor else ""))
        listed += [one["invocation_id"] for one in page["approvals"]]
        cursor = page["next"]
    assert len(listed) == len(set(listed)) == 8


def test_export_holds_every_approval_and_is_recorded(acme: Cast) -> None:
    send_all(acme)
    client = signed_in(acme.auditor)
    lines = client.get("/approvals/export.ndjson?range=7d").content.decode().splitlines()
    *documents, tail = map(json.loads, lines)
    assert tail == {"count": len(documents)} == {"count": 8}
    assert documents == api(acme, "approvals?range=7d")["approvals"]
    head, *_, last = csv.reader(
        io.StringIO(client.get("/approvals/export.csv?range=7d").content.decode())
    )
    assert "is_self_approved" in head and last == ["# count", "8"]
    assert client.get("/approvals/export.xlsx").status_code == 404
    assert client.get("/approvals/export.csv?range=1y").status_code == 400
    assert "approval.export" in client.get("/actions/").content.decode()


@pytest.mark.slow
def test_rows_lead_to_their_calls(acme: Cast) -> None:
    send_all(acme)
    client = signed_in(acme.viewer)
    content = client.get("/approvals/?range=7d").content.decode()
    addresses = {part.split('"')[0] for part in content.split('href="/calls/2')[1:]}
    assert len(addresses) == 8
    for address in addresses:
        answer = client.get(f"/calls/2{address}", follow=True)
        assert answer.status_code == 200, address


def test_reason_and_arguments_are_not_on_the_page_or_in_files(acme: Cast) -> None:
    secret: dict[str, Any] = {"args": {"iban": "a secret"}, "reason": "a secret reason"}
    send_events(
        acme.tenant, [*requested(**secret), *requested(("denied", 1, person("bob")), **secret)]
    )
    client = signed_in(acme.admin)
    for path in ("/approvals/", "/approvals/export.csv"):
        assert "secret" not in client.get(path).content.decode()


@pytest.mark.slow
def test_hostile_text_and_bad_input(acme: Cast) -> None:
    for hostile in HOSTILE:
        by = {"kind": "person", "id": hostile[:100], "name": hostile[:100]}
        members: dict[str, Any] = {"requested_by": hostile[:100], "tool_name": hostile[:100]}
        send_events(acme.tenant, requested(("approved", 1, by), **members))
    client = signed_in(acme.viewer)
    for name in ("range", "from", "tool", "policy", "by", "requested_by", "self"):
        for hostile in HOSTILE:
            answer = client.get("/approvals/", {name: hostile})
            assert answer.status_code == (404 if name == "self" else 200)
            assert "<script>alert" not in answer.content.decode()
            assert "<img src=x" not in answer.content.decode()
    csv_file = client.get("/approvals/export.csv").content.decode()
    assert "\n=" not in csv_file
    key = create_key(acme.tenant, "reader", [Scope.READ])[1]
    headers = {"authorization": f"Bearer {key}"}
    for query in ("state=maybe", "cursor=x", "limit=0", "range=1y", "people=1"):
        assert Client().get(f"/api/v1/approvals?{query}", headers=headers).status_code == 422


@pytest.mark.slow
def test_page_uses_a_fixed_number_of_statements(acme: Cast) -> None:
    client = signed_in(acme.viewer)
    for _ in range(2):
        send_all(acme)
        with statements(12):
            client.get("/approvals/")
    assert "<html" not in client.get("/approvals/", headers=PARTIAL).content.decode()
