"""The page of costs and the overview's tile: amounts, and calls without a price."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape
from importlib.metadata import version

import pytest
from django.test import Client

from audit.prices.lists import save_list
from audit.queries.price_lists import ModelPrice, ToolPrice
from audit.show.figures import money
from tenants.keys import create_key
from tenants.models import Action, Scope
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, make_decision, make_ingest_key, send_events
from tests.support.otlp_requests import JSON, post, request, span
from tests.support.pages import signed_in
from tests.support.registered_tools import register_tool
from tests.support.reports import make


def priced(cast: Cast, *prices: ToolPrice, models: Sequence[ModelPrice] = ()) -> None:
    day = (datetime.now(UTC) - timedelta(days=2)).date()
    with tenant_scope(cast.tenant.id):
        save_list(cast.tenant, cast.admin, day, "EUR", prices, datetime.now(UTC), models=models)


def text_of(page: str) -> str:
    """The words of a page."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def test_without_a_list_no_cost_is_shown(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    page = signed_in(acme.viewer).get("/costs/").content.decode()
    assert "No price list yet" in page
    assert "An admin can create one." in page
    assert "Cost</h2>" not in signed_in(acme.viewer).get("/").content.decode()


def test_calls_without_a_price_are_counted_and_not_free(acme: Cast) -> None:
    priced(acme, ToolPrice("search", Decimal("0.004")))
    start = datetime.now(UTC) - timedelta(minutes=5)
    events = [
        *make_call(tool_name="search", tool_version="1", started_at=start),
        *make_call(tool_name="search", tool_version="2", started_at=start, is_error=True),
        *make_call(tool_name="mystery", started_at=start, trace_id="t-2"),
    ]
    events[0]["context"] = {"agent": "planner", "agent_version": "7", "model": "m-1"}
    send_events(acme.tenant, events)
    client = signed_in(acme.viewer)
    page = client.get("/costs/", {"range": "1h"})
    words = text_of(page.content.decode())
    assert "EUR 0.00800" in words
    assert re.search(r"Prices were last changed .* in the list from 20\d\d-", words)
    assert "1 call without a price" in words
    assert "2 of 3 completed" in words
    assert "mystery – 1 1 no price" in words
    assert "search 2 versions 2 0 EUR 0.00800" in words
    assert "planner 7 1 0 EUR 0.00400" in words
    overview = text_of(client.get("/", {"range": "1h"}).content.decode())
    assert "Cost EUR 0.00800 1 call without a price" in overview


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "EUR 0.00"),
        ("0.000004", "EUR 0.00000400"),
        ("0.5", "EUR 0.500"),
        ("1", "EUR 1.00"),
        ("1234.5", "EUR 1,234.50"),
    ],
)
def test_no_cost_looks_like_none(amount: str, text: str) -> None:
    assert money(Decimal(amount), "EUR").replace("\N{NO-BREAK SPACE}", " ") == text


def answered(cast: Cast, model: str, trace_id: str = "", **attributes: str) -> None:
    within = {"traceId": trace_id} if trace_id else {}
    body = request(
        span(
            "chat",
            **within,
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "openai",
                "gen_ai.request.model": model,
                "gen_ai.usage.input_tokens": {"intValue": 1_000_000},
                "gen_ai.usage.output_tokens": {"intValue": 2_000},
                **attributes,
            },
        )
    )
    assert post(make_ingest_key(cast.tenant), body, JSON).status_code == 200


