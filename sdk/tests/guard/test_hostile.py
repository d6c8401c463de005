"""Hostile schemas and values: rejected with a clear error, or validated quickly.

Hardly anything here measures time: most cases would run for minutes, or not end at all, if
the protection it is about were missing.
"""

import json
import time
from typing import Any

import pytest
from tooltrail.guard import SchemaError, Violation, create_guard, enforce, guard, validate
from tooltrail.guard.explain import Walk, examine, explain
from tooltrail.guard.jsonschema import compile_schema
from tooltrail.guard.nodes import Node
from tooltrail.guard.violations import MORE
from tooltrail.guard.work import DECIDED_STEPS, EXPLAINED_STEPS, NATIVE_STEPS


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
def test_unsafe_schemas_are_rejected_before_the_tool_runs(schema: dict[str, Any]) -> None:
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


def test_unevaluated_members_are_detected_in_a_doubling_schema() -> None:
    schema = doubling("allOf")
    schema["$defs"]["40"] = {"properties": {"a": True}}
    schema["unevaluatedProperties"] = False
    assert [each.path for each in validate({"a": 1, "b": 2}, schema).violations] == ["$.b"]


def test_values_nested_beyond_the_stack_fail_with_a_violation() -> None:
    schema = {"type": ["array", "integer"], "items": {"$ref": "#"}}
    value: Any = "leaf"
    for _ in range(10_000):
        value = [value]
    (violation,) = validate(value, schema).violations
    assert "too deeply" in violation.message
    assert enforce(value, schema, on_invalid="coerce-and-warn").outcome == "failed"


@pytest.mark.slow
def test_validation_of_cyclic_values_terminates() -> None:
    value: list[Any] = []
    value.append(value)
    schema = {"type": "array", "items": {"$ref": "#"}, "maxItems": 0}
    for strategy in ("throw", "coerce-and-warn", "strip-extra"):
        assert enforce(value, schema, on_invalid=strategy).outcome == "failed"
    assert not validate(value, {"enum": [1]}).success


def test_number_of_violations_is_limited_by_the_work_for_them() -> None:
    result = validate(dict.fromkeys(map(str, range(50_000)), 1), {"additionalProperties": False})
    assert 1_000 < len(result.violations) < 10_000
    assert result.violations[-1] == MORE


@pytest.mark.parametrize(
    ("divisor", "value", "is_multiple"),
    [
        (0.01, 22.13, True),
        (0.1, 0.3, True),
        (0.0001, 1e300, True),
        (7, 10**300, False),
        (5e-324, 1.7976931348623157e308, True),
        (3, 1e-300, False),
    ],
)
def test_multiples_are_exact_and_cost_what_is_charged(
    divisor: float, value: float, is_multiple: bool
) -> None:
    """jsonschema-rs takes 80 µs for one such number, and 20,000 of them took a second."""
    compiled = compile_schema({"items": {"multipleOf": divisor}})
    assert compiled.judge([value], EXPLAINED_STEPS).is_valid is is_multiple
    assert compiled.verdict([value] * 20_000, NATIVE_STEPS).is_valid is None
    violations = explain(compiled.root, [value], remember=False, formats=False)
    assert bool(violations) is not is_multiple


NESTED = {"type": "array", "items": {"enum": [[number] for number in range(3_000)]}}
CONSTANTS = {"type": "array", "items": {"anyOf": [{"const": number} for number in range(1_500)]}}
OBJECTS = {
    "items": {"anyOf": [{"required": ["k"], "properties": {"k": {"const": n}}} for n in range(300)]}
}
COSTLY: dict[str, tuple[dict[str, Any], Any]] = {
    "3,000 lists, all wrong": (NESTED, [[-1]] * 40_000),
    "3,000 lists, all right": (NESTED, [[2_999]] * 40_000),
    "1,500 constants, all wrong": (CONSTANTS, [-1] * 60_000),
    "1,500 constants, all right": (CONSTANTS, [1_499] * 60_000),
    "300 objects, all wrong": (OBJECTS, [{"k": -1}] * 20_000),
    "1,900 minima": ({"items": {"allOf": [{"minimum": -n} for n in range(1_900)]}}, [1] * 60_000),
    "500 patterns": (
        {"patternProperties": {f"^x{n}y": {} for n in range(500)}},
        {f"a{n}": 1 for n in range(10_000)},
    ),
    "1,900 properties": (
        {"items": {"properties": {f"a{n}": {"type": "null"} for n in range(1_900)}}},
        [{}] * 60_000,
    ),
    "one pattern of 9,000 positions": ({"pattern": "[ab]*a[ab]{9000}c"}, "ab" * 120_000),
    "many texts for one": ({"items": {"pattern": "[ab]*a[ab]{9000}c"}}, ["ab" * 500] * 200),
    "20,000 names": ({"items": {"required": [f"a{n}" for n in range(20_000)]}}, [{}] * 60_000),
    "what is repeated": ({"items": {"uniqueItems": True}}, [[1, 1]] * 60_000),
    "a long list, written again and again": (
        {"allOf": [{"enum": [[[number]]]} for number in range(100)]},
        [1] * 60_000,
    ),
    "a long list of what is allowed, again and again": (
        {"items": {"enum": [f"text {number}" for number in range(3_000)]}},
        ["x"] * 20_000,
    ),
}


