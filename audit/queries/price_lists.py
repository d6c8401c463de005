"""Price lists: what a call or a unit of a tool costs, and from which day on.

A list holds from a UTC day until the next list. What it does not name has no price then. Amounts
are decimal numbers, in documents as texts: no float is in between.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final
from uuid import UUID, uuid5

from audit.events.payload_paths import read_path
from audit.models import PriceList
from audit.sql.run import rows, rows_prepared
from tenants.scope import current_tenant_id
from tenants.slices import percent

PRICES_MAX: Final = 200
"""Tools with a price in one list."""
NAME_MAX: Final = 256
PATH_MAX: Final = 300
_UNIT_PATHS = UUID("5b0b0e1c-7f0e-5c50-9f0e-3a4d7c4c1d6b")  # a namespace: never change it
MODEL_KINDS: Final = ("input", "cached", "written", "output")
"""Kinds of tokens: those of a cache are no others of the input."""
_AMOUNT = re.compile(r"\d{1,9}(\.\d{1,12})?", re.ASCII)


class PriceError(ValueError):
    """A price cannot be stored. The message is for its author; `field` is what it is about."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class ToolPrice:
    """What a completed call of a tool costs: an amount, or an amount for each unit at a path."""

    tool: str
    amount: Decimal
    path: str = ""
    """Where the result has its units, such as `output.meta.pages`; '' if each call costs alike."""

    @property
    def per(self) -> str:
        """What the amount is for."""
        return "unit" if self.path else "call"

    @property
    def unit_path_id(self) -> UUID | None:
        """The id of the path; None without one."""
        return uuid5(_UNIT_PATHS, f"{self.tool}\n{self.path}") if self.path else None


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """What a million tokens of a model cost, by kind."""

    model: str
    """As spans report it."""
    input: Decimal
    output: Decimal
    cached: Decimal | None = None
    """Of input read from a cache; None: as `input`. Likewise `written`, to a cache."""
    written: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """The lists that hold in a range of time, in order, and the currency of all."""

    currency: str
    starts: Sequence[datetime]
    prices: Sequence[Sequence[ToolPrice]]
    models: Sequence[Sequence[ModelPrice]]

    def parameters(self) -> dict[str, Any]:
        """The parameters of the parts `price` and `price_list_of` in `sql/costs.sql`."""
        priced = [(one, at) for at, prices in enumerate(self.prices, 1) for one in prices]
        return {
            "list_starts": list(self.starts),
            "price_tools": [one.tool for one, _ in priced],
            "price_lists": [at for _, at in priced],
            "per_call": [None if one.path else one.amount for one, _ in priced],
            "per_unit": [one.amount if one.path else None for one, _ in priced],
            "unit_path_ids": [one.unit_path_id for one, _ in priced],
        }


def read_amount(text: str) -> Decimal:
    """The amount that a text is. Raises PriceError."""
    if not _AMOUNT.fullmatch(text):
        raise PriceError("amount", "Enter an amount such as 0.004, with at most 12 decimals.")
    return Decimal(text)


def read_unit_path(text: str) -> str:
    """The path of units that a text is. Raises PriceError."""
    path = read_path(text) if len(text) <= PATH_MAX and text.isprintable() else None
    if path is None or path.payload != "output":
        raise PriceError(
            "path", "Write the path of a number in the result, such as output.meta.pages."
        )
    return text


def checked(prices: Iterable[ToolPrice]) -> tuple[ToolPrice, ...]:
    """The prices of a list, by tool. Raises PriceError if they do not fit together."""
    ordered = sorted(prices, key=lambda one: one.tool)
    if len(ordered) > PRICES_MAX:
        raise PriceError("prices", f"A list has at most {PRICES_MAX} prices.")
    for one in ordered:
        if not 0 < len(one.tool) <= NAME_MAX or not one.tool.isprintable():
            raise PriceError("tool", f"Enter a tool's name of 1 to {NAME_MAX} characters.")
    names = [one.tool for one in ordered]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise PriceError("prices", f"{twice} has two prices. A tool has one price in a list.")
    return tuple(ordered)


