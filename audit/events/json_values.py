"""JSON values as their sender wrote them: `72.50`, `1e400` and `NaN` stay what they are."""

import json
from typing import Any


class Number(str):
    """A number as its sender wrote it."""

    __slots__ = ()


def parse(raw: bytes) -> Any:
    """A JSON text for showing, numbers as `Number`. Raises ValueError for what is none."""
    try:
        return json.loads(raw, parse_int=Number, parse_float=Number, parse_constant=Number)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
