"""Strategies, hooks, options and single fields, where the recorded rows do not cover them."""

import asyncio
import inspect
import pickle
from typing import Any

import pytest
from tooltrail.guard import (
    GuardOptions,
    SchemaError,
    ValidationError,
    build_violation,
    create_guard,
    enforce,
    guard,
    guard_tools,
    validate,
)

WEATHER = {
    "type": "object",
    "properties": {
        "temperature": {"type": "number"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
        "days": {
            "type": "array",
            "items": {"type": "object", "properties": {"high": {"type": "integer"}}},
        },
    },
    "required": ["temperature", "unit"],
    "additionalProperties": False,
}
QUIET: dict[str, Any] = {"on_coercion": lambda *_: None}


def paths(violations: list[Any]) -> list[tuple[str, str]]:
    return [(each.path, each.code) for each in violations]


# What came of it ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "options", "outcome", "data", "violations"),
    [
        (
            {"temperature": 1, "unit": "celsius"},
            {},
            "passed",
            {"temperature": 1, "unit": "celsius"},
            [],
        ),
        (
            {"temperature": "1", "unit": "celsius"},
            {"on_invalid": "coerce-and-warn"},
            "coerced",
            {"temperature": 1, "unit": "celsius"},
            [("$.temperature", "COERCED")],
        ),
        (
            {"temperature": 1, "unit": "celsius", "raw": 2},
            {"on_invalid": "strip-extra"},
            "stripped",
            {"temperature": 1, "unit": "celsius"},
            [("$.raw", "UNKNOWN_FIELD")],
        ),
        (
            {"temperature": 1},
            {"on_invalid": "fallback", "fallback_value": None},
            "fallback",
            None,
            [("$.unit", "MISSING_REQUIRED")],
        ),
        (
            {"temperature": "1"},
            {"on_invalid": "coerce-and-warn", "coercion_fallback": "sorry"},
            "fallback",
            "sorry",
            [("$.unit", "MISSING_REQUIRED"), ("$.temperature", "COERCED")],
        ),
        (
            {"temperature": 1},
            {"on_invalid": "error-result"},
            "error-result",
            {
                "__error": True,
                "violations": [{"path": "$.unit", "message": 'Required field "unit" is missing'}],
            },
            [("$.unit", "MISSING_REQUIRED")],
        ),
    ],
)
def test_enforce_returns_outcome_data_and_violations(
    output: Any, options: dict[str, Any], outcome: str, data: Any, violations: list[Any]
) -> None:
    result = enforce(output, WEATHER, options | QUIET)
    assert result.error is None
    assert result.strategy == options.get("on_invalid", "throw")
    assert result.outcome == outcome
    assert result.data == data
    assert paths(result.violations) == violations


@pytest.mark.parametrize("strategy", ["throw", "coerce-and-warn", "strip-extra"])
def test_enforce_returns_the_error_and_does_not_raise(strategy: Any) -> None:
    result = enforce(5, WEATHER, on_invalid=strategy, tool_name="weather")
    assert result.outcome == "failed"
    assert isinstance(result.error, ValidationError)
    assert result.error.tool_name == "weather"
    assert result.error.violations == result.violations


def test_missing_fallback_value_is_not_a_validation_error() -> None:
    result = enforce(5, WEATHER, on_invalid="fallback")
    assert isinstance(result.error, ValueError)
    assert not isinstance(result.error, ValidationError)
    assert result.outcome == "failed"


# The custom validator (decision 2) ---------------------------------------------------------


def test_custom_validator_decides_validity() -> None:
    seen: list[Any] = []

    def is_valid(schema: Any, data: Any) -> bool:
        seen.append((schema, data))
        return bool(data == "yes")

    schema = {"type": "string", "pattern": "(?=y)"}  # which ours would refuse
    created = create_guard(schema, json_schema_validator=is_valid)
    assert created.validate("yes").success
    assert paths(created.validate("no").violations) == [("$", "CONSTRAINT_VIOLATION")]
    assert seen == [(schema, "yes"), (schema, "no")]


def test_custom_validator_receives_the_coerced_value() -> None:
    options = {"json_schema_validator": lambda _, data: data == 5, "on_invalid": "coerce-and-warn"}
    assert enforce("5", {"type": "number"}, options | QUIET).outcome == "coerced"


# Single fields (decision 3) ----------------------------------------------------------------


def test_field_strategies_run_before_on_invalid() -> None:
    calls: list[Any] = []
    output = {"temperature": "21", "unit": "kelvin", "raw": 1, "days": [{"high": "9"}, {"high": 8}]}
    result = enforce(
        output,
        WEATHER,
        field_strategies={
            "$.temperature": "coerce-and-warn",
            "$.unit": "fallback",
            "$.raw": "strip-extra",
            "$.days[*].high": "fallback",
        },
        field_fallbacks={"$.unit": "celsius", "$.days[*].high": 0},
        on_validation_fail=lambda violations: calls.append([each.path for each in violations]),
        on_validation_pass=lambda data: calls.append("passed"),
        on_coercion=lambda *call: calls.append(call),
    )
    assert result.data == {"temperature": 21, "unit": "celsius", "days": [{"high": 0}, {"high": 8}]}
    assert result.outcome == "fallback"
    assert calls[0] == ["$.temperature", "$.unit", "$.days[0].high", "$.raw"]
    assert ("$.temperature", "21", 21) in calls
    assert ("$.unit", "kelvin", "celsius") in calls
    assert ("$.raw", 1, None) in calls
    assert ("$.days[0].high", "9", 0) in calls
    assert "passed" not in calls
    assert output["raw"] == 1


