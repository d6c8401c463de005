"""Paths in the payloads of a call: `args.city`, `output.rows[*].id`. Pure."""

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, cast

type Step = str | int | None
"""A member, an index, or None: every index."""

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,9}|\*)\]", re.ASCII)
_PATH = re.compile(rf"(args|output)((?:{_STEP.pattern})+)", re.ASCII)


class PayloadPath(NamedTuple):
    """Which payload, and the steps to the values in it."""

    payload: Literal["args", "output"]
    steps: tuple[Step, ...]


def read_path(text: str) -> PayloadPath | None:
    """The path that a text is, or None."""
    path = _PATH.fullmatch(text)
    if path is None:
        return None
    steps = tuple(
        member if member else None if index == "*" else int(index)
        for member, index in _STEP.findall(path[2])
    )
    return PayloadPath(cast(Literal["args", "output"], path[1]), steps)


def values_at(value: Any, steps: tuple[Step, ...]) -> Iterator[Any]:
    """The values at a place in a payload; several if a step means every index."""
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    match value, step:
        case dict(), str() if step in value:
            yield from values_at(value[step], rest)
        case list(), None:
            for each in value:
                yield from values_at(each, rest)
        case list(), int() if step < len(value):
            yield from values_at(value[step], rest)
