"""Selects values in JSON by path: the part of RFC 9535 that needs no evaluation.

Supports names, indexes, slices, wildcards and descendants. Filter expressions are rejected: a
model writes the path, and nothing written by a model may be executed.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

Selector = Callable[[Any], Iterator[Any]]

_SEGMENT = re.compile(
    r"""
    (?P<descend>\.\.)?
    (?:
        (?(descend)|\.)(?P<name>[^\W\d][\w-]*)
      | (?(descend)|\.)(?P<star>\*)
      | \[\s*(?:
            (?P<quoted>'(?:[^'\\]|\\['\\])*'|"(?:[^"\\]|\\["\\])*")
          | (?P<every>\*)
          | (?P<slice>(?P<start>-?\d{1,9})?\s*:\s*(?P<stop>-?\d{1,9})?)
          | (?P<index>-?\d{1,9})
        )\s*\]
    )
    """,
    re.VERBOSE,
)


def compile_path(path: str) -> Callable[[Any], list[Any]]:
    """Make a function that lists the values at the path, in document order.

    Raises ValueError for a path that is malformed or uses what this module does not support.
    """
    if not path.startswith("$"):
        raise ValueError(f"a path must start with $: {path!r}")
    steps: list[tuple[bool, Selector]] = []
    position = 1
    while position < len(path):
        match = _SEGMENT.match(path, position)
        if match is None:
            raise ValueError(f"invalid path at {path[position:]!r}")
        steps.append((match["descend"] is not None, _selector(match)))
        position = match.end()

    def select(value: Any) -> list[Any]:
        matches = [value]
        for descends, selector in steps:
            places = (deep for place in matches for deep in _descendants(place))
            matches = [
                hit for place in (places if descends else matches) for hit in selector(place)
            ]
        return matches

    return select


def _selector(match: re.Match[str]) -> Selector:
    if match["star"] or match["every"]:
        return _children
    if match["slice"] is not None:
        bounds = slice(*(int(match[end]) if match[end] else None for end in ("start", "stop")))
        return lambda value: iter(value[bounds] if isinstance(value, list) else ())
    if match["index"] is not None:
        index = int(match["index"])
        return lambda value: iter(
            (value[index],) if isinstance(value, list) and -len(value) <= index < len(value) else ()
        )
    name = match["name"] or re.sub(r"\\(.)", r"\1", match["quoted"][1:-1])
    return lambda value: iter((value[name],) if isinstance(value, dict) and name in value else ())


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _descendants(root: Any) -> Iterator[Any]:
    """The value and everything in it, outer before inner, in document order."""
    stack = [root]
    while stack:
        value = stack.pop()
        yield value
        stack += reversed(list(_children(value)))
