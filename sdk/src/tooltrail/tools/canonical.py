"""The canonical text of a tool call, and the call id made from it.

Owns `canonical_stringify` and `compute_call_id`. Both give the same bytes as the ADK's, so the
same call has the same id in every language. `tooltrail.jsnumbers` writes the numbers.
"""

import json
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from math import isfinite
from typing import Any

from msgspec import MsgspecError
from msgspec.json import Encoder
from pydantic_core import to_json

from tooltrail.jsnumbers import js_number

_EXACT_INTEGER = 2**53  # beyond it a double, and so JavaScript, cannot hold every integer
_SURROGATE = re.compile("[\ud800-\udfff]")

_sorted_json = Encoder(order="sorted").encode
_quote = json.JSONEncoder(ensure_ascii=False).encode


class _NotOrdinaryError(Exception):
    """A JSON encoder would not write this value as JavaScript does."""


def canonical_stringify(value: Any) -> str:
    """Write a JSON value as JavaScript would, with sorted members and without white space.

    Members are sorted by UTF-16 code units. Numbers are written as doubles (`1.0` → `1`,
    NaN → `null`), lone surrogates as `\\udxxx`. Tuples count as lists, any Mapping as an object.
    Raises TypeError for values that JSON cannot hold: other types, keys that are not text,
    cycles. Source: the ADK's `canonicalStringify`.
    """
    return _canonical_bytes(value).decode()


def compute_call_id(tool: str, args: Any) -> str:
    """Compute the content-based id of a call: SHA-256 of `{args, tool}` in lower-case hexadecimal.

    `args` are the raw arguments, before validation: an explicit default changes the id, the
    order of members does not. Raises TypeError as `canonical_stringify` does.
    """
    return sha256(_canonical_bytes({"args": args, "tool": tool})).hexdigest()


def _canonical_bytes(value: Any) -> bytes:
    try:
        ordinary = _sorted_json(value)  # first: it rejects cycles, in which the check never ends
        return ordinary if _is_ordinary(value) else to_json(_ordered(value))
    except (
        _NotOrdinaryError, MsgspecError, OverflowError, RecursionError, TypeError, ValueError,
    ):  # fmt: skip  # grouped by line
        # Lone surrogates, depth, cycles, or names that are not text and so cannot be sorted.
        # Only a surrogate makes text unencodable, so most text is never searched for one.
        text = _write_exactly(value)
        return (text if text.isascii() else _escape_lone_surrogates(text)).encode()


def _is_ordinary(root: Any) -> bool:
    """Whether any JSON encoder that sorts members writes this value as JavaScript does.

    Every recorded call needs a call id, and most arguments are ordinary. So this is one loop
    over a growing list, because function calls would cost more than the loop itself.
    Raises TypeError for names that are not text.
    """
    names: list[str] = []
    groups: list[Iterable[Any]] = [(root,)]
    for values in groups:
        for value in values:
            kind = type(value)
            if kind is str:
                continue
            if kind is dict:
                names += value
                groups.append(value.values())
            elif kind is list or kind is tuple:
                groups.append(value)
            elif kind is int:
                if not -_EXACT_INTEGER <= value <= _EXACT_INTEGER:
                    return False
            elif kind is float:
                if not 1e-4 <= abs(value) < 1e15 or value.is_integer():
                    return False
            elif value is not None and kind is not bool:
                return False
    # ASCII, because code points above U+FFFF sort differently as UTF-16.
    return "".join(names).isascii()


def _ordered(value: Any) -> Any:
    """A copy with sorted members and `1.0` as 1, which pydantic writes as JavaScript does.

    Values rejected here only take the slower way. Raises _NotOrdinaryError, and RecursionError
    on cycles.
    """
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is int:
        if -_EXACT_INTEGER <= value <= _EXACT_INTEGER:
            return value
    elif kind is float:  # outside these bounds, or if integral, both languages print differently
        if value.is_integer() and abs(value) <= _EXACT_INTEGER:
            return int(value)
        if 1e-4 <= abs(value) < 1e15:
            return value
    elif kind is dict:
        members = {}
        for key in sorted(value):
            # ASCII, because code points above U+FFFF sort differently as UTF-16.
            if type(key) is not str or not key.isascii():
                raise _NotOrdinaryError
            member = value[key]
            members[key] = member if type(member) is str else _ordered(member)
        return members
    elif kind is list or kind is tuple:
        return [member if type(member) is str else _ordered(member) for member in value]
    raise _NotOrdinaryError


def _write_exactly(root: Any) -> str:
    """Write any value that has a canonical form, however deep.

    The stack holds what is still to be written: texts, values, and the id of a container at the
    point where it closes. So `open_ids` are the ancestors of the current value.
    """
    pieces: list[str] = []
    open_ids: set[int] = set()
    stack: list[tuple[str, Any]] = [("value", root)]
    while stack:
        kind, value = stack.pop()
        if kind == "text":
            pieces.append(value)
        elif kind == "close":
            open_ids.remove(value)
        elif not isinstance(value, Mapping | list | tuple):
            pieces.append(_scalar(value))
        elif id(value) in open_ids:
            raise TypeError("a value that contains itself has no canonical form")
        else:
            open_ids.add(id(value))
            opening, closing, members = _members(value)
            pieces.append(opening)
            stack += (("close", id(value)), ("text", closing))
            for index in range(len(members) - 1, -1, -1):
                prefix, member = members[index]
                stack += (("value", member), ("text", f",{prefix}" if index else prefix))
    return "".join(pieces)


def _members(value: Any) -> tuple[str, str, list[tuple[str, Any]]]:
    if not isinstance(value, Mapping):
        return "[", "]", [("", member) for member in value]
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"a member's name must be text, not {type(key).__name__}")
    # Big-endian, so that bytes sort in the order of the 16-bit units.
    items = sorted(value.items(), key=lambda item: item[0].encode("utf-16-be", "surrogatepass"))
    return "{", "}", [(f"{_quote(key)}:", member) for key, member in items]


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, int):
        text = js_number(value)
        return "null" if text.endswith("Infinity") else text
    if isinstance(value, float):
        return js_number(value) if isfinite(value) else "null"
    raise TypeError(f"{type(value).__name__} has no canonical form: use plain JSON values")


def _escape_lone_surrogates(text: str) -> str:
    if not _SURROGATE.search(text):
        return text
    # JavaScript's text is UTF-16: two adjacent halves of a surrogate pair are one character.
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", joined)
