"""The tile of what calls cost. Pure."""

from audit.queries.costs import Cost, RangeCosts
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
        change=_change(costs) if is_comparable else None,
        tone="accent",
        course=[float(part.amount) for part in costs.of.whole(costs.parts)],
    )


def without_price(cost: Cost) -> str:
    """How many calls have no price; '' if all have one."""
    return f"{figures.counted(cost.unpriced, 'call')} without a price" if cost.unpriced else ""


def _change(costs: RangeCosts) -> Change | None:
    """The change in percent, which needs no exact number."""
    change = relative(float(costs.total.amount), float(costs.previous.amount), "count")
    if change is None:
        return None
    return Change(
        change.text, change.goodness, figures.money(costs.previous.amount, costs.currency)
    )