def test_tokens_of_models_are_apart_from_the_costs_of_tools(acme: Cast) -> None:
    answered(acme, "gpt-4o", **{"gen_ai.agent.name": "planner", "gen_ai.conversation.id": "c-1"})
    answered(acme, "<b>of-our-own</b>")
    page = signed_in(acme.viewer).get("/costs/", {"range": "1h"}).content.decode()
    words = text_of(page)
    assert "No price list yet" in words
    assert f"the prices of genai-prices {version('genai-prices')}" in words
    assert "Cost of models USD 2.52 1 answer without a price" in words
    assert "gpt-4o openai 1 1,000,000 0 2,000 0 USD 2.52" in words
    assert "<b>of-our-own</b>" not in page
    assert "planner 1 1 M 0 USD 2.52" in words
    document = Client().get("/api/v1/costs?range=1h", headers=reader(acme)).json()
    assert document["total"] is None
    tokens = document["tokens"]
    assert (tokens["currency"], tokens["prices_version"]) == ("USD", version("genai-prices"))
    assert tokens["total"] == {
        "answers": 2,
        "without_price": 1,
        "amount": "2.52",
        "input_tokens": 2_000_000,
        "cached_tokens": 0,
        "written_tokens": 0,
        "output_tokens": 4_000,
    }
    assert [one["name"] for one in tokens["newest"]["conversations"]] == ["c-1", None]


def test_a_list_in_another_currency_names_its_models_itself(acme: Cast) -> None:
    priced(acme, models=[ModelPrice("of-our-own", Decimal("0.5"), Decimal(1))])
    answered(acme, "gpt-4o")
    answered(acme, "of-our-own")
    words = text_of(signed_in(acme.viewer).get("/costs/", {"range": "1h"}).content.decode())
    assert "Only models that a price list names have a price." in words
    assert "Cost of models EUR 0.502 1 answer without a price" in words
    assert "gpt-4o openai 1 1,000,000 0 2,000 1 no price" in words


@pytest.mark.slow
def test_traces_conversations_and_agents_say_what_they_cost(acme: Cast) -> None:
    priced(
        acme, ToolPrice("search", Decimal("0.5")), models=[ModelPrice("m", Decimal(4), Decimal(0))]
    )
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    names = {"gen_ai.agent.name": "planner", "gen_ai.conversation.id": "c-1"}
    answered(acme, "m", trace_id=trace_id, **names)
    answered(acme, "unknown", trace_id=trace_id, **names)
    for tool in ("search", "search", "mystery"):
        events = make_call(
            tool_name=tool, trace_id=trace_id, started_at=datetime.now(UTC) - timedelta(minutes=5)
        )
        events[0] |= {"context": {"agent": "planner"}, "run_id": "c-1"}
        send_events(acme.tenant, events)
    client = signed_in(acme.viewer)
    trace = text_of(client.get(f"/traces/{trace_id}").content.decode())
    assert "Cost of tools EUR 1.00 1 call without a price" in trace
    assert "Cost of models EUR 4.00 1 answer without a price" in trace
    expected = (
        "Cost of tools: EUR 1.00 , 1 call without a price."
        " Cost of models: EUR 4.00 , 1 answer without a price."
    )
    assert expected in text_of(client.get("/conversations/c-1").content.decode())
    agents = client.get("/agents/", {"range": "1h"}).content.decode()
    assert "Cost of tools Cost of models" in text_of(agents)
    assert re.search(r"planner .* EUR 1\.00 EUR 4\.00", text_of(agents))
    one = text_of(client.get("/agents/", {"range": "1h", "agent": "planner"}).content.decode())
    assert expected in one
    overview = text_of(client.get("/", {"range": "1h"}).content.decode())
    assert "Cost of models EUR 4.00 1 answer without a price" in overview


def test_costs_of_a_query_are_those_of_its_calls(acme: Cast) -> None:
    priced(acme, ToolPrice("search", Decimal("0.5")))
    answered(acme, "gpt-4o")
    for tool, agent in (("search", "planner"), ("search", "writer"), ("mystery", "planner")):
        events = make_call(tool_name=tool, started_at=datetime.now(UTC) - timedelta(minutes=5))
        events[0]["context"] = {"agent": agent}
        send_events(acme.tenant, events)
    client, headers = Client(), reader(acme)
    found = client.get("/api/v1/costs?range=1h&q=agent:planner", headers=headers).json()
    assert found["total"] == {"calls": 2, "without_price": 1, "amount": "0.5"}
    assert [one["tool_name"] for one in found["tools"]] == ["search", "mystery"]
    assert [one["name"] for one in found["newest"]["agents"]] == ["planner"]
    assert (found["searched_until"], found["newest"]["is_complete"]) == (None, True)
    assert found["tokens"] is None
    assert client.get("/api/v1/costs?q=agent:a)", headers=headers).status_code == 422
    assert client.get("/api/v1/costs?q=args.city:Rome", headers=headers).status_code == 422


