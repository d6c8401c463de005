"""The observed schema, compared with genson and the declared schema; its size is bounded."""

import json
import random
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from genson import SchemaBuilder
from tooltrail.redact_text import MARK

from audit.work.drift import shape as shapes
from audit.work.drift.declared import Declared
from audit.work.drift.findings import Finding, compare
from audit.work.drift.shape import (
    Fold,
    Observed,
    Shape,
    dumps,
    loads,
)
from audit.work.drift.widened import observed_schema, widened
from tools_registry.schema_diff.keywords import TYPES, json_key
from tools_registry.schema_diff.reading import UndecidedError
from tools_registry.schemas import check_schema

DAY = datetime(2026, 11, 22, tzinfo=UTC).date()
WEATHER: dict[str, Any] = {
    "type": "object",
    "required": ["city"],
    "additionalProperties": False,
    "properties": {
        "city": {"type": "string"},
        "sky": {"enum": ["clear", "grey"]},
        "celsius": {"type": "number"},
        "station": {"type": "string"},
        "hours": {"type": "array", "items": {"$ref": "#/$defs/hour"}},
        "by_day": {"type": "object", "additionalProperties": {"type": "integer"}},
        "wind": {"anyOf": [{"type": "null"}, {"properties": {"speed": {"type": "integer"}}}]},
    },
    "$defs": {
        "hour": {
            "type": "object",
            "properties": {"at": {"type": "integer"}, "next": {"$ref": "#/$defs/hour"}},
        }
    },
}


def folded(values: Iterable[Any], schema: dict[str, Any] | None = None) -> Shape:
    fold = Fold(None if schema is None else Declared(schema))
    for value in values:
        fold.add(value, DAY, uuid.uuid4())
    return fold.root


def differences(values: Iterable[Any], schema: dict[str, Any]) -> dict[tuple[str, str], Finding]:
    compared = compare(folded(values, schema), Declared(schema))
    return {(one.kind, one.path): one for one in compared}


