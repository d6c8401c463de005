"""Applies price lists."""

from audit.declared.document import Price, PriceList
from audit.declared.work import Work
from audit.prices import lists
from audit.queries.price_lists import (
    PriceError,
    ToolPrice,
    all_lists,
    read_amount,
    read_model,
    read_unit_path,
)


def apply_price_lists(work: Work, wanted: list[PriceList]) -> None:
    """Make price lists, and replace the prices of stored ones."""
    if work.options.prunes:  # first: those that go may be in another currency
        named = {one.holds_from for one in wanted}
        for each in all_lists():
            if each.holds_from not in named:
                lists.delete_list(work.tenant, work.actor, each)
                work.did("remove", "price list", str(each.holds_from))
    for index, one in enumerate(wanted):
        place = f"price_lists[{index}]"
        before = lists.find_list(one.holds_from)
        try:
            prices = [_price(price) for price in one.prices]
            after = lists.save_list(
                work.tenant,
                work.actor,
                one.holds_from,
                one.currency,
                prices,
                work.now,
                models=[read_model(each.model, each.model_dump()) for each in one.models],
            )
        except PriceError as error:
            work.refuse(f"{place}.{error.field}", str(error))
            continue
        if before is None or (before.currency, before.prices) != (after.currency, after.prices):
            detail = f"{len(prices) + len(one.models)} prices in {one.currency}"
            work.did(
                "create" if before is None else "change",
                "price list",
                str(one.holds_from),
                detail,
            )


def _price(price: Price) -> ToolPrice:
    path = read_unit_path(price.path) if price.path else ""
    return ToolPrice(price.tool, read_amount(price.amount), path)
