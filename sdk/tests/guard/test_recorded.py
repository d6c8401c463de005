"""Recorded rows of tool-output-guard 0.3.2: verdicts, texts, strategies, hooks and their order."""

import asyncio
import json
import logging
import math
from collections.abc import Callable
from typing import Any

import pytest
from tooltrail.guard import (
    ValidationError,
    Violation,
    build_path,
    build_violation,
    create_guard,
    detect_schema,
    format_violation_message,
    format_violations_for_llm,
    guard,
    guard_tools,
    is_json_schema,
    is_model_schema,
    validate,
)

from sdk.tests.guard.exemptions import reason
from sdk.tests.support.vectors import cases

NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, "-0": -0.0}
UNDEFINED = object()


def decoded(value: Any) -> Any:
    """A recorded value: what JSON cannot carry is put back, absent members are left out."""
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"$number"}:
        return NUMBERS[value["$number"]]
    if value.keys() == {"$undefined"}:
        return UNDEFINED
    members = {name: decoded(member) for name, member in value.items()}
    return {name: member for name, member in members.items() if member is not UNDEFINED}


def given(row: dict[str, Any], name: str) -> Any:
    text = row.get(f"{name}_json")
    return decoded(row[name]) if text is None else json.loads(text)


def comparable(value: Any) -> Any:
    """The same for values that compare equal by the recording's rules, and for no others."""
    if isinstance(value, dict):
        return {name: comparable(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [comparable(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return ("number", "NaN" if math.isnan(value) else float(value))


def dumped(violations: list[Violation]) -> list[dict[str, Any]]:
    return [each.model_dump(by_alias=True, exclude_unset=True) for each in violations]


def options_of(row: dict[str, Any]) -> dict[str, Any]:
    options = decoded(row.get("options", {}))
    return {} if options is UNDEFINED else options


def recorder(names: list[str], calls: list[Any], throwing: str | None = None) -> dict[str, Any]:
    """Hooks that note how they were called, in the recording's words."""

    def hook(name: str) -> Callable[..., None]:
        def called(*arguments: Any) -> None:
            match name:
                case "onValidationPass":
                    calls.append({"hook": name, "data": arguments[0]})
                case "onValidationFail":
                    calls.append({"hook": name, "violations": dumped(arguments[0])})
                case _:
                    path, original, coerced = arguments
                    calls.append(
                        {"hook": name, "path": path, "original": original, "coerced": coerced}
                    )
            if name == throwing:
                raise RuntimeError("hook boom")

        return called

    return {name: hook(name) for name in names}


@cases("output_guard_validate.jsonl", exempt=reason)
def test_recorded_validate_rows(row: dict[str, Any]) -> None:
    check_validate(row)


@cases("output_guard_typebox.jsonl", "validate", exempt=reason)
def test_recorded_typebox_validate_rows(row: dict[str, Any]) -> None:
    check_validate(row)


def check_validate(row: dict[str, Any]) -> None:
    expected, value, schema = row["outcome"], given(row, "input"), given(row, "schema")
    if "throws" in expected:
        with pytest.raises((TypeError, ValueError)):
            validate(value, schema)
        return
    result = validate(value, schema)
    assert result.success is expected["success"]
    assert dumped(result.violations) == expected.get("violations", [])
    assert result.warnings == []
    if result.success:
        assert comparable(result.data) == comparable(decoded(expected["data"]))
        assert result.data is value


@cases("output_guard_guard.jsonl", exempt=reason)
def test_recorded_guard_rows(row: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    check_guard(row, caplog)


@cases("output_guard_typebox.jsonl", "guard", exempt=reason)
def test_recorded_typebox_guard_rows(row: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    check_guard(row, caplog)


def check_guard(row: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    output = given(row, "tool_output") if "tool_throws" not in row else None
    schema = given(row, "schema") if "schema" in row or "schema_json" in row else None
    calls: list[Any] = []

    async def tool() -> Any:
        if "tool_throws" in row:
            raise RuntimeError(row["tool_throws"])
        return output

    options = options_of(row) | recorder(row.get("hooks", []), calls, row.get("hook_throws"))
    expected = row["outcome"]

    def run() -> Any:
        if row["api"] == "createGuard.wrap":
            return asyncio.run(create_guard(schema, options).wrap(tool)())
        return asyncio.run(guard(tool, schema, options)())

    before = json.dumps(comparable(output))
    check_outcome(expected, run, output)
    assert json.dumps(comparable(output)) == before
    if "calls" in row:
        assert comparable(calls) == comparable(decoded(row["calls"]))
    if "warnings_logged" in row:
        assert [record.getMessage() for record in caplog.records] == row["warnings_logged"]


def check_outcome(expected: dict[str, Any], run: Callable[[], Any], output: Any) -> None:
    if "throws" not in expected:
        returned = run()
        assert comparable(returned) == comparable(decoded(expected["returns"]))
        if "same_object" in expected:
            assert (returned is output) is expected["same_object"]
        return
    throws = expected["throws"]
    if throws["name"] == "ValidationError":
        with pytest.raises(ValidationError) as caught:
            run()
        assert str(caught.value) == throws["message"]
        assert dumped(caught.value.violations) == throws["violations"]
        assert caught.value.tool_name == throws.get("tool_name")
    else:
        with pytest.raises((TypeError, ValueError, RuntimeError)) as raised:
            run()
        assert not isinstance(raised.value, ValidationError)


@cases("output_guard_guard_tools.jsonl", exempt=reason)
def test_recorded_guard_tools_rows(row: dict[str, Any]) -> None:
    calls: dict[str, list[Any]] = {name: [] for name in row["tools"]}
    tools = {name: lambda output=output: output for name, output in row["tools"].items()}
    options = options_of(row)
    per_tool = options.get("toolOptions", {})
    options["toolOptions"] = {
        name: {**per_tool.get(name, {}), **recorder(list(HOOKS), calls[name])} for name in tools
    }
    guarded = guard_tools(tools, decoded(row["schemas"]), options)
    assert guarded.keys() == set(row["result_keys"])
    for name, expected in row["outcome"].items():
        is_same = guarded[name] is tools[name]
        assert is_same is expected["passthrough_same_function"]
        check_outcome(expected, guarded[name], row["tools"][name])
        assert comparable(calls[name]) == comparable(decoded(expected["calls"]))


HOOKS = ("onValidationPass", "onValidationFail", "onCoercion")


@cases(
    "output_guard_create_guard.jsonl",
    "createGuard.validate",
    exempt=reason,
)
def test_recorded_create_guard_validate_rows(row: dict[str, Any]) -> None:
    schema, options = decoded(row["schema"]), options_of(row)
    if "throws" in row["outcome"]:
        with pytest.raises(TypeError):
            create_guard(schema, options)
        return
    created = create_guard(schema, options)
    assert created.schema is schema
    assert created.options.on_invalid == options.get("onInvalid", "throw")
    result = created.validate(decoded(row["input"]))
    assert result.success is row["outcome"]["success"]
    assert dumped(result.violations) == row["outcome"].get("violations", [])


@cases(
    "output_guard_create_guard.jsonl",
    "guard",
    "createGuard.wrap",
    exempt=reason,
)
def test_arguments_reach_the_tool(row: dict[str, Any]) -> None:
    def tool(*arguments: Any) -> int:
        assert list(arguments) == row["outcome"]["tool_received"]
        return len(arguments)

    schema = {"type": "integer"}
    for wrapped in (guard(tool, schema), create_guard(schema).wrap(tool)):
        assert wrapped(*row["arguments"]) == len(row["arguments"])


@cases("output_guard_detect.jsonl", exempt=reason)
def test_recorded_detect_rows(row: dict[str, Any]) -> None:
    schema, expected = decoded(row["schema"]), row["outcome"]
    assert is_json_schema(schema) is expected["is_json_schema"]
    assert is_model_schema(schema) is False
    if "throws" in expected:
        with pytest.raises(TypeError):
            detect_schema(schema)
        return
    detected = detect_schema(schema)
    assert detected.type == expected["returns"]
    assert detected.schema is schema
    assert detect_schema(schema) is detected


@cases("output_guard_format.jsonl", exempt=reason)
def test_recorded_format_rows(row: dict[str, Any]) -> None:
    expected = row["outcome"].get("returns")
    match row["api"]:
        case "buildPath":
            assert build_path(row["parts"]) == expected
        case "buildViolation":
            arguments = [decoded(each) for each in row["arguments"]]
            names = ("actual", "expected", "severity", "received_value", "coerced_value")
            options = dict(zip(names, arguments[3:], strict=False))
            options = {name: each for name, each in options.items() if each is not UNDEFINED}
            assert dumped([build_violation(*arguments[:3], **options)]) == [expected]
        case "formatViolationMessage":
            assert format_violation_message(Violation(**row["violation"])) == expected
        case "formatViolationsForLLM":
            violations = [Violation(**each) for each in row["violations"]]
            assert format_violations_for_llm(violations) == expected
        case "ValidationError":
            violations = [Violation(**each) for each in row["violations"]]
            error = ValidationError(violations, row.get("tool_name"))
            assert str(error) == row["outcome"]["message"]
