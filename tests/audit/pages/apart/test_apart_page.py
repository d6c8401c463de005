"""The page and the API that say what sets calls apart."""

import random
import re
from datetime import UTC, datetime, timedelta
from html import unescape
from itertools import batched
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest
from django.test import Client

from tenants.keys import create_key
from tenants.models import Scope
from tests.support.factories import Cast, make_call, make_cast, send_events
from tests.support.pages import FRAME, HOSTILE, PARTIAL, signed_in, statements, text

SECRET = "payload7c2d"


@pytest.fixture(scope="module")
def cast() -> Cast:
    """Calls of three hours: those of version 4 of `search` fail in six of ten cases."""
    cast, rng = make_cast("apart"), random.Random(5)
    events = []
    for number in range(600):
        version = rng.choice("1234")
        is_bad = number % 3 > 0 and version == "4" and rng.random() < 0.6
        error = {"type": "UPSTREAM", "message": SECRET}
        broken = {"path": "$.id", "code": "WRONG_TYPE", "expected": "a", "received": SECRET}
        events += make_call(
            invocation_id=str(UUID(int=rng.getrandbits(128), version=4)),
            started_at=datetime.now(UTC) - timedelta(minutes=rng.randrange(1, 180)),
            tool_name="search" if number % 3 else "fetch",
            tool_version=version if number % 3 else "1",
            trace_id=f"trace-{rng.randrange(100)}",
            args={"city": SECRET},
            context={"agent": rng.choice(HOSTILE)},
            output={"status": "error", "error": error} if is_bad else {"status": "ok", "data": {}},
            guard={"strategy": "warn", "outcome": "passed", "violations": [broken]}
            if number % 5 == 1 and version == "3"
            else None,
            is_error=is_bad,
        )
    for part in batched(events, 200):
        send_events(cast.tenant, part)
    return cast


def _page(cast: Cast, **params: str) -> str:
    answer = signed_in(cast.viewer).get("/apart/", params, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def _named(page: str) -> list[str]:
    """The first cell of each row, as text."""
    return [text(cell) for cell in re.findall(r'<td class="lead value">(.*?)</td>', page, re.S)]


def test_the_cause_is_named_with_shares_and_its_calls(cast: Cast) -> None:
    page = _page(cast, q="state:failed tool:search", range="24h")
    assert _named(page)[0] == "Version 4"
    assert "100 % of the selection" in text(page)
    assert "all calls of the range" in text(page)
    address = unescape(re.findall(r'href="(/calls/[^"]*version%3A4)"', page)[0])
    query = parse_qs(urlsplit(address).query)["q"][0]
    shown = re.search(rf'href="{re.escape("/calls/")}[^"]*"\s+title="Selected[^>]*>(\d+)<', page)
    assert shown is not None
    listed = signed_in(cast.viewer).get("/calls/count", {"q": query}).content.decode()
    assert text(listed) == shown[1]


def test_the_others_are_calls_of_the_same_tool_unless_all_are_wanted(cast: Cast) -> None:
    beside_tool = text(_page(cast, q="state:failed tool:search", range="24h"))
    beside_all = text(_page(cast, q="state:failed tool:search", range="24h", beside="all"))
    others = r"selected calls with ([\d,]+) other calls"
    assert int(re.findall(others, beside_all)[0]) == int(re.findall(others, beside_tool)[0]) + 200


def test_what_the_query_says_itself_is_not_named(cast: Cast) -> None:
    page = _page(cast, q="state:failed", range="24h")
    titles = re.findall(r"Properties: (.*?)\.", text(page))[0].split(", ")
    assert not {"State", "Error type", "Error code"} & set(titles)
    assert "Version" in titles


def test_nothing_is_said_about_a_random_choice(cast: Cast) -> None:
    page = _page(cast, q="trace:trace-1* NOT state:failed", range="24h")
    assert "Nothing distinguishes these calls" in text(page)
    assert _named(page) == []


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("state:nonsense", "Nothing was compared"),
        ("state:refused", "Calls that did not run cannot be compared"),
        ("tool:nothing", "Too few calls to compare"),
        ("args.city:London", "Only members who can see payloads can use args."),
    ],
)
def test_a_query_that_cannot_be_compared_is_explained(cast: Cast, query: str, reason: str) -> None:
    assert reason in text(_page(cast, q=query, range="24h"))


