"""JSON Schema: drafts, the message of every keyword, references, and the cache."""

import copy
import gc
import json
import threading
import types
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from tooltrail.guard import SchemaError, create_guard, enforce, validate
from tooltrail.guard.jsonschema import compile_schema

DRAFT_07 = {"$schema": "http://json-schema.org/draft-07/schema#"}
TIMING = Path(__file__).parents[3] / "bench" / "data"


def violations(value: Any, schema: dict[str, Any], **options: Any) -> list[tuple[str, str]]:
    reported = create_guard(schema, **options).validate(value).violations
    return [(each.path, each.message) for each in reported]


@pytest.mark.parametrize(
    ("keyword", "schema", "value", "path"),
    [
        ("not", {"not": {"type": "string"}}, "x", "$"),
        ("multipleOf", {"multipleOf": 0.1}, 0.25, "$"),
        ("uniqueItems", {"uniqueItems": True}, [{"a": 1, "b": 2}, {"b": 2.0, "a": 1}], "$"),
        ("contains", {"contains": {"type": "string"}}, [1], "$"),
        ("minContains", {"contains": {}, "minContains": 2}, [1], "$"),
        ("maxContains", {"contains": {}, "maxContains": 1}, [1, 2], "$"),
        ("minProperties", {"minProperties": 1}, {}, "$"),
        ("maxProperties", {"maxProperties": 0}, {"a": 1}, "$"),
        ("propertyNames", {"propertyNames": {"maxLength": 1}}, {"ab": 1}, "$"),
        ("dependentRequired", {"dependentRequired": {"a": ["b"]}}, {"a": 1}, "$"),
        ("dependencies", {**DRAFT_07, "dependencies": {"a": ["b"]}}, {"a": 1}, "$"),
        ("additionalItems", {"items": [{}], "additionalItems": False}, [1, 2], "$[1]"),
        ("unevaluatedItems", {"prefixItems": [{}], "unevaluatedItems": False}, [1, 2], "$[1]"),
        ("unevaluatedProperties", {"unevaluatedProperties": False}, {"a": 1}, "$.a"),
        ("patternProperties", {"patternProperties": {"^a": False}}, {"ab": 1}, "$.ab"),
        ("prefixItems", {"prefixItems": [False]}, [1], "$[0]"),
        ("properties", {"properties": {"a": False}}, {"a": 1}, "$.a"),
        ("then", {"if": True, "then": False}, 1, "$"),
        ("else", {"if": False, "else": False}, 1, "$"),
        ("dependentSchemas", {"dependentSchemas": {"a": False}}, {"a": 1}, "$"),
    ],
)
def test_other_keywords_name_themselves_in_the_message(
    keyword: str, schema: dict[str, Any], value: Any, path: str
) -> None:
    (violation,) = validate(value, schema).violations
    assert (violation.path, violation.code) == (path, "CONSTRAINT_VIOLATION")
    assert f"({keyword})" in violation.message


def test_other_keywords_follow_the_19_main_keywords_in_schema_order() -> None:
    schema = {
        "uniqueItems": True,
        "not": {"type": "array"},
        "maxItems": 1,
        "prefixItems": [{"type": "string"}],
        "allOf": [{"minItems": 5}],
    }
    assert violations([1, 1], schema) == [
        ("$", "Array length 2 exceeds maximum 1"),
        ("$", "Array length 2 is less than minimum 5"),
        ("$", "Array elements must be unique (uniqueItems)"),
        ("$", "Value must not match the schema (not)"),
        ("$[0]", "Expected type string, got integer"),
    ]


def test_formats_are_ignored_unless_assert_formats_is_set() -> None:
    schema = {"type": "string", "format": "ipv4"}
    assert validate("nope", schema).success
    assert violations("nope", schema, assert_formats=True) == [
        ("$", "String is not a valid ipv4 (format)")
    ]
    assert not violations("127.0.0.1", schema, assert_formats=True)
    assert not violations("x", {"format": "no-such-format"}, assert_formats=True)


def test_list_of_items_selects_draft_07_without_a_declared_draft() -> None:
    schema = {"items": [{"type": "string"}], "additionalItems": {"type": "number"}}
    assert violations([1, "x"], schema) == [
        ("$[0]", "Expected type string, got integer"),
        ("$[1]", "Expected type number, got string"),
    ]
    named = {**schema, "$schema": "https://json-schema.org/draft/2020-12/schema"}
    with pytest.raises(SchemaError, match="items"):
        validate([], named)


def test_siblings_of_a_reference_apply_since_draft_2019() -> None:
    schema = {"$ref": "#/$defs/x", "minimum": 5, "$defs": {"x": {"type": "number"}}}
    assert violations(1, schema) == [("$", "Value 1 is less than minimum 5")]
    assert validate(1, {**schema, **DRAFT_07}).success


@pytest.mark.parametrize(
    "reference",
    ["#/$defs/a~1b%20c", "#named", "https://example.com/root#named", "inner", "inner#in"],
)
def test_references_within_the_schema_are_resolved(reference: str) -> None:
    schema = {
        "$id": "https://example.com/root",
        "items": {"$ref": reference},
        "$defs": {
            "a/b c": {"type": "string"},
            "named": {"$anchor": "named", "type": "string"},
            "inner": {"$id": "inner", "type": "string", "$anchor": "in"},
        },
    }
    assert violations([1], schema) == [("$[0]", "Expected type string, got integer")]