def some_value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(9 if depth < 4 else 6)
    if kind < 6:
        return (None, True, rng.randrange(9), rng.random(), "text", -3)[kind]
    if kind == 6:
        return [some_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {name: some_value(rng, depth + 1) for name in "abcd" if rng.random() < 0.6}


def plain(schema: Any) -> Any:
    """A schema with sorted types, without the keywords that only genson writes."""
    if isinstance(schema, list):
        return [plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "anyOf" in schema:  # genson separates types with keywords from those without
        merged: dict[str, Any] = {"type": []}
        for one in schema["anyOf"]:
            named = one["type"]
            merged["type"] += [named] if isinstance(named, str) else named
            merged |= {name: value for name, value in one.items() if name != "type"}
        schema = merged
    simplified = {name: plain(value) for name, value in schema.items() if name != "$schema"}
    if isinstance(simplified.get("type"), str | list) and "type" in simplified:
        named = simplified["type"]
        simplified["type"] = sorted([named] if isinstance(named, str) else named)
    if "required" in simplified and isinstance(simplified["required"], list):
        simplified["required"] = sorted(simplified["required"])
    return {name: value for name, value in simplified.items() if value != {} or name == "items"}


@pytest.mark.parametrize("seed", range(150))
def test_observed_schema_matches_genson(seed: int) -> None:
    rng = random.Random(seed)
    values = [some_value(rng) for _ in range(rng.randrange(1, 12))]
    builder = SchemaBuilder()
    for value in values:
        builder.add_object(value)
    assert plain(observed_schema(folded(values))) == plain(builder.to_schema())


def test_each_kind_of_difference_is_counted() -> None:
    values: list[Any] = [
        {"city": "London", "sky": "clear", "celsius": 3, "hours": [{"at": 1}, {"at": 2}]},
        {"city": "Bath", "sky": "rain", "celsius": 3.5, "hours": [{"at": "x"}, {"at": "y"}]},
        {"city": None, "sky": "rain", "gust": {"deep": 1}, "hours": [{"to": 1}], "wind": None},
        {"city": "Hull", "by_day": {"mon": 1, "tue": "two"}, "wind": {"speed": 1, "from": "N"}},
    ]
    by_key = differences(values, WEATHER)
    assert {key: (one.calls, one.of) for key, one in by_key.items()} == {
        ("type", "$.city"): (1, 4),
        ("type", "$.hours[*].at"): (1, 2),
        ("type", "$.by_day.*"): (1, 1),
        ("value", "$.sky"): (2, 3),
        ("undeclared", "$.gust"): (1, 4),
        ("undeclared", "$.hours[*].to"): (1, 3),
        ("undeclared", "$.wind.from"): (1, 1),
        ("unseen", "$.station"): (0, 4),
        ("unseen", "$.hours[*].next"): (0, 3),
    }
    assert by_key["type", "$.city"].declared == "string"
    assert by_key["type", "$.city"].seen == "null"
    assert by_key["undeclared", "$.gust"].is_refused
    assert not by_key["undeclared", "$.hours[*].to"].is_refused
    assert len(by_key["value", "$.sky"].samples) == 2


def test_declared_values_are_no_difference() -> None:
    whole = {
        "city": "London",
        "sky": "grey",
        "celsius": 3,
        "station": "A",
        "by_day": {"mon": 1},
        "hours": [{"at": 1, "next": {"at": 2, "next": {"at": 3}}}],
        "wind": {"speed": 1},
    }
    by_key = differences([whole], WEATHER)
    assert list(by_key) == [("unseen", "$.hours[*].next.next.next")]


def test_redacted_values_are_no_difference() -> None:
    values = [{"city": MARK, "sky": MARK, "celsius": MARK}]
    assert {kind for kind, _ in differences(values, WEATHER)} == {"unseen"}


def test_masked_names_are_merged_into_one_path() -> None:
    hidden: list[Any] = [
        {"city": "Bath", "ada@example.com": {"paid": 1}, "Ada Lovelace": 2, "4711": 3, "note": 4},
        {"city": "Bath", "by_day": {"ada@example.com": "x"}, "wind": {"ada@example.com": 1}},
    ]
    by_key = differences(hidden, WEATHER)
    assert {key: one.calls for key, one in by_key.items() if key[0] != "unseen"} == {
        ("type", "$.by_day.*"): 1,
        ("undeclared", "$.*"): 1,
        ("undeclared", "$.note"): 1,
        ("undeclared", "$.wind.*"): 1,
    }
    for shape in (folded(hidden, WEATHER), folded(hidden)):
        kept = dumps({"args": Observed(shape), "output": Observed()})
        # Not only "ada" and 4711: sometimes an example's random id contains them.
        assert not any(name in kept for name in ("ada@", "Ada", '"4711"'))
    wider = widened(WEATHER, folded(hidden, WEATHER))
    assert wider["additionalProperties"]["type"] == ["integer", "object"]
    assert "*" not in wider["properties"]
    assert "*" not in observed_schema(folded(hidden))["properties"]


def test_declared_name_is_shown_even_if_unusual() -> None:
    by_key = differences([{"wind speed": "x"}], {"properties": {"wind speed": {"type": "number"}}})
    assert set(by_key) == {("type", "$.wind speed")}


@pytest.mark.parametrize("word", ["additionalProperties", "unevaluatedProperties"])
def test_map_stays_a_map_in_a_draft(word: str) -> None:
    schema = {"type": "object", word: {"type": "integer"}}
    assert widened(schema, folded([{"a": 1, "b": "x"}], schema)) == schema


def test_unlisted_enum_values_are_located_in_a_payload() -> None:
    schema = {
        "properties": {"rows": {"items": {"properties": {"sky": {"enum": ["clear", None]}}}}},
        "additionalProperties": {"const": 1},
    }
    value = {"rows": [{"sky": "clear"}, {"sky": "rain"}, {"sky": None}], "x": 2, "y": 1}
    declared = Declared(schema)
    assert list(declared.unlisted(value, ("rows", None, "sky"))) == ["rain"]
    assert list(declared.unlisted(value, ("*",))) == [2]
    assert list(declared.unlisted(value, ("gone", None))) == []
    assert ("value", "$.rows[*].sky") in differences([value], schema)


def test_booleans_differ_from_numbers_and_integral_floats_are_integers() -> None:
    schema = {"properties": {"n": {"enum": [1]}, "m": {"type": "integer"}}}
    assert list(differences([{"n": 1.0, "m": 2.0}], schema)) == []
    assert set(differences([{"n": True, "m": 2.5}], schema)) == {("type", "$.n"), ("type", "$.m")}


def test_dumped_shape_is_loaded_and_extended() -> None:
    rng = random.Random(3)
    values = [some_value(rng) for _ in range(60)]
    whole = folded(values)
    half = dumps({"args": Observed(folded(values[:30]), {"erased": 2}), "output": Observed()})
    fold = Fold(None, loads(half)["args"].shape)
    for value in values[30:]:
        fold.add(value, DAY, uuid.uuid4())

    assert counts(fold.root) == counts(whole)
    assert loads(half)["args"].skipped == {"erased": 2}


def counts(shape: Shape) -> Any:
    """All numbers of a shape."""
    return (
        (shape.times, shape.objects, shape.seen.calls),
        {kind: seen.calls for kind, seen in shape.types.items()},
        {name: counts(member) for name, member in shape.members.items()},
        shape.items and counts(shape.items),
    )


def test_hostile_names_and_depths_are_bounded() -> None:
    deep: Any = 1
    for _ in range(60):
        deep = {"a": [deep]}
    hostile = [
        {f"key_{n}_{m}": {f"k{k}": k for k in range(30)} for m in range(300)} for n in range(20)
    ]
    shape = folded([deep, {"x" * 5_000: 1, "\ud800\x00": 1}, *hostile], WEATHER)
    text = dumps({"args": Observed(shape), "output": Observed()})
    assert text.isascii()
    assert len(text) < 400_000
    assert shape.beyond.calls > 0
    assert len(shape.members) <= shapes.MEMBERS_MAX
    assert loads(text)["args"].shape.seen.calls == 22
    for finding in compare(shape, Declared(WEATHER)):
        assert len(finding.path) < 2_000


def test_number_of_values_read_of_one_call_is_bounded() -> None:
    schema = {
        "type": "object",
        "properties": {"many": {"type": "array", "items": {"enum": ["a"]}}, "last": {}},
        "additionalProperties": {"type": "integer"},
    }
    extra = {f"extra_{n}": n for n in range(50)}
    shape = folded([{"many": ["b"] * 30_000, "last": 1, **extra}, {"many": ["b"] * 3}], schema)
    many = shape.members["many"]
    assert many.items is not None
    assert shapes.VALUES_MAX - 2 <= many.items.times - 3 <= shapes.VALUES_MAX
    assert (many.beyond.calls, shape.beyond.calls) == (1, 1)
    assert shape.members["last"].seen.calls == 1
    assert shape.is_incomplete
    assert not folded([{"many": ["b"]}], schema).is_incomplete


def test_declared_names_have_room_beside_hostile_ones() -> None:
    many = {f"key_{n}": n for n in range(500)} | {"city": 3}
    assert ("type", "$.city") in differences([many], WEATHER)


def test_draft_allows_observed_values_and_keeps_declared_parts() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "title": "Weather",
        "additionalProperties": False,
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "sky": {"enum": ["clear"]},
            "rows": {"type": "array", "items": {"type": "object", "properties": {}}},
            "ref": {"$ref": "#/$defs/r"},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "$defs": {"r": {"type": "integer"}},
    }
    before = json.dumps(schema)
    values: list[Any] = [
        {"city": None, "sky": "x", "rows": [{"n": 1.5}], "ref": "s", "map": {"k": "v"}}
    ]
    values.append({"city": "a", "rows": [{"n": 1}], "new": {"deep": [True]}})
    wider = widened(schema, folded(values, schema))
    assert json.dumps(schema) == before
    check_schema(wider)
    properties = wider["properties"]
    assert properties["city"] == {"type": ["null", "string"], "description": "Where."}
    assert properties["sky"] == {"enum": ["clear"]}
    assert properties["rows"]["items"]["properties"]["n"] == {"type": "number"}
    assert properties["ref"] == {"$ref": "#/$defs/r"}
    assert properties["map"] == schema["properties"]["map"]
    assert properties["new"]["properties"]["deep"]["items"] == {"type": "boolean"}
    assert (wider["title"], wider["additionalProperties"]) == ("Weather", False)


def test_observed_values_fit_the_draft() -> None:
    rng = random.Random(11)
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    values = [{"a": some_value(rng), "b": some_value(rng)} for _ in range(40)]
    wider = widened(schema, folded(values, schema))
    assert {kind for kind, _ in differences(values, wider)} <= {"unseen"}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.com/schema"},
        {"$ref": "#"},
        {"$schema": "http://json-schema.org/draft-04/schema#"},
        {"allOf": [{"anyOf": [{"title": str(n)} for n in range(300)]}]},
    ],
)
def test_unreadable_schema_raises_undecided_error(schema: dict[str, Any]) -> None:
    with pytest.raises(UndecidedError):
        Declared(schema)


