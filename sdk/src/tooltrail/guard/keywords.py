"""What the 19 documented JSON Schema keywords check, in the recorded order and wording.

Owns one small function per keyword. All other keywords are in `keywords_later_drafts`.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from tooltrail.guard.jsvalues import (
    double,
    js_json,
    js_length,
    js_order,
    js_text,
    json_equal,
    json_key,
    kind_of,
)
from tooltrail.guard.members import Members, size_of
from tooltrail.guard.nodes import Node, accepted_kinds
from tooltrail.guard.work import Pattern

if TYPE_CHECKING:
    from tooltrail.guard.explain import Walk

_LITERAL: Final = ({"const"}, {"enum"}, {"type", "const"}, {"type", "enum"})

type Check = Callable[["Walk", Any, str], None]
"""Checks a value at a path, and adds its violations to the walk."""

type Builder = Callable[[Node, Any], Check]
"""Makes the check for a node's keyword, given the keyword's value."""

STRING: Final = ("string",)
NUMBER: Final = ("integer", "number")
ARRAY: Final = ("array",)
OBJECT: Final = ("object",)
_PRINTED_MAX: Final = 500_000  # elements that are counted: more than any walk may take


def _printing(value: Any) -> int:
    """The steps for printing a value."""
    return size_of(value, _PRINTED_MAX) if kind_of(value) == "array" else 0


def _enum(node: Node, options: list[Any]) -> Check:
    texts = [js_text(option) for option in options]
    expected, message = " | ".join(texts), f"Value must be one of: {', '.join(texts)}"
    plain = {option for option in options if isinstance(option, str)}
    others = Members(option for option in options if not isinstance(option, str))

    def check(walk: "Walk", value: Any, path: str) -> None:
        if isinstance(value, str):
            if value in plain:
                return
        else:
            walk.spend(4 * others.size_max)
            if value in others:
                return
        walk.spend(_printing(value))
        walk.add("ENUM_MISMATCH", path, message, js_text(value), expected)

    return check


def _const(node: Node, constant: Any) -> Check:
    message = f"Value must be exactly {js_json(constant)}"
    size = size_of(constant)

    def check(walk: "Walk", value: Any, path: str) -> None:
        walk.spend(size)
        if not json_equal(value, constant):
            walk.spend(_printing(value))
            walk.add("CONSTRAINT_VIOLATION", path, message, js_text(value), js_text(constant))

    return check


def _length(symbol: str, words: str, fails: Callable[[int, float], bool]) -> Builder:
    def build(node: Node, limit: float) -> Check:
        text = js_text(limit)

        def check(walk: "Walk", value: str, path: str) -> None:
            walk.spend(len(value) >> 3)
            length = js_length(value)
            if fails(length, limit):
                message = f"String length {length} {words} {text}"
                walk.add("CONSTRAINT_VIOLATION", path, message, str(length), f"{symbol} {text}")

        return check

    return build


def _pattern(node: Node, pattern: str) -> Check:
    compiled = Pattern(pattern)

    def check(walk: "Walk", value: str, path: str) -> None:
        if not compiled.matches(value, walk):
            message = f"String does not match pattern {pattern}"
            walk.add("PATTERN_MISMATCH", path, message, str(value), f"matches /{pattern}/")

    return check


def _bound(symbol: str, words: str, fails: Callable[[float, float], bool]) -> Builder:
    def build(node: Node, limit: float) -> Check:
        bound, text = double(limit), js_text(limit)

        def check(walk: "Walk", value: float, path: str) -> None:
            if fails(double(value), bound):
                message = f"Value {js_text(value)} {words} {text}"
                walk.add("CONSTRAINT_VIOLATION", path, message, js_text(value), f"{symbol} {text}")

        return check

    return build


def _items(node: Node, _: Any) -> Check:
    child = node.children["items"]
    if isinstance(child, list):
        return tuple_items(child)
    return each_item(child, len(node.children.get("prefixItems", ())))


def each_item(child: Node, start: int) -> Check:
    def check(walk: "Walk", value: list[Any], path: str) -> None:
        for position in range(start, len(value)):
            walk.visit(child, value[position], f"{path}[{position}]")
            if walk.deciding and walk.violations:
                return

    return check


def tuple_items(children: list[Node]) -> Check:
    def check(walk: "Walk", value: list[Any], path: str) -> None:
        for position, (child, item) in enumerate(zip(children, value, strict=False)):
            walk.visit(child, item, f"{path}[{position}]")

    return check


def _array_length(symbol: str, words: str, fails: Callable[[int, float], bool]) -> Builder:
    def build(node: Node, limit: float) -> Check:
        text = js_text(limit)

        def check(walk: "Walk", value: list[Any], path: str) -> None:
            length = len(value)
            if fails(length, limit):
                message = f"Array length {length} {words} {text}"
                expected = f"{symbol} {text} items"
                walk.add("CONSTRAINT_VIOLATION", path, message, str(length), expected)

        return check

    return build


def _required(node: Node, names: list[str]) -> Check:
    def check(walk: "Walk", value: Mapping[str, Any], path: str) -> None:
        walk.spend(len(names) >> 3)
        for name in names:
            if name not in value:
                message = f'Required field "{name}" is missing'
                walk.add("MISSING_REQUIRED", f"{path}.{name}", message, "undefined", name)

    return check


def _properties(node: Node, _: Any) -> Check:
    children = list(node.children["properties"].items())

    def check(walk: "Walk", value: Mapping[str, Any], path: str) -> None:
        walk.spend(len(children) >> 3)
        for name, child in children:
            if name in value:
                walk.visit(child, value[name], f"{path}.{name}")

    return check


def _additional_properties(node: Node, _: Any) -> Check:
    child = node.children["additionalProperties"]
    declared = frozenset(node.children.get("properties", ()))
    patterns = [Pattern(pattern) for pattern in node.children.get("patternProperties", ())]

    def check(walk: "Walk", value: Mapping[str, Any], path: str) -> None:
        walk.spend(len(value) >> 3)
        if value.keys() <= declared:
            return
        walk.spend(len(value) >> 3)
        for name in js_order(value):
            if name in declared or any(each.matches(str(name), walk) for each in patterns):
                continue
            if child.always is False:
                message = f'Field "{name}" is not allowed by the schema'
                walk.add("UNKNOWN_FIELD", f"{path}.{name}", message, str(name), "not present")
            else:
                walk.visit(child, value[name], f"{path}.{name}")

    return check


def _parted(children: list[Node]) -> tuple[Members, list[Node]]:
    """Split the branches of a union into constants with enumerations, and all others."""
    literals: list[Any] = []
    others: list[Node] = []
    for child in children:
        if child.always is None and child.keywords.keys() in _LITERAL:
            options = child.keywords.get("enum", [child.keywords.get("const")])
            kinds = accepted_kinds(child.types)
            unequal = {json_key(each): each for each in options}.values()
            literals += (each for each in unequal if kinds is None or kind_of(each) in kinds)
        else:
            others.append(child)
    return Members(literals), others


def _any_of(node: Node, _: Any) -> Check:
    literals, children = _parted(node.children["anyOf"])

    def check(walk: "Walk", value: Any, path: str) -> None:
        walk.spend(4 * literals.size_max)
        if value not in literals and not any(walk.fits(child, value) for child in children):
            message = "Value does not match any of the required schemas (anyOf)"
            expected = "one of the anyOf schemas"
            walk.add("CONSTRAINT_VIOLATION", path, message, kind_of(value), expected)

    return check


def _one_of(node: Node, _: Any) -> Check:
    literals, children = _parted(node.children["oneOf"])

    def check(walk: "Walk", value: Any, path: str) -> None:
        walk.spend(4 * literals.size_max)
        count = literals.count(value) + sum(walk.fits(child, value) for child in children)
        if count != 1:
            message = f"Value must match exactly one schema (oneOf), but matched {count}"
            expected = "exactly 1 of the oneOf schemas"
            walk.add("CONSTRAINT_VIOLATION", path, message, str(count), expected)

    return check


def _all_of(node: Node, _: Any) -> Check:
    children = node.children["allOf"]

    def check(walk: "Walk", value: Any, path: str) -> None:
        for child in children:
            walk.visit(child, value, path)

    return check


RECORDED: Final[dict[str, tuple[tuple[str, ...], Builder]]] = {
    "enum": ((), _enum),
    "const": ((), _const),
    "minLength": (STRING, _length(">=", "is less than minimum", lambda size, low: size < low)),
    "maxLength": (STRING, _length("<=", "exceeds maximum", lambda size, high: size > high)),
    "pattern": (STRING, _pattern),
    "minimum": (NUMBER, _bound(">=", "is less than minimum", lambda value, low: value < low)),
    "exclusiveMinimum": (
        NUMBER,
        _bound(">", "must be greater than", lambda value, low: value <= low),
    ),
    "maximum": (NUMBER, _bound("<=", "exceeds maximum", lambda value, high: value > high)),
    "exclusiveMaximum": (
        NUMBER,
        _bound("<", "must be less than", lambda value, high: value >= high),
    ),
    "items": (ARRAY, _items),
    "minItems": (ARRAY, _array_length(">=", "is less than minimum", lambda size, low: size < low)),
    "maxItems": (ARRAY, _array_length("<=", "exceeds maximum", lambda size, high: size > high)),
    "required": (OBJECT, _required),
    "properties": (OBJECT, _properties),
    "additionalProperties": (OBJECT, _additional_properties),
    "anyOf": ((), _any_of),
    "oneOf": ((), _one_of),
    "allOf": ((), _all_of),
}
