"""The calls of two queries side by side: figures equal a recount, verdicts are the tests'."""

import random
import re
from datetime import UTC, datetime, timedelta
from html import unescape
from itertools import batched
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest
from django.test import Client

from tenants.keys import create_key
from tenants.models import Scope
from tests.support.factories import Cast, make_call, make_cast, send_events
from tests.support.pages import FRAME, HOSTILE, signed_in, statements, text

SECRET = "payload7c2d"
CALLS = 900


@pytest.fixture(scope="module")
def cast() -> Cast:
    """Calls of two days. Version 2 of an agent fails more often, is slower, has another model."""
    cast, rng = make_cast("compare"), random.Random(5)
    events: list[dict[str, Any]] = []
    for number in range(CALLS):
        version = rng.choice("12")
        is_bad = version == "2" and rng.random() < 0.3
        error = {"type": "UPSTREAM", "message": SECRET}
        events += make_call(
            invocation_id=str(UUID(int=rng.getrandbits(128), version=4)),
            started_at=datetime.now(UTC) - timedelta(minutes=rng.randrange(5, 2_800)),
            tool_name=rng.choice(["search", "fetch"]),
            trace_id=f"trace-{number}",
            duration_ms=rng.randrange(10, 20) * (20 if version == "2" else 1),
            args={"city": SECRET},
            context={
                "agent": "planner",
                "agent_version": version,
                "model": f"m-{version}",
                "environment": rng.choice(HOSTILE),
            },
            output={"status": "error", "error": error} if is_bad else {"status": "ok", "data": {}},
            is_error=is_bad,
        )
    for part in batched(events, 200):
        send_events(cast.tenant, part)
    return cast


VERSIONS = {"a": "agent-version:1", "b": "agent-version:2", "range": "7d"}


def _page(cast: Cast, **params: str) -> str:
    answer = signed_in(cast.viewer).get("/compare/", params)
    assert answer.status_code == 200
    return answer.content.decode()


def _rows(page: str) -> dict[str, list[str]]:
    """The cells of each measure."""
    body = page.split('id="measures"')[1].split("</table>")[0]
    rows = [
        [text(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.S)]
        for row in re.findall(r"<tr>(.*?)</tr>", body, re.S)
    ]
    return {row[0]: row[1:] for row in rows if row}


def test_two_versions_are_measured_tested_and_lead_to_their_calls(cast: Cast) -> None:
    page = _page(cast, **VERSIONS)
    rows = _rows(page)
    counts = {}
    for side, query in enumerate(
        re.findall(r'class="r num" data-label="[AB]">\s*<a href="([^"]*)"', page)
    ):
        q = parse_qs(urlsplit(unescape(query)).query)["q"][0]
        counts[side] = text(signed_in(cast.viewer).get("/calls/count", {"q": q}).content.decode())
    assert [rows["Calls"][0], rows["Calls"][1]] == [counts[0], counts[1]]
    assert sum(int(count) for count in counts.values()) == CALLS
    assert rows["Failed"][0] == "0 %"
    assert rows["Failed"][3].startswith("Higher in B")
    assert rows["p95 duration"][3].startswith("Higher in B")
    assert rows["Schema violations"][3].startswith("No significant difference")
    swapped = _rows(_page(cast, a=VERSIONS["b"], b=VERSIONS["a"], range="7d"))
    assert swapped["Failed"][3].startswith("Lower in B")


def test_what_else_differs_is_named(cast: Cast) -> None:
    page = _page(cast, **VERSIONS)
    named = [text(cell) for cell in re.findall(r'<td class="lead value">(.*?)</td>', page, re.S)]
    assert any("Model m-1" in each for each in named)
    assert not any("Agent version" in each for each in named), "both queries say it"


def test_two_ranges_outside_of_the_bars_range(cast: Cast) -> None:
    rows = _rows(_page(cast, a="since:2d until:1d", b="since:1d", range="1h"))
    assert int(rows["Calls"][0]) + int(rows["Calls"][1]) == CALLS
    assert "No significant difference" in rows["Failed"][3]


def test_a_measure_that_a_query_decides_is_left_out(cast: Cast) -> None:
    rows = _rows(_page(cast, a="state:failed", b="state:ok", range="7d"))
    assert "Failed" not in rows
    assert "p95 duration" in rows


def test_few_calls_have_no_verdict(cast: Cast) -> None:
    page = _page(cast, a="trace:trace-1", b="trace:trace-2", range="7d")
    assert "Not enough data" in _rows(page)["Failed"][3]
    assert "at least 10 calls each" in text(page)


