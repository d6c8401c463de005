"""What models' answers cost: the tokens in their spans, times the prices of their time.

Apart from what tools cost, as no tool has a part of them. A price is the one of the tenant's list
for the model, or else that of the package (`audit.queries.model_prices`), if the tenant's lists are
in its currency or it has none. Tokens without a price are counted as such, and are in no amount.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

from audit.queries import model_prices
from audit.queries.agents import CALLS_MAX as AGENT_CALLS_MAX
from audit.queries.agents import bounds
from audit.queries.model_prices import Rate, package_rate, package_version
from audit.queries.price_lists import Held, ModelPrice, beginning, prices_held
from audit.queries.time_range import TimeRange
from audit.sql.run import rows

ANSWERS_MAX: Final = 100_000
"""How many answers of a range are read one by one, the newest ones."""
MODELS_LISTED: Final = 100
LISTED: Final = 20
"""How many agents, conversations and traces are returned."""
_MODELS_PRICED: Final = 1_000
"""Models of a range whose price is looked up, those with the most answers."""
_MILLIONTH: Final = Decimal("0.000001")


@dataclass(slots=True)
class TokenCost:
    """Answers of models, those of them with a price, what these cost, and the tokens of all."""

    answers: int = 0
    priced: int = 0
    amount: Decimal = Decimal(0)
    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0

    @property
    def unpriced(self) -> int:
        """Answers without a price."""
        return self.answers - self.priced

    @property
    def tokens(self) -> int:
        """The tokens of all kinds."""
        return self.input + self.output

    def add(self, other: "TokenCost") -> None:
        """Add another one."""
        self.answers += other.answers
        self.priced += other.priced
        self.amount += other.amount
        self.input += other.input
        self.cached += other.cached
        self.written += other.written
        self.output += other.output


@dataclass(slots=True)
class ModelCost:
    """What a model's answers cost; '': the spans do not name it or its provider."""

    provider: str
    model: str
    cost: TokenCost = field(default_factory=TokenCost)


@dataclass(frozen=True, slots=True)
class NamedTokenCost:
    """What the answers of an agent, a conversation or a trace cost; '': none was reported."""

    name: str
    version: str
    """Of an agent; '' of others."""
    cost: TokenCost


@dataclass(slots=True)
class TokenCosts:
    """What the answers of a range, a trace or a conversation cost; models in order of cost."""

    currency: str
    """'': nothing has a price, and the tenant uses no list."""
    package: str | None
    """The version of the package of prices; None if no price is of it."""
    total: TokenCost = field(default_factory=TokenCost)
    previous: TokenCost = field(default_factory=TokenCost)
    """Of the range before."""
    parts: list[TokenCost] = field(default_factory=list)
    models: list[ModelCost] = field(default_factory=list)


@dataclass(slots=True)
class NamedTokenCosts:
    """What the newest answers of a range cost, the dearest of each kind first."""

    currency: str
    """As of `TokenCosts`."""
    total: TokenCost = field(default_factory=TokenCost)
    agents: list[NamedTokenCost] = field(default_factory=list)
    conversations: list[NamedTokenCost] = field(default_factory=list)
    traces: list[NamedTokenCost] = field(default_factory=list)
    is_cut: bool = False
    """Whether there may be older answers that were not read."""


@dataclass(slots=True)
class AgentTokenCosts:
    """What the newest answers of a range cost, in all and by agent; '': no agent."""

    currency: str
    """As of `TokenCosts`."""
    total: TokenCost = field(default_factory=TokenCost)
    agents: dict[str, TokenCost] = field(default_factory=dict)


class _Cell(NamedTuple):
    """Answers whose tokens have the same prices."""

    provider: str
    model: str
    period: int
    tier: int


