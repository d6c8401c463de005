"""What the calls and the models' answers of a range cost, as a file (NDJSON or CSV).

Both forms end with the number of rows: without it, a file was cut off.
"""

from collections.abc import Iterator
from typing import Any

from audit.exports.forms import Document, text_forms
from audit.queries.costs import CallCosts, Cost, RangeCosts, costs_by_dimension, costs_over_time
from audit.queries.price_lists import plain
from audit.queries.time_range import TimeRange
from audit.queries.token_costs import (
    NamedTokenCosts,
    TokenCost,
    TokenCosts,
    token_costs_by_name,
)

COLUMNS = (
    "of",
    "by",
    "name",
    "version",
    "provider",
    "count",
    "without_price",
    "cost",
    "currency",
    "input_tokens",
    "cached_tokens",
    "written_tokens",
    "output_tokens",
    "is_complete",
)
"""Members and columns, in order.

`of` is `calls` or `answers`, which `count` counts; `by` is what `name` is of: `all`, `tool`,
`agent`, `model`, `conversation` or `trace`. Costs are exact decimal numbers, null without a price.
"""


def documents(of: TimeRange) -> list[Document]:
    """Every listed sum of a range, as on its page and over the API.

    Those by agent, conversation and trace, and of calls by model, are of the newest calls and
    answers: `is_complete` says whether these are all of the range.
    """
    calls, by = costs_over_time(of), costs_by_dimension(of)
    of_calls = [] if calls is None or by is None else list(_of_calls(calls, by))
    answers = token_costs_by_name(of)
    return of_calls if answers is None else [*of_calls, *_of_answers(*answers)]


def _of_calls(costs: RangeCosts, by: CallCosts) -> Iterator[Document]:
    def row(kind: str, name: str, version: str, cost: Cost, *, is_complete: bool) -> Document:
        shared = _row("calls", kind, name, version, costs.currency, cost.calls, cost)
        return shared | {"is_complete": is_complete}

    yield row("all", "", "", costs.total, is_complete=True)
    for tool in costs.tools:
        for one in tool.versions:
            yield row("tool", one.tool, one.version, one.cost, is_complete=True)
    for kind, named in (
        ("agent", by.agents),
        ("model", by.models),
        ("conversation", by.conversations),
        ("trace", by.traces),
    ):
        for each in named:
            yield row(kind, each.name, each.version, each.cost, is_complete=not by.is_cut)


def _of_answers(costs: TokenCosts, by: NamedTokenCosts) -> Iterator[Document]:
    def row(kind: str, name: str, version: str, cost: TokenCost, **members: Any) -> Document:
        shared = _row("answers", kind, name, version, costs.currency, cost.answers, cost)
        tokens = {
            "input_tokens": cost.input,
            "cached_tokens": cost.cached,
            "written_tokens": cost.written,
            "output_tokens": cost.output,
        }
        return shared | tokens | members

    yield row("all", "", "", costs.total, is_complete=True)
    for one in costs.models:
        yield row("model", one.model, "", one.cost, provider=one.provider or None, is_complete=True)
    for kind, named in (
        ("agent", by.agents),
        ("conversation", by.conversations),
        ("trace", by.traces),
    ):
        for each in named:
            yield row(kind, each.name, each.version, each.cost, is_complete=not by.is_cut)


def _row(
    of: str,
    by: str,
    name: str,
    version: str,
    currency: str,
    count: int,
    cost: Cost | TokenCost,
) -> Document:
    return dict.fromkeys(COLUMNS) | {
        "of": of,
        "by": by,
        "name": name or None,
        "version": version or None,
        "count": count,
        "without_price": cost.unpriced,
        "cost": plain(cost.amount) if cost.priced else None,
        "currency": currency or None,
    }


FORMS = text_forms(COLUMNS)
"""The forms of the file, by file extension."""
