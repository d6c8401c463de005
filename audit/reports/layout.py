"""What a report is made of: tiles, findings, a chart and sections, as texts. Pure.

The page and the PDF show one layout, so neither can say what the other does not. Texts of agents
stand in it as they are: what shows them makes them harmless (`audit.show.text.visible`,
`audit.reports.pdf`).
"""

from collections.abc import Iterator, Sized
from dataclasses import dataclass, field
from typing import Literal

from audit.show import figures
from audit.show.figures import count, counted
from audit.show.tiles import Change

Look = Literal["", "failed", "violation", "ok", "open", "dim", "mono"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A text and how it looks."""

    text: str
    look: Look = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column's head; numbers are on the right, long texts get more room."""

    head: str
    is_number: bool = False
    is_wide: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under heads; `more` says what is not listed. The first column is the widest."""

    caption: str
    columns: list[Column]
    rows: list[list[Cell]]
    more: str = ""

    @property
    def labelled(self) -> list[list[tuple[Column, Cell]]]:
        """The rows, each cell with its column."""
        return [list(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report: single figures, then tables; `note` says what they are of."""

    id: str
    title: str
    pairs: list[tuple[str, Cell]]
    tables: list[Table] = field(default_factory=list)
    note: str = ""


@dataclass(frozen=True, slots=True)
class Tile:
    """A headline figure, and how it differs from the range before."""

    name: str
    value: str
    note: str
    change: Change | None
    look: Look = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """Calls of a part of the range: places from the top of a chart 100 high and wide."""

    name: str
    x: float
    width: float
    failed: float
    """The height of the failed, and of the others above them."""
    ok: float
    title: str

    @property
    def failed_y(self) -> float:
        """Where the failed begin, from the top."""
        return round(100 - self.failed, 3)

    @property
    def ok_y(self) -> float:
        """Where the others begin."""
        return round(100 - self.failed - self.ok, 3)


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars over the range; `top` is the number of calls at its full height."""

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
    tiles: list[Tile]
    findings: list[tuple[str, Look]]
    chart: Chart
    since: Section | None
    sections: list[Section]


def with_rows(*tables: Table) -> list[Table]:
    """The tables that have any."""
    return [table for table in tables if table.rows]


def numbers(*heads: str) -> Iterator[Column]:
    """Columns of numbers."""
    return (Column(head, True) for head in heads)


def more(total: int, listed: Sized, noun: str) -> str:
    """What a list does not hold."""
    rest = total - len(listed)
    return f"{counted(rest, noun)} more." if rest > 0 else ""


def bad(number: int, look: Look) -> Cell:
    """A number that should be 0."""
    return Cell(count(number), look if number else "dim")


def limited(number: int, most: int, look: Look) -> Cell:
    """A number that is counted up to `most`."""
    text = f"{most:,} or more" if number >= most else count(number)
    return Cell(text, look if number else "dim")


def ms(milliseconds: float | None) -> str:
    """Milliseconds as a duration."""
    return "—" if milliseconds is None else figures.duration(round(milliseconds * 1000))
