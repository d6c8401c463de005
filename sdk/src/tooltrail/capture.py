"""Writes a payload as JSON text, as much of it as an event may carry.

The length limit is applied last: a text that was cut can no longer be searched for secrets.
"""

import json
from types import GeneratorType
from typing import Any

from msgspec import MsgspecError
from msgspec.json import Encoder
from pydantic_core import SchemaValidator, core_schema, to_json, to_jsonable_python

from tooltrail.redact import Note, Redactor, opaque

# 1.5 µs for 1 KB; pydantic's takes 2.5. It raises for generators instead of consuming them.
_encode = Encoder().encode
# Takes a third to a seventh of the time of `in`: the engine compares 32 bytes at a time.
_has_null = SchemaValidator(
    core_schema.str_schema(pattern="null", regex_engine="rust-regex")
).isinstance_python

PREVIEW_CHARACTERS = 4096  # kept of a payload that is too long
_SHAPE_MEMBERS = 50  # items kept of a list: enough to show what it contains


class NotKept:
    """Stands for a payload that nobody could keep; `reason` says why, as in the event's notes."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


class Capture:
    """The capture rule of one tool: `mode` is `full`, `shape` or `none`; `redactor` is optional.

    `max_bytes` limits a payload, in bytes of JSON.
    """

    def __init__(self, mode: str, redactor: Redactor | None, max_bytes: int) -> None:
        self.mode = mode
        self.redactor = redactor
        self._max_bytes = max_bytes

    def encode(self, value: Any, path: str, notes: list[Note]) -> bytes:
        """Write a payload as JSON and add a note for each removal to `notes`. Never raises."""
        if type(value) is NotKept:
            notes.append({"path": path, "reason": value.reason})
            return b"null"
        if self.mode == "none":
            notes.append({"path": path, "reason": "not captured"})
            return b"null"
        try:
            if self.mode == "shape":
                notes.append({"path": path, "reason": "shape only"})
                value = without_generators(value)
                value = shape(to_jsonable_python(value, fallback=opaque, bytes_mode="base64"))
            text = encode_json(value)
            if self.redactor is not None and not self.redactor.is_harmless(text.decode()):
                text = b""  # it may be long
                value, removed = self.redactor.clean(without_generators(value), path)
                notes += removed
                text = encode_json(value)
        except Exception as error:
            notes.append({"path": path, "reason": f"not JSON: {type(error).__name__}"})
            return b"null"
        if len(text) <= self._max_bytes:
            return text
        notes.append({"path": path, "reason": f"too long: {len(text)} bytes"})
        return encode_json(text[:PREVIEW_CHARACTERS].decode(errors="ignore"))


def without_generators(value: Any) -> Any:
    """Replace every generator in lists and objects by a placeholder, `<generator>`.

    Writing a generator as JSON would consume it; the tool or its caller would find it empty.
    """
    try:
        return _without_generators(value)
    except RecursionError:  # a cycle, or too deep: writing it as JSON fails later
        return value


def _without_generators(value: Any) -> Any:
    if isinstance(value, GeneratorType):
        return opaque(value)
    if isinstance(value, dict):
        return {name: _without_generators(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_without_generators(member) for member in value]
    return value


def encode_json(value: Any) -> bytes:
    """Write any value as JSON text. Raises ValueError or RecursionError for cycles.

    Values that JSON cannot hold become text: bytes become base64, NaN becomes `"NaN"`, an
    object of an unknown class becomes its class name in angle brackets.
    """
    try:
        text = _encode(value)
        # This encoder writes NaN as null, so a null in its output is ambiguous.
        if not _has_null(text):
            return text
    except (MsgspecError, TypeError, ValueError, RecursionError, OverflowError):
        value = without_generators(value)
    try:
        return to_json(value, inf_nan_mode="strings", bytes_mode="base64", fallback=opaque)
    except ValueError:  # a lone surrogate: UTF-8 cannot hold it, a JSON escape can
        plain = to_jsonable_python(value, fallback=opaque, bytes_mode="base64")
        return json.dumps(plain, separators=(",", ":")).encode()


def shape(value: Any) -> Any:
    """Replace every value by the name of its JSON type. Members keep their names."""
    match value:
        case dict():
            return {name: shape(member) for name, member in value.items()}
        case list():
            return [shape(member) for member in value[:_SHAPE_MEMBERS]]
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case _:
            return "string"