class _Prices:
    """The prices of a tenant, by period and by number of input tokens."""

    def __init__(self, held: Held | None) -> None:
        self._held = held
        self._uses_package = package_version() is not None and (
            held is None or held.currency == model_prices.CURRENCY
        )
        steps = model_prices.steps() if self._uses_package else model_prices.Steps((), ())
        starts = list(held.starts) if held is not None else []
        self._periods = sorted({*starts, *map(beginning, steps.days)})
        self._tiers = steps.tokens
        self._named: list[dict[str, ModelPrice]] = [
            {one.model: one for one in models} for models in (held.models if held else ())
        ]
        self._rates: dict[_Cell, Rate | None] = {}

    @property
    def currency(self) -> str:
        """The currency of all prices; '' without any."""
        if self._held is not None:
            return self._held.currency
        return model_prices.CURRENCY if self._uses_package else ""

    @property
    def package(self) -> str | None:
        """The version of the package, if its prices are used."""
        return package_version() if self._uses_package else None

    def steps(self) -> dict[str, Any]:
        """The parameters of the part `price_cell` in `sql/token_costs.sql`."""
        return {"periods": self._periods, "tiers": list(self._tiers)}

    def rate(self, cell: _Cell) -> Rate | None:
        """The price of the tokens of a cell."""
        if cell not in self._rates:
            self._rates[cell] = self._find(cell)
        return self._rates[cell]

    def _find(self, cell: _Cell) -> Rate | None:
        at = self._periods[cell.period - 1] if cell.period else datetime.min.replace(tzinfo=UTC)
        held = bisect_right(self._held.starts, at) if self._held is not None else 0
        named = self._named[held - 1].get(cell.model) if held else None
        if named is not None:
            return Rate(
                named.input,
                named.input if named.cached is None else named.cached,
                named.input if named.written is None else named.written,
                named.output,
            )
        if not self._uses_package:
            return None
        day = at.date() if cell.period else date(2000, 1, 1)
        tokens = self._tiers[cell.tier - 1] + 1 if cell.tier else 0
        return package_rate(cell.provider, cell.model, day, tokens)

    def known(self) -> dict[str, Any]:
        """The parameters of `newest_answers_by_name`: the prices that were looked up so far."""
        priced = [(cell, rate) for cell, rate in self._rates.items() if rate is not None]
        return {
            "rate_providers": [cell.provider for cell, _ in priced],
            "rate_models": [cell.model for cell, _ in priced],
            "rate_periods": [cell.period for cell, _ in priced],
            "rate_tiers": [cell.tier for cell, _ in priced],
            "rates_input": [rate.input for _, rate in priced],
            "rates_cached": [rate.cached for _, rate in priced],
            "rates_written": [rate.written for _, rate in priced],
            "rates_output": [rate.output for _, rate in priced],
        }


def token_costs_over_time(of: TimeRange) -> TokenCosts | None:
    """What the answers of a range cost, by part and model.

    None if neither it nor the range before has any. One statement, three with answers.
    """
    over_time = _over_time(of)
    return None if over_time is None else over_time[0]


def token_costs_by_name(
    of: TimeRange, *, most: int = ANSWERS_MAX
) -> tuple[TokenCosts, NamedTokenCosts] | None:
    """The same, and what its newest answers cost by agent, conversation and trace: `most` are read.

    One statement, four with answers.
    """
    over_time = _over_time(of)
    if over_time is None:
        return None
    costs, prices = over_time
    named = NamedTokenCosts(prices.currency)
    lists = {"agent": named.agents, "run": named.conversations, "trace": named.traces}
    limits = {"agent": None, "answer_limit": most, "row_limit": LISTED}
    for kind, name, version, *sums in rows(
        "newest_answers_by_name", bounds(of) | limits | prices.steps() | prices.known()
    ):
        answers, priced, amount, *tokens = sums
        cost = TokenCost(answers, priced, amount, *(int(each or 0) for each in tokens))
        if kind == "all":
            named.total = cost
        else:
            lists[kind].append(NamedTokenCost(name, version, cost))
    named.is_cut = named.total.answers >= most
    return costs, named


