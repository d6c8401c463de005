"""What all answers of the API have: ETag, HEAD, Link, CORS, limits of the rate."""

import json
import re
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.test.utils import override_settings

from config.http.quota import Quota
from config.openapi import description
from tenants.keys import create_key
from tenants.models import Scope
from tests.support.factories import Cast, make_call, make_ingest_key, send_events

_IDS = {"number": "1", "index": "1", "position": "1", "name": "0"}
"""What stands in addresses for parameters that are no UUIDs."""
ORIGIN = "https://board.example.org"


def _reader(cast: Cast, *more: Scope) -> Client:
    key = create_key(cast.tenant, "reader", [Scope.READ, *more])[1]
    return Client(headers={"Authorization": f"Bearer {key}"})


def test_answer_is_not_sent_again_until_it_changes(acme: Cast) -> None:
    client = _reader(acme)
    send_events(acme.tenant, make_call())
    first = client.get("/api/v1/calls")
    same = client.get("/api/v1/calls", headers={"If-None-Match": first["ETag"]})
    assert (same.status_code, same.content) == (304, b"")
    send_events(acme.tenant, make_call())
    changed = client.get("/api/v1/calls", headers={"If-None-Match": first["ETag"]})
    assert changed.status_code == 200
    assert len(changed.json()["calls"]) == 2


def test_answers_with_payloads_are_stored_nowhere(acme: Cast) -> None:
    plain, full = _reader(acme), _reader(acme, Scope.PAYLOADS)
    assert plain.get("/api/v1/calls")["Cache-Control"] == "private, no-cache"
    assert full.get("/api/v1/calls")["Cache-Control"] == "no-store"
    assert "Authorization" in plain.get("/api/v1/calls")["Vary"]
    assert Client().get("/api/v1/calls")["Cache-Control"] == "no-store"


def test_link_has_the_whole_address(acme: Cast) -> None:
    for _ in range(3):
        send_events(acme.tenant, make_call())
    answer = _reader(acme).get("/api/v1/calls?limit=1")
    assert answer["Link"].startswith("<http://testserver/api/v1/calls?limit=1&cursor=")


@pytest.mark.parametrize("path", ["calls", "summary", "evidence?range=1h", "tools"])
def test_head_is_as_get_without_the_body(path: str, acme: Cast) -> None:
    client = _reader(acme, Scope.PAYLOADS)
    send_events(acme.tenant, make_call())
    get, head = client.get(f"/api/v1/{path}"), client.head(f"/api/v1/{path}")
    assert head.status_code == get.status_code
    assert head["Content-Type"] == get["Content-Type"]
    assert head.getvalue() == b""
    assert Client().head(f"/api/v1/{path}").status_code == 401


@pytest.mark.slow
@override_settings(LOG_REQUESTS=True)
def test_each_operation_answers_with_the_id_of_its_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Also a refusal. The id is in the server's log."""
    caplog.set_level("INFO", logger="tooltrail.request")
    number = 0
    for path, methods in description()["paths"].items():
        address = re.sub(r"\{(\w+)\}", lambda name: _IDS.get(name[1], str(uuid4())), path)
        for method, operation in methods.items():
            number += 1
            answer = Client().generic(
                method.upper(), address, headers={"X-Request-ID": f"request-{number}"}
            )
            assert answer.status_code == 401, (operation["operationId"], answer.content)
            assert answer["X-Request-ID"] == f"request-{number}"
            assert all("X-Request-ID" in one["headers"] for one in operation["responses"].values())
    logged = [record for record in caplog.records if record.name == "tooltrail.request"]
    assert len(logged) == number


def test_post_is_not_run_by_head(acme: Cast) -> None:
    assert _reader(acme).head("/api/v1/events").status_code == 405


def test_no_origin_is_allowed_by_default(acme: Cast) -> None:
    preflight = {"Origin": ORIGIN, "Access-Control-Request-Method": "GET"}
    for answer in (
        _reader(acme).get("/api/v1/calls", headers={"Origin": ORIGIN}),
        Client().options("/api/v1/calls", headers=preflight),
    ):
        assert not [name for name in answer.headers if name.startswith("Access-Control-")]


@override_settings(CORS_ORIGINS=[ORIGIN])
def test_named_origins_may_use_the_api_and_no_page(acme: Cast) -> None:
    client = _reader(acme)
    preflight = {"Origin": ORIGIN, "Access-Control-Request-Method": "GET"}
    asked = Client().options("/api/v1/calls", headers=preflight)
    assert asked.status_code == 204
    assert "Authorization" in asked["Access-Control-Allow-Headers"]
    answer = client.get("/api/v1/calls", headers={"Origin": ORIGIN})
    assert answer["Access-Control-Allow-Origin"] == ORIGIN
    assert "Access-Control-Allow-Credentials" not in answer
    assert "Origin" in answer["Vary"]
    other = client.get("/api/v1/calls", headers={"Origin": "https://evil.example.org"})
    assert "Access-Control-Allow-Origin" not in other
    page = client.get("/login", headers={"Origin": ORIGIN})
    assert "Access-Control-Allow-Origin" not in page


def test_answers_to_events_tell_what_is_left(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(headers={"Authorization": f"Bearer {make_ingest_key(acme.tenant)}"})
    body = b"\n".join(json.dumps(event).encode() for event in make_call())

    def send() -> Any:
        return client.post("/api/v1/events", body, content_type="application/x-ndjson")

    assert "RateLimit" not in send()
    limited = Quota[object](0.1)
    monkeypatch.setattr("audit.intake.api.quota", lambda: limited)
    answer = send()
    assert answer["RateLimit-Policy"] == '"events";q=1;w=10'
    assert answer["RateLimit"] == '"events";r=0;t=20'  # it has sent one event more than it may
    assert Quota[str](0).headers("key") == {}
