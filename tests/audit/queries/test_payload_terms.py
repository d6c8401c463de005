"""Queries for values in arguments and outputs: matches, permissions, limits, audit log."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import Client

from audit.events.json_values import parse as parse_json
from audit.models import Batch, Erasure
from audit.queries import call_walk
from audit.queries.call_list import call_page, count_calls
from audit.queries.call_query import ANYBODY, parse
from audit.queries.call_walk import Budget
from audit.queries.payload_terms import payload_holds
from audit.retention import erasure as erasure_job
from tenants.keys import create_key
from tenants.models import Action, Role, Scope
from tenants.scope import tenant_scope
from tests.support.erasures import confirm_erasure, read_erasure, run_erasure
from tests.support.factories import (
    Cast,
    make_call,
    make_cast,
    send_events,
)
from tests.support.legal_holds import event_texts
from tests.support.pages import signed_in, text

NOW = datetime.now(UTC)
ARGS = {
    "city": "London",
    "limit": 5,
    "ratio": 0.50,
    "deep": {"lang": "de", "none": None, "on": True},
    "items": [{"id": 7}, {"id": 8}],
    "a:b": "colon",
    "": "empty",
}


@pytest.mark.parametrize(
    ("query", "holds"),
    [
        ("args.city:London", True),
        ("args.city:london", False),
        ("args.city:Lon*", True),
        ("args.city:*", True),
        ("args.town:*", False),
        ("args.limit:5", True),
        ("args.limit:5.0", True),
        ("args.limit:5e0", True),
        ("args.limit:50", False),
        ("args.limit:sNaN", False),
        ("args.ratio:0.5", True),
        ("args.ratio:0.50", True),
        ("args.deep.lang:de", True),
        ("args.deep.none:null", True),
        ("args.deep.on:true", True),
        ("args.deep.on:True", False),
        ("args.deep:*", True),
        ("args.deep:de", False),
        ("args.items[0].id:7", True),
        ("args.items[1].id:7", False),
        ("args.items[*].id:8", True),
        ("args.items[9].id:8", False),
        ("args.items.id:8", False),
        ("args.city[0]:L", False),
        ("args.city.x:L", False),
        ("output.city:London", False),
        ("NOT output.city:London", True),
        ("NOT args.city:London", False),
        ("args.city:London args.limit:6", False),
        ("args.city:Paris OR args.limit:5", True),
        ("NOT (args.city:Paris OR args.limit:6)", True),
    ],
)
def test_payload_term_matches_expected_values(query: str, holds: bool) -> None:
    wanted = parse(query, ANYBODY).wanted
    payloads = {"args": parse_json(json.dumps(ARGS).encode())}
    assert all(payload_holds(each, payloads) for each in wanted.payload) is holds


def listed(page: str) -> list[str]:
    return re.findall(r'<a class="free" href="[^"]*" title="([^"]*)"', page)


def search(cast: Cast, query: str, user: Any = None, address: str = "/calls/") -> list[str]:
    answer = signed_in(user or cast.editor).get(address, {"q": query})
    assert answer.status_code == 200
    return listed(answer.content.decode())


@pytest.fixture(scope="module")
def recorded() -> Cast:
    cast = make_cast("acme")
    send_events(
        cast.tenant,
        [
            *make_call(tool_name="london", output={"rows": [{"id": 1}]}),
            *make_call(tool_name="paris", args={"city": "Paris"}, output={"rows": [{"id": 2}]}),
            *make_call(tool_name="open", is_open=True),
            *make_call(tool_name="bare", args={}, output=None),
        ],
    )
    return cast


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("args.city:London", {"london", "open"}),
        ("args.city:London state:ok", {"london"}),
        ("args.city:London NOT state:open", {"london"}),
        ("args.city:* NOT args.city:Paris", {"london", "open"}),
        ("NOT args.city:London", {"paris", "bare"}),
        ("output.rows[*].id:2", {"paris"}),
        ("args.city:Paris OR output.rows[0].id:1", {"london", "paris"}),
        ("(args.city:Paris OR output.rows[0].id:1) tool:l*", {"london"}),
        ("NOT output.rows:*", {"open", "bare"}),
        ("args.city:nowhere", set()),
    ],
)
def test_calls_are_matched_by_payload_in_list_count_export_api_and_tail(
    recorded: Cast, query: str, expected: set[str]
) -> None:
    assert set(search(recorded, query)) == expected
    count = signed_in(recorded.editor).get("/calls/count", {"q": query}).content.decode()
    assert text(count) == f"{len(expected)}"
    file = b"".join(signed_in(recorded.editor).get("/calls/export.ndjson", {"q": query}))
    exported = [json.loads(line) for line in file.splitlines()]
    assert {call["tool_name"] for call in exported[:-1]} == expected
    assert exported[-1] == {"count": len(expected)}
    _, key = create_key(recorded.tenant, "reader", [Scope.READ, Scope.PAYLOADS])
    answer = Client().get("/api/v1/calls", {"q": query}, headers={"Authorization": f"Bearer {key}"})
    assert {call["tool_name"] for call in answer.json()["calls"]} == expected
    tail = {"q": query, "since": (NOW - timedelta(hours=1)).isoformat()}
    live = signed_in(recorded.editor).get("/calls/tail", tail).content.decode()
    assert set(listed(live)) == expected


def test_open_calls_are_matched_by_payload(recorded: Cast) -> None:
    assert search(recorded, "args.city:London", address="/calls/open") == ["open"]
    assert search(recorded, "args.city:Paris", address="/calls/open") == []


@pytest.mark.parametrize("role", [Role.VIEWER, Role.AUDITOR])
def test_roles_without_payload_access_are_rejected(recorded: Cast, role: Role) -> None:
    client = signed_in(getattr(recorded, role.value))
    for address in ("/calls/", "/calls/?live=1", "/calls/open"):
        page = client.get(address, {"q": "tool:l* args.city:London"}).content.decode()
        assert "Only members who can see payloads can use args. and output." in page
        assert listed(page) == []
    count = client.get("/calls/count", {"q": "args.city:London"}).content.decode()
    assert text(count) == "Invalid query. Nothing was searched."
    assert client.get("/calls/export.csv", {"q": "args.city:London"}).status_code == 400
    client.post("/calls/views", {"q": "args.city:London", "name": "London"})
    assert "London" not in client.get("/calls/").content.decode()


def test_key_without_payloads_scope_is_rejected(recorded: Cast) -> None:
    _, key = create_key(recorded.tenant, "reader", [Scope.READ])
    for path in ("/api/v1/calls", "/api/v1/open"):
        answer = Client().get(
            path, {"q": "args.city:London"}, headers={"Authorization": f"Bearer {key}"}
        )
        assert (answer.status_code, answer.json()["code"]) == (422, "query")


def test_calls_are_not_matched_for_another_tenant(recorded: Cast, globex: Cast) -> None:
    assert search(globex, "args.city:London") == []
    assert search(globex, "NOT args.city:Paris") == []


@pytest.mark.slow
def test_payload_queries_are_logged_once_a_minute_without_values() -> None:
    cast = make_cast("acme")
    send_events(cast.tenant, make_call(args={"city": "London"}))
    for _ in range(3):
        search(cast, "tool:x args.city:London")
        signed_in(cast.editor).get("/calls/tail", {"q": "args.city:London"})
    search(cast, "tool:x")
    b"".join(signed_in(cast.editor).get("/calls/export.csv", {"q": "args.city:London"}))
    with tenant_scope(cast.tenant.id):
        logged = [
            (each.verb, each.details["query"])
            for each in Action.objects.filter(tenant_id=cast.tenant.id).order_by("at")
            if each.verb in {"payload.query", "call.export"}
        ]
    assert ("call.export", "args.city:…") in logged
    queries = [query for verb, query in logged if verb == "payload.query"]
    assert 1 <= len(queries) <= 2, "a minute may have ended between the searches"
    assert set(queries) <= {"tool:x args.city:…", "args.city:…"}


def test_slow_search_reports_its_progress_and_continues(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few of many calls match: the search continues where it stopped, and returns each once."""
    monkeypatch.setattr(call_walk, "_PAYLOADS", 5)
    monkeypatch.setattr(call_walk, "_PAYLOAD_SECONDS", 0.0)
    send_events(
        acme.tenant,
        [
            event
            for n in range(40)
            for event in make_call(
                tool_name=f"t{n}",
                args={"n": n % 10},
                started_at=NOW - timedelta(minutes=n),
            )
        ],
    )
    wanted = parse("args.n:9", ANYBODY).wanted
    matches: list[str] = []
    before, requests = None, 0
    with tenant_scope(acme.tenant.id):
        while True:
            page = call_page(
                wanted, now=NOW, before=before, size=50, budget=Budget(seconds=0, first=10)
            )
            matches += [call.tool_name for call in page.calls]
            requests += 1
            if page.older is None:
                break
            assert page.searched_until is not None
            before = page.older
        assert matches == ["t9", "t19", "t29", "t39"]
        assert requests > 1
        patient = Budget(seconds=30)
        few = call_page(wanted, now=NOW, size=3, budget=patient)
        assert [call.tool_name for call in few.calls] == ["t9", "t19", "t29"]
        assert few.older is not None
        rest = call_page(wanted, now=NOW, size=3, before=few.older, budget=patient)
        assert [call.tool_name for call in rest.calls] == ["t39"]
        newer = call_page(wanted, now=NOW, size=3, after=rest.newer, budget=patient)
        assert [call.tool_name for call in newer.calls] == ["t9", "t19", "t29"]
        counted = count_calls(wanted, now=NOW, budget=patient)
        assert (counted.count, counted.until) == (4, None)


