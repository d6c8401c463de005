"""What tokens of models cost, in US dollars, by the data of the package `genai-prices`.

The data comes with the package; nothing is fetched. The package is optional (the extra `prices`)
and takes about 100 MiB, so it is imported for the first answer of a model that a page shows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

CURRENCY: Final = "USD"
_NAMES_MAX: Final = 2_000
_KINDS: Final = ("input_mtok", "cache_read_mtok", "cache_write_mtok", "output_mtok")


@dataclass(frozen=True, slots=True)
class Rate:
    """What a million tokens of each kind cost; None: nothing is known of the kind."""

    input: Decimal | None
    cached: Decimal | None
    written: Decimal | None
    output: Decimal | None


@dataclass(frozen=True, slots=True)
class Steps:
    """Where prices change: at the beginning of days, and above numbers of input tokens."""

    days: Sequence[date]
    tokens: Sequence[int]


@cache
def package_version() -> str | None:
    """The version of the installed package; None without it."""
    try:
        return version("genai-prices")
    except PackageNotFoundError:
        return None


@cache
def steps() -> Steps:
    """All days and numbers of tokens at which any price changes."""
    if package_version() is None:
        return Steps((), ())
    from genai_prices.types import StartDateConstraint, TieredPrices

    days: set[date] = set()
    tokens: set[int] = set()
    for provider in _data().providers:
        for model in provider.models:
            if not isinstance(model.prices, list):
                conditional: list[Any] = []
                prices = [model.prices]
            else:
                conditional = [one.constraint for one in model.prices]
                prices = [one.prices for one in model.prices]
            days |= {one.start_date for one in conditional if isinstance(one, StartDateConstraint)}
            for one in prices:
                for kind in _KINDS:
                    amount = getattr(one, kind)
                    if isinstance(amount, TieredPrices):
                        tokens |= {tier.start for tier in amount.tiers}
    return Steps(sorted(days), sorted(tokens))


@lru_cache(_NAMES_MAX)
def package_rate(provider: str, model: str, day: date, tokens: int) -> Rate | None:
    """The prices of a model on a day for an answer with this many input tokens.

    None if the package is not installed, does not know provider or model, or has a price that is
    not only by tokens: by the hour of the day, or for each request. `provider` '': by the model.
    """
    if package_version() is None or not model:
        return None
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import TieredPrices, TimeOfDateConstraint

    try:
        # Of its own: the shared one remembers each name, and names are the agents'.
        lookup = DataSnapshot(_data().providers, from_auto_update=False)
        _, known = lookup.find_provider_model(model, None, provider or None, None)
    except LookupError:
        return None
    if isinstance(known.prices, list) and any(
        isinstance(one.constraint, TimeOfDateConstraint) for one in known.prices
    ):
        return None
    prices = known.get_prices(datetime.combine(day, time(), UTC))
    if prices.requests_kcount is not None or prices.input_mtok is None:
        return None

    def amount(kind: str) -> Decimal | None:
        price: Decimal | TieredPrices | None = getattr(prices, kind)
        if isinstance(price, TieredPrices):
            above = [tier.price for tier in price.tiers if tokens > tier.start]
            return above[-1] if above else price.base
        return price

    took, cached, written, gave = map(amount, _KINDS)
    return Rate(
        took, took if cached is None else cached, took if written is None else written, gave
    )


def _data() -> Any:
    from genai_prices.data_snapshot import get_snapshot

    return get_snapshot()
