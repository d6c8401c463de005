"""The tiles of what calls and models' answers cost. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from audit.queries.costs import AgentCallCosts, Cost, RangeCosts
from audit.queries.price_lists import plain
from audit.queries.time_range import TimeRange
from audit.queries.token_costs import AgentTokenCosts, TokenCost, TokenCosts
from audit.show import figures
from audit.show.tiles import Change, Tile, relative


def cost_tile(costs: RangeCosts, *, is_comparable: bool) -> Tile:
    """The cost of a range, compared with the range before if that is whole (`is_comparable`)."""
    total = costs.total
    return Tile(
        name="Cost",
        value=figures.money(total.amount, costs.currency),
        query="",
        note=without_price(total),
        note_query="",
        change=_change(total.amount, costs.previous.amount, costs.currency)
        if is_comparable
        else None,
        tone="accent",
        course=[float(part.amount) for part in costs.of.whole(costs.parts)],
    )


def token_tile(costs: TokenCosts, of: TimeRange, *, is_comparable: bool) -> Tile:
    """The cost of the answers of models in a range, likewise."""
    total = costs.total
    value = figures.money(total.amount, costs.currency) if total.priced else "no price"
    return Tile(
        name="Cost of models",
        value=value,
        query="",
        note=without_price(total),
        note_query="",
        change=_change(total.amount, costs.previous.amount, costs.currency)
        if is_comparable
        else None,
        tone="accent",
        course=[float(part.amount) for part in of.whole(costs.parts)],
    )


@dataclass(frozen=True, slots=True)
class CostFact:
    """What tools or models cost, in words."""

    name: str
    value: str
    exact: str
    note: str
    """What has no price."""


def cost_facts(
    tools: AgentCallCosts | RangeCosts | None, models: TokenCosts | AgentTokenCosts | None
) -> list[CostFact]:
    """What tools and models cost, apart; nothing of what has no price list or no answer."""
    facts = []
    if tools is not None and tools.total.calls:
        facts.append(_fact("Cost of tools", tools.total, tools.total.priced, tools.currency))
    if models is not None and models.total.answers:
        facts.append(_fact("Cost of models", models.total, models.total.priced, models.currency))
    return facts


def _fact(name: str, cost: Cost | TokenCost, priced: int, currency: str) -> CostFact:
    if not priced:
        return CostFact(name, "no price", "", "")
    amount = figures.money(cost.amount, currency)
    return CostFact(name, amount, f"{plain(cost.amount)} {currency}", without_price(cost))


@dataclass(slots=True)
class AgentCost:
    """What the calls and the answers of an agent cost."""

    tools: Cost = field(default_factory=Cost)
    models: TokenCost = field(default_factory=TokenCost)


@dataclass(frozen=True, slots=True)
class AgentCosts:
    """What agents cost, by name; a currency is '' if there is nothing to say."""

    tools_currency: str
    models_currency: str
    by_agent: Mapping[str, AgentCost]

    def of(self, agent: str) -> AgentCost:
        """What an agent costs."""
        return self.by_agent.get(agent) or AgentCost()


def agent_costs(tools: AgentCallCosts | None, models: AgentTokenCosts | None) -> AgentCosts:
    """What agents cost."""
    by_agent: dict[str, AgentCost] = {}
    for name, cost in tools.agents.items() if tools is not None else ():
        by_agent.setdefault(name, AgentCost()).tools = cost
    for name, answers in models.agents.items() if models is not None else ():
        by_agent.setdefault(name, AgentCost()).models = answers
    return AgentCosts(
        tools.currency if tools is not None else "",
        models.currency or "–" if models is not None else "",
        by_agent,
    )


def without_price(cost: Cost | TokenCost) -> str:
    """How many calls or answers have no price; '' if all have one."""
    what = "call" if isinstance(cost, Cost) else "answer"
    return f"{figures.counted(cost.unpriced, what)} without a price" if cost.unpriced else ""


def _change(amount: Decimal, before: Decimal, currency: str) -> Change | None:
    """The change in percent, which needs no exact number."""
    change = relative(float(amount), float(before), "count")
    if change is None:
        return None
    return Change(change.text, change.goodness, figures.money(before, currency))
