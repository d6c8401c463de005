"""JSON values as JavaScript treats them, where this affects a verdict or a text.

Owns type names, printing, lengths, equality and the order of members. `tooltrail.jsnumbers`
prints numbers.
"""

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from tooltrail.jsnumbers import js_number

_KINDS: Final[dict[type, str]] = {
    type(None): "null",
    bool: "boolean",
    str: "string",
    int: "integer",
    dict: "object",
    list: "array",
    tuple: "array",
}
_KINDS_OF_JSON: Final = frozenset([*_KINDS.values(), "number"])
_ARRAY_INDEX_LIMIT: Final = 2**32 - 1
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def kind_of(value: object) -> str:
    """The JSON type of a value: `integer` for any integral number, never for a boolean.

    A value that JSON cannot hold has the name of its Python type (`datetime`).
    """
    kind = _KINDS.get(type(value))
    if kind is not None:
        return kind
    match value:
        case float():
            return "integer" if value.is_integer() else "number"
        case int():
            return "integer"
        case Decimal():
            return "integer" if value.is_finite() and value % 1 == 0 else "number"
        case str():
            return "string"
        case Mapping():
            return "object"
        case list() | tuple():
            return "array"
    name = type(value).__name__
    return f"{type(value).__module__}.{name}" if name in _KINDS_OF_JSON else name


def double(value: float | Decimal) -> float:
    """Read a number as JavaScript stores it; beyond 1.8e308 it is infinite."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def js_text(value: object) -> str:
    """Write a value as `String(value)` does: lists are joined by commas, `[object Object]`."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return str(value)
        case int() | float():
            return js_number(value)
        case Decimal():
            return js_number(double(value))
        case list() | tuple():
            return ",".join("" if item is None else js_text(item) for item in value)
        case Mapping():
            return "[object Object]"
    return f"[object {type(value).__name__}]"


def js_json(value: object) -> str:
    """Write a value as `JSON.stringify(value)` does, with members in JavaScript's order."""
    match value:
        case None | bool():
            return js_text(value)
        case str():
            text = json.dumps(str(value), ensure_ascii=False)
            return _LONE_SURROGATE.sub(lambda unit: f"\\u{ord(unit[0]):04x}", text)
        case int() | float() | Decimal():
            text = js_text(value)
            return "null" if text[-1] in "yN" else text  # JSON has no Infinity and NaN
        case list() | tuple():
            return f"[{','.join(js_json(item) for item in value)}]"
        case Mapping():
            members = (f"{js_json(str(key))}:{js_json(value[key])}" for key in js_order(value))
            return f"{{{','.join(members)}}}"
    return js_json(js_text(value))


def js_length(text: str) -> int:
    """Count UTF-16 units, as `text.length` does: 😀 counts as two."""
    if text.isascii() or max(text) < "\U00010000":
        return len(text)
    return len(text) + sum(character >= "\U00010000" for character in text)


def js_order(keys: Iterable[str]) -> list[str]:
    """Put members in JavaScript's order: array indices ascending, then the rest unchanged."""
    ordered = list(keys)
    indices = [key for key in ordered if _is_array_index(key)]
    if not indices:
        return ordered
    indices.sort(key=int)
    return indices + [key for key in ordered if not _is_array_index(key)]


def _is_array_index(key: object) -> bool:
    return (
        isinstance(key, str)
        and key.isdecimal()
        and key.isascii()
        and (key == "0" or key[0] != "0")
        and len(key) <= 10
        and int(key) < _ARRAY_INDEX_LIMIT
    )


def json_equal(one: Any, other: Any) -> bool:
    """Compare as JSON: numbers by value, `1` never equals `true`, member order is ignored."""
    kind = kind_of(one)
    if kind in ("integer", "number"):
        return kind_of(other) in ("integer", "number") and double(one) == double(other)
    if kind != kind_of(other):
        return False
    if kind == "object":
        return one.keys() == other.keys() and all(json_equal(one[key], other[key]) for key in one)
    if kind == "array":
        return len(one) == len(other) and all(map(json_equal, one, other))
    return bool(one == other)


def json_key(value: Any) -> Any:
    """Make a hashable key that is equal for values that are `json_equal`."""
    kind = kind_of(value)
    if kind in ("integer", "number"):
        return "number", double(value)
    if kind == "object":
        return kind, frozenset((str(key), json_key(member)) for key, member in value.items())
    if kind == "array":
        return kind, tuple(json_key(item) for item in value)
    if kind == "string":
        return kind, str.__str__(value)
    return kind, js_text(value)
