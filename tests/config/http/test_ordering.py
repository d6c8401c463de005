"""The order of rows, and pages of rows in an order."""

import pytest
from django.test import RequestFactory

from config.http.ordering import (
    SORTED_MAX,
    Order,
    in_order,
    page_in_order,
    requested_order,
    sorted_table,
)

ROWS = [("b", 2), ("a", None), ("c", 9), ("d", 2)]
KEYS = {"name": lambda row: row[0], "size": lambda row: row[1]}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("size", "cbda"),
        ("-size", "bdca"),
        ("name", "abcd"),
        ("-name", "dcba"),
        ("nonsense", "cbda"),
        ("", "cbda"),
    ],
)
def test_rows_are_in_the_requested_order(asked: str, expected: str) -> None:
    order = requested_order(RequestFactory().get("/", {"sort": asked}), KEYS, "size")
    assert "".join(name for name, _ in in_order(ROWS, KEYS, order)) == expected


def test_equal_rows_keep_their_places() -> None:
    rows = [("x", n % 3) for n in range(30)]
    numbered = list(enumerate(rows))
    ordered = in_order(numbered, {"size": lambda one: one[1][1]}, Order("size"))
    assert ordered == sorted(numbered, key=lambda one: (-one[1][1], one[0]))


def test_a_default_may_be_reversed_or_none() -> None:
    request = RequestFactory().get("/")
    assert requested_order(request, KEYS, "-name") == Order("name", is_reversed=True)
    assert sorted_table(request, ROWS, KEYS, "").rows == ROWS
    assert sorted_table(request, ROWS, KEYS, "size", most=2).rows == [("c", 9), ("b", 2)]


def test_pages_have_every_row_once_though_rows_arrive_meanwhile() -> None:
    rows = [(f"{n * 7 % 40:02}", n % 5) for n in range(40)]
    order = Order("size")
    listed: list[tuple[str, int]] = []
    place = ""
    while True:
        page = page_in_order(rows, KEYS, order, identify=lambda row: row[0], after=place, size=7)
        assert page.is_first == (place == "")
        listed += page.rows
        place = page.older
        if not place:
            break
        rows.insert(0, (f"new {len(rows)}", 9))  # before all others
    assert listed == in_order(rows[-40:], KEYS, order)


def test_a_page_says_that_only_the_newest_rows_are_sorted() -> None:
    rows = [(f"{n}", n) for n in range(SORTED_MAX + 1)]
    page = page_in_order(rows, KEYS, Order("size"), identify=lambda row: row[0], after="", size=1)
    assert page.is_cut
    assert page.rows == [(f"{SORTED_MAX - 1}", SORTED_MAX - 1)]
    assert page.pager["sorted_max"] == SORTED_MAX


def test_an_unknown_place_is_the_first_page() -> None:
    page = page_in_order(
        ROWS, KEYS, Order("name"), identify=lambda row: row[0], after="gone", size=2
    )
    assert page.is_first
    assert [name for name, _ in page.rows] == ["a", "b"]
