"""Repairs single fields: which strategy a field has, and how its value is replaced.

Owns the paths of `field_strategies` and `field_fallbacks` (`[*]` matches any index). The guard
validates the repaired output.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tooltrail.guard.coerce import Coercion, coerce
from tooltrail.guard.jsvalues import kind_of
from tooltrail.guard.nodes import Node
from tooltrail.guard.options import UNSET, FailureStrategy, GuardOptions, Outcome
from tooltrail.guard.violations import Violation


@dataclass(slots=True)
class FieldRepairs:
    """The output with its fields repaired and the repairs made, or the strategy for the whole."""

    data: Any
    coercions: list[Coercion] = field(default_factory=list)
    outcome: Outcome = "passed"
    whole: FailureStrategy | None = None


def repair_fields(
    root: Callable[[], Node],
    data: Any,
    violations: Sequence[Violation],
    options: GuardOptions,
    *,
    may_fall_back: bool,
) -> FieldRepairs:
    """Apply the field strategies that match a violation, once per path.

    `root` returns the schema's node, for coercions. Raises ValueError if a field's strategy is
    `fallback` and it has no fallback.
    """
    repairs = FieldRepairs(data)
    strategies = {
        violation.path: strategy
        for violation in violations
        if (strategy := _lookup(options.field_strategies, violation.path)) is not UNSET
    }
    for strategy in strategies.values():
        if strategy in ("throw", "error-result"):
            repairs.whole = strategy
            return repairs
    to_coerce = [path for path, strategy in strategies.items() if strategy == "coerce-and-warn"]
    if to_coerce:
        repairs.data, repairs.coercions = coerce(
            root(), data, options.conversions, lambda path: _is_within(path, to_coerce)
        )
        if repairs.coercions:
            repairs.outcome = "coerced"
    # From the last to the first, so that removing an element does not shift the others' indexes.
    for path, strategy in reversed(strategies.items()):
        if strategy == "strip-extra":
            _replace(repairs, path, UNSET, "Removed")
            if repairs.outcome == "passed" and repairs.coercions:
                repairs.outcome = "stripped"
        elif strategy == "fallback" and may_fall_back:
            fallback = _lookup(options.field_fallbacks, path)
            if fallback is UNSET:
                raise ValueError(f'field_fallbacks must hold a value for {path} to "fallback"')
            _replace(repairs, path, fallback, "Replaced by the fallback")
            repairs.outcome = "fallback"
    return repairs


def _lookup(by_path: Mapping[str, Any], path: str) -> Any:
    """The entry for a path itself, else for the first pattern with `[*]` that matches it."""
    if path in by_path:
        return by_path[path]
    for pattern, entry in by_path.items():
        if "[*]" in pattern:
            expression = r"\[\d+\]".join(map(re.escape, pattern.split("[*]")))
            if re.fullmatch(expression, path):
                return entry
    return UNSET


def _is_within(path: str, roots: Sequence[str]) -> bool:
    return any(path == root or path.startswith((f"{root}.", f"{root}[")) for root in roots)


def _replace(repairs: FieldRepairs, path: str, value: Any, message: str) -> None:
    """Set the value at a path (UNSET removes it). Copies only the containers on the way."""
    parts = _locate(repairs.data, path)
    if parts is None or (value is UNSET and not parts):
        return
    original = repairs.data
    for part in parts[:-1]:
        original = original[part]
    if parts:
        is_there = kind_of(original) == "array" or parts[-1] in original
        original = original[parts[-1]] if is_there else None
        if value is UNSET and not is_there:
            return
    repairs.data = _with(repairs.data, parts, value)
    coerced = None if value is UNSET else value
    repairs.coercions.append(
        Coercion(
            path=path,
            original=original,
            coerced=coerced,
            message=message,
            received=kind_of(original),
            expected=kind_of(coerced),
        )
    )


def _with(container: Any, parts: Sequence[str | int], value: Any) -> Any:
    if not parts:
        return value
    first, *rest = parts
    if isinstance(first, int):
        items = list(container)
        if not rest and value is UNSET:
            del items[first]
        else:
            items[first] = _with(items[first], rest, value)
        return items
    members = dict(container)
    if not rest and value is UNSET:
        del members[first]
    else:
        members[first] = _with(members.get(first), rest, value)
    return members


def _locate(data: Any, path: str) -> list[str | int] | None:
    """Split a path by the names in the data, as names in a path are not escaped.

    A member that does not exist yet gets the rest of the path as its name. Returns None if the
    path leads nowhere.
    """
    parts: list[str | int] = []
    rest = path.removeprefix("$")
    while rest:
        kind = kind_of(data)
        if kind == "array" and (index := re.match(r"\[(\d+)\]", rest)):
            position = int(index[1])
            if position >= len(data):
                return None
            parts.append(position)
            rest = rest[index.end() :]
            data = data[position]
        elif kind == "object" and rest.startswith("."):
            rest = rest[1:]
            names = [
                name
                for name in data
                if isinstance(name, str)
                and rest.startswith(name)
                and rest[len(name) : len(name) + 1] in ("", ".", "[")
            ]
            name = max(names, key=len, default=rest)
            parts.append(name)
            rest = rest[len(name) :]
            data = data.get(name)
        else:
            return None
    return parts