@pytest.mark.generated(6)
@pytest.mark.slow
@pytest.mark.parametrize(("schema", "value"), COSTLY.values(), ids=COSTLY)
def test_validation_work_is_bounded_by_steps(schema: dict[str, Any], value: Any) -> None:
    judged = compile_schema(schema).judge(value, EXPLAINED_STEPS)
    assert judged.is_valid is not True, "or it would be no example"
    if judged.is_valid is False:
        assert judged.violations[-1] is MORE
        written = sum(len(each.llm_message) + len(each.path) for each in judged.violations)
        assert written < 256 * EXPLAINED_STEPS
    began = time.thread_time()
    create_guard(schema).validate(value)
    assert time.thread_time() - began < 10, "seconds; some of them would take minutes"


@pytest.mark.parametrize(
    ("items", "value"),
    [
        ({"enum": [f"text {number}" for number in range(3_000)]}, ["x"] * 20_000),
        ({"type": "object"}, [1] * 20_000),
    ],
)
def test_verdict_counts_at_least_one_step_per_element(items: dict[str, Any], value: Any) -> None:
    """What walks over a value here took four times as long as the steps that it was charged."""
    judged = compile_schema({"items": items}).verdict(value, NATIVE_STEPS)
    assert judged.is_valid is False
    assert judged.steps >= len(value)


def test_uniqueness_check_counts_steps_per_element() -> None:
    objects = [{"a": number % 7_000} for number in range(20_000)]
    compiled = compile_schema({"uniqueItems": True})
    assert compiled.verdict(objects, NATIVE_STEPS).steps >= 4 * len(objects)
    assert compiled.judge(objects, 4 * EXPLAINED_STEPS).steps >= 8 * len(objects)


def test_unevaluated_members_count_steps_per_subschema() -> None:
    schema = {
        "anyOf": [{"properties": {f"p{number}": {}}} for number in range(100)],
        "unevaluatedProperties": False,
    }
    assert compile_schema(schema).judge({"z": 1}, EXPLAINED_STEPS).steps >= 8 * 100


def test_guard_validates_large_unions_completely() -> None:
    for schema, last, wrong in ((NESTED, [2_999], [-1]), (CONSTANTS, 1_499, -1)):
        assert validate([last] * 10_000, schema).success
        violations = validate([last] * 10_000 + [wrong] + [last], schema).violations
        assert "$[10000]" in [each.path for each in violations]


def test_truncation_notice_is_the_last_violation() -> None:
    violations = validate([[-1]] * 40_000, NESTED).violations
    assert [each.path for each in violations[:2]] == ["$[0]", "$[1]"]
    assert "More was not explained" in violations[-1].message
    assert MORE not in validate([[-1]] * 3, NESTED).violations


@pytest.mark.parametrize(
    ("option", "equal", "unequal"),
    [
        (1, [1, 1.0], [True, "1", [1], 2]),
        (True, [True], [1, 1.0, "true"]),
        (0, [0, 0.0, -0.0], [False, None, ""]),
        (None, [None], [False, 0, "null", {}]),
        ("1", ["1"], [1, ["1"]]),
        ([1, [2.0]], [[1, [2]], (1.0, (2,))], [[1, [True]], [1, 2], [1, [2], 3], [[2], 1]]),
        (
            {"a": 1, "b": [None]},
            [{"b": [None], "a": 1.0}],
            [{"a": 1}, {"a": True, "b": [None]}, {"a": 1, "b": [None], "c": 0}, [["a", 1]]],
        ),
        ({"1": 2}, [{"1": 2}], [{1: 2}, {"1": {}}]),
        ([], [[], ()], [{}, "", None, [[]]]),
    ],
)
def test_enum_and_const_compare_values_as_json(
    option: Any, equal: list[Any], unequal: list[Any]
) -> None:
    others = [[9, 9, 9], {"z": [9]}, "z", 99]
    for schema in (
        {"enum": [option, *others]},
        {"const": option},
        {"anyOf": [{"const": option}, {"enum": others}]},
        {"oneOf": [{"const": option}, {"enum": others}, {"const": [7]}]},
    ):
        for value in equal:
            assert walked(schema, value) == [], (schema, value)
        for value in unequal:
            assert walked(schema, value) != [], (schema, value)
    twice = {"oneOf": [{"const": option}, {"enum": [option, option]}]}
    assert walked(twice, equal[0])[0].received == "2"
    typed = {"anyOf": [{"type": "string", "const": 1}, {"type": "integer", "const": 1}]}
    assert walked(typed, 1.0) == []
    assert walked({"anyOf": typed["anyOf"][:1]}, 1) != []


