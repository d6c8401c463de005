"""Tables that fit the terminal, whatever texts they contain.

Pure. The texts come from agents and executors. Characters that would move the cursor, change
colours or reverse the text direction are shown as escapes (`\\x1b`), and so are all other
invisible characters.
"""

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

GAP = "  "
_NARROWEST = 12  # cells of a text that may be cut: fewer would show too little
_HEADING = "1"
TONES = {
    **dict.fromkeys(("failed", "error", "crashed", "altered", "breaking", "alert"), "31"),
    **dict.fromkeys(("open", "running", "overdue", "warning", "unknown", "waiting"), "33"),
    **dict.fromkeys(("success", "succeeded", "completed", "compatible", "resolved"), "32"),
}
"""Colours (SGR) of the words of a column with a state."""
_SHAPELESS = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, and how its text is made from a row."""

    head: str
    of: Callable[[Mapping[str, Any]], str]
    is_right: bool = False
    is_elastic: bool = False
    """Whether its texts may be cut."""
    goes: int = 0
    """If there is no room, the columns with the highest number are left out first; 0 stays."""
    is_state: bool = False
    """Whether its words are coloured on a terminal (`TONES`)."""


def tame(text: str) -> str:
    """The text on one line, without anything that would control a terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if unicodedata.category(character) not in _SHAPELESS else _escaped(character)
        for character in text
    )


def cells(text: str) -> int:
    """How many terminal cells a tame text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def cut(text: str, width: int) -> str:
    """The text in at most `width` cells, with `…` where it was cut."""
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
    """A table whose column widths are set by its first rows and the terminal's width."""

    def __init__(
        self, columns: Sequence[Column], width: int | None, *, is_coloured: bool = False
    ) -> None:
        self._is_coloured = is_coloured
        self._columns = list(columns)
        self._width = width
        self._widths: list[int] = []

    def lines(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """The rows as lines. The first call puts the headings above them."""
        drawn = [[tame(column.of(row)) for column in self._columns] for row in rows]
        if not self._widths:
            drawn = self._fit(drawn)
            yield self._line([column.head for column in self._columns], _HEADING)
        for texts in drawn:
            yield self._line(texts)

    def _fit(self, drawn: list[list[str]]) -> list[list[str]]:
        """Choose the widths, and leave out columns that do not fit."""
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

    def _line(self, texts: Sequence[str], tone: str = "") -> str:
        padded, toned = [], []
        for column, width, text in zip(self._columns, self._widths, texts, strict=True):
            if column.is_elastic and self._width is not None:
                text = cut(text, width)
            padding = " " * (width - cells(text))
            padded.append(padding + text if column.is_right else text + padding)
            own = tone or (TONES.get(text, "") if column.is_state else "")
            shown = f"\x1b[{own}m{text}\x1b[0m" if own else text
            toned.append(padding + shown if column.is_right else shown + padding)
        line = GAP.join(padded).rstrip()
        if self._width is not None and cells(line) > self._width:
            return cut(line, self._width)
        return GAP.join(toned).rstrip() if self._is_coloured else line


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
