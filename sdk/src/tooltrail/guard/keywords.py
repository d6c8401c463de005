"""What each JSON Schema keyword checks, and what it says when a value fails.

Owns one small function per keyword and their order: the 19 documented ones first, in the
recorded order and words, then the others as the schema lists them, each naming itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import jsonschema_rs

from tooltrail.guard.evaluated import evaluated_members
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
from tooltrail.guard.nodes import Node
from tooltrail.guard.regex import matcher

if TYPE_CHECKING:
    from tooltrail.guard.explain import Walk

type Check = Callable[["Walk", Any, str], None]
type Builder = Callable[[Node, Any], Check]


@dataclass(slots=True)
class Plan:
    """The checks of one node by the kind of value they apply to."""

    accepts: frozenset[str] | None
    type_text: str
    general: list[Check]
    checks: dict[str, list[Check]]


def plan_for(node: Node) -> Plan:
    """Derive a node's checks from its keywords, and keep them there."""
    ordered = [key for key in _RECORDED if key in node.keywords]
    ordered += [key for key in node.keywords if key in _OTHERS]
    plan = Plan(
        accepts=None if node.types is None else frozenset(_accepted(node.types)),
        type_text=" | ".join(node.types or ()),
        general=[],
        checks={kind: [] for kind in ("string", "integer", "number", "array", "object")},
    )
    for keyword in ordered:
        kinds, build = _RECORDED.get(keyword) or _OTHERS[keyword]
        check = build(node, node.keywords[keyword])
        for kind in kinds or plan.checks:
            plan.checks[kind].append(check)
        if not kinds:
            plan.general.append(check)
    node.plan = plan
    return plan


def _accepted(types: tuple[str, ...]) -> list[str]:
    return [*types, "integer"] if "number" in types else list(types)


# The recorded 19 ---------------------------------------------------------------------------


def _enum(node: Node, options: list[Any]) -> Check:
    texts = [js_text(option) for option in options]
    expected, message = " | ".join(texts), f"Value must be one of: {', '.join(texts)}"
    plain = {option for option in options if isinstance(option, str)}

    def check(walk: "Walk", value: Any, path: str) -> None:
        if isinstance(value, str):
            if value in plain:
                return
        elif any(json_equal(value, option) for option in options):
            return
        walk.add("ENUM_MISMATCH", path, message, js_text(value), expected)

    return check


def _const(node: Node, constant: Any) -> Check:
    message = f"Value must be exactly {js_json(constant)}"

    def check(walk: "Walk", value: Any, path: str) -> None:
        if not json_equal(value, constant):
            walk.add("CONSTRAINT_VIOLATION", path, message, js_text(value), js_text(constant))

    return check


def _length(symbol: str, words: str, fails: Callable[[int, float], bool]) -> Builder:
    def build(node: Node, limit: float) -> Check:
        text = js_text(limit)

        def check(walk: "Walk", value: str, path: str) -> None:
            length = js_length(value)
            if fails(length, limit):
                message = f"String length {length} {words} {text}"
                walk.add("CONSTRAINT_VIOLATION", path, message, str(length), f"{symbol} {text}")

        return check

    return build


def _pattern(node: Node, pattern: str) -> Check:
    matches = matcher(pattern)

    def check(walk: "Walk", value: str, path: str) -> None:
        if not matches(value):
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
        return _tuple(child)
    return _each_item(child, len(node.children.get("prefixItems", ())))


def _each_item(child: Node, start: int) -> Check:
    def check(walk: "Walk", value: list[Any], path: str) -> None:
        for position in range(start, len(value)):
            walk.visit(child, value[position], f"{path}[{position}]")

    return check


def _tuple(children: list[Node]) -> Check:
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
        for name in names:
            if name not in value:
                message = f'Required field "{name}" is missing'
                walk.add("MISSING_REQUIRED", f"{path}.{name}", message, "undefined", name)

    return check


def _properties(node: Node, _: Any) -> Check:
    children = list(node.children["properties"].items())

    def check(walk: "Walk", value: Mapping[str, Any], path: str) -> None:
        for name, child in children:
            if name in value:
                walk.visit(child, value[name], f"{path}.{name}")

    return check


def _additional_properties(node: Node, _: Any) -> Check:
    child = node.children["additionalProperties"]
    declared = frozenset(node.children.get("properties", ()))
    patterns = [matcher(pattern) for pattern in node.children.get("patternProperties", ())]

    def check(walk: "Walk", value: Mapping[str, Any], path: str) -> None:
        if value.keys() <= declared:
            return
        for name in js_order(value):
            if name in declared or any(matches(str(name)) for matches in patterns):
                continue
            if child.always is False:
                message = f'Field "{name}" is not allowed by the schema'
                walk.add("UNKNOWN_FIELD", f"{path}.{name}", message, str(name), "not present")
            else:
                walk.visit(child, value[name], f"{path}.{name}")

    return check


