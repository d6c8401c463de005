"""JSON values as their sender wrote them: `72.50`, `1e400` and `NaN` are kept unchanged."""

import json
from typing import Any


class Number(str):
    """A number as its sender wrote it."""

    __slots__ = ()


def parse(raw: bytes) -> Any:
    """Parse JSON for display, numbers as `Number`. Raises ValueError for invalid JSON."""
    try:
        return json.loads(raw, parse_int=Number, parse_float=Number, parse_constant=Number)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
