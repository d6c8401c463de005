"""How a schema change affects the accepted values, compared with the validator."""

import json
import random
from typing import Any

import jsonschema_rs
import pytest

from tests.support.schema_samples import (
    changed,
    fitting_value,
    some_document,
    some_value,
)
from tools_registry.schema_diff import Effect, compare_schemas
from tools_registry.schema_diff.effect import joined

NONE, WIDER, NARROWER = Effect.NONE, Effect.WIDER, Effect.NARROWER
OTHER, UNDECIDED = Effect.OTHER, Effect.UNDECIDED
CASES, SLICES, SAMPLES = 3_000, 12, 40


def effect(old: Any, new: Any) -> Effect:
    """What a change does, the same backwards."""
    forth = joined(change.effect for change in compare_schemas(old, new))
    back = joined(change.effect for change in compare_schemas(new, old))
    assert forth.flipped() == back
    return forth


def effects(old: Any, new: Any) -> list[tuple[str, str, Effect]]:
    return [(one.path, one.keyword, one.effect) for one in compare_schemas(old, new)]


@pytest.mark.generated(2)
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, SLICES))]
)
def test_compatible_change_never_invalidates_a_valid_sample(part: int) -> None:
    decided = distinguished = 0
    for seed in range(part, CASES, SLICES):
        chance = random.Random(seed)
        old = some_document(chance)
        new = changed(chance, old) if chance.random() < 0.85 else some_document(chance)
        try:
            was, now = jsonschema_rs.validator_for(old), jsonschema_rs.validator_for(new)
        except ValueError:
            continue
        combined = joined(change.effect for change in compare_schemas(old, new))
        if combined & OTHER == OTHER:
            continue
        decided += 1
        for _ in range(SAMPLES):
            along = chance.choice([old, new])
            value = (
                some_value(chance) if chance.random() < 0.3 else fitting_value(chance, along, along)
            )
            before, after = was.is_valid(value), now.is_valid(value)
            distinguished += before != after
            case = f"seed {seed}: {json.dumps(old)} → {json.dumps(new)}: {json.dumps(value)}"
            assert not before or after or combined & NARROWER, case
            assert before or not after or combined & WIDER, case
    assert decided > CASES / SLICES / 2, "most must be decided, or nothing is tested"
    assert distinguished > 100, "samples must tell schemas apart"


PLAIN = [
    # types
    ({"type": "integer"}, {"type": "number"}, WIDER),
    ({"type": "string"}, {"type": ["string", "null"]}, WIDER),
    ({"type": "string"}, {"type": "integer"}, OTHER),
    ({}, {"type": "string"}, NARROWER),
    ({"type": "number"}, {"type": ["integer", "number"]}, NONE),
    # values
    ({"enum": ["a"]}, {"enum": ["a", "b"]}, WIDER),
    ({"const": "a"}, {"enum": ["b", "a"]}, WIDER),
    ({"enum": [1]}, {"enum": [1.0]}, NONE),
    ({"enum": [1]}, {"enum": [True]}, OTHER),
    ({"enum": ["a"]}, {}, WIDER),
    # bounds
    ({"minimum": 1}, {"minimum": 2}, NARROWER),
    ({"minimum": 1}, {"exclusiveMinimum": 1}, NARROWER),
    ({"maximum": 5}, {"exclusiveMaximum": 6}, WIDER),
    ({"maxLength": 5}, {"maxLength": 6}, WIDER),
    ({"minItems": 1}, {}, WIDER),
    ({"minLength": 0}, {}, NONE),
    ({"multipleOf": 6}, {"multipleOf": 3}, WIDER),
    ({"multipleOf": 4}, {"multipleOf": 6}, OTHER),
    ({"multipleOf": 0.5}, {"multipleOf": 0.25}, UNDECIDED),
    # text
    ({"pattern": "a"}, {"pattern": "b"}, UNDECIDED),
    ({"pattern": "a"}, {}, WIDER),
    ({"format": "date"}, {"format": "date-time"}, UNDECIDED),
    # objects
    ({"required": ["a"]}, {"required": ["a", "b"]}, NARROWER),
    ({"properties": {"a": {"type": "string"}}}, {}, WIDER),
    ({}, {"properties": {"a": {"type": "string"}}}, NARROWER),
    ({"additionalProperties": False}, {"properties": {"a": {}}, "additionalProperties": False},
     WIDER),
    ({"additionalProperties": False}, {}, WIDER),
    ({"additionalProperties": {"type": "integer"}}, {"additionalProperties": {"type": "number"}},
     WIDER),
    ({"additionalProperties": False, "patternProperties": {"^a": {}}},
     {"additionalProperties": False, "patternProperties": {"^b": {}}}, UNDECIDED),
    ({"propertyNames": {"maxLength": 1}}, {"propertyNames": {"maxLength": 2}}, WIDER),
    ({"dependentRequired": {"a": ["b"]}}, {"dependentRequired": {"a": ["b", "c"]}}, NARROWER),
    # lists
    ({"items": {"type": "integer"}}, {"items": {"type": "number"}}, WIDER),
    ({"prefixItems": [{"type": "string"}]}, {"items": {"type": "string"}}, NARROWER),
    ({"contains": {"const": 1}}, {"contains": {"enum": [1, 2]}}, WIDER),
    ({"contains": {"const": 1}, "maxContains": 2}, {"contains": {}, "maxContains": 2}, UNDECIDED),
    ({"uniqueItems": True}, {}, WIDER),
    # alternatives
    ({"anyOf": [{"type": "string"}]}, {"anyOf": [{"type": "null"}, {"type": "string"}]}, WIDER),
    ({"type": "string", "maxLength": 3}, {"anyOf": [{"type": "string"}, {"type": "null"}]}, WIDER),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"type": "integer"}, NARROWER),
    ({"oneOf": [{"type": "string"}]}, {"oneOf": [{"type": "string"}, {"type": "null"}]}, WIDER),
    ({"oneOf": [{}, {"type": "string"}]}, {"oneOf": [{}, {"type": "null"}]}, UNDECIDED),
    ({"allOf": [{"minimum": 1}]}, {"minimum": 1}, NONE),
    ({"allOf": [{"minimum": 1}, {}]}, {"allOf": [{"maximum": 2}, {"minimum": 1}, {}]}, NARROWER),
    ({"not": {"maximum": 1}}, {"not": {"maximum": 2}}, NARROWER),
    ({"if": {"const": 1}, "then": {"minimum": 1}}, {"if": {"const": 1}}, WIDER),
    ({"if": {"const": 1}, "then": {"minimum": 1}}, {"if": {"const": 2}, "then": {"minimum": 1}},
     UNDECIDED),
    ({"unevaluatedProperties": False}, {"properties": {"a": {}}, "unevaluatedProperties": False},
     UNDECIDED),
    # booleans and words
    (True, {}, NONE),
    (False, {"type": "string"}, WIDER),
    ({"description": "a"}, {"description": "b", "default": 1}, NONE),
]  # fmt: skip  # by line as they belong together


