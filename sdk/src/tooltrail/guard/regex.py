"""JavaScript's regular expressions on an engine that takes linear time.

A pattern is rewritten into the dialect of Rust's `regex`, which jsonschema-rs runs, with the
meaning it has in Node (no flags, Annex B). Look-around and back-references have no linear-time
form and are rejected.

JavaScript matches UTF-16 units, Rust matches code points. So there are two rewritings:
- `exact` runs on a text whose surrogates, paired or lone, were moved to U+10D800 – U+10DFFF.
- `plain` runs on the text as it is and contains no surrogates at all. Where it matches, `exact`
  matches, too (no negation is left by then). Where it does not match, `exact` must decide.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from itertools import permutations
from typing import TYPE_CHECKING, Final

from tooltrail.guard.engine import pattern_validator
from tooltrail.guard.errors import SchemaError

if TYPE_CHECKING:
    from jsonschema_rs import Validator

_PATTERN_LIMIT: Final = 20_000  # characters; longer patterns only cost time

type Ranges = list[tuple[int, int]]

_UNITS: Final = 0xFFFF
_SURROGATES: Final = (0xD800, 0xDFFF)
_MOVED: Final = 0x100000
_DIGIT: Final[Ranges] = [(0x30, 0x39)]
_WORD: Final[Ranges] = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]
_SPACE: Final[Ranges] = [
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
]
_LINE_END: Final[Ranges] = [(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)]
_CONTROL: Final = {"t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D}
_QUANTIFIER: Final = re.compile(r"(?:[*+?]|\{(\d+)(,(\d*))?\})", re.ASCII)
_GROUP_NAME: Final = re.compile(r"\?<([^\W\d]\w*|\$[\w$]*)>")
_OUTSIDE_BMP: Final = re.compile("[\ud800-\udfff\U00010000-\U0010ffff]")


@lru_cache(maxsize=1024)
def matcher(pattern: str, *, ignore_case: bool = False) -> Callable[[str], bool]:
    """Compile a JavaScript pattern to a predicate: whether it matches anywhere in a text.

    `ignore_case` is its flag `i`. Raises SchemaError if the pattern is malformed, too large, or
    not possible in linear time.
    """
    compiled = _compile(pattern, translate(pattern, surrogates=False, ignore_case=ignore_case))
    exact = _compile(pattern, translate(pattern, surrogates=True, ignore_case=ignore_case))

    def matches(text: str) -> bool:
        if text.isascii():
            return compiled.is_valid(text)
        return exact.is_valid(_OUTSIDE_BMP.sub(_move, text))

    return matches


@lru_cache(maxsize=1024)
def plain(pattern: str) -> str:
    """Rewrite a pattern for unchanged texts; see the module docstring. Raises SchemaError."""
    rewritten = translate(pattern, surrogates=False)
    _compile(pattern, rewritten)
    return rewritten


def _compile(pattern: str, rewritten: str) -> "Validator":
    try:
        return pattern_validator(rewritten)
    except ValueError:
        raise SchemaError(f"pattern {pattern!r} is too large") from None


def _move(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= _UNITS:
        return chr(code + _MOVED)
    high, low = divmod(code - 0x10000, 0x400)
    return chr(0xD800 + high + _MOVED) + chr(0xDC00 + low + _MOVED)


def translate(pattern: str, *, surrogates: bool, ignore_case: bool = False) -> str:
    """Rewrite a JavaScript pattern in Rust's dialect. Raises SchemaError."""
    if len(pattern) > (_PATTERN_LIMIT // 10 if ignore_case else _PATTERN_LIMIT):
        raise SchemaError(f"a pattern of {len(pattern)} characters is too large")
    return "".join(_Translation(pattern, surrogates, ignore_case).tokens())


class _Translation:
    """One pass over a pattern, as UTF-16 units."""

    def __init__(self, pattern: str, surrogates: bool, ignore_case: bool) -> None:
        self.pattern = pattern
        self.units = "".join(_units(pattern))
        self.surrogates = surrogates
        self.ignore_case = ignore_case
        self.at = 0
        self.groups, self.names = _count_groups(self.units)

    def tokens(self) -> Iterator[str]:
        depth = 0
        repeatable = False
        while self.at < len(self.units):
            if quantifier := _QUANTIFIER.match(self.units, self.at):
                if not repeatable:
                    raise self.error("nothing to repeat")
                yield self.repeat(quantifier)
                repeatable = False
                continue
            unit = self.take()
            repeatable = True
            match unit:
                case "(":
                    depth += 1
                    yield self.open_group()
                    repeatable = False
                case ")":
                    depth -= 1
                    if depth < 0:
                        raise self.error("unmatched )")
                    yield ")"
                case "|" | "^" | "$":
                    yield unit
                    repeatable = False
                case ".":
                    yield self.ranges(_complement(_LINE_END))
                case "[":
                    yield self.ranges(self.character_class())
                case "\\" if self.units[self.at : self.at + 1] in ("b", "B"):
                    yield f"(?-u:\\{self.take()})"
                    repeatable = False
                case "\\":
                    yield self.ranges(self.escape())
                case _:
                    yield self.ranges([(ord(unit), ord(unit))])
        if depth:
            raise self.error("unterminated group")

    def take(self) -> str:
        unit = self.units[self.at]
        self.at += 1
        return unit

    def error(self, problem: str) -> SchemaError:
        return SchemaError(f"invalid pattern {self.pattern!r}: {problem}")

    def repeat(self, quantifier: re.Match[str]) -> str:
        self.at = quantifier.end()
        low, comma, high = quantifier.groups()
        if comma and high and int(low) > int(high):
            raise self.error("numbers out of order in quantifier")
        if self.units[self.at : self.at + 1] == "?":
            self.at += 1  # lazy: this changes the match, never the verdict
        return quantifier[0]

    def open_group(self) -> str:
        rest = self.units[self.at : self.at + 3]
        if not rest.startswith("?"):
            return "(?:"
        if rest.startswith("?:"):
            self.at += 2
            return "(?:"
        if rest.startswith(("?=", "?!", "?<=", "?<!")):
            raise self.error("look-around is not supported, it cannot run in linear time")
        name = _GROUP_NAME.match(self.units, self.at)
        if name is None or self.names.count(name[1]) > 1:
            raise self.error("invalid group")
        self.at = name.end()
        return "(?:"

    def escape(self) -> Ranges:
        """Read what follows a backslash outside of a class."""
        if self.at == len(self.units):
            raise self.error("\\ at the end")
        number = re.compile(r"[1-9]\d*", re.ASCII).match(self.units, self.at)
        is_reference = number is not None and int(number[0]) <= self.groups
        if is_reference or (self.names and self.units[self.at] == "k"):
            raise self.error("back-references are not supported, they cannot run in linear time")
        return self.class_escape(in_class=False)

    def class_escape(self, *, in_class: bool) -> Ranges:
        unit = self.take()
        match unit:
            case "d" | "D":
                return _DIGIT if unit == "d" else _complement(_DIGIT)
            case "w" | "W":
                return _WORD if unit == "w" else _complement(_WORD)
            case "s" | "S":
                return _SPACE if unit == "s" else _complement(_SPACE)
            case "t" | "n" | "v" | "f" | "r":
                code = _CONTROL[unit]
            case "b" if in_class:
                code = 0x08
            case "c":
                code = self.control(in_class)
            case "x":
                code = self.hexadecimal(2, unit)
            case "u":
                code = self.hexadecimal(4, unit)
            case "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7":
                octal = re.compile("[0-3]?[0-7]{1,2}").match(self.units, self.at - 1)
                assert octal is not None
                self.at = octal.end()
                code = int(octal[0], 8)
            case _:
                code = ord(unit)
        return [(code, code)]

    def control(self, in_class: bool) -> int:
        letter = self.units[self.at : self.at + 1]
        if letter.isascii() and (letter.isalpha() or (in_class and (letter + "_").isalnum())):
            self.at += 1
            return ord(letter) % 32
        self.at -= 1  # `\c` alone is a backslash and a c
        return ord("\\")

    def hexadecimal(self, digits: int, letter: str) -> int:
        match = re.compile(f"[0-9a-fA-F]{{{digits}}}").match(self.units, self.at)
        if match is None:
            return ord(letter)
        self.at = match.end()
        return int(match[0], 16)

    def character_class(self) -> Ranges:
        """Read a class up to its closing bracket."""
        negated = self.units[self.at : self.at + 1] == "^"
        self.at += negated
        ranges: Ranges = []
        while True:
            if self.at >= len(self.units):
                raise self.error("unterminated class")
            if self.units[self.at] == "]":
                self.at += 1
                break
            low = self.class_atom()
            rest = self.units[self.at : self.at + 2]
            if rest[:1] != "-" or rest == "-]" or len(rest) < 2:
                ranges += low
                continue
            self.at += 1
            high = self.class_atom()
            if not (_is_single(low) and _is_single(high)):
                ranges += [*low, (0x2D, 0x2D), *high]  # `[\d-x]`: the dash is literal
            elif low[0][0] > high[0][0]:
                raise self.error("range out of order in class")
            else:
                ranges.append((low[0][0], high[0][0]))
        if negated and self.ignore_case:  # `[^a]` excludes both a and A
            ranges = _in_both_cases(ranges)
        return _complement(ranges) if negated else ranges

    def class_atom(self) -> Ranges:
        unit = self.take()
        if unit != "\\":
            return [(ord(unit), ord(unit))]
        if self.at == len(self.units):
            raise self.error("\\ at the end")
        return self.class_escape(in_class=True)

    def ranges(self, ranges: Ranges) -> str:
        """Write a set of units in Rust's dialect, with surrogates moved or left out."""
        if self.ignore_case:
            ranges = _in_both_cases(ranges)
        if len(ranges) == 1 and ranges[0][0] == ranges[0][1] and chr(ranges[0][0]).isalnum():
            return chr(ranges[0][0])
        first, last = _SURROGATES
        parts: list[tuple[int, int]] = []
        for low, high in ranges:
            parts.append((low, min(high, first - 1)))
            parts.append((max(low, last + 1), high))
            if self.surrogates:
                parts.append((max(low, first) + _MOVED, min(high, last) + _MOVED))
        written = "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in parts if low <= high)
        return f"[{written}]" if written else r"[^\x{0}-\x{10ffff}]"


def _units(text: str) -> Iterator[str]:
    for character in text:
        code = ord(character)
        if code <= _UNITS:
            yield character
        else:
            high, low = divmod(code - 0x10000, 0x400)
            yield chr(0xD800 + high) + chr(0xDC00 + low)


def _count_groups(units: str) -> tuple[int, list[str]]:
    """Count the capturing groups and list their names, ignoring classes and escapes."""
    bare = re.sub(r"\\[\s\S]|\[(?:\\[\s\S]|[^\]\\])*\]?", "..", units)
    names = re.findall(r"\((?=\?<)" + _GROUP_NAME.pattern, bare)
    return len(re.findall(r"\((?!\?)", bare)) + len(names), names


def _is_single(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


def _in_both_cases(ranges: Ranges) -> Ranges:
    table = _other_cases()
    both_cases = list(ranges)
    for low, high in ranges:
        cased = table[bisect_left(table, (low,)) : bisect_left(table, (high + 1,))]
        both_cases += [(other, other) for _, other in cased]
    return _complement(_complement(both_cases))  # merges adjacent ranges


@cache
def _other_cases() -> list[tuple[int, int]]:
    """All pairs of UTF-16 units that differ only in case, in both directions, sorted.

    As ECMAScript's Canonicalize: one unit to one unit, and never from beyond ASCII to ASCII.
    """
    same: dict[str, list[int]] = {}
    for code in range(_UNITS + 1):
        upper = chr(code).upper()
        if len(upper) > 1 or (code > 0x7F and upper.isascii()):
            upper = chr(code)
        same.setdefault(upper, []).append(code)
    return sorted(pair for codes in same.values() for pair in permutations(codes, 2))


def _complement(ranges: Iterable[tuple[int, int]]) -> Ranges:
    gaps: Ranges = []
    start = 0
    for low, high in sorted(ranges):
        if low > start:
            gaps.append((start, low - 1))
        start = max(start, high + 1)
    if start <= _UNITS:
        gaps.append((start, _UNITS))
    return gaps
