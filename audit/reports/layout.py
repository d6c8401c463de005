"""The parts of a report: tiles, findings, a chart and sections, as texts. Pure.

The page and the PDF show the same layout, so they cannot differ in content. Texts from agents are
in it unchanged. The code that shows them makes them harmless (`audit.show.text.visible`,
`audit.reports.pdf`).
"""

from collections.abc import Iterator, Sized
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from audit.show import figures
from audit.show.figures import count, counted
from audit.show.tiles import Change

ROWS_AT_FIRST = 6
"""Rows of a table that a narrow screen shows at first (`static/css/reports.css`)."""
Tone = Literal["", "failed", "violation", "ok", "open", "dim", "mono"]


class Finding(NamedTuple):
    """A sentence of the summary and its style."""

    text: str
    tone: Tone


@dataclass(frozen=True, slots=True)
class Cell:
    """A text and its style."""

    text: str
    tone: Tone = ""
    tool: str = ""
    """The tool that it names; the page leads to its calls."""


def tool_cell(text: str, tool: str) -> Cell:
    """A cell that names a tool, perhaps with its version."""
    return Cell(text, tool=tool)


@dataclass(frozen=True, slots=True)
class Column:
    """A column's head; numbers are right-aligned, wide columns are for long texts."""

    head: str
    is_number: bool = False
    is_wide: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under heads; `more` says how many are not listed. The first column is the widest."""

    caption: str
    columns: list[Column]
    rows: list[list[Cell]]
    more: str = ""

    @property
    def is_long(self) -> bool:
        """Whether a narrow screen shows its first rows only, until it is asked for all."""
        return len(self.rows) > ROWS_AT_FIRST

    @property
    def labelled(self) -> list[list[tuple[Column, Cell]]]:
        """The rows, each cell with its column."""
        return [list(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report: single figures, then tables; `note` explains them."""

    id: str
    title: str
    pairs: list[tuple[str, Cell]]
    tables: list[Table] = field(default_factory=list)
    note: str = ""


@dataclass(frozen=True, slots=True)
class Tile:
    """A headline figure and its change from the range before."""

    name: str
    value: str
    note: str
    change: Change | None
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """The calls of one part of the range, as a bar in a chart of 100 by 100 units."""

    name: str
    x: float
    width: float
    failed: float
    """The height of the failed calls; `ok` is that of the other calls, drawn above them."""
    ok: float
    title: str

    @property
    def failed_y(self) -> float:
        """The top of the failed calls, measured from the chart's top."""
        return round(100 - self.failed, 3)

    @property
    def ok_y(self) -> float:
        """The top of the other calls, measured from the chart's top."""
        return round(100 - self.failed - self.ok, 3)


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars over the range; `top` is the number of calls of a full-height bar."""

    title: str
    top: str
    first: str
    last: str
    bars: list[Bar]


@dataclass(frozen=True, slots=True)
class Layout:
    """A whole report."""

    title: str
    tenant: str
    of: str
    zone: str
    made: str
    warnings: list[str]
    facts: list[tuple[str, str]]
    query: str
    """Of the calls of the report."""
    tiles: list[Tile]
    findings: list[Finding]
    chart: Chart
    since: Section | None
    sections: list[Section]


def with_rows(*tables: Table) -> list[Table]:
    """The tables that have rows."""
    return [table for table in tables if table.rows]


def numbers(*heads: str) -> Iterator[Column]:
    """Columns of numbers."""
    return (Column(head, True) for head in heads)


def more(total: int, listed: Sized, noun: str) -> str:
    """How many items are not listed; '' if none."""
    rest = total - len(listed)
    return f"{counted(rest, noun)} more." if rest > 0 else ""


def bad(number: int, tone: Tone) -> Cell:
    """A number that should be 0."""
    return Cell(count(number), tone if number else "dim")


def limited(number: int, most: int, tone: Tone) -> Cell:
    """A number that is counted only up to `most`."""
    text = f"{most:,} or more" if number >= most else count(number)
    return Cell(text, tone if number else "dim")


def ms(milliseconds: float | None) -> str:
    """Milliseconds as a duration."""
    return "—" if milliseconds is None else figures.duration(round(milliseconds * 1000))
