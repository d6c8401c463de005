"""Agents, conversations and graphs: figures equal a recount, edges lead to their calls."""

import re
from collections import Counter
from datetime import UTC, timedelta
from html import unescape
from math import ceil
from random import Random
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone

from audit.models import Invocation
from audit.pages.agents import views as agents_page
from audit.queries import agents
from audit.queries.agents import agents_in, environments_in
from audit.queries.call_graph import NODES_MAX, graph_of_range, graph_of_trace
from audit.queries.call_list import call_page
from audit.queries.call_query import parse
from audit.queries.time_range import read
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, make_decision, send_events


def call(number: int, tool: str, agent: str = "", **members: Any) -> list[dict[str, Any]]:
    if agent:
        version, environment = members.pop("version", "1"), members.pop("environment", "")
        context = {"agent": agent, "agent_version": version, "environment": environment}
        members["context"] = context
    return make_call(invocation_id=str(UUID(int=number)), tool_name=tool, **members)


@pytest.fixture
def team(acme: Cast) -> Cast:
    """An agent that calls two tools; inside one of them runs another agent."""
    shared: dict[str, Any] = {"trace_id": "t-1", "run_id": "c-1"}
    inside = shared | {"parent_invocation_id": str(UUID(int=2))}
    send_events(
        acme.tenant,
        [
            *call(1, "search", "lead", **shared),
            *call(2, "delegate", "lead", version="2", **shared),
            *call(3, "search", "helper", is_error=True, **inside),
            *call(4, "fetch <b>", "helper", **inside),
            *call(5, "nested", "helper", trace_id="t-1", parent_invocation_id=str(UUID(int=4))),
            *call(6, "lonesome", trace_id="t-2", run_id="c-1"),
        ],
    )
    return acme


def signed_in(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.viewer)
    return client


def test_agents_are_listed_with_their_figures(team: Cast) -> None:
    page = signed_in(team).get("/agents/", {"range": "24h"})
    figures = {
        one.total.name: (one.total.calls, one.total.failed, [tool.name for tool in one.tools])
        for one in (each.agent for each in page.context["agents"])
    }
    assert figures == {
        "helper": (3, 1, ["fetch <b>", "nested", "search"]),
        "lead": (2, 0, ["delegate", "search"]),
        "": (1, 0, ["lonesome"]),
    }
    assert "fetch &lt;b&gt;" in page.content.decode()


def test_figures_of_agents_equal_a_recount(acme: Cast) -> None:
    rng, events = Random(4), []
    for number in range(300):
        agent = rng.choice(["", "lead", "helper"])
        events += call(
            number,
            rng.choice(["search", "fetch"]),
            agent,
            is_error=rng.random() < 0.2,
            duration_ms=rng.randrange(2, 900),
            is_open=rng.random() < 0.1,
            **(
                {"version": rng.choice("12"), "environment": rng.choice(("", "live", "test"))}
                if agent
                else {}
            ),
        )
    for at in range(0, len(events), 200):
        send_events(acme.tenant, events[at : at + 200])
    with tenant_scope(acme.tenant.id):
        calls = list(Invocation.objects.all())
        past_day = read({"range": "24h"}, now=timezone.now(), zone=UTC).range
        found, environments = agents_in(past_day), environments_in(past_day)
        of_lead = environments_in(past_day, "lead")
    assert {(one.name, one.calls, one.failed) for one in environments} == {
        (name, len(own), sum(one.state == "failed" for one in own))
        for name in ("", "live", "test")
        if (own := [one for one in calls if (one.environment or "") == name])
    }
    assert sum(one.calls for one in of_lead) == sum(one.agent == "lead" for one in calls)
    assert [each.total.name for each in found.agents] == [
        name for name, _ in Counter(each.agent or "" for each in calls).most_common()
    ]
    for each in found.agents:
        own = [one for one in calls if (one.agent or "") == each.total.name]
        for figures, of in [
            (each.total, own),
            *((tool, [one for one in own if one.tool_name == tool.name]) for tool in each.tools),
            *(
                (version, [one for one in own if (one.agent_version or "") == version.name])
                for version in each.versions
            ),
        ]:
            took = sorted(one.duration_us for one in of if one.duration_us is not None)
            assert figures.calls == len(of)
            assert figures.failed == sum(one.state == "failed" for one in of)
            assert figures.last_at == max(one.started_at for one in of)
            assert figures.p95_us == pytest.approx(took[ceil(0.95 * len(took)) - 1], rel=0.06)