@pytest.mark.parametrize(
    ("old", "new", "expected"), PLAIN, ids=lambda value: json.dumps(value)[:60]
)
def test_each_keyword_has_the_expected_effect(old: Any, new: Any, expected: Effect) -> None:
    assert effect(old, new) == expected


def test_references_and_cycles_are_followed() -> None:
    def tree(leaf: Any) -> Any:
        node = {"properties": {"leaf": leaf, "children": {"items": {"$ref": "#/$defs/Node"}}}}
        return {"$ref": "#/$defs/Node", "$defs": {"Node": node}}

    assert effects(tree({"maximum": 1}), tree({"maximum": 2})) == [("$.leaf", "maximum", WIDER)]
    inlined = {"properties": {"leaf": {"maximum": 1}, "children": {}}}
    assert effect(tree({"maximum": 1}), inlined) == WIDER


def test_inlined_reference_is_no_change() -> None:
    city = {"type": "string", "minLength": 1}
    there = {"properties": {"city": {"$ref": "#/$defs/City"}}, "$defs": {"City": city}}
    assert effects(there, {"properties": {"city": city}}) == []


def test_change_has_path_keyword_and_values() -> None:
    old = {"properties": {"rows": {"items": {"properties": {"the id": {"type": "string"}}}}}}
    new = {"properties": {"rows": {"items": {"properties": {"the id": {"type": "integer"}}}}}}
    [change] = compare_schemas(old, new)
    assert change.path == '$.rows[*]["the id"]'
    assert (change.keyword, change.before, change.after) == ("type", "string", "integer")


def test_property_added_to_an_open_object_is_narrower_with_a_reason() -> None:
    [change] = compare_schemas({}, {"properties": {"city": {"type": "string"}}})
    assert (change.path, change.keyword, change.effect) == ("$.city", "property", NARROWER)
    assert "accepted before" in change.why


def test_draft_7_semantics_are_applied() -> None:
    dialect = {"$schema": "http://json-schema.org/draft-07/schema#"}
    old = {**dialect, "items": [{"type": "string"}], "additionalItems": False}
    new = {**dialect, "items": [{"type": "string"}, {}], "additionalItems": False}
    assert effect(old, new) == WIDER
    beside = {**dialect, "$ref": "#/definitions/A", "definitions": {"A": {}}}
    assert effect({**beside, "minimum": 1}, {**beside, "minimum": 2}) == NONE


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ({"$ref": "#"}, {"$ref": "#", "minimum": 1}, "itself"),
        (
            {"$ref": "http://192.0.2.1/a"},
            {"$ref": "http://192.0.2.1/b"},
            "does not point into the schema",
        ),
        ({"$ref": "#/$defs/A"}, {}, "does not exist"),
        ({"$ref": "#a", "$defs": {"A": {"$anchor": "a"}}}, {}, "anchors"),
        ({"$dynamicRef": "#a"}, {}, "dynamic"),
        ({"$schema": "http://192.0.2.1/own"}, {}, "dialect"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, {}, "dialect"),
    ],
)
def test_undecidable_changes_are_reported_with_a_reason(old: Any, new: Any, why: str) -> None:
    undecided = [one for one in compare_schemas(old, new) if one.effect == UNDECIDED]
    assert any(why in one.why for one in undecided)


@pytest.mark.slow
def test_comparison_of_hostile_schemas_terminates() -> None:
    def nested(depth: int, limit: int) -> Any:
        if depth == 0:
            return {"maxLength": limit}
        return {"anyOf": [{"items": nested(depth - 1, limit + each)} for each in (0, 1)]}

    [change] = compare_schemas(nested(10, 1), nested(10, 3))
    assert "too many nested alternatives" in change.why

    def chained(by: str, last: Any) -> Any:
        nodes = {
            f"D{n}": {"$ref": f"#/$defs/D{n + 1}"}
            if by == "reference"
            else {"properties": {"a": {"$ref": f"#/$defs/D{n + 1}"}}}
            for n in range(5_000)
        }
        return {"$ref": "#/$defs/D0", "$defs": {**nodes, "D5000": last}}

    for by in ("reference", "property"):
        [change] = compare_schemas(chained(by, {}), chained(by, {"type": "string"}))
        assert change.effect == UNDECIDED
    catastrophic = "^(a+)+(b|c)*$"
    [change] = compare_schemas({"patternProperties": {catastrophic: {}}, "properties": {}}, {})
    assert change.effect == WIDER
