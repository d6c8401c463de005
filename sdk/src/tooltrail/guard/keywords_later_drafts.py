"""What the JSON Schema keywords beyond the 19 documented ones check.

Owns one small function per keyword. Each message names its keyword. The 19 are in `keywords`.
"""

from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Final

from tooltrail.guard.engine import format_validator
from tooltrail.guard.evaluated import evaluated_members
from tooltrail.guard.jsvalues import double, js_order, js_text, json_key, kind_of
from tooltrail.guard.keywords import (
    ARRAY,
    NUMBER,
    OBJECT,
    STRING,
    Builder,
    Check,
    each_item,
    tuple_items,
)
from tooltrail.guard.members import size_of
from tooltrail.guard.nodes import Node
from tooltrail.guard.work import Pattern

if TYPE_CHECKING:
    from tooltrail.guard.explain import Walk


_ITEM_SIZE_MAX: Final = 500_000  # elements that are counted: more than any walk may take


def _same_value(keyword: str) -> Builder:
    def build(node: Node, _: Any) -> Check:
        child = node.children[keyword]

        def check(walk: "Walk", value: Any, path: str) -> None:
            walk.visit(child, value, path)

        return check

    return build


def _not(node: Node, _: Any) -> Check:
    child = node.children["not"]

    def check(walk: "Walk", value: Any, path: str) -> None:
        if walk.fits(child, value):
            message = "Value must not match the schema (not)"
            walk.add("CONSTRAINT_VIOLATION", path, message, kind_of(value), "no match")

    return check


def _if(node: Node, _: Any) -> Check:
    condition = node.children["if"]
    branches = node.children.get("else"), node.children.get("then")

    def check(walk: "Walk", value: Any, path: str) -> None:
        branch = branches[walk.fits(condition, value)]
        if branch is not None:
            walk.visit(branch, value, path)

    return check


_QUOTIENTS: Final = Context(prec=700)
"""Any quotient of two doubles: 1.8e308 by 4.9e-324 has 632 digits before its decimal point."""


def _exactly(number: float) -> Decimal:
    """The number as written: 0.1 is one tenth, not the nearest double."""
    return Decimal(number if isinstance(number, int) else str(number))


def _multiple_of(node: Node, divisor: float) -> Check:
    step = _exactly(divisor)

    def check(walk: "Walk", value: float, path: str) -> None:
        walk.spend(8)
        number = double(value)
        if number - number != 0 or _QUOTIENTS.remainder(_exactly(value), step) != 0:
            text = js_text(divisor)
            message = f"Value {js_text(value)} is not a multiple of {text} (multipleOf)"
            expected = f"a multiple of {text}"
            walk.add("CONSTRAINT_VIOLATION", path, message, js_text(value), expected)

    return check


def _repeats(walk: "Walk", items: list[Any]) -> bool:
    known: set[Any] = set()
    for item in items:
        walk.spend(4 + 4 * size_of(item, _ITEM_SIZE_MAX))
        known.add(json_key(item))
    return len(known) < len(items)


def _unique_items(node: Node, is_on: bool) -> Check:
    def check(walk: "Walk", value: list[Any], path: str) -> None:
        if is_on and _repeats(walk, value):
            message = "Array elements must be unique (uniqueItems)"
            walk.add("CONSTRAINT_VIOLATION", path, message, "repeated elements", "unique elements")

    return check


def _contains(node: Node, _: Any) -> Check:
    child = node.children["contains"]
    least = node.keywords.get("minContains")
    most = node.keywords.get("maxContains")

    def check(walk: "Walk", value: list[Any], path: str) -> None:
        count = sum(walk.fits(child, item) for item in value)
        for keyword, limit, fails in (
            (
                "contains" if least is None else "minContains",
                1 if least is None else least,
                count.__lt__,
            ),
            ("maxContains", count if most is None else most, count.__gt__),
        ):
            if fails(limit):
                expected = f"{'>=' if count < limit else '<='} {js_text(limit)} matching elements"
                message = f"Array has {count} matching elements, expected {expected} ({keyword})"
                walk.add("CONSTRAINT_VIOLATION", path, message, str(count), expected)

    return check


def _member_count(keyword: str, symbol: str, fails: Callable[[int, float], bool]) -> Builder:
    def build(node: Node, limit: float) -> Check:
        expected = f"{symbol} {js_text(limit)} members"

        def check(walk: "Walk", value: Mapping[str, Any], path: str) -> None:
            if fails(len(value), limit):
                message = f"Object has {len(value)} members, expected {expected} ({keyword})"
                walk.add("CONSTRAINT_VIOLATION", path, message, str(len(value)), expected)

        return check

    return build