def test_erased_or_damaged_payload_matches_nothing(acme: Cast) -> None:
    for tool in ("kept", "erased", "damaged"):
        send_events(acme.tenant, make_call(tool_name=tool, args={"city": "London"}))
    with connections["owner"].cursor() as cursor:
        for tool, payload in (("erased", None), ("damaged", b"\x28\xb5\x2f\xfd broken")):
            cursor.execute(
                "UPDATE batch SET payload = %s WHERE (tenant_id, batch_id) ="
                " (SELECT tenant_id, start_batch_id FROM invocation"
                "  WHERE tenant_id = %s AND tool_name = %s)",
                [payload, acme.tenant.id, tool],
            )
            assert cursor.rowcount == 1
    with tenant_scope(acme.tenant.id):
        assert Batch.objects.for_tenant(acme.tenant.id).count() == 3
    assert search(acme, "args.city:London") == ["kept"]
    assert search(acme, "NOT args.city:Paris") == ["kept"]
    empty = signed_in(acme.editor).get("/calls/", {"q": "args.city:Paris"}).content.decode()
    assert "Calls without a payload (erased or damaged) are excluded." in text(empty)


@pytest.mark.slow
def test_calls_are_erased_by_a_payload_term(acme: Cast) -> None:
    for customer in ("jane", "john"):
        send_events(acme.tenant, make_call(tool_name=customer, args={"customer": customer}))
    client = signed_in(acme.admin)
    params = {"q": "args.customer:jane since:yesterday"}
    answer = client.post("/settings/erasures/start", params)
    assert answer.status_code == 302
    with tenant_scope(acme.tenant.id):
        (one,) = Erasure.objects.for_tenant(acme.tenant.id)
    assert re.fullmatch(r"args\.customer:jane since:\d{4}-\d\d-\d\dT[\d:]+Z", one.query)
    while erasure_job.run_slice(acme.tenant.id, one.id):
        pass
    with tenant_scope(acme.tenant.id):
        stored = Erasure.objects.for_tenant(acme.tenant.id).get(id=one.id)
        assert (stored.state, stored.call_count) == ("counted", 1)
    assert search(acme, "args.customer:*") == ["john", "jane"]
    confirm_erasure(acme, one.id)
    run_erasure(acme, one.id)
    assert read_erasure(acme, one.id).erased_calls == 1
    assert search(acme, "args.customer:*") == ["john"]
    assert [b"jane" in each for each in event_texts(acme) if each] == [False, False]