@pytest.mark.parametrize("query", ["", "agent:planner", "since:1d agent-version:1 tool:search"])
def test_without_a_second_query_it_offers_some(cast: Cast, query: str) -> None:
    page = _page(cast, a=query, range="24h")
    offers = re.findall(r'<a class="btn" href="(/compare/\?a=[^"]*)">', page)
    assert len(offers) == 1 + query.count("agent")
    for address in offers:
        answer = signed_in(cast.viewer).get(unescape(address)).content.decode()
        assert "Calls" in _rows(answer)
        assert "Invalid query" not in answer


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ("state:nonsense", "tool:a", "Nothing was compared"),
        ("tool:a", "state:refused", "Calls that did not run cannot be compared"),
        ("tool:a", "args.city:London", "Only members who can see payloads can use args."),
        ("since:2026-01-01 until:2026-01-02", "until:2020-01-01", "The time of a query is empty"),
        ("since:2024-01-01", "tool:a", "cannot be longer than 400 days"),
    ],
)
def test_what_cannot_be_compared_is_explained(cast: Cast, a: str, b: str, reason: str) -> None:
    assert reason in text(_page(cast, a=a, b=b, range="24h"))


def test_nobody_sees_payloads_and_hostile_texts_are_escaped(cast: Cast) -> None:
    for user in (cast.viewer, cast.admin):
        answer = signed_in(user).get("/compare/", {"a": "tool:search", "b": "tool:fetch"})
        assert SECRET not in answer.content.decode()
    page = _page(cast, a="agent:<script>alert(1)</script>", b="agent:x")
    assert "<script>alert(1)</script>" not in page


def test_it_takes_four_statements_more_than_the_frame(cast: Cast) -> None:
    client = signed_in(cast.viewer)
    with statements(FRAME + 4):
        client.get("/compare/", VERSIONS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "params"),
    [
        ("/calls/", {"q": "state:failed since:24h"}),
        ("/agents/", {"range": "7d", "agent": "planner"}),
    ],
)
def test_pages_lead_here(cast: Cast, address: str, params: dict[str, str]) -> None:
    client = signed_in(cast.viewer)
    page = client.get(address, params).content.decode()
    links = re.findall(r'href="(/compare/[^"]*)"', page)
    assert links
    for link in links:
        answer = client.get(unescape(link)).content.decode()
        assert "Invalid query" not in answer
        assert "A and B" in answer


def _api(cast: Cast, path: str, **params: str) -> Any:
    key = create_key(cast.tenant, "reader", [Scope.READ])[1]
    return Client(headers={"Authorization": f"Bearer {key}"}).get(f"/api/v1/{path}", params)


def test_the_api_says_the_same(cast: Cast) -> None:
    answer = _api(cast, "compare/calls", **VERSIONS)
    assert answer.status_code == 200, answer.content
    document = answer.json()
    assert document["a"]["calls"] + document["b"]["calls"] == CALLS
    assert not document["a"]["is_sample"]
    verdicts = {one["measure"]: one["verdict"] for one in document["measures"]}
    assert verdicts == {
        "error_rate": "higher",
        "violation_rate": "no_significant_difference",
        "p95_ms": "higher",
    }
    failed = _api(cast, "calls", q="agent-version:2 state:failed", limit="200").json()["calls"]
    assert document["b"]["failed"] == len(failed)
    assert document["b"]["completed"] == document["b"]["read"]
    assert {"property": "model", "value": "m-1"} in [
        value
        for one in document["set_apart"]
        for values in (one["values"], *one["also"])
        for value in values
    ]


@pytest.mark.parametrize("query", ["state:nonsense", "state:refused", "args.city:London", "("])
def test_the_api_refuses_what_it_cannot_compare(cast: Cast, query: str) -> None:
    for params in ({"a": query, "b": "tool:a"}, {"a": "tool:a", "b": query}):
        answer = _api(cast, "compare/calls", **params)
        assert answer.status_code == 422
        assert answer.json()["code"] == "query"


def test_the_api_aligns_two_traces(cast: Cast) -> None:
    answer = _api(cast, "compare/traces", a="trace-1", b="trace-2")
    assert answer.status_code == 200, answer.content
    document = answer.json()
    assert (document["a"]["trace_id"], document["b"]["trace_id"]) == ("trace-1", "trace-2")
    both = [pair for pair in document["pairs"] if pair["a"] and pair["b"]]
    assert all(pair["slower_ms"] is not None for pair in both)
    assert document["pairs"]
    assert SECRET not in answer.content.decode()
    assert _api(cast, "compare/traces", a="trace-1", b="nowhere").status_code == 404
