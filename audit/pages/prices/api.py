"""Price lists over the API."""

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query
from pydantic import Field

from audit.models import PriceList
from audit.pages.show.router import router
from audit.prices import lists
from audit.queries.price_lists import (
    PRICES_MAX,
    PriceError,
    ToolPrice,
    all_lists,
    from_document,
    model_document,
    models_from_document,
    plain,
    read_amount,
    read_model,
    read_unit_path,
)
from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, acts, invalid
from tenants.api_reads import Answer, ListParams, Page, paged, reads, utc
from tenants.models import Scope

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class OnePrice(Answer):
    """What a tool's calls cost."""

    tool: str
    amount: str
    """A decimal number: of each completed call, or of each unit."""
    path: str | None
    """Where the result has its units, such as `output.meta.pages`; null: each call costs alike."""


class OneModelPrice(Answer):
    """What a million tokens of a model cost, as decimal numbers."""

    model: str
    input: str
    cached: str | None
    """Of input read from a cache; null: as `input`."""
    written: str | None
    """Of input written to a cache; null: as `input`."""
    output: str


class OnePriceList(Answer):
    """The prices that hold from a day until the next list."""

    holds_from: date
    """A day in UTC."""
    currency: str
    prices: list[OnePrice]
    models: list[OneModelPrice]
    is_in_use: bool
    """Whether figures use these prices; until units are counted in the log, they use those of
    before."""
    changed_at: datetime
    changed_by: str


class PriceLists(Page[OnePriceList]):
    """The price lists of the tenant, the latest first."""


class PriceBody(Body):
    """What a tool's calls cost."""

    tool: str = Field(min_length=1)
    amount: str
    """A decimal number as a text, such as `0.004`, with at most 12 decimals."""
    path: str | None = None
    """Where the result has its units, such as `output.meta.pages`: a number, or a list whose
    elements are counted. null: each call costs alike."""


class ModelPriceBody(Body):
    """What a million tokens of a model cost: decimal numbers as texts."""

    model: str = Field(min_length=1)
    """As spans report it."""
    input: str
    cached: str | None = None
    """Of input read from a cache; null: as `input`."""
    written: str | None = None
    """Of input written to a cache; null: as `input`."""
    output: str


class PriceListBody(Body):
    """All prices of a list. A tool without a price in it has none."""

    currency: str
    """Three letters of ISO 4217. All lists have the same."""
    prices: list[PriceBody] = Field(max_length=PRICES_MAX)
    models: list[ModelPriceBody] = Field(default=[], max_length=PRICES_MAX)
    """A model that is not named has the price of the package genai-prices, in US dollars."""


@reads(router, "/price-lists", PriceLists, tag="prices", problems=("cursor", "limit"))
def list_price_lists(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List the price lists, the latest first."""
    shown, after = paged(
        "price-lists",
        all_lists(),
        params,
        lambda one: one.holds_from.isoformat(),
        is_descending=True,
    )
    return {"items": [_list(one) for one in shown], "next": after}


@reads(router, "/price-lists/{holds_from}", OnePriceList, tag="prices", problems=("not_found",))
def read_price_list(request: HttpRequest, holds_from: Path[str]) -> dict[str, Any]:
    """Get the price list that holds from a day, such as 2026-11-01."""
    return _list(_list_of(holds_from))


@acts(
    router,
    "PUT",
    "/price-lists/{holds_from}",
    OnePriceList,
    scope=Scope.ADMIN,
    tag="prices",
    body=PriceListBody,
)
def save_price_list(act: Act, holds_from: Path[str]) -> dict[str, Any]:
    """Create the price list of a day, or replace its prices. Sending it again changes nothing."""
    day = _day(holds_from)
    if day is None:
        raise invalid("holds_from", "Write a day, such as 2026-11-01.")
    body = act.read(PriceListBody)
    try:
        prices = [_price(one) for one in body.prices]
        models = [read_model(one.model, one.model_dump()) for one in body.models]
        stored = lists.save_list(
            act.tenant, act.actor, day, body.currency, prices, timezone.now(), models=models
        )
    except PriceError as error:
        raise invalid(error.field, str(error)) from error
    return _list(stored)


@acts(
    router,
    "DELETE",
    "/price-lists/{holds_from}",
    OnePriceList,
    scope=Scope.ADMIN,
    tag="prices",
    problems=("not_found",),
)
def remove_price_list(act: Act, holds_from: Path[str]) -> dict[str, Any]:
    """Delete a price list and return it. From its day on, the list before holds."""
    stored = _list_of(holds_from)
    lists.delete_list(act.tenant, act.actor, stored)
    return _list(stored)


def _price(body: PriceBody) -> ToolPrice:
    amount: Decimal = read_amount(body.amount)
    return ToolPrice(body.tool, amount, read_unit_path(body.path) if body.path else "")


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        return None


def _list_of(holds_from: str) -> PriceList:
    day = _day(holds_from)
    stored = None if day is None else lists.find_list(day)
    if stored is None:
        raise ProblemError("not_found", "Price list not found.")
    return stored


def _list(stored: PriceList) -> dict[str, Any]:
    return {
        "holds_from": stored.holds_from,
        "currency": stored.currency,
        "prices": [
            {"tool": one.tool, "amount": plain(one.amount), "path": one.path or None}
            for one in from_document(stored.prices)
        ],
        "models": [model_document(one) for one in models_from_document(stored.prices)],
        "is_in_use": stored.in_use == stored.prices,
        "changed_at": utc(stored.changed_at),
        "changed_by": stored.changed_by,
    }