def token_costs_of(
    held: Held | None, *, trace_id: str | None = None, run_id: str | None = None
) -> TokenCosts | None:
    """What the answers of a trace or of a conversation cost; None if it has none. One statement.

    `held` are the tenant's price lists. Raises ValueError without one of them.
    """
    if trace_id is None and run_id is None:
        raise ValueError("name a trace or a conversation")
    prices = _Prices(held)
    cells = _cells(prices, "answers_of", {"trace_id": trace_id, "run_id": run_id})
    return _summed(prices, [(name, cost) for _, name, cost in cells]) if cells else None


def token_costs_of_agents(of: TimeRange, agent: str | None = None) -> AgentTokenCosts | None:
    """What the newest answers of a range cost, of all agents or of one: as many as calls.

    None if there is none. One statement, three with answers.
    """
    if not rows("any_llm_usage", bounds(of)):
        return None
    prices = _Prices(prices_held(of.start, of.end))
    costs = AgentTokenCosts(prices.currency)
    chosen = bounds(of) | {"agent": agent, "answer_limit": AGENT_CALLS_MAX}
    for name, _, cost in _cells(prices, "newest_answers_by_agent", chosen):
        costs.agents.setdefault(name, TokenCost()).add(cost)
        costs.total.add(cost)
    return costs


def _over_time(of: TimeRange) -> tuple[TokenCosts, _Prices] | None:
    """Costs by part and model, and the prices, of which those of all models are looked up."""
    if not rows("any_llm_usage", {"start": of.previous.start, "end": of.end}):
        return None
    prices = _Prices(prices_held(of.previous.start, of.end))
    slots = [of.previous.start, *of.bounds]
    chosen = {"slot_starts": slots[:-1], "slot_ends": slots[1:]}
    cells = _cells(prices, "answers_over_time", chosen)
    costs = _summed(prices, [(name, cost) for slot, name, cost in cells if slot > 0])
    costs.parts = [TokenCost() for _ in of.parts]
    for slot, _, cost in cells:
        (costs.parts[slot - 1] if slot > 0 else costs.previous).add(cost)
    return costs, prices


def _cells(
    prices: _Prices, statement: str, chosen: dict[str, Any]
) -> Sequence[tuple[Any, tuple[str, str], TokenCost]]:
    """Slot or agent, provider and model, and the cost of each cell. Slot 0 is before the range."""
    cells = rows(statement, chosen | prices.steps())
    answers: dict[tuple[str, str], int] = {}
    for _, provider, model, _, _, count, *_ in cells:
        answers[provider, model] = answers.get((provider, model), 0) + count
    most = sorted(answers, key=lambda name: (-answers[name], name))[:_MODELS_PRICED]
    priced = set(most)
    return [
        (
            of,
            (provider, model),
            _cost(
                prices.rate(_Cell(provider, model, period, tier))
                if (provider, model) in priced
                else None,
                *map(int, sums),
            ),
        )
        for of, provider, model, period, tier, *sums in cells
    ]


def _cost(
    rate: Rate | None, answers: int, took: int, cached: int, written: int, gave: int
) -> TokenCost:
    cost = TokenCost(answers, 0, Decimal(0), took, cached, written, gave)
    if rate is None:
        return cost
    kinds = (
        (took - cached - written, rate.input),
        (cached, rate.cached),
        (written, rate.written),
        (gave, rate.output),
    )
    if any(tokens and price is None for tokens, price in kinds):
        return cost
    cost.priced = answers
    cost.amount = sum(
        (tokens * price * _MILLIONTH for tokens, price in kinds if price is not None), Decimal(0)
    )
    return cost


def _summed(prices: _Prices, cells: Iterable[tuple[tuple[str, str], TokenCost]]) -> TokenCosts:
    costs = TokenCosts(prices.currency, prices.package)
    models: dict[tuple[str, str], ModelCost] = {}
    for name, cost in cells:
        costs.total.add(cost)
        models.setdefault(name, ModelCost(*name)).cost.add(cost)
    costs.models = sorted(
        models.values(),
        key=lambda one: (-one.cost.amount, -one.cost.answers, one.model, one.provider),
    )[:MODELS_LISTED]
    return costs