def test_terms_on_payloads_are_refused_to_those_who_may_see_them(cast: Cast) -> None:
    page = signed_in(cast.admin).get("/apart/", {"q": "args.city:London", "range": "24h"})
    assert "payloads are not in the index" in text(page.content.decode())


def test_an_invalid_range_is_explained(cast: Cast) -> None:
    assert "Unknown range" in text(_page(cast, q="state:failed", range="1y"))


def test_the_list_of_calls_leads_here_with_its_range(cast: Cast) -> None:
    client = signed_in(cast.viewer)
    listed = client.get("/calls/", {"q": "state:failed since:24h"}).content.decode()
    (address,) = re.findall(r'href="(/apart/[^"]*)"', listed)
    answer = client.get(unescape(address))
    assert answer.status_code == 302
    assert parse_qs(urlsplit(answer["Location"]).query) == {"q": ["state:failed"], "range": ["24h"]}


def test_a_bare_time_is_compared_with_the_time_around_it(cast: Cast) -> None:
    now = datetime.now(UTC)
    since, until = now - timedelta(hours=2), now - timedelta(hours=1)
    query = f"since:{since:%Y-%m-%dT%H:%M:%SZ} until:{until:%Y-%m-%dT%H:%M:%SZ}"
    page = text(_page(cast, q=query))
    titles = re.findall(r"Properties: (.*?)\.", page)[0].split(", ")
    assert "Time" not in titles
    assert "Tool" in titles


def test_a_bar_of_a_chart_with_other_terms_is_its_own_range(cast: Cast) -> None:
    now = datetime.now(UTC)
    since, until = now - timedelta(hours=3), now
    query = f"since:{since:%Y-%m-%dT%H:%M:%SZ} until:{until:%Y-%m-%dT%H:%M:%SZ} state:failed"
    answer = signed_in(cast.viewer).get("/apart/", {"q": query})
    assert parse_qs(urlsplit(answer["Location"]).query).keys() == {"q", "from", "to"}


def test_kinds_of_violations_lead_here(cast: Cast) -> None:
    client = signed_in(cast.viewer)
    page = client.get("/violations/?range=24h").content.decode()
    addresses = re.findall(r'href="(/apart/[^"]*)"', page)
    shown = text(client.get(unescape(addresses[0])).content.decode())
    assert "other calls" in shown


def test_no_payload_is_shown_to_anybody(cast: Cast) -> None:
    for user in (cast.viewer, cast.auditor, cast.editor, cast.admin):
        page = signed_in(user).get("/apart/", {"q": "state:failed", "range": "24h"})
        assert SECRET not in page.content.decode()


def test_hostile_texts_are_escaped(cast: Cast) -> None:
    page = _page(cast, q="agent:*script* OR agent:<script>*", range="24h")
    assert "<script>alert(1)</script>" not in page


def test_it_takes_four_statements_more_than_the_frame(cast: Cast) -> None:
    client = signed_in(cast.viewer)
    with statements(FRAME + 4):  # of each side, how many calls there are and the calls
        client.get("/apart/", {"q": "state:failed", "range": "24h"})
    part = client.get("/apart/", {"q": "state:failed", "range": "24h"}, headers=PARTIAL)
    assert "<html" not in part.content.decode()


def _api(cast: Cast) -> Client:
    key = create_key(cast.tenant, "reader", [Scope.READ])[1]
    return Client(headers={"Authorization": f"Bearer {key}"})


def test_the_api_names_the_same(cast: Cast) -> None:
    answer = _api(cast).get("/api/v1/apart", {"q": "state:failed tool:search", "range": "24h"})
    document = answer.json()
    assert answer.status_code == 200
    first = document["set_apart"][0]
    assert first["values"] == [{"property": "version", "value": "4"}]
    assert first["share_selected"] == 1
    assert first["p"] < 1e-6
    assert document["beside_tool"] == "search"
    assert not document["is_sample"]
    assert document["selected"] + document["rest"] == document["calls"] == 400
    listed = _api(cast).get("/api/v1/calls", {"q": first["query"], "limit": 200}).json()
    assert len(listed["calls"]) == first["selected"]


@pytest.mark.parametrize("query", ["state:nonsense", "state:refused", "args.city:London", "("])
def test_the_api_refuses_what_it_cannot_compare(cast: Cast, query: str) -> None:
    answer = _api(cast).get("/api/v1/apart", {"q": query})
    assert answer.status_code == 422
    assert answer.json()["code"] == "query"
