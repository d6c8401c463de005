"""The check of a contract while it is edited, and of its examples."""

import json
from typing import Any

import pytest
from tooltrail.guard import validate
from tooltrail.guard.explain import examine

from tools_registry.contract_check import EXAMPLES_STEPS, PROBLEMS_MAX, Checked, check_typed
from tools_registry.schemas import SCHEMA_MAX_BYTES

TYPED: dict[str, Any] = {
    "description": "Tells the weather.",
    "input_schema": '{"type": "object"}',
    "output_schema": '{"type": "object", "required": ["celsius"]}',
    "trusted": False,
    "ephemeral": False,
    "on_collision": "throw",
    "meta": "",
}


def check(examples: dict[str, str] | None = None, known: Any = (), **typed: Any) -> Checked:
    return check_typed("get_weather", TYPED | typed, examples or {}, known=known)


def test_valid_input_becomes_a_contract() -> None:
    result = check(output_schema="  ", meta='{"team": "sky"}')
    assert result.problems == []
    assert result.contract is not None
    assert (result.contract.output_schema, result.contract.meta) == (None, {"team": "sky"})


@pytest.mark.parametrize(
    ("typed", "member", "expected"),
    [
        ({"input_schema": ""}, "input_schema", "is missing"),
        ({"input_schema": "{"}, "input_schema", "in line 1, column 2"),
        ({"output_schema": '{\n  "a": 1,\n}'}, "output_schema", "in line 2"),
        ({"meta": "[]"}, "meta", "is not a JSON object"),
        ({"meta": '{"a": 1, "a": 2}'}, "meta", "'a' occurs twice"),
        ({"meta": '{"a": NaN}'}, "meta", "NaN is not a JSON number"),
        ({"meta": '{"a": 1e999}'}, "meta", "a number that JSON cannot represent"),
        ({"meta": '{"a": ' + "9" * 5000 + "}"}, "meta", "is not supported JSON"),
        ({"meta": '{"a":' * 5000 + "1" + "}" * 5000}, "meta", "nested deeper"),
        ({"description": "a\0b"}, "description", "U+0000"),
        ({"description": "x" * 20_001}, "description", "at most 20000"),
    ],
)
def test_invalid_input_is_reported_for_its_member(
    typed: dict[str, Any], member: str, expected: str
) -> None:
    result = check(**typed)
    assert result.contract is None
    (problem,) = result.problems
    assert (problem.member, problem.is_warning) == (member, False)
    assert expected in problem.message


def test_metaschema_errors_have_pointers_and_are_limited() -> None:
    schema = {"type": "objekt", "properties": {"a/b": {"minimum": "1"}}, "required": "x"}
    result = check(output_schema=json.dumps(schema))
    assert {(each.member, each.pointer) for each in result.problems} == {
        ("output_schema", "/type"),
        ("output_schema", "/properties/a~1b/minimum"),
        ("output_schema", "/required"),
    }
    many = {"properties": {f"p{n}": {"type": "x"} for n in range(99)}}
    assert len(check(output_schema=json.dumps(many)).problems) == PROBLEMS_MAX
    seventh = {"$schema": "http://json-schema.org/draft-07/schema#", "minLength": -1}
    assert [each.pointer for each in check(output_schema=json.dumps(seventh)).problems] == [
        "/minLength"
    ]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"$ref": "https://example.com/x.json"}, "external references are not supported"),
        ({"$ref": "#"}, "without end"),
        ({"$ref": "#/$defs/none"}, ""),
        ({"pattern": "^(?!a)"}, "cannot run in linear time"),
        ({"pattern": "(a{1000}){1000}"}, '"(a{1000}){1000}"'),
        ({"enum": ["x" * 1_000_000]}, f"more than {SCHEMA_MAX_BYTES:,}"),
        ({"$schema": "https://example.com/mine"}, ""),
    ],
)
def test_unusable_schema_is_rejected_with_one_line(schema: dict[str, Any], expected: str) -> None:
    result = check(output_schema=json.dumps(schema))
    assert result.contract is None
    (problem,) = result.problems
    assert expected in problem.message
    assert 0 < len(problem.message) < 500
    assert "\n" not in problem.message


def test_existing_schema_unusable_for_guards_is_only_a_warning() -> None:
    lookahead = {"type": "object", "properties": {"mail": {"pattern": "^(?!\\.)"}}}
    text = json.dumps(lookahead)
    assert check(input_schema=text).contract is None
    result = check(input_schema=text, known=[lookahead])
    assert result.contract is not None
    assert [each.is_warning for each in result.problems] == [True]


def test_examples_are_validated_like_by_the_guard() -> None:
    texts = '{"celsius": 1}\n---\n{"kelvin": 1}\n ---- \n{oops\n---\n\n---\n'
    result = check({"output_schema": texts, "input_schema": "[]"})
    by_number = {each.number: each for each in result.examples if each.member == "output_schema"}
    assert list(by_number) == [1, 2, 3]
    assert by_number[1].fits
    schema = json.loads(TYPED["output_schema"])
    assert list(by_number[2].violations) == validate({"kelvin": 1}, schema).violations
    assert "not valid JSON" in by_number[3].problem
    (args,) = [each for each in result.examples if each.member == "input_schema"]
    assert [each.code for each in args.violations] == ["WRONG_TYPE"]
    assert result.contract is not None, "examples are no part of the contract"


def test_example_without_a_usable_schema_is_not_validated() -> None:
    (example,) = check({"output_schema": "1"}, output_schema="{").examples
    assert not example.fits
    assert "no usable schema" in example.problem


def test_validation_of_examples_is_bounded_in_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """An example of 6 KB could take 2 s of processor time; twenty of them a minute."""
    options = [{"type": "object", "required": [f"r{n}"]} for n in range(300)]
    schema = json.dumps({"type": "array", "items": {"anyOf": options}})
    steps: list[int] = []

    def counted(*args: Any, **options: Any) -> Any:
        result = examine(*args, **options)
        steps.append(result.steps)
        return result

    monkeypatch.setattr("tooltrail.guard.jsonschema.examine", counted)
    costly = json.dumps([{"r299": 1}] * 2_000)
    texts = "\n---\n".join([costly] * 20 + ["[1]"])
    both = {"output_schema": texts, "input_schema": texts}
    result = check(both, output_schema=schema, input_schema=schema)
    assert 0 < sum(steps) < 1.01 * EXAMPLES_STEPS, "those of both schemas together"
    assert len(result.examples) == 40
    expected = {example.problem for example in result.examples if not example.fits}
    assert expected <= {"too expensive to validate", ""}
    fair = check({"output_schema": '[{"r1": 1}]\n---\n[1]'}, output_schema=schema)
    assert [example.fits for example in fair.examples] == [True, False]


def test_examples_are_split_and_read_in_linear_time() -> None:
    """40 KB of empty lines took 8 s to split, and 20 examples were read, however long."""
    schema = {"output_schema": '{"type": "array"}'}
    spaced = "[1]" + "\n" * 1_000_000 + "---\r\n[2]"
    assert len(check({"output_schema": spaced}, **schema).examples) == 2
    long = json.dumps([1] * 400_000)
    result = check({"output_schema": "\n---\n".join([long] * 20)}, **schema)
    assert [example.fits for example in result.examples] == [True] * 2 + [False] * 18
