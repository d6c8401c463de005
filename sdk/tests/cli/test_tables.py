"""Tables fit the terminal, and control characters in their texts have no effect."""

import re
from typing import Any

import pytest
from tooltrail.cli.tables import (
    Column,
    Table,
    cells,
    cut,
    tame,
)
from tooltrail.cli.values import duration

HOSTILE = "\x1b[2J\x1b]0;owned\x07a\r\nb\x9b1m\u202ec\u2066\u200b\ud800"


def _columns(**more: Any) -> list[Column]:
    return [
        Column("WHEN", lambda row: row["at"], goes=1),
        Column("TOOL", lambda row: row["tool"], is_elastic=True),
        Column("CALLS", lambda row: str(row["calls"]), is_right=True),
    ]


def _row(tool: str = "search", calls: int = 3) -> dict[str, Any]:
    return {"at": "2026-11-20 10:15:00", "tool": tool, "calls": calls}


def test_columns_are_aligned() -> None:
    table = Table(_columns(), None)
    assert list(table.lines([_row(), _row("get_weather", 12)])) == [
        "WHEN                 TOOL         CALLS",
        "2026-11-20 10:15:00  search           3",
        "2026-11-20 10:15:00  get_weather     12",
    ]
    assert list(table.lines([_row("x", 1)])) == ["2026-11-20 10:15:00  x                1"]


@pytest.mark.parametrize("width", range(10, 70))
@pytest.mark.parametrize("tool", ["search", "x" * 100, "日本語" * 20, "e\u0301" * 50, HOSTILE])
def test_no_line_is_wider_than_the_terminal(width: int, tool: str) -> None:
    lines = list(Table(_columns(), width).lines([_row(tool), _row()]))
    assert len(lines) == 3
    assert all(cells(line) <= width for line in lines)
    assert all(line.isprintable() or "\u0301" in line for line in lines)


def test_least_important_columns_are_dropped_first() -> None:
    head, line = Table(_columns(), 24).lines([_row("x" * 30)])
    assert head.split() == ["TOOL", "CALLS"]
    assert line == "x" * 16 + "…      3"


def test_nothing_is_truncated_without_a_terminal() -> None:
    *_, line = Table(_columns(), None).lines([_row("x" * 300)])
    assert "x" * 300 in line


def test_control_characters_are_escaped_for_the_terminal() -> None:
    shown = tame(HOSTILE)
    assert shown.isprintable()
    assert "\\x1b[2J" in shown
    assert "\\u202e" in shown
    assert "\\ud800" in shown
    assert tame("plain text, naïve 日本") == "plain text, naïve 日本"


@pytest.mark.parametrize(("text", "width", "kept"), [("abcd", 4, "abcd"), ("日本語", 4, "日…")])
def test_texts_are_truncated_by_display_cells(text: str, width: int, kept: str) -> None:
    assert cut(text, width) == kept


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, ""),
        (0.123, "0.1 ms"),
        (52.04, "52.0 ms"),
        (1500, "1.5 s"),
        (90_000, "1.5 min"),
        (9e6, "2.5 h"),
    ],
)
def test_durations_are_formatted_with_units(milliseconds: float | None, text: str) -> None:
    assert duration(milliseconds) == text


def test_headings_and_states_are_coloured_without_moving_a_column() -> None:
    columns = [
        Column("STATE", lambda row: row["tool"], is_state=True),
        Column("CALLS", lambda row: str(row["calls"]), is_right=True),
    ]
    rows = [_row("failed"), _row("\x1b[31mopen")]
    plain = list(Table(columns, 40).lines(rows))
    coloured = list(Table(columns, 40, is_coloured=True).lines(rows))
    assert coloured[0].startswith("\x1b[1mSTATE\x1b[0m ")
    assert coloured[1].startswith("\x1b[31mfailed\x1b[0m ")
    assert coloured[2] == plain[2], "a text of an agent has no colour of its own"
    assert [re.sub(r"\x1b\[\d+m", "", line) for line in coloured] == plain
    narrow = Table(columns, 8, is_coloured=True)
    assert all(cells(line) <= 8 for line in narrow.lines(rows)), "no colour is cut in two"
