"""Code written for tool-output-guard type-checks under mypy strict."""

from collections.abc import Callable
from typing import Any, assert_type

from pydantic import BaseModel
from tooltrail.guard import (
    CoercionConfig,
    Guard,
    GuardOptions,
    ValidationError,
    ValidationResult,
    Violation,
    create_guard,
    format_violations_for_llm,
    guard,
    guard_tools,
    validate,
)


class Weather(BaseModel):
    temperature: float
    unit: str


def test_validation_result_types_data_and_violations() -> None:
    result = validate({"temperature": 22.0, "unit": "celsius"}, Weather)

    assert_type(result, ValidationResult)
    assert_type(result.violations, list[Violation])
    assert result.success
    assert format_violations_for_llm(result.violations) == "No violations found."


def test_guard_wraps_tools() -> None:
    created = create_guard(Weather, GuardOptions(on_invalid="fallback", fallback_value=None))

    assert_type(created, Guard)
    assert created.wrap(lambda: {"temperature": "hot"})() is None


def test_hooks_and_errors_are_typed() -> None:
    seen: list[str] = []

    def on_fail(violations: list[Violation]) -> None:
        seen.extend(violation.path for violation in violations)

    def get_weather(city: str) -> dict[str, Any]:
        return {"unit": city}

    guarded = guard(get_weather, Weather, on_validation_fail=on_fail, tool_name="weather")
    try:
        guarded("London")
    except ValidationError as error:
        assert_type(error.violations, list[Violation])
        assert_type(error.tool_name, str | None)
        seen.append(error.violations[0].code)

    assert seen == ["$.temperature", "MISSING_REQUIRED"]


def test_guarded_tools_keep_the_mapping_type() -> None:
    tools: dict[str, Callable[..., Any]] = {"one": lambda: 1, "two": lambda: "2"}
    options = GuardOptions(
        on_invalid="coerce-and-warn",
        coercion=CoercionConfig(string_to_number=True),
        on_coercion=lambda path, original, coerced: None,
    )

    guarded = guard_tools(tools, {"two": {"type": "number"}}, options)

    assert guarded["one"] is tools["one"]
    assert guarded["two"]() == 2


def test_option_names_and_values_are_type_checked() -> None:
    def wrong() -> None:
        GuardOptions(on_invalid="ignore")  # type: ignore[arg-type]  # mypy must refuse it
        GuardOptions(fallbackValue=0)  # type: ignore[call-arg]  # mypy must refuse it
        CoercionConfig(string_to_date=True)  # type: ignore[call-arg]  # mypy must refuse it

    assert callable(wrong)