def _any_of(node: Node, _: Any) -> Check:
    children = node.children["anyOf"]

    def check(walk: "Walk", value: Any, path: str) -> None:
        if not any(walk.fits(child, value) for child in children):
            message = "Value does not match any of the required schemas (anyOf)"
            expected = "one of the anyOf schemas"
            walk.add("CONSTRAINT_VIOLATION", path, message, kind_of(value), expected)

    return check


def _one_of(node: Node, _: Any) -> Check:
    children = node.children["oneOf"]

    def check(walk: "Walk", value: Any, path: str) -> None:
        count = sum(walk.fits(child, value) for child in children)
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


# The others --------------------------------------------------------------------------------


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


def _multiple_of(node: Node, divisor: float) -> Check:
    step = Fraction(str(divisor))

    def check(walk: "Walk", value: float, path: str) -> None:
        number = double(value)
        if number - number != 0 or Fraction(str(value)) % step != 0:
            text = js_text(divisor)
            message = f"Value {js_text(value)} is not a multiple of {text} (multipleOf)"
            expected = f"a multiple of {text}"
            walk.add("CONSTRAINT_VIOLATION", path, message, js_text(value), expected)

    return check


def _unique_items(node: Node, is_on: bool) -> Check:
    def check(walk: "Walk", value: list[Any], path: str) -> None:
        if is_on and len({json_key(item) for item in value}) < len(value):
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
        (matcher(pattern), child) for pattern, child in node.children["patternProperties"].items()
    ]

    def check(walk: "Walk", value: Mapping[str, Any], path: str) -> None:
        for matches, child in children:
            for name in js_order(value):
                if matches(str(name)):
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
    check = _each_item(node.children["additionalItems"], start or 0)
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


@lru_cache(maxsize=64)
def _format_validator(name: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.Draft202012Validator({"format": name}, validate_formats=True)


def _format(node: Node, name: str) -> Check:
    validator = _format_validator(name)

    def check(walk: "Walk", value: str, path: str) -> None:
        if walk.formats and not (_is_unicode(value) and validator.is_valid(str(value))):
            message = f"String is not a valid {name} (format)"
            walk.add("CONSTRAINT_VIOLATION", path, message, str(value), f"a valid {name}")

    return check


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


_STRING: Final = ("string",)
_NUMBER: Final = ("integer", "number")
_ARRAY: Final = ("array",)
_OBJECT: Final = ("object",)

_RECORDED: Final[dict[str, tuple[tuple[str, ...], Builder]]] = {
    "enum": ((), _enum),
    "const": ((), _const),
    "minLength": (_STRING, _length(">=", "is less than minimum", lambda size, low: size < low)),
    "maxLength": (_STRING, _length("<=", "exceeds maximum", lambda size, high: size > high)),
    "pattern": (_STRING, _pattern),
    "minimum": (_NUMBER, _bound(">=", "is less than minimum", lambda value, low: value < low)),
    "exclusiveMinimum": (
        _NUMBER,
        _bound(">", "must be greater than", lambda value, low: value <= low),
    ),
    "maximum": (_NUMBER, _bound("<=", "exceeds maximum", lambda value, high: value > high)),
    "exclusiveMaximum": (
        _NUMBER,
        _bound("<", "must be less than", lambda value, high: value >= high),
    ),
    "items": (_ARRAY, _items),
    "minItems": (_ARRAY, _array_length(">=", "is less than minimum", lambda size, low: size < low)),
    "maxItems": (_ARRAY, _array_length("<=", "exceeds maximum", lambda size, high: size > high)),
    "required": (_OBJECT, _required),
    "properties": (_OBJECT, _properties),
    "additionalProperties": (_OBJECT, _additional_properties),
    "anyOf": ((), _any_of),
    "oneOf": ((), _one_of),
    "allOf": ((), _all_of),
}
_OTHERS: Final[dict[str, tuple[tuple[str, ...], Builder]]] = {
    "$ref": ((), _same_value("$ref")),
    "$dynamicRef": ((), _same_value("$dynamicRef")),
    "$recursiveRef": ((), _same_value("$recursiveRef")),
    "not": ((), _not),
    "if": ((), _if),
    "format": (_STRING, _format),
    "multipleOf": (_NUMBER, _multiple_of),
    "prefixItems": (_ARRAY, lambda node, _: _tuple(node.children["prefixItems"])),
    "additionalItems": (_ARRAY, _additional_items),
    "uniqueItems": (_ARRAY, _unique_items),
    "contains": (_ARRAY, _contains),
    "unevaluatedItems": (_ARRAY, _unevaluated_items),
    "minProperties": (_OBJECT, _member_count("minProperties", ">=", lambda size, low: size < low)),
    "maxProperties": (
        _OBJECT,
        _member_count("maxProperties", "<=", lambda size, high: size > high),
    ),
    "patternProperties": (_OBJECT, _pattern_properties),
    "propertyNames": (_OBJECT, _property_names),
    "dependencies": (_OBJECT, _dependent("dependencies")),
    "dependentRequired": (_OBJECT, _dependent("dependentRequired")),
    "dependentSchemas": (_OBJECT, _dependent("dependentSchemas")),
    "unevaluatedProperties": (_OBJECT, _unevaluated_properties),
}
