"""The query language of the list of calls: `tool:search state:error duration:>2s`.

Pure: text in, a `Query` out, whose `CallFilter` is what `audit.queries.call_list` looks for.
A term is a name, a colon and a value; terms are parted by white space and must all hold. A
value with white space stands in double quotes, where `\\` takes the next character as it is. A
`*` behind a text means that it starts so. Nothing is raised for what cannot be read: each
problem says what is wrong, and where.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any

from audit.call_filter import FILTER_NAMES, Ago, Bounds, CallFilter, FilterName, Kind, Text

MAX_LENGTH = 2_000
"""Characters of a query."""
MAX_VALUE = 512
"""Characters of one value; the contract's longest indexed text has as many."""

_MAX_NUMBER = 2**63 - 1
_EARLIEST, _LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(9990, 1, 1, tzinfo=UTC)
_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"\S+")
_NAME = re.compile(r'([^\s:"]*):')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)(us|µs|ms|s|m|min|h|d)", re.ASCII)
_DURATION_US = {
    "us": 1,
    "µs": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_COUNT = re.compile(r"(\d{1,15})([kM]?)", re.ASCII)
_AGO = re.compile(r"(\d{1,5})(m|min|h|d|w)", re.ASCII)
_AGO_UNITS = {
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_INSTANT = re.compile(
    r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?", re.ASCII
)
_COMPARISON = re.compile(r"(>=|<=|>|<)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Term:
    """One `name:value` of a query, as it was written, and where."""

    name: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Problem:
    """What cannot be read: a sentence, and the part of the query it is about."""

    message: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Query:
    """A query that was read. Terms with a problem are in neither `terms` nor `readable`."""

    text: str
    terms: tuple[Term, ...]
    readable: CallFilter
    """What the terms without a problem ask for: to fill in a form, never to search."""
    problems: tuple[Problem, ...]

    @property
    def wanted(self) -> CallFilter:
        """What is asked for. Raises InvalidQueryError if a part of it cannot be read: the rest
        alone may ask for the opposite, as in `NOT state:ok`.
        """
        if self.problems:
            raise InvalidQueryError(self.problems[0].message)
        return self.readable

    def value(self, name: str) -> str:
        """The value of a term as it was written, '' without one."""
        prefix = len(name) + 1
        return next((term.text[prefix:] for term in self.terms if term.name == name), "")

    def having(self, name: str, value: str) -> str:
        """The query's readable terms with this one in its place, or without it for ''.

        `value` is written as in a query: `>2s`, `sear*`, `"two words"`.
        """
        term = f"{name}:{value}" if value else ""
        kept = [term if one.name == name else one.text for one in self.terms]
        if term not in kept:
            kept.append(term)
        return " ".join(filter(None, kept))

    def __str__(self) -> str:
        """The readable terms, each parted by one space."""
        return " ".join(term.text for term in self.terms)


class InvalidQueryError(ValueError):
    """A part of a query cannot be read, so nothing may be searched, exported or erased by it."""


class _UnreadableError(ValueError):
    """A value is not what its name takes; the message is for whoever wrote it."""


def parse(text: str) -> Query:
    """Read a query. Raises nothing; see `Query.problems`."""
    terms: list[Term] = []
    problems: list[Problem] = []
    wanted = CallFilter()
    if len(text) > MAX_LENGTH:
        too_long = f"A query has at most {MAX_LENGTH:,} characters."
        return Query(text, (), wanted, (Problem(too_long, MAX_LENGTH, len(text)),))
    for found in _split(text):
        if isinstance(found, Problem):
            problems.append(found)
            continue
        term, value, is_prefix = found
        filter_name = FILTER_NAMES.get(term.name)
        name_end = term.start + len(term.name)
        if filter_name is None:
            problems.append(Problem(_unknown(term.name), term.start, name_end))
        elif any(other.name == term.name for other in terms):
            twice = f"{term.name} is given twice; every term must hold."
            problems.append(Problem(twice, term.start, term.end))
        else:
            try:
                wanted = replace(
                    wanted, **{filter_name.field: _read(filter_name, value, is_prefix)}
                )
            except _UnreadableError as error:
                at = min(name_end + 1, term.end - 1)
                problems.append(Problem(str(error), at, term.end))
            else:
                terms.append(term)
    return Query(text, tuple(terms), wanted, tuple(problems))


def quoted(value: str, *, is_prefix: bool = False) -> str:
    """A text as it stands in a query, with quotes where it needs them."""
    if not value or value[0] == '"' or value[-1] == "*" or re.search(r"\s", value):
        value = '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'
    return f"{value}*" if is_prefix else value


def _split(text: str) -> Iterator[tuple[Term, str, bool] | Problem]:
    """The terms of a text: as written, the value without quotes, whether a `*` follows it."""
    at = 0
    while True:
        at = _end_of(_SPACE, text, at)
        if at == len(text):
            return
        start = at
        name = _NAME.match(text, at)
        if name is None:
            at = _end_of(_WORD, text, at)
            yield Problem(_nameless(text[start:at]), start, at)
            continue
        at = name.end()
        quote = _QUOTED.match(text, at)
        if quote is None and text.startswith('"', at):
            yield Problem('This quote has no end: "', at, len(text))
            return
        end = _end_of(_WORD, text, quote.end() if quote else at)
        if quote is None:
            value = text[at:end]
            is_prefix = value.endswith("*")
            value = value.removesuffix("*")
        else:
            value = re.sub(r"\\(.)", r"\1", quote[1], flags=re.DOTALL)
            rest = text[quote.end() : end]
            is_prefix = rest == "*"
            if rest not in {"", "*"}:
                yield Problem("Leave a space behind the quotes.", quote.end(), end)
                at = end
                continue
        yield Term(name[1], text[start:end], start, end), value, is_prefix
        at = end


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _nameless(word: str) -> str:
    shown = word if len(word) <= 40 else f"{word[:40]}…"
    return f"Say what to look in: tool:{shown}, trace:{shown}*, call:{shown} …"


def _unknown(name: str) -> str:
    close = get_close_matches(name.lower(), FILTER_NAMES, n=1)
    if close:
        return f"There is no {name or 'empty name'}. Did you mean {close[0]}?"
    return f"There is no {name or 'empty name'}. There are: {', '.join(FILTER_NAMES)}."


def _read(name: FilterName, value: str, is_prefix: bool) -> Any:
    """The value of a term, as its name's field takes it."""
    if len(value) > MAX_VALUE:
        raise _UnreadableError(f"A value has at most {MAX_VALUE} characters.")
    if not value and not (is_prefix and name.takes_any):
        raise _UnreadableError(f"What is missing after the colon? As in {name.example}")
    if name.kind is Kind.TEXT:
        return _text(value, is_prefix)
    if is_prefix:
        raise _UnreadableError(f"No * here, write it in full: {name.example}")
    match name.kind:
        case Kind.CHOICE:
            return _choice(name, value)
        case Kind.DURATION:
            return _bounds(name, value, _duration)
        case Kind.COUNT:
            return _bounds(name, value, _count)
        case Kind.SINCE:
            return _moment(name, value, is_end=False)
        case _:
            return _moment(name, value, is_end=True)


def _text(value: str, is_prefix: bool) -> Text:
    if "\x00" in value or re.search("[\ud800-\udfff]", value):
        raise _UnreadableError("No text of a call holds such a character.")
    return Text(value, is_prefix)


def _choice(name: FilterName, value: str) -> str:
    chosen = name.choices.get(value.lower())
    if chosen is None:
        known = ", ".join(name.choices)
        close = get_close_matches(value.lower(), name.choices, n=1)
        guess = f" Did you mean {close[0]}?" if close else ""
        raise _UnreadableError(f"{name.name} is one of {known}.{guess}")
    return chosen


def _bounds(name: FilterName, value: str, number: Any) -> Bounds:
    """`>2s`, `<=2s`, `1s..2s`, `1s..`, and where it makes sense `7`; both ends belong to it."""
    if comparison := _COMPARISON.fullmatch(value):
        operator, limit = comparison[1], number(name, comparison[2])
        match operator:
            case ">":
                return Bounds(low=min(limit + 1, _MAX_NUMBER))
            case ">=":
                return Bounds(low=limit)
            case "<":
                return Bounds(high=limit - 1)
            case _:
                return Bounds(high=limit)
    low, dots, high = value.partition("..")
    if not dots:
        exact = number(name, value)
        if name.kind is Kind.DURATION:
            raise _UnreadableError(
                f"Longer or shorter? {name.name}:>{value}, {name.name}:<{value}"
                f" or {name.name}:{value}..5min"
            )
        return Bounds(exact, exact)
    if not low and not high:
        raise _UnreadableError(f"From where to where? As in {name.example}")
    bounds = Bounds(number(name, low) if low else None, number(name, high) if high else None)
    if bounds.low is not None and bounds.high is not None and bounds.low > bounds.high:
        raise _UnreadableError("The first is the larger: nothing lies between them.")
    return bounds


def _duration(name: FilterName, value: str) -> int:
    found = _DURATION.fullmatch(value)
    if found is None:
        if re.fullmatch(r"[\d.]+", value, re.ASCII):
            raise _UnreadableError(f"{value} of what? {value}ms, {value}s, {value}min or {value}h")
        raise _UnreadableError(f"That is no length of time. As in {name.example}")
    whole, _, fraction = found[1].partition(".")
    unit = _DURATION_US[found[2]]
    return min(int(whole) * unit + int(fraction.ljust(6, "0")) * unit // 10**6, _MAX_NUMBER)


def _count(name: FilterName, value: str) -> int:
    found = _COUNT.fullmatch(value)
    if found is None:
        raise _UnreadableError(f"That is no whole number. As in {name.example}")
    return min(int(found[1]) * {"": 1, "k": 1_000, "M": 1_000_000}[found[2]], _MAX_NUMBER)


def _moment(name: FilterName, value: str, *, is_end: bool) -> datetime | Ago:
    """`24h` (ago), a UTC day, or an instant; a day as an end is the end of that day."""
    if ago := _AGO.fullmatch(value):
        return Ago(int(ago[1]) * _AGO_UNITS[ago[2]])
    try:
        if _DAY.fullmatch(value):
            moment = datetime.fromisoformat(value).replace(tzinfo=UTC)
            moment += timedelta(days=int(is_end))
        elif _INSTANT.fullmatch(value):
            moment = datetime.fromisoformat(value)
            moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        else:
            raise _UnreadableError(
                "That is neither how long ago (30m, 24h, 7d) nor a UTC time"
                " (2026-11-20, 2026-11-20T10:15)."
            )
    except (ValueError, OverflowError) as error:
        if isinstance(error, _UnreadableError):
            raise
        raise _UnreadableError("There is no such day or time.") from error
    if not _EARLIEST <= moment <= _LATEST:
        raise _UnreadableError("There is no call of that year.")
    return moment
