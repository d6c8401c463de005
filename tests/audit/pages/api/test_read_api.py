"""The read API: paging, problems, payloads, and figures equal to those of the pages."""

import base64
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from audit.exports.call_document import COLUMNS
from audit.pages.show.schemas import Call
from config.http.problems import KINDS, MEDIA_TYPE
from config.openapi import description
from tenants.keys import create_key
from tenants.models import Scope
from tests.support.api_record import (
    PAYLOAD,
    VIOLATION,
    Record,
    make_record,
)
from tests.support.contracts import make_contract
from tests.support.event_requests import post
from tests.support.factories import (
    Cast,
    make_call,
    make_ingest_key,
    send_events,
)
from tests.support.pages import signed_in


@pytest.fixture(scope="module")
def record() -> Record:
    """A tenant with every kind of data; tests only read it."""
    from tests.support.factories import make_cast

    return make_record(make_cast("acme"))


def reader(cast: Cast) -> Client:
    """A client with a key that may read everything."""
    key = create_key(cast.tenant, "reader", [Scope.READ, Scope.PAYLOADS])[1]
    return Client(headers={"Authorization": f"Bearer {key}"})


# for each list: path, member, the name that identifies a row, and what adds a row
type Grow = Callable[[Cast, int], None]


def _grow_calls(cast: Cast, n: int) -> None:
    guard = {"strategy": "warn", "outcome": "passed", "violations": [VIOLATION]}
    at = datetime.now(UTC) - timedelta(seconds=60 - n)
    send_events(cast.tenant, make_call(trace_id=f"trace-{n}", started_at=at, guard=guard))


def _grow_open(cast: Cast, n: int) -> None:
    at = datetime.now(UTC) - timedelta(seconds=60 - n)
    send_events(cast.tenant, make_call(is_open=True, started_at=at))


def _grow_producers(cast: Cast, n: int) -> None:
    send_events(cast.tenant, make_call(producer_id=f"executor-{n}", producer_seq=1)[:1])


def _grow_inbox(cast: Cast, n: int) -> None:
    post(make_ingest_key(cast.tenant), json.dumps({"type": "neither", "n": n}).encode())


def _grow_tools(cast: Cast, n: int) -> None:
    key = create_key(cast.tenant, "executor", [Scope.REGISTRY])[1]
    contract = make_contract(name=f"tool-{9 - n}")
    Client(headers={"Authorization": f"Bearer {key}"}).post(
        "/api/v1/tools", {"tools": [contract]}, content_type="application/json"
    )


LISTS = pytest.mark.parametrize(
    ("path", "rows", "name", "grow"),
    [
        ("calls", "calls", "invocation_id", _grow_calls),
        ("traces", "traces", "trace_id", _grow_calls),
        ("violations/rows", "rows", "invocation_id", _grow_calls),
        ("open", "calls", "invocation_id", _grow_open),
        ("producers", "producers", "producer_id", _grow_producers),
        ("inbox", "lines", "id", _grow_inbox),
        ("tools", "tools", "name", _grow_tools),
    ],
)


@pytest.mark.slow
@LISTS
def test_paging_is_stable_while_rows_arrive(
    acme: Cast, path: str, rows: str, name: str, grow: Grow
) -> None:
    for n in range(5):
        grow(acme, n)
    client = reader(acme)
    whole = [row[name] for row in client.get(f"/api/v1/{path}").json()[rows]]
    assert len(whole) == len(set(whole)) == 5
    listed: list[str] = []
    address: str | None = f"/api/v1/{path}?limit=2"
    while address:
        answer = client.get(address)
        page = answer.json()
        listed += [row[name] for row in page[rows]]
        if len(listed) == 2:
            grow(acme, 7)
        link = re.search(r'<([^>]+)>; rel="next"', answer.headers.get("Link", ""))
        assert (link is not None) == (page["next"] is not None)
        address = link[1] if link else None
    assert listed == whole


