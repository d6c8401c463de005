"""A payload's shape in place of its values: keys, types and lengths. Pure.

A key is shown if it looks like the name of a member. Any other key may itself be a value (a map by
e-mail address), so only its length is shown.
"""

import re
from typing import Any

from audit.events.json_values import Number
from audit.show.json_tree import Shape

_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]{0,63}", re.ASCII)


def is_name(key: str) -> bool:
    """Whether a key looks like the name of a member, so that it may be shown."""
    return _NAME.fullmatch(key) is not None


def mask(value: Any) -> Any:
    """The value, as `json_values.parse` read it, with a `Shape` for each of its scalars."""
    match value:
        case Number():
            return Shape("number")
        case str():
            return Shape(f"text of {_characters(value)}")
        case True | False:
            return Shape("true or false")
        case dict():
            return {
                _key(key, position): mask(child)
                for position, (key, child) in enumerate(value.items())
            }
        case list():
            return [mask(child) for child in value]
        case _:
            return Shape("null")


def _key(key: str, position: int) -> str:
    return key if is_name(key) else f"member {position + 1}, {_characters(key)}"


def _characters(text: str) -> str:
    return f"{len(text):,} character{'' if len(text) == 1 else 's'}"