def _pattern_properties(node: Node, _: Any) -> Check:
    children = [
        (Pattern(pattern), child) for pattern, child in node.children["patternProperties"].items()
    ]

    def check(walk: "Walk", value: Mapping[str, Any], path: str) -> None:
        for pattern, child in children:
            walk.spend(len(value) >> 1)
            for name in js_order(value):
                if pattern.matches(str(name), walk):
                    walk.visit(child, value[name], f"{path}.{name}")

    return check


def _property_names(node: Node, _: Any) -> Check:
    child = node.children["propertyNames"]

    def check(walk: "Walk", value: Mapping[str, Any], path: str) -> None:
        for name in js_order(value):
            if not walk.fits(child, name):
                message = f'Field name "{name}" is not allowed (propertyNames)'
                walk.add("CONSTRAINT_VIOLATION", path, message, str(name), "an allowed field name")

    return check


def _dependent(keyword: str) -> Builder:
    def build(node: Node, dependencies: Mapping[str, Any]) -> Check:
        children: Mapping[str, Node] = node.children.get(keyword, {})

        def check(walk: "Walk", value: Mapping[str, Any], path: str) -> None:
            walk.spend(len(dependencies) >> 3)
            for trigger, needed in dependencies.items():
                if trigger not in value:
                    continue
                if trigger in children:
                    walk.visit(children[trigger], value, path)
                    continue
                for name in needed:
                    if name not in value:
                        message = f'Field "{trigger}" needs field "{name}" ({keyword})'
                        walk.add("CONSTRAINT_VIOLATION", path, message, "undefined", name)

        return check

    return build


def _additional_items(node: Node, _: Any) -> Check:
    first = node.children.get("items")
    start = len(first) if isinstance(first, list) else None
    check = each_item(node.children["additionalItems"], start or 0)
    return check if start is not None else lambda walk, value, path: None


def _unevaluated_items(node: Node, _: Any) -> Check:
    child = node.children["unevaluatedItems"]

    def check(walk: "Walk", value: list[Any], path: str) -> None:
        seen = evaluated_members(walk, node, value, ignoring="unevaluatedItems")
        for position, item in enumerate(value):
            if position not in seen:
                walk.visit(child, item, f"{path}[{position}]")

    return check


def _unevaluated_properties(node: Node, _: Any) -> Check:
    child = node.children["unevaluatedProperties"]

    def check(walk: "Walk", value: Mapping[str, Any], path: str) -> None:
        seen = evaluated_members(walk, node, value, ignoring="unevaluatedProperties")
        for name in js_order(value):
            if name not in seen:
                walk.visit(child, value[name], f"{path}.{name}")

    return check


def _format(node: Node, name: str) -> Check:
    validator = format_validator(name)

    def check(walk: "Walk", value: str, path: str) -> None:
        walk.spend(len(value) >> 2)
        if walk.formats and not (_is_unicode(value) and validator.is_valid(str(value))):
            message = f"String is not a valid {name} (format)"
            walk.add("CONSTRAINT_VIOLATION", path, message, str(value), f"a valid {name}")

    return check


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


OTHERS: Final[dict[str, tuple[tuple[str, ...], Builder]]] = {
    "$ref": ((), _same_value("$ref")),
    "$dynamicRef": ((), _same_value("$dynamicRef")),
    "$recursiveRef": ((), _same_value("$recursiveRef")),
    "not": ((), _not),
    "if": ((), _if),
    "format": (STRING, _format),
    "multipleOf": (NUMBER, _multiple_of),
    "prefixItems": (ARRAY, lambda node, _: tuple_items(node.children["prefixItems"])),
    "additionalItems": (ARRAY, _additional_items),
    "uniqueItems": (ARRAY, _unique_items),
    "contains": (ARRAY, _contains),
    "unevaluatedItems": (ARRAY, _unevaluated_items),
    "minProperties": (OBJECT, _member_count("minProperties", ">=", lambda size, low: size < low)),
    "maxProperties": (
        OBJECT,
        _member_count("maxProperties", "<=", lambda size, high: size > high),
    ),
    "patternProperties": (OBJECT, _pattern_properties),
    "propertyNames": (OBJECT, _property_names),
    "dependencies": (OBJECT, _dependent("dependencies")),
    "dependentRequired": (OBJECT, _dependent("dependentRequired")),
    "dependentSchemas": (OBJECT, _dependent("dependentSchemas")),
    "unevaluatedProperties": (OBJECT, _unevaluated_properties),
}
