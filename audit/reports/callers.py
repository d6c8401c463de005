"""Which agents made the calls of a report's range, and in which environments."""

from decimal import Decimal
from typing import Any, Final

from audit.queries.agents import CALLS_MAX, AgentFigures, agents_in, environments_in
from audit.queries.costs import Cost, costs_of_agents
from audit.queries.price_lists import plain
from audit.queries.time_range import TimeRange
from audit.queries.token_costs import TokenCost, token_costs_of_agents
from audit.reports.layout import Cell, Column, Section, Table, bad, more, ms, numbers, with_rows
from audit.show.costs import agent_costs
from audit.show.figures import count, money, short_count

_LISTED: Final = 50


def caller_figures(of: TimeRange) -> dict[str, Any]:
    """The newest calls of a range by agent and by environment, most calls first.

    An agent or environment that is not reported is null. Costs are null without a price list, and
    without an answer of a model.
    """
    counted, environments = agents_in(of), environments_in(of)
    calls, answers = costs_of_agents(of), token_costs_of_agents(of)
    costs = agent_costs(calls, answers)
    return {
        "calls": counted.calls,
        "is_complete": not counted.is_cut,
        "tools_currency": calls and calls.currency,
        "models_currency": answers and answers.currency,
        "agent_count": len(counted.agents),
        "agents": [
            {
                "agent": one.total.name or None,
                **_sums(one.total),
                "refused": one.total.refused,
                "p95_ms": None if one.total.p95_us is None else one.total.p95_us / 1000,
                "cost_of_tools": calls and _cost(costs.of(one.total.name).tools),
                "cost_of_models": answers and _cost(costs.of(one.total.name).models),
            }
            for one in counted.agents[:_LISTED]
        ],
        "environment_count": len(environments),
        "environments": [
            {"environment": one.name or None, **_sums(one)} for one in environments[:_LISTED]
        ],
    }


def callers(all_figures: dict[str, Any]) -> Section:
    """The calls by agent and by environment."""
    own = all_figures["callers"]
    agents = [one for one in own["agents"] if one["agent"]]
    environments = [one for one in own["environments"] if one["environment"]]
    costs = [
        (head, f"cost_of_{kind}", own[f"{kind}_currency"])
        for head, kind in (("Cost of tools", "tools"), ("Cost of models", "models"))
        if own[f"{kind}_currency"]
    ]
    has_refused = any(one.get("refused") for one in agents)  # not in older reports
    refused = ("Refused",) if has_refused else ()
    by_agent = Table(
        "By agent, most calls first",
        [Column("Agent"), *numbers(*_HEADS, *refused, "p95", *(head for head, *_ in costs))],
        [
            [
                Cell(one["agent"] or "none reported"),
                *_cells(one),
                *([Cell(count(one["refused"]))] if has_refused else []),
                Cell(ms(one["p95_ms"])),
                *(_amount(one[member], currency) for _, member, currency in costs),
            ]
            for one in own["agents"]
            if agents
        ],
        more(own["agent_count"], own["agents"], "agent"),
    )
    by_environment = Table(
        "By environment, most calls first",
        [Column("Environment"), *numbers(*_HEADS)],
        [
            [Cell(one["environment"] or "none reported"), *_cells(one)]
            for one in own["environments"]
            if environments
        ],
        more(own["environment_count"], own["environments"], "environment"),
    )
    pairs = [("Agents", Cell(count(len(agents)))), ("Environments", Cell(count(len(environments))))]
    note = "" if own["is_complete"] else f"Of the newest {CALLS_MAX:,} calls and answers of models."
    return Section("callers", "Agents", pairs, with_rows(by_agent, by_environment), note)


_HEADS: Final = ("Calls", "Failed", "Violations", "Tokens")


def _cells(one: dict[str, Any]) -> list[Cell]:
    return [
        Cell(count(one["calls"])),
        bad(one["failed"], "failed"),
        bad(one["violating"], "violation"),
        Cell(short_count(one["tokens"])),
    ]


def _sums(one: AgentFigures) -> dict[str, Any]:
    return {
        "calls": one.calls,
        "failed": one.failed,
        "violating": one.violating,
        "tokens": int(one.tokens),
    }


def _cost(cost: Cost | TokenCost) -> dict[str, Any]:
    return {
        "priced": cost.priced,
        "without_price": cost.unpriced,
        "amount": plain(cost.amount),
    }


def _amount(cost: dict[str, Any], currency: str) -> Cell:
    if cost["priced"]:
        return Cell(money(Decimal(cost["amount"]), currency))
    return Cell("no price" if cost["without_price"] else "–", "dim")
