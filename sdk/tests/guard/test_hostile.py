"""Schemas and values made to hurt: refused with a clear error, or done in no time.

Nothing here measures time: each case would run for minutes, or not end at all, if the
protection it is about were missing.
"""

from typing import Any

import pytest
from tooltrail.guard import SchemaError, create_guard, enforce, guard, validate


def nested(levels: int, keyword: str) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"properties": {"a": schema}} if keyword == "properties" else {keyword: [schema]}
    return schema


def cyclic_objects() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"self": schema}
    return schema


def shared_objects() -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(40):
        schema = {"properties": {"a": schema, "b": schema}}
    return schema


def chain(length: int) -> dict[str, Any]:
    links = {str(at): {"$ref": f"#/$defs/{at + 1}"} for at in range(length)}
    return {"$ref": "#/$defs/0", "$defs": links | {str(length): {}}}


REFUSED = {
    "10,000 levels of properties": nested(10_000, "properties"),
    "10,000 levels of allOf": nested(10_000, "allOf"),
    "10,000 references in a row": chain(10_000),
    "a reference to itself": {"$ref": "#"},
    "two references to each other": {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}},
    },
    "a remote reference": {"$ref": "https://example.com/schema.json"},
    "a file reference": {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
    "no URI at all": {"$ref": "http://["},
    "a reference to nowhere": {"$ref": "#/$defs/missing"},
    "Python objects in a circle": cyclic_objects(),
    "Python objects shared 2^40 times": shared_objects(),
    "200,000 values": {"enum": list(range(200_000))},
    "a set": {"enum": {1, 2}},
    "no number": {"maximum": float("nan")},
    "a pattern of a million states": {"pattern": "((a{100}){100}){100}"},
    "a pattern with look-ahead": {"pattern": "(?=a)b"},
    "a pattern with look-behind": {"pattern": "(?<!a)b"},
    "a pattern with a back-reference": {"pattern": "(a)\\1"},
    "a bad pattern deep inside": {"items": {"patternProperties": {"(": {}}}},
    "an unknown type": {"type": "strnig"},
    "a malformed keyword": {"type": "object", "required": "name"},
    "a malformed reference target": {"$ref": "#/here", "here": {"minLength": "2"}},
}


@pytest.mark.parametrize("schema", REFUSED.values(), ids=REFUSED)
def test_refused_before_the_tool_runs(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        guard(lambda: pytest.fail("the tool ran"), schema)


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|aa)+$", "^(a*)*b$", "(.*)*x"])
def test_patterns_run_in_linear_time(pattern: str) -> None:
    for text in ("a" * 50_000 + "!", "a" * 20_000 + "é😀"):
        assert not validate(text, {"type": "string", "pattern": pattern}).success


def doubling(combinator: str) -> dict[str, Any]:
    """Forty definitions, each using the next one twice: 2^40 sub-schemas when unfolded."""
    definitions: dict[str, Any] = {
        str(at): {combinator: [{"$ref": f"#/$defs/{at + 1}"}, {"$ref": f"#/$defs/{at + 1}"}]}
        for at in range(40)
    }
    return {"$ref": "#/$defs/0", "$defs": definitions | {"40": {"type": "string"}}}


@pytest.mark.parametrize("combinator", ["allOf", "anyOf"])
def test_doubling_schemas_take_polynomial_time(combinator: str) -> None:
    guarded = create_guard(doubling(combinator), on_invalid="coerce-and-warn")
    assert guarded.validate("x").success
    assert guarded.enforce(None).outcome == "failed"
    assert enforce("x", doubling(combinator), on_invalid="strip-extra").outcome == "passed"


@pytest.mark.parametrize("combinator", ["oneOf", "allOf"])
def test_recursion_through_two_branches_takes_polynomial_time(combinator: str) -> None:
    branch = {"properties": {"next": {"$ref": "#"}}}
    schema = {"type": ["object", "number"], combinator: [branch, {"required": ["x"], **branch}]}
    value: Any = "7"
    for _ in range(40):
        value = {"next": value}
    for strategy in ("coerce-and-warn", "strip-extra", "error-result"):
        assert enforce(value, schema, on_invalid=strategy).violations


def test_unevaluated_members_of_a_doubling_schema() -> None:
    schema = doubling("allOf")
    schema["$defs"]["40"] = {"properties": {"a": True}}
    schema["unevaluatedProperties"] = False
    assert [each.path for each in validate({"a": 1, "b": 2}, schema).violations] == ["$.b"]


def test_values_nested_beyond_the_stack() -> None:
    schema = {"type": ["array", "integer"], "items": {"$ref": "#"}}
    value: Any = "leaf"
    for _ in range(10_000):
        value = [value]
    (violation,) = validate(value, schema).violations
    assert "too deeply" in violation.message
    assert enforce(value, schema, on_invalid="coerce-and-warn").outcome == "failed"


def test_cyclic_values_end() -> None:
    value: list[Any] = []
    value.append(value)
    schema = {"type": "array", "items": {"$ref": "#"}, "maxItems": 0}
    for strategy in ("throw", "coerce-and-warn", "strip-extra"):
        assert enforce(value, schema, on_invalid=strategy).outcome == "failed"
    assert not validate(value, {"enum": [1]}).success


def test_a_million_violations_are_not_collected() -> None:
    result = validate(dict.fromkeys(map(str, range(50_000)), 1), {"additionalProperties": False})
    assert len(result.violations) == 10_000


@pytest.mark.parametrize(
    "value",
    [{1: 2}, {1, 2}, b"x", object(), 10**5_000, float("nan"), ["\ud83d"], {"\ud83d": 1}, 1j],
    ids=lambda value: type(value).__name__,
)
def test_values_json_does_not_know_are_just_invalid(value: object) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    for strategy in ("throw", "coerce-and-warn", "strip-extra"):
        assert enforce(value, schema, on_invalid=strategy).outcome == "failed"