def test_on_invalid_handles_violations_left_by_field_strategies() -> None:
    result = enforce(
        {"temperature": "x", "unit": "kelvin"},
        WEATHER,
        on_invalid="error-result",
        field_strategies={"$.unit": "fallback"},
        field_fallbacks={"$.unit": "celsius"},
        **QUIET,
    )
    assert [each["path"] for each in result.data["violations"]] == ["$.temperature"]


@pytest.mark.parametrize(("strategy", "outcome"), [("throw", "failed"), ("error-result",) * 2])
def test_throw_and_error_result_on_a_field_apply_to_the_whole_output(
    strategy: Any, outcome: str
) -> None:
    result = enforce(
        {"temperature": "x", "unit": "kelvin"},
        WEATHER,
        on_invalid="fallback",
        fallback_value="unused",
        field_strategies={"$.unit": strategy},
    )
    assert result.outcome == outcome
    assert len(result.violations) == 2


def test_missing_field_uses_its_fallback() -> None:
    options: dict[str, Any] = {"field_strategies": {"$.unit": "fallback"}}
    fallbacks = {"field_fallbacks": {"$.unit": "celsius"}}
    result = enforce({"temperature": 1}, WEATHER, options | fallbacks | QUIET)
    assert result.data == {"temperature": 1, "unit": "celsius"}
    without = enforce({"temperature": 1}, WEATHER, options)
    assert isinstance(without.error, ValueError)
    assert not isinstance(without.error, ValidationError)


def test_field_paths_support_names_with_dots_and_brackets() -> None:
    schema = {"properties": {"a.b": {"properties": {"c[0]": {"type": "string"}}}}}
    result = enforce(
        {"a": 1, "a.b": {"c[0]": 1}},
        schema,
        field_strategies={"$.a.b.c[0]": "fallback"},
        field_fallbacks={"$.a.b.c[0]": "ok"},
        **QUIET,
    )
    assert result.data == {"a": 1, "a.b": {"c[0]": "ok"}}


def test_field_strategy_removes_invalid_elements() -> None:
    schema = {"items": {"type": "string"}}
    options = {"field_strategies": {"$[*]": "strip-extra"}} | QUIET
    result = enforce(["a", 1, 2, "b", 3], schema, options)
    assert (result.data, result.outcome) == (["a", "b"], "stripped")


# validate (decision 4) ---------------------------------------------------------------------


def test_validate_repairs_and_reports_without_raising() -> None:
    passed: list[Any] = []
    failed: list[Any] = []
    hooks = {"on_validation_pass": passed.append, "on_validation_fail": failed.append} | QUIET
    coerced = validate("1", {"type": "number"}, hooks | {"on_invalid": "coerce-and-warn"})
    assert (coerced.success, coerced.data) == (True, 1)
    assert [each.code for each in coerced.warnings] == ["COERCED"]
    stripped = validate({"a": 1}, {"properties": {}}, hooks | {"on_invalid": "strip-extra"})
    assert (stripped.success, stripped.data, stripped.warnings) == (True, {}, [])
    for strategy in ("throw", "fallback", "error-result"):
        reported = validate("1", {"type": "number"}, hooks, on_invalid=strategy, fallback_value=0)
        assert not reported.success
        assert paths(reported.violations) == [("$", "WRONG_TYPE")]
    assert (len(passed), len(failed)) == (1, 4)