def within_each_other(word: str) -> dict[str, Any]:
    """Twenty references to the next definition, nine times: 20**9 paths in about 5 KB."""
    names = [f"a{n}" for n in range(1, 11)]
    definitions: dict[str, Any] = {
        name: {word: [{"$ref": f"#/$defs/{following}"} for _ in range(20)]}
        for name, following in pairwise(names)
    }
    definitions[names[-1]] = {"type": "string"}
    return {"$ref": "#/$defs/a1", "$defs": definitions}


@pytest.mark.parametrize("word", ["anyOf", "allOf"])
def test_exponential_subschema_references_are_resolved_once(word: str) -> None:
    schema = within_each_other(word)
    schema["$defs"]["a3"][word].append({"enum": ["x"]})
    declared = Declared(schema)
    if word == "anyOf":  # the type is deeper than the limit of reading
        assert (declared.root.types, declared.root.values) == (TYPES, None)
    else:
        assert declared.root.types == {"string"}
        assert declared.root.values == frozenset((json_key("x"),))


@pytest.mark.slow
def test_too_many_alternatives_raise_undecided_error() -> None:
    with pytest.raises(UndecidedError, match="too many nested alternatives"):
        Declared(within_each_other("oneOf"))


def test_unreadable_part_of_a_schema_is_skipped_and_the_rest_compared() -> None:
    schema: dict[str, Any] = {
        "properties": {"any": {"$dynamicRef": "#node"}, "n": {"type": "integer"}},
        "$defs": {"node": {"$dynamicAnchor": "node"}},
    }
    check_schema(schema)
    value = {"any": {"deep": [{"er": 1}], "b": None}, "n": "one"}
    assert set(differences([value], schema)) == {("type", "$.n")}
    assert widened(schema, folded([value], schema))["properties"]["any"] == {"$dynamicRef": "#node"}


def test_boolean_subschemas_are_supported() -> None:
    declared = Declared({"properties": {"a": True, "b": False}, "items": [True]})
    assert set(differences([{"a": 1, "b": 2}], {"properties": {"a": True, "b": False}})) == {
        ("type", "$.b")
    }
    assert declared.root.types


def test_repeated_schema_does_not_inherit_required_members_of_a_subschema() -> None:
    below = {"allOf": [{"required": ["b"]}], "required": ["c"]}
    declared = Declared(
        {
            "properties": {"a": True},
            "allOf": [{"properties": {"a": True}}, {"properties": {"a": below}}],
        }
    )
    name, place = declared.member(declared.root, "a")
    assert name == "a"
    assert place is not None
    assert place.required == {"c"}