def _sealed(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@LISTS
@pytest.mark.parametrize(
    "cursor",
    [
        "abc",
        "ä",
        "=" * 10,
        "A" * 5000,
        "\x00",
        _sealed("elsewhere\n2026-11-20T10:00:00+00:00,x"),
        _sealed("{of}"),
        _sealed("{of}\n\x00"),
        _sealed("{of}\n9999-99-99T00:00:00+00:00,x"),
        _sealed("{of}\n0001-01-01T00:00:00+00:00\nx\n1"),
        _sealed("{of}\n2026-11-20T10:00:00\n00000000-0000-0000-0000-000000000000\n-1"),
    ],
)
def test_forged_cursor_is_rejected_or_harmless(
    record: Record, path: str, rows: str, name: str, grow: Grow, cursor: str
) -> None:
    of = {"violations/rows": "violations", "open": "calls"}.get(path, path)
    try:
        inner = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        cursor = _sealed(inner.replace("{of}", of)) if "{of}" in inner else cursor
    except ValueError:
        pass
    answer = record.get(path, cursor=cursor)
    if (
        answer.status_code != 200 or path != "tools"
    ):  # names are sorted, so any text is a valid cursor
        assert (answer.status_code, answer.json()["code"]) == (422, "cursor")


@LISTS
@pytest.mark.parametrize("place", ["{at},{id}", "{at}\n{id}\n1", "{at}\nexecutor"])
def test_cursor_with_an_offset_that_postgresql_refuses_is_no_error(
    record: Record, path: str, rows: str, name: str, grow: Grow, place: str
) -> None:
    of = {"violations/rows": "violations", "open": "calls"}.get(path, path)
    text = place.format(at="2026-11-20T10:00:00+23:59", id=UUID(int=1))
    assert record.get(path, cursor=_sealed(f"{of}\n{text}")).status_code in (200, 422)


@LISTS
@pytest.mark.parametrize("limit", ["0", "-1", "1001", "x", "9" * 400])
def test_limit_out_of_bounds_is_rejected(
    record: Record, path: str, rows: str, name: str, grow: Grow, limit: str
) -> None:
    answer = record.get(path, limit=limit)
    assert (answer.status_code, answer.json()["code"]) == (422, "limit")


@pytest.mark.parametrize(
    "path",
    [
        *("summary", "violations", "violations/rows", "latency", "tokens", "repeats", "producers"),
        *("agents", "conversations"),
    ],
)
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"range": "36h"}, 200),
        ({"range": "90d"}, 200),
        ({"from": "2026-11-20", "to": "2026-11-21"}, 200),
        ({"from": "2026-11-20T10:00:00+05:45"}, 200),
        ({"range": "5x"}, 422),
        ({"range": "401d"}, 422),
        ({"range": "0h"}, 422),
        ({"from": "yesterday"}, 422),
        ({"from": "2026-11-21", "to": "2026-11-20"}, 422),
        ({"to": "2026-11-20"}, 422),
    ],
)
def test_range_accepts_any_length_or_two_timestamps(
    record: Record, path: str, query: dict[str, str], status: int
) -> None:
    answer = record.get(path, **query)
    assert answer.status_code == status
    if status != 200:
        assert answer.json()["code"] == "range"
    elif path != "violations/rows":
        bounds = [datetime.fromisoformat(answer.json()[name]) for name in ("from", "to")]
        assert bounds == sorted(bounds)
        assert all(bound.utcoffset() == timedelta() for bound in bounds)


def test_repeats_examine_the_requested_number_of_calls(acme: Cast) -> None:
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    for ago in (0, 0, 1, 1, 1, 2):
        at = hour - timedelta(hours=ago)
        send_events(acme.tenant, make_call(call_id="a" * 64, started_at=at))
    client = reader(acme)

    def counted(**parameters: int) -> tuple[int, datetime]:
        query: dict[str, str | int] = {"range": "24h", **parameters}
        document = client.get("/api/v1/repeats", query).json()
        return document["repeated_calls"], datetime.fromisoformat(document["from"])

    assert counted()[0] == 6
    assert counted(max_calls=5) == (5, hour - timedelta(hours=1))
    assert (
        counted(max_calls=4) == counted(max_calls=1) == (2, hour)
    )  # the newest hour is counted as a whole
    assert client.get("/api/v1/repeats", {"max_calls": 0}).status_code == 422