def walked(schema: dict[str, Any], value: Any) -> list[Violation]:
    """What the walk finds, without asking jsonschema-rs first."""
    return explain(compile_schema(schema).root, value, remember=False, formats=False)


def test_patterns_are_weighted_by_their_match_cost() -> None:
    light = [
        r"^[0-9a-f]{8}-[0-9a-f]{4}$",
        r"^.{1,255}$",
        r"^[\s\S]{0,400}$",
        r"\S",
        r"^[^@\s]+@[^@\s]+$",
    ]
    heavy = ["[ab]*a[ab]{500}c", "^[ab]*a[ab]{500}c", "(a|b){100}c", "^(?:[ab]{1,50}){9}c"]
    for pattern in light:
        assert compile_schema({"pattern": pattern}).weights.character == 0, pattern
    for pattern in heavy:
        assert compile_schema({"pattern": pattern}).weights.character > 99, pattern
    assert validate("a" * 200_000, {"pattern": r"^[\s\S]{1,400}"}).success


@pytest.mark.parametrize(
    "value",
    [
        [1] * 1_000,
        [[]] * 1_000,
        "a" * 1_000,
        {"é" * 99: "é" * 999},
        {str(n): {} for n in range(99)},
    ],
    ids=["numbers", "lists", "text", "wide", "members"],
)
@pytest.mark.parametrize("pattern", [r"\S", "[ab]*a[ab]{500}c"], ids=["light", "heavy"])
def test_length_of_a_text_bounds_the_cost_of_its_value(pattern: str, value: Any) -> None:
    """A replay does not count the elements of each value: that took twice as long as judging."""
    compiled = compile_schema({"items": {"pattern": pattern}, "additionalProperties": {}})
    length = len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
    cost = compiled.weights.cost(value, NATIVE_STEPS)
    assert cost <= compiled.weights.cost_at_most(length)
    of_length = compiled.judge(value, NATIVE_STEPS, length=length)
    assert of_length._replace(steps=cost) == compiled.judge(value, NATIVE_STEPS)
    assert compiled.judge(value, 2, length=length) == compiled.judge(value, 2), "counted"


@pytest.mark.parametrize(
    "value",
    [{1: 2}, {1, 2}, b"x", object(), 10**5_000, float("nan"), ["\ud83d"], {"\ud83d": 1}, 1j],
    ids=lambda value: type(value).__name__,
)
def test_values_without_json_form_are_invalid(value: object) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    for strategy in ("throw", "coerce-and-warn", "strip-extra"):
        assert enforce(value, schema, on_invalid=strategy).outcome == "failed"


def test_known_verdicts_cost_steps_and_deciding_stops_at_the_first_violation() -> None:
    """60,000 equal items took four times as long as the steps allow."""
    options = [{"const": number} for number in range(3_000)]
    compiled = compile_schema({"type": "array", "items": {"anyOf": options}})
    assert compiled.native is None, "so the walk remembers verdicts"
    visits = 0

    def count(walk: Walk, node: Node, value: Any, path: str) -> None:
        nonlocal visits
        visits += 1
        visit(walk, node, value, path)

    with pytest.MonkeyPatch.context() as patch:
        visit = Walk.visit
        patch.setattr(Walk, "visit", count)
        judged = compiled.judge([-1] * 60_000, EXPLAINED_STEPS)
    assert judged.is_valid is False
    assert judged.violations[-1] is MORE
    assert len(judged.violations) > 1_000
    assert visits <= EXPLAINED_STEPS // 4


@pytest.mark.parametrize(
    ("items", "right", "wrong"),
    [
        (NESTED["items"], [2_999], [-1]),
        (CONSTANTS["items"], 1_499, -1),
        (OBJECTS["items"], {"k": 299}, {"k": -1}),
    ],
    ids=["3,000 lists", "1,500 constants", "300 objects"],
)
def test_search_for_the_first_violation_is_bounded_in_work(
    items: dict[str, Any], right: Any, wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the last item is wrong. A guard decides, even if it cannot say where."""
    steps: list[int] = []

    def counted(*args: Any, **options: Any) -> Any:
        result = examine(*args, **options)
        steps.append(result.steps)
        return result

    monkeypatch.setattr("tooltrail.guard.jsonschema.examine", counted)
    assert not validate([right] * 5_000 + [wrong], {"type": "array", "items": items}).success
    assert 0 < sum(steps) < 1.01 * DECIDED_STEPS