@pytest.mark.slow
def test_tools_and_tokens_say_what_calls_cost(acme: Cast) -> None:
    tool = register_tool(acme, name="search")
    client = signed_in(acme.viewer)
    assert "Cost, 24 h" not in text_of(client.get(f"/tools/{tool.pk}").content.decode())
    priced(
        acme, ToolPrice("search", Decimal("0.5")), models=[ModelPrice("m", Decimal(4), Decimal(0))]
    )
    answered(acme, "m")
    for name in ("search", "search", "mystery"):
        started_at = datetime.now(UTC) - timedelta(minutes=5)
        send_events(acme.tenant, make_call(tool_name=name, tool_version="1", started_at=started_at))
    assert "Cost, 24 h EUR 1.00" in text_of(client.get(f"/tools/{tool.pk}").content.decode())
    page = text_of(client.get("/latency/", {"range": "1h"}).content.decode())
    assert "Cost of tools: EUR 1.00 , 1 call without a price. Cost of models: EUR 4.00" in page
    assert re.search(r"search v1 .* EUR 1\.00", page)
    assert re.search(r"mystery v1 .* no price", page)
    one = text_of(client.get("/latency/", {"range": "1h", "tool": "search"}).content.decode())
    assert "Cost of tools: EUR 1.00 ." in one
    assert "Cost of models" not in one


@pytest.mark.slow
def test_reports_say_which_agents_made_the_calls(acme: Cast) -> None:
    def section(client: Client) -> str:
        report = make(signed_in(acme.admin), kind="range", range="1h")
        return text_of(client.get(f"/reports/{report}").content.decode())

    client = signed_in(acme.viewer)
    started_at = datetime.now(UTC) - timedelta(minutes=5)
    send_events(acme.tenant, make_call(started_at=started_at))
    assert "By agent" not in section(client)
    priced(
        acme, ToolPrice("search", Decimal("0.5")), models=[ModelPrice("m", Decimal(4), Decimal(0))]
    )
    answered(acme, "m", **{"gen_ai.agent.name": "planner"})
    for is_error in (False, True):
        events = make_call(tool_name="search", started_at=started_at, is_error=is_error)
        events[0]["context"] = {"agent": "planner", "environment": "<b>live</b>"}
        send_events(acme.tenant, events)
    words = section(client)
    assert re.search(r"planner 2 1 0 \S+ \S+ \S+ EUR 1\.00 EUR 4\.00", words)
    assert re.search(r"none reported 1 0 0 .* no price –", words)
    refusal = make_decision("denied", tool_name="search", context={"agent": "planner"})
    send_events(acme.tenant, [refusal])
    assert re.search(r"planner 2 1 0 \S+ 1 \S+ \S+ EUR 1\.00 EUR 4\.00", section(client))
    assert "By environment, most calls first" in words
    assert "<b>live</b> 2 1 0" in words


@pytest.mark.slow
def test_reports_say_what_tools_and_models_cost(acme: Cast) -> None:
    without = make(signed_in(acme.admin), kind="range", range="1h")
    client = signed_in(acme.viewer)
    assert "Calls without a price" not in text_of(
        client.get(f"/reports/{without}").content.decode()
    )
    models = [ModelPrice("m", Decimal(4), Decimal(0))]
    priced(acme, ToolPrice("search", Decimal("0.5")), models=models)
    answered(acme, "m")
    answered(acme, "<b>of-our-own</b>")
    for tool in ("search", "mystery"):
        started_at = datetime.now(UTC) - timedelta(minutes=5)
        send_events(acme.tenant, make_call(tool_name=tool, started_at=started_at))
    report = make(signed_in(acme.admin), kind="range", range="1h")
    page = client.get(f"/reports/{report}").content.decode()
    words = text_of(page)
    assert "Tools EUR 0.500 Calls without a price 1" in words
    assert "Models EUR 4.00 Answers without a price 1" in words
    assert "search 1 0 EUR 0.500" in words
    assert "mystery 1 1 no price" in words
    assert "m 1 1,000,000 2,000 0 EUR 4.00" in words
    assert "<b>of-our-own</b>" not in page