def test_dynamic_references_resolve_through_the_dynamic_scope() -> None:
    tree = {
        "$id": "https://example.com/tree",
        "$dynamicAnchor": "node",
        "type": "object",
        "properties": {"data": True, "children": {"items": {"$dynamicRef": "#node"}}},
    }
    strict = {
        "$id": "https://example.com/strict",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "unevaluatedProperties": False,
        "$defs": {"tree": tree},
    }
    value = {"children": [{"daat": 1}]}
    assert validate(value, tree).success
    assert violations(value, strict) == [
        ("$.children[0].daat", "No value is allowed here (unevaluatedProperties)")
    ]


def test_recursive_schemas_are_validated() -> None:
    schema = {
        "type": "object",
        "properties": {
            "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
            "v": {"type": "number"},
        },
        "required": ["v"],
    }
    assert compile_schema(schema).native is not None
    assert validate({"v": 1, "next": {"v": 2, "next": None}}, schema).success
    assert not validate({"v": 1, "next": {"v": "2"}}, schema).success


@pytest.mark.parametrize("name", ["small", "medium", "large_1000"])
def test_ordinary_schemas_use_the_native_validator(name: str) -> None:
    case = json.loads((TIMING / f"{name}.json").read_text())
    compiled = compile_schema(case["schema"])
    assert compiled.native is not None
    assert compiled.native.is_valid(case["data"])


# JavaScript's value rules where the fast way could miss them --------------------------------


@pytest.mark.parametrize(
    ("schema", "value", "is_valid"),
    [
        ({"maxLength": 3}, "😀😀", False),
        ({"maxLength": 4}, "😀😀", True),
        ({"minLength": 4}, "😀😀", True),
        ({"not": {"minLength": 4}}, "😀😀", False),
        ({"oneOf": [{"maxLength": 3}, {"type": "string"}]}, "😀😀", True),
        ({"pattern": "^.$"}, "😀", False),
        ({"pattern": "^..$"}, "😀", True),
        ({"not": {"pattern": "[^a]b"}}, "😀b", False),
        ({"patternProperties": {"^..$": {"type": "string"}}}, {"😀": 1}, False),
        ({"patternProperties": {"^..$": True}, "additionalProperties": False}, {"😀": 1}, True),
        ({"propertyNames": {"pattern": "^..$"}}, {"😀": 1}, True),
        ({"const": 2**53}, 2**53 + 1, True),
        ({"type": "integer"}, 1e21, True),
        ({"type": "number"}, float("inf"), True),
        ({"type": "integer"}, float("inf"), False),
        ({"const": 1}, True, False),
        ({"enum": [{"a": 1, "b": [True]}]}, {"b": [True], "a": 1.0}, True),
        ({"type": "array", "items": {"type": "integer"}}, (1, 2), True),
    ],
)
def test_strings_and_numbers_are_measured_as_in_javascript(
    schema: Any, value: Any, is_valid: bool
) -> None:
    assert validate(value, schema).success is is_valid


# The cache ---------------------------------------------------------------------------------


def test_changed_schema_takes_effect_immediately() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"const": 1}}}
    assert validate({"a": 1}, schema).success
    schema["properties"]["a"]["const"] = True  # equal to 1 in Python, not in JSON
    assert not validate({"a": 1}, schema).success
    schema["properties"]["a"] = {"type": "integer"}
    assert validate({"a": 1}, schema).success
    schema["properties"]["a"]["type"] = "string"
    assert not validate({"a": 1}, schema).success
    schema["required"] = "a"
    with pytest.raises(SchemaError):
        validate({}, schema)


def test_guard_keeps_the_schema_of_its_creation() -> None:
    schema = {"type": "string"}
    guard = create_guard(schema)
    schema["type"] = "number"
    assert guard.validate("x").success
    assert not create_guard(schema).validate("x").success


@pytest.mark.slow
def test_collected_schema_cannot_pass_its_identity_to_another() -> None:
    for number in range(2_000):  # more than the cache holds
        schema = {"const": number}
        assert validate(number, schema).success
        assert not validate(-1, schema).success
        del schema
        if number % 500 == 0:
            gc.collect()


def test_equal_schemas_are_compiled_once() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^once$"}}}
    assert compile_schema(schema) is compile_schema(schema)
    assert compile_schema(copy.deepcopy(schema)) is compile_schema(schema)
    assert compile_schema(schema, assert_formats=True) is not compile_schema(schema)


def test_any_mapping_is_accepted_as_schema() -> None:
    for schema in (
        OrderedDict(type="string"),
        types.MappingProxyType({"type": "string"}),
        {"type": ("string",)},
    ):
        assert validate("x", schema).success
        assert not validate(1, schema).success


def test_threads_share_the_schema_cache() -> None:
    schemas = [{"const": number} for number in range(600)]
    wrong: list[int] = []

    def work() -> None:
        for number, schema in enumerate(schemas):
            if not validate(number, schema).success or validate(-1, schema).success:
                wrong.append(number)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_lone_surrogates_are_accepted_in_schemas_and_values() -> None:
    schema = {"properties": {"\ud83d": {"const": "\ude00"}}, "additionalProperties": False}
    assert validate({"\ud83d": "\ude00"}, schema).success
    assert enforce({"\ud83d": "x", "y": 1}, schema).outcome == "failed"