def test_misspelled_filter_is_rejected(record: Record) -> None:
    document = record.get("violations", tol="search").json()
    assert (document["code"], document["parameter"]) == ("parameter", "tol")
    assert "tool" in document["detail"]


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "code"),
    [
        ("GET", "/api/v1/calls", {"Authorization": ""}, 401, "missing_key"),
        ("GET", "/api/v1/calls", {"Authorization": "Bearer nonsense"}, 401, "malformed_key"),
        ("POST", "/api/v1/events", {}, 403, "missing_scope"),
        ("GET", "/api/v1/nowhere", {}, 404, "not_found"),
        ("GET", f"/api/v1/calls/{'0' * 8}-0000-0000-0000-{'0' * 12}", {}, 404, "not_found"),
        ("GET", "/api/v1/calls/nonsense", {}, 404, "not_found"),
        ("GET", "/api/v1/traces/nobody%00", {}, 404, "not_found"),
        ("DELETE", "/api/v1/calls", {}, 405, "method_not_allowed"),
        ("POST", "/api/v1/openapi.json", {}, 405, "method_not_allowed"),
        ("GET", "/api/v1/calls?q=nope:1", {}, 422, "query"),
        ("GET", "/api/v1/traces?state=nope", {}, 422, "parameter"),
        ("GET", f"/api/v1/calls/{'0' * 8}-0000-0000-0000-{'0' * 12}?day=x", {}, 422, "parameter"),
        ("GET", "/api/v1/summary", {"Host": "evil.example"}, 400, "bad_request"),
    ],
)
def test_every_error_is_a_problem_document(
    record: Record, method: str, path: str, headers: dict[str, str], status: int, code: str
) -> None:
    given = {"Authorization": f"Bearer {record.reader}", **headers}
    answer = Client(enforce_csrf_checks=True).generic(method, path, headers=given)
    document = answer.json()
    assert answer["Content-Type"] == MEDIA_TYPE
    assert (answer.status_code, document["status"], document["code"]) == (status, status, code)
    assert (document["title"], document["type"]) == (KINDS[code].title, f"/api/v1/docs#{code}")
    assert document["detail"] == document["message"] != ""
    if status == 405:
        assert method not in answer["Allow"]
    if status == 401:
        assert answer["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.slow
def test_api_documentation_has_an_anchor_for_every_link() -> None:
    page = Client().get("/api/v1/docs").content.decode()
    anchors = set(re.findall(r'id="([^"]+)"', page))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= anchors
    assert set(KINDS) <= anchors
    operations = [one for methods in description()["paths"].values() for one in methods.values()]
    assert {one["operationId"] for one in operations} <= anchors
    assert all(one["tags"] and one["description"] for one in operations)
    for one in operations:
        assert all(each.get("description") for each in one["parameters"] if each["in"] == "query")


def test_api_description_names_every_member_of_a_call() -> None:
    assert set(Call.model_fields) == set(COLUMNS)


LISTED = ("calls", "open", "traces", "violations/rows", "inbox?state=all")


def _addresses(record: Record) -> list[str]:
    """Addresses of everything that may contain or quote a payload."""
    return [*LISTED, f"calls/{record.failed}", "traces/a%2Ftrace", f"inbox/{record.refused}"]


def test_payloads_require_the_payloads_scope(record: Record) -> None:
    for address in _addresses(record):
        plain, whole = record.get(address, key=record.reader), record.get(address)
        assert (plain.status_code, whole.status_code) == (200, 200), address
        assert PAYLOAD not in plain.content.decode(), address
        assert plain.json()["withheld"] is True
        assert whole.json()["withheld"] is False
        assert (PAYLOAD in whole.content.decode()) == (address != "open"), address


def test_payloads_scope_alone_gives_no_access(record: Record) -> None:
    key = create_key(record.cast.tenant, "odd", [Scope.PAYLOADS])[1]
    assert record.get("calls", key=key).json()["code"] == "missing_scope"


def test_payload_is_returned_unchanged(acme: Cast) -> None:
    start, end = make_call()
    args = '{"n": 1e400, "n": 123456789012345678901234567890, "s": "\\ud800\\u0000"}'
    line = json.dumps({**start, "args": "…"}).replace('"\\u2026"', args)
    key = make_ingest_key(acme.tenant)
    assert post(key, line.encode()).json()["accepted"] == 1
    send_events(acme.tenant, [end], key=key)
    answer = reader(acme).get(f"/api/v1/calls/{start['invocation_id']}")
    assert args in answer.content.decode()
    document = answer.json()
    assert document["start"]["size"] == len(line)
    day = start["started_at"][:10]
    again = reader(acme).get(f"/api/v1/calls/{start['invocation_id']}?day={day}")
    assert again.content == answer.content
    assert (
        reader(acme).get(f"/api/v1/calls/{start['invocation_id']}?day=2020-01-01").status_code
        == 404
    )


@pytest.mark.slow
def test_api_figures_match_the_pages(record: Record) -> None:
    client = signed_in(record.cast.auditor)

    def page(path: str) -> str:
        return " ".join(re.sub(r"<[^>]+>", " ", client.get(path).content.decode()).split())

    of: dict[str, Any] = {"from": f"{record.at - timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"}
    summary = record.get("summary", **of).json()
    assert f"Calls {summary['calls']} {summary['open']} open" in page("/?range=24h")
    tally = record.get("open").json()["tally"]
    assert f"All open {tally['open']} Running {tally['running']}" in page("/calls/open")
    latency, tokens = record.get("latency", **of).json(), record.get("tokens", **of).json()
    assert summary["calls"] == latency["total"]["calls"] == tokens["total"]["calls"]
    assert sum(part["calls"] for part in latency["parts"]) == summary["calls"]
    assert sum(part["tokens"] for part in tokens["parts"]) == tokens["total"]["tokens"]
    for name in ("prompt_tokens", "completion_tokens"):
        assert summary[name] == latency["total"][name] == tokens["total"][name]
    breakdown = record.get("violations", **of).json()
    rows = record.get("violations/rows", **of).json()["rows"]
    assert summary["violations"] == breakdown["total"] == len(rows) == 1
    for path, rows_name, name, shown in (
        ("calls", "calls", "invocation_id", "/calls/"),
        ("traces", "traces", "trace_id", "/traces/"),
        ("tools", "tools", "name", "/tools/"),
        ("inbox", "lines", "id", "/inbox/"),
    ):
        html = client.get(shown).content.decode()
        for row in record.get(path).json()[rows_name]:
            assert str(row[name]).replace("/", "%252F") in html or str(row[name]) in html, path


def test_traces_are_filtered_like_on_their_page(record: Record) -> None:
    def ids(**query: str) -> set[str]:
        return {one["trace_id"] for one in record.get("traces", **query).json()["traces"]}

    assert ids(state="failed") == ids(trace="a/") == {"a/trace"}
    assert ids(state="open") == {"b"}
    assert ids(range="1m") == set()
    assert len(ids(state="ok")) == 8
    cut = record.get("traces/loop", limit=2).json()
    assert (cut["is_cut"], len(cut["calls"]), cut["calls_completed"]) == (True, 2, 3)


def test_binary_inbox_line_is_base64(acme: Cast) -> None:
    post(make_ingest_key(acme.tenant), b'{"type": "\xff\xfe"}')
    client = reader(acme)
    (line,) = client.get("/api/v1/inbox").json()["lines"]
    document = client.get(f"/api/v1/inbox/{line['id']}").json()
    assert document["raw"] is None
    assert base64.b64decode(document["raw_base64"]) == b'{"type": "\xff\xfe"}'