def reader(cast: Cast) -> dict[str, str]:
    with tenant_scope(cast.tenant.id):
        key = create_key(cast.tenant, "key", [Scope.READ], owner=cast.admin)[1]
    return {"Authorization": f"Bearer {key}"}


def test_export_has_the_sums_of_the_page_with_their_currency(acme: Cast) -> None:
    models = [ModelPrice("m-1", Decimal(3), Decimal(5))]
    priced(acme, ToolPrice("search", Decimal("0.004")), models=models)
    start = datetime.now(UTC) - timedelta(minutes=5)
    events = [
        *make_call(tool_name="search", tool_version="1", started_at=start),
        *make_call(tool_name="search", tool_version="2", started_at=start),
        *make_call(tool_name="=mystery", started_at=start),
    ]
    events[0]["context"] = {"agent": "planner", "agent_version": "7", "model": "m-1"}
    send_events(acme.tenant, events)
    tokens = {"input_tokens": 100, "output_tokens": 20}
    usage = {f"gen_ai.usage.{name}": {"intValue": n} for name, n in tokens.items()}
    answer = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"} | usage
    assert post(make_ingest_key(acme.tenant), request(span(attributes=answer)), JSON).rejected == 0
    client = signed_in(acme.viewer)
    body = client.get("/costs/export.ndjson", {"range": "24h"}).content
    *rows, count = [json.loads(line) for line in body.splitlines()]
    assert count == {"count": len(rows)}
    sums = {
        (row["of"], row["by"], row["name"], row["version"]): tuple(
            row[name] for name in ("count", "without_price", "cost", "currency")
        )
        for row in rows
    }
    assert sums["calls", "all", None, None] == (3, 1, "0.008", "EUR")
    assert sums["calls", "tool", "search", "2"] == (1, 0, "0.004", "EUR")
    assert sums["calls", "tool", "=mystery", None] == (1, 1, None, "EUR")
    assert sums["calls", "agent", "planner", "7"] == (1, 0, "0.004", "EUR")
    assert sums["answers", "model", "m-1", None] == (1, 0, "0.0004", "EUR")
    assert all(row["is_complete"] for row in rows)
    table = client.get("/costs/export.csv", {"range": "24h"}).content.decode()
    assert "calls,tool,'=mystery,,,1,1,,EUR,,,,,True" in table
    with tenant_scope(acme.tenant.id):
        assert Action.objects.filter(tenant=acme.tenant, verb="cost.export").exists()
    assert client.get("/costs/export.ndjson", {"range": "nonsense"}).status_code == 400
    assert client.get("/costs/export.xml").status_code == 404


def test_page_says_that_it_counts_the_newest_calls_and_the_export_more(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    priced(acme, ToolPrice("get_weather", Decimal("0.004")))
    context = {"agent": "planner"}
    send_events(acme.tenant, [one for _ in range(3) for one in make_call(context=context)])
    client = signed_in(acme.viewer)
    note = "The range has more calls."
    assert note not in text_of(client.get("/costs/").content.decode())
    monkeypatch.setattr("audit.pages.costs.views.CALLS_MAX", 2)
    words = text_of(client.get("/costs/").content.decode())
    assert f"{note} The figures below are of the newest 2, those of exports" in words
    assert re.search("planner [^a-z]*2 0 EUR 0.00800", words)
    body = client.get("/costs/export.ndjson").content.decode()
    (of_agent,) = [json.loads(line) for line in body.splitlines() if '"by": "agent"' in line]
    assert (of_agent["count"], of_agent["is_complete"]) == (3, True)
