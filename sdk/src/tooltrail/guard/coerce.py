"""Conversions that repair common mistakes: `"42"` for a number, JSON text for an object.

Owns what is converted to what, by JavaScript's rules, and where a schema requires it. Never
changes its input. The caller must validate the result.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from tooltrail.guard.explain import VALUE_DEPTH_LIMIT, Walk
from tooltrail.guard.format import build_violation
from tooltrail.guard.jsvalues import js_json, js_text, kind_of
from tooltrail.guard.nodes import Node
from tooltrail.guard.options import CoercionConfig
from tooltrail.guard.regex import matcher
from tooltrail.guard.violations import Violation

# What JavaScript's Number() accepts after trimming white space: an ECMAScript
# StringNumericLiteral. Python would also accept `1_000`, `nan` and full-width digits.
_DECIMAL: Final = re.compile(r"[+-]?(?:Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)", re.ASCII)
_PREFIXED: Final = re.compile(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)", re.ASCII)
_WHITE: Final = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)


@dataclass(frozen=True, slots=True)
class Coercion:
    """One conversion: its path, the original value and the converted one."""

    path: str
    original: Any
    coerced: Any
    message: str
    received: str
    expected: str

    def as_violation(self) -> Violation:
        """Make the warning that reports it."""
        return build_violation(
            code="COERCED",
            path=self.path,
            message=self.message,
            actual=self.received,
            expected=self.expected,
            severity="warning",
            received_value=self.original,
            coerced_value=self.coerced,
        )


def coerce(
    root: Node,
    value: Any,
    config: CoercionConfig,
    wanted: Callable[[str], bool] = lambda path: True,
) -> tuple[Any, list[Coercion]]:
    """Convert values that do not fit their schema's type, at paths for which `wanted` is true.

    If there is nothing to convert, returns the same object and no coercions.
    """
    coercer = _Coercer(config, wanted)
    return coercer.value(root, value, "$", 0), coercer.coercions


class _Coercer:
    def __init__(self, config: CoercionConfig, wanted: Callable[[str], bool]) -> None:
        self.config = config
        self.wanted = wanted
        self.coercions: list[Coercion] = []
        # Values that need no conversion. Where sub-schemas overlap a value is visited again;
        # without this, as often as there are ways to it.
        self.settled: dict[tuple[int, str], Any] = {}

    def value(self, node: Node, value: Any, path: str, depth: int) -> Any:
        if depth > VALUE_DEPTH_LIMIT or node.always is not None:
            return value
        key = (id(node), path)
        if key in self.settled and self.settled[key] is value:
            return value
        coerced = self.convert_all(node, value, path, depth)
        if coerced is value:
            self.settled[key] = value
        return coerced

    def convert_all(self, node: Node, value: Any, path: str, depth: int) -> Any:
        coercion = self.convert(node, value, path) if self.wanted(path) else None
        if coercion is not None:
            self.coercions.append(coercion)
            return coercion.coerced
        match kind_of(value):
            case "object":
                value = self.members(node, value, path, depth)
            case "array":
                value = self.items(node, value, path, depth)
        for keyword, _, child in node.subschemas():
            if keyword in ("$ref", "$dynamicRef", "$recursiveRef", "allOf"):
                value = self.value(child, value, path, depth + 1)
        return value

    def members(
        self, node: Node, value: Mapping[str, Any], path: str, depth: int
    ) -> Mapping[str, Any]:
        changed: dict[str, Any] | None = None
        for name, child in _member_schemas(node, value):
            member = self.value(child, value[name], f"{path}.{name}", depth + 1)
            if member is not value[name]:
                changed = dict(value) if changed is None else changed
                changed[name] = member
        return value if changed is None else changed

    def items(self, node: Node, value: Any, path: str, depth: int) -> Any:
        child = node.children.get("items")
        if not isinstance(child, Node):
            return value
        start = len(node.children.get("prefixItems", ()))
        items = list(value[:start]) + [
            self.value(child, item, f"{path}[{position}]", depth + 1)
            for position, item in enumerate(value[start:], start)
        ]
        is_same = all(new is old for new, old in zip(items, value, strict=True))
        return value if is_same else items

    def convert(self, node: Node, value: Any, path: str) -> Coercion | None:
        """Convert one value to the first listed type that it can be converted to."""
        kind = kind_of(value)
        types = node.types or ()
        if value is None and self.config.null_to_default and "default" in node.keywords:
            if Walk(remember=False, formats=False).fits(node, None):
                return None
            default = deepcopy(node.keywords["default"])
            message = f"Replaced null by the default {js_json(default)}"
            return Coercion(
                path=path,
                original=None,
                coerced=default,
                message=message,
                received="null",
                expected=kind_of(default),
            )
        if kind in types or (kind == "integer" and "number" in types):
            return None
        for target in types:
            if kind == "string":
                coercion = self.from_text(value, target, path, sole=len(types) == 1)
            elif kind in ("integer", "number") and target == "string":
                coercion = self.from_number(value, path)
            else:
                coercion = None
            if coercion is not None:
                return coercion
        return None

    def from_number(self, value: float, path: str) -> Coercion | None:
        if not self.config.number_to_string:
            return None
        text = js_text(value)
        message = f'Coerced number {text} to string "{text}"'
        return Coercion(
            path=path,
            original=value,
            coerced=text,
            message=message,
            received="number",
            expected="string",
        )

    def from_text(self, text: str, target: str, path: str, *, sole: bool) -> Coercion | None:
        coerced: Any = None
        match target:
            case "number" | "integer" if self.config.string_to_number:
                coerced = read_number(text)
                if target == "integer" and (not isinstance(coerced, int) or not text.strip(_WHITE)):
                    coerced = None
                words = f"number {js_text(coerced)}"
            case "boolean" if self.config.string_to_boolean:
                coerced = {"true": True, "false": False}.get(text.lower())
                words = f"boolean {js_text(coerced)}"
            case "object" | "array" if self.config.string_to_json:
                return self.from_json(text, target, path, sole=sole)
        if coerced is None:
            return None
        return Coercion(
            path=path,
            original=text,
            coerced=coerced,
            message=f'Coerced string "{text}" to {words}',
            received="string",
            expected=target,
        )

    def from_json(self, text: str, target: str, path: str, *, sole: bool) -> Coercion | None:
        try:
            parsed = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            return None
        if not sole and kind_of(parsed) != target:
            return None
        return Coercion(
            path=path,
            original=text,
            coerced=parsed,
            message=f"Parsed JSON string to {target}",
            received="string",
            expected=target,
        )


def _member_schemas(node: Node, value: Mapping[str, Any]) -> Iterator[tuple[str, Node]]:
    declared: dict[str, Node] = node.children.get("properties", {})
    yield from ((name, child) for name, child in declared.items() if name in value)
    rest = node.children.get("additionalProperties")
    if rest is None or rest.always is not None:
        return
    patterns = [matcher(pattern) for pattern in node.children.get("patternProperties", ())]
    for name in value:
        if name not in declared and not any(matches(str(name)) for matches in patterns):
            yield name, rest


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def read_number(text: str) -> float | None:
    """Read text as JavaScript's `Number(text)` does; None if that gives NaN.

    Blank text is 0. Integral values are ints, with the precision of a double.
    """
    bare = text.strip(_WHITE)
    if not bare:
        return 0
    if _PREFIXED.fullmatch(bare):
        try:
            number = float(int(bare, 0))
        except OverflowError:
            number = float("inf")
    elif _DECIMAL.fullmatch(bare):
        number = float(bare)
    else:
        return None
    return int(number) if number.is_integer() and str(number) != "-0.0" else number
