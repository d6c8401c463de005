"""The order of a table's rows, from the address: `sort=calls`, or `sort=-calls` for the reverse.

Numbers and times begin with the largest, texts with the first by the alphabet. The tag
`sort_head` (`audit/templatetags/ordering.py`) makes the head of a column that changes the order.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

type Key[Row] = Callable[[Row], Any]


@dataclass(frozen=True, slots=True)
class Order:
    """The column that rows are sorted by; `is_reversed`: not as the column usually begins."""

    column: str
    is_reversed: bool = False
    parameter: str = "sort"
    """The member of the address that names it; a page with several tables has several."""


def requested_order(
    request: HttpRequest, columns: Iterable[str], default: str, parameter: str = "sort"
) -> Order:
    """Return the address's order. An unknown column is the default."""
    text = request.GET.get(parameter, "")
    column = text.removeprefix("-")
    if column not in set(columns):
        return Order(default, parameter=parameter)
    return Order(column, text.startswith("-"), parameter)


def in_order[Row](rows: Iterable[Row], keys: Mapping[str, Key[Row]], order: Order) -> list[Row]:
    """Return the rows sorted by a column. Rows without a value are last in both directions.

    The sort is stable: equal rows stay as they were.
    """
    key = keys[order.column]
    known: list[tuple[Any, Row]] = []
    unknown: list[tuple[Any, Row]] = []
    for row in rows:
        value = key(row)
        (unknown if value is None else known).append((value, row))
    is_text = bool(known) and isinstance(known[0][0], str)
    known.sort(key=lambda pair: pair[0], reverse=is_text == order.is_reversed)
    return [row for _, row in (*known, *unknown)]