# strip-extra (decision 6) ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "output", "stripped"),
    [
        ({"type": "object"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"items": {"properties": {"a": {}}}}, [{"a": 1, "b": 2}, 3], [{"a": 1}, 3]),
        ({"properties": {"a": {}}, "additionalProperties": True}, {"b": 1}, {"b": 1}),
        (
            {"properties": {"a": {}}, "additionalProperties": {"properties": {"x": {}}}},
            {"b": {"y": 1}},
            {"b": {}},
        ),
        ({"properties": {"a": {}}, "patternProperties": {"^x": {}}}, {"b": 1}, {"b": 1}),
        (
            {"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}]},
            {"a": 1, "b": 2, "c": 3},
            {"a": 1, "b": 2},
        ),
        (
            {"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]},
            {"b": 1, "c": 2},
            {"b": 1},
        ),
        (
            {"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {}}}}},
            {"a": 1, "b": 2},
            {"a": 1},
        ),
        ({"properties": {"a": {"type": "object"}}}, {"a": {"free": 1}, "b": 1}, {"a": {"free": 1}}),
    ],
)
def test_strip_extra_removes_undeclared_members(
    schema: dict[str, Any], output: Any, stripped: Any
) -> None:
    assert enforce(output, schema, on_invalid="strip-extra").data == stripped


# Wrapping ----------------------------------------------------------------------------------


def test_sync_tools_stay_sync_and_async_tools_stay_async() -> None:
    def sync_tool(a: int, *, b: int) -> int:
        """Adds."""
        return a + b

    async def async_tool(a: int, *, b: int) -> int:
        return a + b

    guarded = guard(sync_tool, {"type": "integer"})
    assert guarded(1, b=2) == 3
    assert (guarded.__name__, guarded.__doc__) == ("sync_tool", "Adds.")
    guarded = guard(async_tool, {"type": "integer"})
    assert inspect.iscoroutinefunction(guarded)
    assert asyncio.run(guarded(1, b=2)) == 3
    guarded = create_guard({"type": "integer"}).wrap(lambda: async_tool(1, b=2))
    assert asyncio.run(guarded()) == 3


@pytest.mark.parametrize("schema", [None, True, 5, "string", [], {}, {"description": "x"}, object])
def test_invalid_schema_type_raises_before_the_tool_runs(schema: Any) -> None:
    with pytest.raises(TypeError, match="Cannot detect schema type"):
        guard(lambda: pytest.fail("the tool ran"), schema)


def test_guard_tools_names_the_tool_with_the_invalid_schema() -> None:
    tools = {"good": lambda: 1, "bad": lambda: 1}
    with pytest.raises(SchemaError, match='tool "bad"'):
        guard_tools(tools, {"good": {"type": "integer"}, "bad": {"type": "integr"}})
    with pytest.raises(TypeError, match='tool "bad"'):
        guard_tools(tools, {"bad": {}})


def test_guard_tools_merges_options_and_passes_tools_without_schema_through() -> None:
    tools: dict[str, Any] = {"a": lambda: "1", "b": lambda: "1", "c": lambda: "1"}
    guarded = guard_tools(
        tools,
        {"a": {"type": "number"}, "b": {"type": "number"}, "c": None},
        GuardOptions(
            on_invalid="coerce-and-warn",
            tool_options={"b": GuardOptions(tool_name="x", on_invalid="error-result")},
            **QUIET,
        ),
    )
    assert guarded["a"]() == 1
    assert guarded["b"]()["__error"] is True
    assert guarded["c"] is tools["c"]


def test_unknown_options_and_strategies_are_rejected() -> None:
    with pytest.raises(TypeError, match="onInvald"):
        create_guard(WEATHER, {"onInvald": "throw"})
    with pytest.raises(ValueError, match="unknown strategy 'retry'"):
        create_guard(WEATHER, on_invalid="retry")
    with pytest.raises(ValueError, match="unknown strategy"):
        create_guard(WEATHER, field_strategies={"$.unit": "retry"})


def test_none_for_an_option_means_default() -> None:
    created = create_guard(WEATHER, {"on_invalid": None, "coercion": None, "toolName": None})
    assert created.options == GuardOptions()
    assert enforce(5, WEATHER, on_invalid="fallback", fallback_value=None).data is None


def test_exceptions_from_hooks_propagate() -> None:
    def broken(_: Any) -> None:
        raise RuntimeError("hook")

    with pytest.raises(RuntimeError, match="hook"):
        enforce(1, {"type": "integer"}, on_validation_pass=broken)


def test_validation_error_survives_pickling() -> None:
    error = enforce(5, WEATHER, tool_name="weather").error
    copied = pickle.loads(pickle.dumps(error))
    assert isinstance(copied, ValidationError)
    assert str(copied) == str(error)
    assert copied.tool_name == "weather"


def test_violation_accepts_actual_or_received_as_keyword() -> None:
    violations = [
        build_violation("WRONG_TYPE", "$.x", "m", "string", "number"),
        build_violation("WRONG_TYPE", "$.x", "m", actual="string", expected="number"),
        build_violation("WRONG_TYPE", "$.x", "m", received="string", expected="number"),
    ]
    assert [each.received for each in violations] == ["string"] * 3
    assert len({each.llm_message for each in violations}) == 1
    with pytest.raises(TypeError, match="not both"):
        build_violation("WRONG_TYPE", "$.x", "m", actual="a", received="b")


@pytest.mark.parametrize("deep", [1, 2])
def test_coercion_repairs_within_all_of_and_reports_the_rest(deep: int) -> None:
    schema: dict[str, Any] = {
        "allOf": [
            {"type": "object", "properties": {"n": {"type": "number"}, "m": {"type": "number"}}},
            {"properties": {"list": {"items": {"type": "boolean"}}}},
        ]
    }
    for _ in range(deep):
        schema = {"allOf": [schema]}
    fine = validate({"n": "5", "list": ["true"]}, schema, on_invalid="coerce-and-warn")
    assert (fine.success, fine.data) == (True, {"n": 5, "list": [True]})
    assert [(each.path, each.code) for each in fine.warnings] == [
        ("$.n", "COERCED"),
        ("$.list[0]", "COERCED"),
    ]
    wrong = validate({"n": "5", "m": "five"}, schema, on_invalid="coerce-and-warn")
    assert not wrong.success
    assert [(each.path, each.code) for each in wrong.violations] == [("$.m", "WRONG_TYPE")]
