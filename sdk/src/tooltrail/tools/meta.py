"""The store behind a tool's `meta`: nested values read and written by dotted path."""

from collections.abc import Mapping
from copy import deepcopy
from itertools import pairwise
from typing import Any

from tooltrail.errors import InvalidInitialRegistryValue


class Registry:
    """Nested plain values, accessed by dotted paths. Digits index lists (`list.0.name`).

    Values are deep-copied when stored and when read, so nobody can change them from outside. A
    stored None is a value like any other; a default is used only if the value is absent. A key
    that contains a dot cannot be accessed.

    Raises InvalidInitialRegistryValue unless `initial` is a mapping (None: empty).
    Source: the ADK's `Registry`; that `set` copies is from the ADK's documentation.
    """

    __slots__ = ("_values",)

    def __init__(self, initial: Mapping[str, Any] | None = None) -> None:
        if initial is None:
            initial = {}
        if not isinstance(initial, Mapping):
            raise InvalidInitialRegistryValue
        self._values: dict[str, Any] = deepcopy(dict(initial))

    def get(self, path: str, default: Any = None) -> Any:
        """A copy of the value at `path`, or `default` if there is none."""
        try:
            return deepcopy(self._find(path))
        except LookupError:
            return default

    def has(self, path: str) -> bool:
        """Whether a value, including None, is stored at `path`."""
        try:
            self._find(path)
        except LookupError:
            return False
        return True

    def set(self, path: str, value: Any) -> None:
        """Store a copy of `value`, creating missing containers on the way.

        Before a part of digits a list is created, before any other part a mapping. A scalar on
        the way is replaced. Skipped places in a list become None. Raises TypeError if the path
        leads through a None, or if a part that is not an index meets a list.
        """
        parts = path.split(".")
        container: Any = self._values
        for part, following in pairwise(parts):
            child = _child_or_none(container, part)
            if not isinstance(child, dict | list):
                if child is None and _holds(container, part):
                    raise TypeError(f"{path!r} has None before {part!r}")
                child = [] if following.isdecimal() else {}
                _put(container, part, child)
            container = child
        _put(container, parts[-1], deepcopy(value))

    def keys(self) -> list[str]:
        """The paths of all leaves, which are lists and scalars. An empty mapping has none."""
        return _leaf_paths(self._values)

    def all(self) -> dict[str, Any]:
        """A copy of everything."""
        return deepcopy(self._values)

    def _find(self, path: str) -> Any:
        value: Any = self._values
        for part in path.split("."):
            value = _child(value, part)
        return value

    def __repr__(self) -> str:
        return f"Registry({self._values!r})"


def _index(part: str) -> int:
    # As in JavaScript: "01" and "+1" are names, not places in a list.
    if not (part.isascii() and part.isdecimal()) or (part[0] == "0" and part != "0"):
        raise LookupError(part)
    return int(part)


def _child(container: Any, part: str) -> Any:
    if isinstance(container, list):
        return container[_index(part)]
    if isinstance(container, dict):
        return container[part]
    raise LookupError(part)


def _holds(container: Any, part: str) -> bool:
    try:
        _child(container, part)
    except LookupError:
        return False
    return True


def _child_or_none(container: Any, part: str) -> Any:
    return _child(container, part) if _holds(container, part) else None


def _put(container: dict[str, Any] | list[Any], part: str, value: Any) -> None:
    if isinstance(container, dict):
        container[part] = value
        return
    try:
        index = _index(part)
    except LookupError:
        raise TypeError(f"a list has no member {part!r}") from None
    container += [None] * (index + 1 - len(container))
    container[index] = value


def _leaf_paths(values: dict[str, Any], prefix: str = "") -> list[str]:
    paths: list[str] = []
    for key, value in values.items():
        path = f"{prefix}{key}"
        paths += _leaf_paths(value, f"{path}.") if isinstance(value, dict) else [path]
    return paths
