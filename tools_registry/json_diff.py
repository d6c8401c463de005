"""A generic diff of two JSON documents. Pure."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

ALIGNED_MAX = 300
"""Longest list whose items are aligned; aligning takes quadratic time."""


@dataclass(frozen=True, slots=True)
class JSONChange:
    """One difference; `before` is None if the value was added, `after` if it was removed."""

    pointer: str
    """JSON pointer (RFC 6901): into the old document if removed, else into the new one."""
    kind: Literal["add", "remove", "replace"]
    before: Any
    after: Any


def json_diff(old: Any, new: Any, pointer: str = "") -> Iterator[JSONChange]:
    """All differences, in the order of the new document; the order of members does not count.

    The documents must not be nested deeper than Python's recursion limit.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for name, value in new.items():
            place = f"{pointer}/{_escaped(name)}"
            if name in old:
                yield from json_diff(old[name], value, place)
            else:
                yield JSONChange(place, "add", None, value)
        for name, value in old.items():
            if name not in new:
                yield JSONChange(f"{pointer}/{_escaped(name)}", "remove", value, None)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _of_lists(old, new, pointer)
    elif type(old) is not type(new) or old != new:
        yield JSONChange(pointer, "replace", old, new)


def _of_lists(old: list[Any], new: list[Any], pointer: str) -> Iterator[JSONChange]:
    for was, then, at, now in _runs(old, new):
        paired = min(then - was, now - at)
        for step in range(paired):
            yield from json_diff(old[was + step], new[at + step], f"{pointer}/{at + step}")
        for index in range(at + paired, now):
            yield JSONChange(f"{pointer}/{index}", "add", None, new[index])
        for index in range(was + paired, then):
            yield JSONChange(f"{pointer}/{index}", "remove", old[index], None)


def _runs(old: list[Any], new: list[Any]) -> Iterator[tuple[int, int, int, int]]:
    """The ranges in which two lists differ: start and end in the old, start and end in the new."""
    if max(len(old), len(new)) > ALIGNED_MAX:
        yield 0, len(old), 0, len(new)
        return
    was, now = ([json.dumps(item, sort_keys=True) for item in items] for items in (old, new))
    for tag, *run in SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
        if tag != "equal":
            yield run[0], run[1], run[2], run[3]


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
