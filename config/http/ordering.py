"""The order of a table's rows, from the address: `sort=calls`, or `sort=-calls` for the reverse.

Numbers and times begin with the largest, texts with the first by the alphabet. The tag
`sort_head` (`audit/templatetags/ordering.py`) makes the head of a column that changes the order.

A list that has pages of its own, newest first, has other orders of its newest `SORTED_MAX` rows
(`page_in_order`). Lists too long for that sort in the database (`audit/queries/call_order.py`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest

type Key[Row] = Callable[[Row], Any]

SORTED_MAX: Final = 5_000
"""Rows of a list with pages that are sorted by a column, the newest; a page says so."""


@dataclass(frozen=True, slots=True)
class Order:
    """The column that rows are sorted by; `is_reversed`: not as the column usually begins.

    The column '' is none: rows stay as they are.
    """

    column: str
    is_reversed: bool = False
    parameter: str = "sort"
    """The member of the address that names it; a page with several tables has several."""
    page: str = ""
    """The path of the page if the request has another one, as that of a form may."""


def requested_order(
    request: HttpRequest,
    columns: Iterable[str],
    default: str,
    parameter: str = "sort",
    *,
    page: str = "",
) -> Order:
    """Return the address's order. An unknown column is the default.

    A default with a minus is the reverse of how its column begins; the default '' sorts nothing.
    """
    text = request.GET.get(parameter, "")
    if text.removeprefix("-") not in set(columns):
        text = default
    return Order(text.removeprefix("-"), text.startswith("-"), parameter, page)


def in_order[Row](rows: Iterable[Row], keys: Mapping[str, Key[Row]], order: Order) -> list[Row]:
    """Return the rows sorted by a column. Rows without a value are last in both directions.

    The sort is stable: equal rows stay as they were.
    """
    if not order.column:
        return list(rows)
    key = keys[order.column]
    known: list[tuple[Any, Row]] = []
    unknown: list[tuple[Any, Row]] = []
    for row in rows:
        value = key(row)
        (unknown if value is None else known).append((value, row))
    is_text = bool(known) and isinstance(known[0][0], str)
    known.sort(key=lambda pair: pair[0], reverse=is_text == order.is_reversed)
    return [row for _, row in (*known, *unknown)]


@dataclass(frozen=True, slots=True)
class Table[Row]:
    """Rows in an order, for a template."""

    rows: list[Row]
    order: Order


def sorted_table[Row](
    request: HttpRequest,
    rows: Iterable[Row],
    keys: Mapping[str, Key[Row]],
    default: str,
    parameter: str = "sort",
    *,
    most: int | None = None,
    page: str = "",
) -> Table[Row]:
    """Return the rows of a table, sorted by the column that the address names; the first `most`."""
    order = requested_order(request, keys, default, parameter, page=page)
    return Table(in_order(rows, keys, order)[:most], order)


@dataclass(frozen=True, slots=True)
class SortedPage[Row]:
    """A page of sorted rows."""

    rows: list[Row]
    older: str
    """The id of its last row, which the next page follows; '' on the last page."""
    is_first: bool
    is_cut: bool
    """Whether there are more than `SORTED_MAX` rows, so that only the newest are sorted."""

    @property
    def pager(self) -> dict[str, Any]:
        """The context of `components/_pager.html`."""
        return {
            "older": self.older,
            "is_first_page": self.is_first,
            "is_sorted": True,
            "sorted_max": SORTED_MAX if self.is_cut else None,
        }


def page_in_order[Row](
    rows: Iterable[Row],
    keys: Mapping[str, Key[Row]],
    order: Order,
    *,
    identify: Callable[[Row], object],
    after: str,
    size: int,
) -> SortedPage[Row]:
    """Return at most `size` rows that follow the one with the id `after`; the first without it.

    `rows` are the newest, at most one more than `SORTED_MAX`.
    """
    newest = list(rows)
    ordered = in_order(newest[:SORTED_MAX], keys, order)
    begin = next((n for n, row in enumerate(ordered, 1) if str(identify(row)) == after), 0)
    shown = ordered[begin : begin + size]
    has_more = len(ordered) > begin + size
    return SortedPage(
        rows=shown,
        older=str(identify(shown[-1])) if has_more else "",
        is_first=begin == 0,
        is_cut=len(newest) > SORTED_MAX,
    )