def refusal(agent: str = "", decision: str = "denied", **members: Any) -> dict[str, Any]:
    context = {"agent": agent, "agent_version": members.pop("version", "1")} if agent else {}
    return make_decision(decision, context=context, **members)


def test_refused_calls_are_counted_by_agent_and_lead_to_them(team: Cast) -> None:
    asked = str(UUID(int=1))  # a call that ran, although it was denied
    send_events(
        team.tenant,
        [
            refusal("lead", tool_name="search"),
            refusal("lead", "overBudget", tool_name="<i>pay</i>", version="2"),
            refusal("lead", "awaiting"),
            refusal("lead", "denied", invocation_id=asked, trace_id="t-1"),
            refusal("strict"),
            refusal(),
        ],
    )
    client = signed_in(team)
    page = client.get("/agents/", {"range": "24h"})
    shown = {each.agent.total.name: each.agent.total for each in page.context["agents"]}
    assert {name: (one.calls, one.refused) for name, one in shown.items()} == {
        "lead": (2, 2),
        "strict": (0, 1),
        "": (1, 1),
        "helper": (3, 0),
    }
    queries = {each.agent.total.name: each.refused_query for each in page.context["agents"]}
    for name, calls in (("lead", 2), ("", 1), ("helper", 0)):
        with tenant_scope(team.tenant.id):
            assert len(call_page(parse(queries[name]).wanted, now=timezone.now()).calls) == calls
    one = client.get("/agents/", {"range": "24h", "agent": "lead"})
    refused = {each.figures.name: each.figures.refused for each in one.context["tools"]}
    assert refused == {"delegate": 0, "search": 1, "<i>pay</i>": 1}
    assert {each.name: each.refused for each, *_ in one.context["versions"]} == {"1": 1, "2": 1}
    assert "<i>pay</i>" not in one.content.decode()