def checked_models(models: Iterable[ModelPrice]) -> tuple[ModelPrice, ...]:
    """The prices of a list's models, by name. Raises PriceError if they do not fit together."""
    ordered = sorted(models, key=lambda one: one.model)
    if len(ordered) > PRICES_MAX:
        raise PriceError("models", f"A list has prices of at most {PRICES_MAX} models.")
    for one in ordered:
        if not 0 < len(one.model) <= NAME_MAX or not one.model.isprintable():
            raise PriceError("model", f"Enter a model's name of 1 to {NAME_MAX} characters.")
    for one, after in pairwise(ordered):
        if one.model == after.model:
            raise PriceError("models", f"{one.model} is named twice. Name a model once in a list.")
    return tuple(ordered)


def to_document(prices: Iterable[ToolPrice], models: Iterable[ModelPrice] = ()) -> dict[str, Any]:
    """The prices as they are stored. A list without prices of models has no member for them."""
    document: dict[str, Any] = {
        "tools": [
            {"tool": one.tool, "amount": plain(one.amount), "path": one.path} for one in prices
        ]
    }
    if named := [model_document(one) for one in models]:
        document["models"] = named
    return document


def model_document(one: ModelPrice) -> dict[str, Any]:
    """A model's prices as they are stored."""
    amounts = {kind: getattr(one, kind) for kind in MODEL_KINDS}
    texts = {kind: None if amount is None else plain(amount) for kind, amount in amounts.items()}
    return {"model": one.model, **texts}


def models_from_document(document: Mapping[str, Any]) -> tuple[ModelPrice, ...]:
    """The prices of models in a stored document."""
    return tuple(read_model(one["model"], one) for one in document.get("models", ()))


def read_model(model: str, texts: Mapping[str, str | None]) -> ModelPrice:
    """A model's prices, of the texts of `MODEL_KINDS`. Raises PriceError."""
    amounts = {kind: read_amount(text) for kind in MODEL_KINDS if (text := texts[kind]) is not None}
    return ModelPrice(
        model, amounts["input"], amounts["output"], amounts.get("cached"), amounts.get("written")
    )


def from_document(document: Mapping[str, Any]) -> tuple[ToolPrice, ...]:
    """The prices of a stored document."""
    return tuple(
        ToolPrice(one["tool"], Decimal(one["amount"]), one["path"])
        for one in document.get("tools", ())
    )


def plain(amount: Decimal) -> str:
    """An amount without exponent and without zeros at its end: `0.004`, `12`."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def all_lists() -> list[PriceList]:
    """The tenant's price lists, the latest first. One query."""
    lists = PriceList.objects.for_tenant(current_tenant_id())
    return list(lists.order_by("-holds_from"))


def prices_held(start: datetime | None = None, end: datetime | None = None) -> Held | None:
    """The lists that hold between two instants; None if the tenant uses no list. One statement,
    planned once: many pages ask."""
    stored = rows_prepared("price_lists_in_use", {})
    if not stored:
        return None
    begins = [beginning(holds_from) for holds_from, _, _ in stored]
    last = len(begins) if end is None else sum(at < end for at in begins)
    first = 0 if start is None else max(0, sum(at <= start for at in begins) - 1)
    chosen = slice(first, last)
    documents = [json.loads(in_use) for _, _, in_use in stored[chosen]]
    return Held(
        stored[0][1],
        begins[chosen],
        [from_document(one) for one in documents],
        [models_from_document(one) for one in documents],
    )


def currency_used() -> str:
    """The currency of the tenant's price lists; '' if it has none. One query."""
    lists = PriceList.objects.for_tenant(current_tenant_id())
    return lists.order_by("holds_from").values_list("currency", flat=True).first() or ""


def beginning(day: date) -> datetime:
    """The instant at which a UTC day begins."""
    return datetime.combine(day, time(), UTC)


def percent_counted() -> int | None:
    """How much of the log was read for lists whose units are being counted; None if there is none.

    One statement.
    """
    ((done, whole),) = rows("units_counted", {})
    return percent(done, whole) if whole else None
