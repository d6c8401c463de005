"""Agents: what each did in a range, and the graph of who made which calls."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.pages.show.graph_view import shown_graph
from audit.pages.show.range_bar import invalid_range, range_bar, requested_range
from audit.queries.agents import (
    CALLS_MAX,
    SEARCHED_MAX,
    Agent,
    AgentFigures,
    agents_in,
    environments_in,
    searched_part,
)
from audit.queries.call_graph import graph_of_range
from audit.queries.call_query import quoted
from audit.queries.costs import costs_of_agents
from audit.queries.token_costs import token_costs_of_agents
from audit.show.charts import range_query
from audit.show.costs import AgentCost, agent_costs, cost_facts
from config.http.htmx import render_page
from config.http.ordering import in_order, requested_order
from tenants.access import TenantRequest, tenant_page

_SHOWN = 200
_TOOLS_SHOWN = 6
_ORDERS: dict[str, Callable[[AgentFigures], Any]] = {
    "name": lambda one: one.name,
    "calls": lambda one: one.calls,
    "failed": lambda one: one.failed,
    "violations": lambda one: one.violating,
    "refused": lambda one: one.refused,
    "tokens": lambda one: one.tokens,
    "p50": lambda one: one.p50_us,
    "p95": lambda one: one.p95_us,
    "latest": lambda one: one.last_at,
}


class ListedAgent(NamedTuple):
    """An agent as the list shows it."""

    agent: Agent
    cost: AgentCost
    refused_query: str
    """Of its calls that were refused."""


class PartOfAgent(NamedTuple):
    """The calls of a tool, a version or an environment."""

    figures: AgentFigures
    query: str
    others_query: str
    """Of the agent's other calls; '' if there are none."""


@require_safe
@tenant_page()
def agent_list(request: TenantRequest) -> HttpResponse:
    """Show the agents of the URL's range, or one of them with its versions and tools."""
    requested = requested_range(request, timezone.now())
    if requested.problem:
        return invalid_range(request, requested, "agents/agent_list.html", "Agents")
    chosen = request.GET.get("agent", "").replace("\0", "")
    searched = searched_part(requested.range) if chosen else requested.range
    counted = agents_in(searched, chosen or None)
    one = next(iter(counted.agents), None) if chosen else None
    within = range_query(searched.start, searched.end)
    of_agent = f"{within} agent:{quoted(chosen)}"
    calls = costs_of_agents(searched, chosen or None)
    answers = token_costs_of_agents(searched, chosen or None)
    costs = agent_costs(calls, answers)
    environments = environments_in(searched, chosen or None)
    order = requested_order(request, _ORDERS, "calls")
    by_total = {name: (lambda one, key=key: key(one.total)) for name, key in _ORDERS.items()}
    shown = in_order(counted.agents, by_total, order)[:_SHOWN]
    environments = in_order(environments, _ORDERS, order)[:_SHOWN]
    context = {
        **range_bar(request, requested),
        "costs": costs,
        "chosen_costs": cost_facts(calls, answers) if chosen else [],
        "chosen": chosen,
        "order": order,
        "tools": _with_queries(in_order(one.tools, _ORDERS, order), of_agent, "tool")
        if one
        else [],
        "versions": _with_queries(in_order(one.versions, _ORDERS, order), of_agent, "agent-version")
        if one
        else [],
        "environments": _with_queries(environments, of_agent if chosen else within, "environment")
        if any(each.name for each in environments)
        else [],
        "of_agent": of_agent,
        "of_others": f"{within} agent:* NOT agent:{quoted(chosen)}",
        "agents": [
            ListedAgent(each, costs.of(each.total.name), f"{within} {_named(each)} state:refused")
            for each in shown
        ],
        "has_refused": any(each.total.refused for each in counted.agents),
        "more_agents": len(counted.agents) - _SHOWN,
        "tools_shown": f":{_TOOLS_SHOWN}",
        "counted": counted,
        "calls_max": CALLS_MAX,
        "searched_max": SEARCHED_MAX if searched != requested.range else None,
        "searched_from": searched.start,
        "graph": shown_graph(graph_of_range(searched, chosen or None)),
    }
    return render_page(request, "agents/agent_list.html", "agents", context)


def _named(one: Agent) -> str:
    return f"agent:{quoted(one.total.name)}" if one.total.name else "NOT agent:*"


def _with_queries(figures: Sequence[AgentFigures], of_agent: str, name: str) -> list[PartOfAgent]:
    """Figures with their queries. `name` is a filter name: what the figures are of."""
    return [
        PartOfAgent(
            each,
            f"{of_agent} {name}:{quoted(each.name)}",
            f"{of_agent} NOT {name}:{quoted(each.name)}" if len(figures) > 1 else "",
        )
        for each in figures
    ]