def test_refused_calls_are_of_the_time_of_the_calls_that_are_counted(
    team: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    late = call(8, "search", "lead", started_at=now - timedelta(seconds=5))
    early, between = (
        refusal("lead", decided_at=now - timedelta(seconds=ago)) for ago in (3_000, 2)
    )
    send_events(team.tenant, [*late, early, between])
    with tenant_scope(team.tenant.id):
        past_day = read({"range": "24h"}, now=timezone.now(), zone=UTC).range
        assert [one.total.refused for one in agents_in(past_day, "lead").agents] == [2]
        monkeypatch.setattr("audit.queries.agents.CALLS_MAX", 1)
        (lead,) = agents_in(past_day, "lead").agents
    assert (lead.total.calls, lead.total.refused) == (1, 1)


def test_environments_lead_to_their_calls(team: Cast) -> None:
    client = signed_in(team)
    assert "Environment</th>" not in client.get("/agents/").content.decode()
    send_events(team.tenant, call(7, "search", "lead", environment="<b>live</b>"))
    page = client.get("/agents/", {"range": "24h"})
    assert "<b>live</b>" not in page.content.decode()
    queries = {each.name: query for each, query, _ in page.context["environments"]}
    assert queries.keys() == {"", "<b>live</b>"}
    listed = client.get("/calls/", {"q": queries["<b>live</b>"]}).content.decode()
    assert "search" in listed
    assert "delegate" not in listed


def test_one_agent_has_its_versions_and_tools(team: Cast) -> None:
    client = signed_in(team)
    page = client.get("/agents/", {"range": "24h", "agent": "lead"})
    versions = {each.name: query for each, query, _ in page.context["versions"]}
    assert versions.keys() == {"1", "2"}
    listed = client.get("/calls/", {"q": versions["2"]}).content.decode()
    assert "delegate" in listed
    assert "lonesome" not in listed


def test_one_agent_is_searched_among_the_newest_calls(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a bound, a rare agent's page would read all calls of the range, four times."""
    monkeypatch.setattr(agents, "SEARCHED_MAX", 3)
    monkeypatch.setattr(agents_page, "SEARCHED_MAX", 3)
    before = timezone.now() - timedelta(minutes=10)
    for number, agent in enumerate(["rare", "older", "lead", "rare", "lead", "lead"]):
        at = before + timedelta(minutes=number)
        send_events(acme.tenant, call(number + 1, "search", agent, started_at=at))

    page = signed_in(acme).get("/agents/", {"range": "24h", "agent": "rare"})

    (rare,) = page.context["agents"]
    assert rare.agent.total.calls == 1, "the older one is not among the newest"
    assert "Those of this agent were searched among the newest 3" in page.content.decode()
    (found,) = (one.figures for one in page.context["tools"])
    with tenant_scope(acme.tenant.id):
        listed = call_page(parse(page.context["of_agent"]).wanted, now=timezone.now()).calls
    assert found.calls == len(listed) == 1, "links lead to the calls that are counted"
    assert "searched among" not in signed_in(acme).get("/agents/?range=24h").content.decode()
    older = signed_in(acme).get("/agents/", {"range": "24h", "agent": "older"}).content.decode()
    assert "No calls of this agent since" in older
    assert "No calls in this range" not in older


def test_graph_leads_from_agents_over_tools_to_agents(team: Cast) -> None:
    with tenant_scope(team.tenant.id):
        graph = graph_of_trace("t-1")
    edges = {(edge.source, edge.target): (edge.calls, edge.failed) for edge in graph.edges}
    assert edges == {
        (("agent", "lead"), ("tool", "search")): (1, 0),
        (("agent", "lead"), ("tool", "delegate")): (1, 0),
        (("tool", "delegate"), ("agent", "helper")): (2, 1),
        (("agent", "helper"), ("tool", "search")): (1, 1),
        (("agent", "helper"), ("tool", "fetch <b>")): (1, 0),
        (("tool", "fetch <b>"), ("tool", "nested")): (1, 0),
    }


@pytest.mark.parametrize(
    "address", ["/traces/t-1/graph", "/conversations/c-1", "/agents/?range=24h"]
)
def test_every_edge_leads_to_calls(team: Cast, address: str) -> None:
    client = signed_in(team)
    page = client.get(address)
    shown = page.context["graph"]
    assert len(shown.edges) >= 5
    links = re.findall(r'href="(/calls/\?q=[^"]+)"\s+class="graph-edge', page.content.decode())
    assert len(links) == len(shown.edges)
    for each in shown.edges:
        answer = client.get("/calls/count", {"q": each.query})
        assert answer.status_code == 200
        assert re.search(r"[1-9]", answer.content.decode()), each.query
    queries = {parse_qs(urlsplit(unescape(link)).query)["q"][0] for link in links}
    assert queries == {each.query for each in shown.edges}


@pytest.mark.slow
def test_graph_of_many_nodes_folds_those_with_few_calls(acme: Cast) -> None:
    rng = Random(7)
    events = []
    for number in range(1, 400):
        tool = f"tool-{min(int(rng.expovariate(1 / 90)), 299)}"
        events += call(number, tool, f"agent-{number % 30}")
    for at in range(0, len(events), 200):
        send_events(acme.tenant, events[at : at + 200])
    with tenant_scope(acme.tenant.id):
        graph = graph_of_range(read({"range": "24h"}, now=timezone.now(), zone=UTC).range)
        calls = Counter(Invocation.objects.values_list("agent", "tool_name"))
    nodes = {node for edge in graph.edges for node in (edge.source, edge.target)}
    assert len(nodes) <= NODES_MAX
    assert graph.calls == calls.total()
    page = signed_in(acme).get("/agents/", {"range": "24h"})
    assert page.content.decode().count('class="graph-node') == len(nodes)


def test_conversation_has_its_traces_in_order_on_one_axis(team: Cast) -> None:
    client = signed_in(team)
    (listed,) = client.get("/conversations/", {"range": "24h"}).context["conversations"].rows
    assert (listed.run_id, listed.traces, listed.failed) == ("c-1", 2, 1)
    page = client.get("/conversations/c-1")
    placed = page.context["detail"].placed
    assert {each.turn.trace_id for each in placed} == {"t-1", "t-2"}
    assert all(0 <= each.left <= 100 and 0 < each.width <= 100 for each in placed)
    assert client.get("/conversations/none").status_code == 404
