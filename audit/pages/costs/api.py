"""What calls cost, over the API."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from ninja import Query

from audit.pages.show.api_query import QueriedRangeParams
from audit.pages.show.figure_schemas import QueriedBounds
from audit.pages.show.ranges import bounds
from audit.pages.show.router import router
from audit.queries.costs import (
    CallCosts,
    Cost,
    NamedCost,
    ToolCost,
    costs_by_dimension,
    costs_over_time,
)
from audit.queries.price_lists import percent_counted, plain
from audit.queries.queried_costs import costs_of_query
from audit.queries.time_range import TimeRange
from audit.queries.token_costs import NamedTokenCost, TokenCost, token_costs_by_name
from tenants.api_reads import Answer, reads, utc


class CostSum(Answer):
    """What completed calls cost."""

    calls: int
    """Completed calls."""
    without_price: int
    """Those of them that have no price: they are in no amount."""
    amount: str
    """An exact decimal number, in the currency of the price lists."""


class VersionCosts(CostSum):
    """What the calls of a version of a tool cost."""

    tool_version: str | None


class ToolCosts(CostSum):
    """What the calls of a tool cost."""

    tool_name: str
    versions: list[VersionCosts]


class NamedCosts(CostSum):
    """What the calls of an agent and its version, of a model, a conversation or a trace cost."""

    name: str | None
    """null: none was reported."""
    version: str | None
    """Of an agent."""


class NewestCosts(Answer):
    """What the newest 100,000 completed calls of the range cost: the dearest of each kind.

    With `q`, these are the matching calls that were read.
    """

    is_complete: bool
    """Whether these are all calls of the range."""
    agents: list[NamedCosts]
    models: list[NamedCosts]
    conversations: list[NamedCosts]
    traces: list[NamedCosts]


class TokenSum(Answer):
    """What answers of models cost, and their tokens."""

    answers: int
    without_price: int
    """Those of them that have no price: they are in no amount."""
    amount: str
    """An exact decimal number."""
    input_tokens: int
    """With those of a cache."""
    cached_tokens: int
    """Of them, read from a cache."""
    written_tokens: int
    """Of them, written to a cache."""
    output_tokens: int


class ModelTokens(TokenSum):
    """What the answers of a model cost."""

    provider: str | None
    model: str | None
    """null: the spans do not name it."""


class NamedTokens(TokenSum):
    """What the answers of an agent and its version, of a conversation or a trace cost."""

    name: str | None
    """null: none was reported."""
    version: str | None
    """Of an agent."""


class NewestTokens(Answer):
    """What the newest 100,000 answers of the range cost: the dearest of each kind."""

    is_complete: bool
    """Whether these are all answers of the range."""
    agents: list[NamedTokens]
    conversations: list[NamedTokens]
    traces: list[NamedTokens]


class TokenCosts(Answer):
    """What the answers of models cost, by the tokens in their spans. No tool has a part of them."""

    currency: str | None
    """null: nothing has a price."""
    prices_version: str | None
    """Of the package genai-prices, which has the prices that no list names; null: none is of it."""
    total: TokenSum
    models: list[ModelTokens]
    """The dearest 100."""
    newest: NewestTokens


class Costs(QueriedBounds):
    """What the calls that started in a range cost."""

    currency: str | None
    """Three letters of ISO 4217; null, as are the sums, if the tenant uses no price list."""
    percent_counted: int | None
    """How much of the log was read for new prices by units; null if nothing is to be read. Until it
    is read, amounts are by the prices of before."""
    total: CostSum | None
    tools: list[ToolCosts]
    newest: NewestCosts | None
    tokens: TokenCosts | None
    """null: no span of the range reports an answer of a model. With `q`: answers are no calls."""


@reads(router, "/costs", Costs, tag="figures", problems=("range", "query"))
def read_costs(request: HttpRequest, params: Query[QueriedRangeParams]) -> dict[str, Any]:
    """Get what the calls and the models' answers of a range cost.

    Sums are exact. With `q`, they are of the calls that were read. Tools and the others are in
    order of their amounts, most expensive first.
    """
    of, now = params.read_range(), timezone.now()
    members: dict[str, Any] = {
        **bounds(of),
        "searched_until": None,
        "currency": None,
        "percent_counted": percent_counted(),
        "total": None,
        "tools": [],
        "newest": None,
        "tokens": None,
    }
    if wanted := params.read_calls(request, of, now):
        queried = costs_of_query(wanted, of, now)
        if queried is None:
            return members
        until = queried.searched_until
        return (
            members
            | {"searched_until": until and utc(until)}
            | _costs(queried.by.total, queried.tools, queried.by, is_complete=until is None)
        )
    costs, newest = costs_over_time(of), costs_by_dimension(of)
    members["tokens"] = _tokens(of)
    if costs is None or newest is None:
        return members
    return members | _costs(costs.total, costs.tools, newest, is_complete=not newest.is_cut)


def _costs(
    total: Cost, tools: Sequence[ToolCost], by: CallCosts, *, is_complete: bool
) -> dict[str, Any]:
    return {
        "currency": by.currency,
        "total": _sum(total),
        "tools": [
            {
                "tool_name": one.tool,
                **_sum(one.cost),
                "versions": [
                    {"tool_version": each.version or None, **_sum(each.cost)}
                    for each in one.versions
                ],
            }
            for one in tools
        ],
        "newest": {
            "is_complete": is_complete,
            "agents": _named(by.agents),
            "models": _named(by.models),
            "conversations": _named(by.conversations),
            "traces": _named(by.traces),
        },
    }


def _tokens(of: TimeRange) -> dict[str, Any] | None:
    both = token_costs_by_name(of)
    if both is None or not both[0].total.answers:
        return None
    costs, newest = both
    return {
        "currency": costs.currency or None,
        "prices_version": costs.package,
        "total": _token_sum(costs.total),
        "models": [
            {"provider": one.provider or None, "model": one.model or None, **_token_sum(one.cost)}
            for one in costs.models
        ],
        "newest": {
            "is_complete": not newest.is_cut,
            "agents": _named_tokens(newest.agents),
            "conversations": _named_tokens(newest.conversations),
            "traces": _named_tokens(newest.traces),
        },
    }


def _named_tokens(costs: Sequence[NamedTokenCost]) -> list[dict[str, Any]]:
    return [
        {"name": one.name or None, "version": one.version or None, **_token_sum(one.cost)}
        for one in costs
    ]


def _token_sum(cost: TokenCost) -> dict[str, Any]:
    return {
        "answers": cost.answers,
        "without_price": cost.unpriced,
        "amount": plain(cost.amount),
        "input_tokens": cost.input,
        "cached_tokens": cost.cached,
        "written_tokens": cost.written,
        "output_tokens": cost.output,
    }


def _named(costs: Sequence[NamedCost]) -> list[dict[str, Any]]:
    return [
        {"name": one.name or None, "version": one.version or None, **_sum(one.cost)}
        for one in costs
    ]


def _sum(cost: Cost) -> dict[str, Any]:
    return {
        "calls": cost.calls,
        "without_price": cost.unpriced,
        "amount": plain(cost.amount),
    }
