"""The tiles of what calls and models' answers cost. Pure."""

from decimal import Decimal

from audit.queries.costs import Cost, RangeCosts
from audit.queries.time_range import TimeRange
from audit.queries.token_costs import TokenCost, TokenCosts
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
