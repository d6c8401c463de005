"""Reads the values of terms: `sear*`, `>2s`, `1k..10k`, `24h`, `yesterday`. Pure."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from typing import Any

from audit.events.payload_paths import read_path
from audit.queries.call_filter import (
    AMOUNT_SCALE,
    UNPRICED,
    Ago,
    Bounds,
    Midnight,
    Moment,
    PayloadHas,
    Text,
)
from audit.queries.filter_names import FilterName, Kind

MAX_VALUE = 512
"""Maximum characters of a value: the length of the contract's longest indexed text."""

_MAX_NUMBER = 2**63 - 1
_EARLIEST, _LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(9990, 1, 1, tzinfo=UTC)
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
_AMOUNT = re.compile(rf"(\d{{1,15}})(?:\.(\d{{1,{AMOUNT_SCALE}}}))?", re.ASCII)
_AGO = re.compile(r"(\d{1,5})(m|min|h|d|w)", re.ASCII)
_AGO_UNITS = {
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_DAYS_AGO = {"today": 0, "yesterday": 1}
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_INSTANT = re.compile(
    r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?", re.ASCII
)
_COMPARISON = re.compile(r"(>=|<=|>|<)(.*)", re.DOTALL)
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
PAYLOADS = ("args", "output")


class UnreadableError(ValueError):
    """A value is not valid for its name. The message is for the author of the query."""


def read_value(name: FilterName, value: str, zone: tzinfo, *, is_prefix: bool) -> Any:
    """The value of a term, converted for the field of its name. Days begin at 00:00 in `zone`.

    Raises UnreadableError.
    """
    _check_length(value)
    if not value and not (is_prefix and name.takes_any):
        raise UnreadableError(f"The value is missing. Example: {name.example}")
    if name.kind is Kind.TEXT:
        return _text(value, is_prefix)
    if is_prefix:
        raise UnreadableError(f"* is not supported here. Write the full value: {name.example}")
    match name.kind:
        case Kind.CHOICE:
            return _choice(name, value)
        case Kind.DURATION:
            return _bounds(name, value, _duration)
        case Kind.COUNT:
            return _bounds(name, value, _count)
        case Kind.AMOUNT:
            return UNPRICED if value.lower() == UNPRICED else _bounds(name, value, _amount)
        case _:
            return _moment(value, zone)


def read_payload_term(name: str, value: str, *, is_prefix: bool, is_quoted: bool) -> PayloadHas:
    """The condition of `args.city:London` or `output.rows[*].id:7`. Raises UnreadableError."""
    path = read_path(name)
    if path is None:
        raise UnreadableError(
            "Write the path of the value: args.city:London, args.items[0].name:… or"
            " output.rows[*].id:…"
        )
    _check_length(value)
    if not value and not is_prefix:
        raise UnreadableError(f"The value is missing. Example: {name}:London or {name}:*")
    if not is_quoted and value.startswith((">", "<")):
        raise UnreadableError(
            "> and < are not supported here. Put a text that begins with them in quotes."
        )
    return PayloadHas(path.payload, path.steps, _text(value, is_prefix))


def read_words(text: str) -> str:
    """A text to search for. Raises UnreadableError."""
    _check_length(text)
    if not text:
        raise UnreadableError("The text to search for is empty.")
    return _text(text, is_prefix=False).value


def _check_length(value: str) -> None:
    if len(value) > MAX_VALUE:
        raise UnreadableError(f"A value can have at most {MAX_VALUE} characters.")


def _text(value: str, is_prefix: bool) -> Text:
    if _UNSTORABLE.search(value):
        raise UnreadableError("The value contains a character that no call can contain.")
    return Text(value, is_prefix)


def _choice(name: FilterName, value: str) -> str:
    chosen = name.choices.get(value.lower())
    if chosen is None:
        known = ", ".join(name.choices)
        close = get_close_matches(value.lower(), name.choices, n=1)
        guess = f" Did you mean {close[0]}?" if close else ""
        raise UnreadableError(f"{name.name} must be one of: {known}.{guess}")
    return chosen


def _bounds(name: FilterName, value: str, number: Callable[[FilterName, str], int]) -> Bounds:
    """The inclusive bounds of `>2s`, `<=2s`, `1s..2s`, `1s..`, or, but for durations, `7`."""
    if comparison := _COMPARISON.fullmatch(value):
        operator, limit = comparison[1], number(name, comparison[2])
        match operator:
            case ">":
                return Bounds(low=limit if limit == _MAX_NUMBER else limit + 1)
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
            raise UnreadableError(
                f"Add > or <, or use a range: {name.name}:>{value}, {name.name}:<{value}"
                f" or {name.name}:{value}..5min"
            )
        return Bounds(exact, exact)
    if not low and not high:
        raise UnreadableError(f"The range has no limits. Example: {name.example}")
    bounds = Bounds(number(name, low) if low else None, number(name, high) if high else None)
    if bounds.low is not None and bounds.high is not None and bounds.low > bounds.high:
        raise UnreadableError("The lower limit of the range is above its upper limit.")
    return bounds


def _duration(name: FilterName, value: str) -> int:
    match = _DURATION.fullmatch(value)
    if match is None:
        if re.fullmatch(r"[\d.]+", value, re.ASCII):
            raise UnreadableError(f"Add a unit: {value}ms, {value}s, {value}min or {value}h")
        raise UnreadableError(f"Not a duration. Example: {name.example}")
    whole, _, fraction = match[1].partition(".")
    unit = _DURATION_US[match[2]]
    return min(int(whole) * unit + int(fraction.ljust(6, "0")) * unit // 10**6, _MAX_NUMBER)


def _count(name: FilterName, value: str) -> int:
    match = _COUNT.fullmatch(value)
    if match is None:
        raise UnreadableError(f"Not a whole number. Example: {name.example}")
    return min(int(match[1]) * {"": 1, "k": 1_000, "M": 1_000_000}[match[2]], _MAX_NUMBER)


def _amount(name: FilterName, value: str) -> int:
    match = _AMOUNT.fullmatch(value)
    if match is None:
        raise UnreadableError(f"Not an amount. Example: {name.example} or {name.name}:none")
    return int(match[1] + (match[2] or "").ljust(AMOUNT_SCALE, "0"))


def _moment(value: str, zone: tzinfo) -> Moment:
    """The moment of `24h` (ago), `today`, `yesterday`, a day (its beginning), or an instant."""
    if ago := _AGO.fullmatch(value):
        return Ago(int(ago[1]) * _AGO_UNITS[ago[2]])
    if (days_ago := _DAYS_AGO.get(value.lower())) is not None:
        return Midnight(days_ago, zone)
    if not _DAY.fullmatch(value) and not _INSTANT.fullmatch(value):
        raise UnreadableError(
            "Use an age (30m, 24h, 7d), a day (today, yesterday, 2026-11-20) or a time"
            f" (2026-11-20T10:15). Times are in {zone} unless they end with Z or an offset."
        )
    try:
        moment = datetime.fromisoformat(value)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UnreadableError("This day or time does not exist.") from error
    if not _EARLIEST <= moment <= _LATEST:
        raise UnreadableError("The year must be between 2000 and 9989.")
    return moment
