"""Tables for a terminal: as wide as it is, whatever the texts in them are.

Pure. Texts come from agents and executors: what would move the cursor, change colours or turn
words around is shown as an escape (`\\x1b`), as is whatever else has no shape of its own.
"""

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

GAP = "  "
_NARROWEST = 12  # of a text that may be cut: less tells nothing
_SHAPELESS = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its head, and what stands in it of a row."""

    head: str
    of: Callable[[Mapping[str, Any]], str]
    is_right: bool = False
    is_elastic: bool = False
    """Whether its texts may be cut."""
    goes: int = 0
    """Where there is no room it is left out, the highest first; 0 stays."""


def tame(text: str) -> str:
    """The text without anything a terminal would obey, on one line."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if unicodedata.category(character) not in _SHAPELESS else _escaped(character)
        for character in text
    )


def cells(text: str) -> int:
    """How many cells of a terminal a tame text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def cut(text: str, width: int) -> str:
    """The text in at most so many cells, `…` where it goes on."""
    if cells(text) <= width:
        return text
    kept, room = [], width - 1
    for character in text:
        room -= _cells(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept) + "…"


class Table:
    """A table whose columns are as wide as its first rows and the terminal make them."""

    def __init__(self, columns: Sequence[Column], width: int | None) -> None:
        self._columns = list(columns)
        self._width = width
        self._widths: list[int] = []

    def lines(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """The rows as lines; the first time with the heads above."""
        drawn = [[tame(column.of(row)) for column in self._columns] for row in rows]
        if not self._widths:
            drawn = self._fit(drawn)
            yield self._line([column.head for column in self._columns])
        for texts in drawn:
            yield self._line(texts)

    def _fit(self, drawn: list[list[str]]) -> list[list[str]]:
        """Choose widths, and leave out what there is no room for."""
        kept = list(range(len(self._columns)))
        wanted = [
            max(len(column.head), *(cells(texts[n]) for texts in drawn), 1)
            for n, column in enumerate(self._columns)
        ]
        least = [
            min(width, max(_NARROWEST, len(column.head))) if column.is_elastic else width
            for column, width in zip(self._columns, wanted, strict=True)
        ]
        room = self._width
        if room is not None:
            while _sum(least, kept) > room and any(self._columns[n].goes for n in kept):
                kept.remove(max(kept, key=lambda n: self._columns[n].goes))
            while _sum(wanted, kept) > room:
                elastic = [n for n in kept if wanted[n] > least[n]]
                if not elastic:
                    break
                wanted[max(elastic, key=lambda n: wanted[n])] -= 1
        self._columns = [self._columns[n] for n in kept]
        self._widths = [wanted[n] for n in kept]
        return [[texts[n] for n in kept] for texts in drawn]

    def _line(self, texts: Sequence[str]) -> str:
        found = []
        for column, width, text in zip(self._columns, self._widths, texts, strict=True):
            if column.is_elastic and self._width is not None:
                text = cut(text, width)
            padding = " " * (width - cells(text))
            found.append(padding + text if column.is_right else text + padding)
        line = GAP.join(found).rstrip()
        return line if self._width is None else cut(line, self._width)


def _sum(widths: Sequence[int], kept: Sequence[int]) -> int:
    return sum(widths[n] for n in kept) + len(GAP) * (len(kept) - 1)


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def _escaped(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
