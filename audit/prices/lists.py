"""Save and delete a tenant's price lists. Each change is an action. Needs the tenant's scope."""

import re
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Final
from uuid import UUID

from audit.models import PriceList, UnitPath
from audit.queries.price_lists import (
    ModelPrice,
    PriceError,
    ToolPrice,
    beginning,
    checked,
    checked_models,
    from_document,
    to_document,
)
from audit.sql.run import rows
from tenants.actions import Actor, name_of, record_action
from tenants.models import Tenant
from tenants.scope import current_tenant_id

LISTS_MAX: Final = 100
FIRST_DAY, LAST_DAY = date(2000, 1, 1), date(2999, 12, 31)
_CURRENCY = re.compile("[A-Z]{3}", re.ASCII)
_CLOCKS_DIFFER = timedelta(hours=25)
"""A call may start this much later, by the clock of its sender, than its events arrive."""


def find_list(holds_from: date) -> PriceList | None:
    """The list that holds from this day, or None. One query."""
    lists = PriceList.objects.for_tenant(current_tenant_id())
    return lists.filter(holds_from=holds_from).first()


def save_list(
    tenant: Tenant,
    actor: Actor,
    holds_from: date,
    currency: str,
    prices: Iterable[ToolPrice],
    now: datetime,
    *,
    models: Iterable[ModelPrice] = (),
) -> PriceList:
    """Create the list of a day, or replace its prices. Without a change nothing is recorded.

    New prices by units are used for figures when the worker has counted the units in the log; until
    then those of before are, or the list before. Raises PriceError.
    """
    before = find_list(holds_from)
    others = PriceList.objects.for_tenant(tenant.id).exclude(holds_from=holds_from)
    _check(holds_from, currency, before, list(others.values_list("currency", flat=True)))
    wanted = checked(prices)
    document = to_document(wanted, checked_models(models))
    if before is not None and (before.currency, before.prices) == (currency, document):
        return before
    is_counted = _count_units(tenant, wanted, holds_from)
    usable = before.in_use if before is not None and before.currency == currency else None
    stored = PriceList(
        tenant_id=tenant.id,
        holds_from=holds_from,
        currency=currency,
        prices=document,
        in_use=document if is_counted else usable,
        changed_at=now,
        changed_by=name_of(actor),
    )
    PriceList.objects.bulk_create(
        [stored],
        update_conflicts=True,
        unique_fields=["tenant_id", "holds_from"],
        update_fields=["currency", "prices", "in_use", "changed_at", "changed_by"],
    )
    record_action(
        tenant,
        actor,
        "price_list.create" if before is None else "price_list.change",
        f"prices from {holds_from}",
        rows=[stored],
        holds_from=str(holds_from),
        currency=currency,
        **document,
    )
    return stored


def delete_list(tenant: Tenant, actor: Actor, stored: PriceList) -> None:
    """Delete a list. From its day on, the list before holds."""
    PriceList.objects.for_tenant(tenant.id).filter(holds_from=stored.holds_from).delete()
    record_action(
        tenant,
        actor,
        "price_list.delete",
        f"prices from {stored.holds_from}",
        rows=[stored],
        holds_from=str(stored.holds_from),
    )


def use_counted_lists(tenant_id: UUID) -> None:
    """Use the prices of lists whose units are counted now."""
    lists = PriceList.objects.for_tenant(tenant_id)
    waiting = [one for one in lists if one.in_use != one.prices]
    behind = _paths_behind(tenant_id) if waiting else set()
    for one in waiting:
        if behind.isdisjoint(price.unit_path_id for price in from_document(one.prices)):
            same = lists.filter(holds_from=one.holds_from, prices=one.prices)
            same.update(in_use=one.prices)


def named_paths(tenant_id: UUID) -> set[UUID | None]:
    """The ids of the paths that the lists name or use. The worker forgets the others."""
    lists = PriceList.objects.for_tenant(tenant_id)
    return {
        price.unit_path_id
        for documents in lists.values_list("prices", "in_use")
        for document in documents
        if document is not None
        for price in from_document(document)
    }


def _check(
    holds_from: date, currency: str, before: PriceList | None, currencies: list[str]
) -> None:
    if not FIRST_DAY <= holds_from <= LAST_DAY:
        raise PriceError("holds_from", "Enter a day of the years 2000 to 2999.")
    if not _CURRENCY.fullmatch(currency):
        raise PriceError("currency", "Enter a currency as three capital letters, such as EUR.")
    if other := next((one for one in currencies if one != currency), None):
        raise PriceError("currency", f"All lists have one currency, and the others are in {other}.")
    if before is None and len(currencies) >= LISTS_MAX:
        raise PriceError("holds_from", f"A tenant has at most {LISTS_MAX} price lists.")


def _count_units(tenant: Tenant, prices: Iterable[ToolPrice], holds_from: date) -> bool:
    """Make the worker count the units of these prices. Returns whether all are counted already."""
    priced = {path_id: one for one in prices if (path_id := one.unit_path_id) is not None}
    if not priced:
        return True
    size = next((size for (size,) in rows("log_size", {})), 0)
    since = beginning(holds_from) - _CLOCKS_DIFFER
    first = next((index for (index,) in rows("first_index_since", {"since": since})), size)
    known = {one.id: one for one in UnitPath.objects.for_tenant(tenant.id)}
    new = []
    for path_id, one in priced.items():
        path = known.get(path_id)
        if path is None or first < path.from_index:
            path = UnitPath(from_index=first, next_index=first, erased_count=0)
        elif path.next_index >= path.goal_index:
            continue
        path.tenant_id, path.id, path.goal_index = tenant.id, path_id, size
        path.tool_name, path.path = one.tool, one.path
        new.append(path)
    if new:
        UnitPath.objects.bulk_create(
            new,
            update_conflicts=True,
            unique_fields=["tenant_id", "id"],
            update_fields=["from_index", "next_index", "goal_index", "erased_count"],
        )
    return _paths_behind(tenant.id).isdisjoint(priced)


def _paths_behind(tenant_id: UUID) -> set[UUID | None]:
    """The ids of the paths for which the log is not read up to their goal."""
    paths = UnitPath.objects.for_tenant(tenant_id)
    return {one.id for one in paths if one.next_index < one.goal_index}
