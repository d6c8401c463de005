"""Coercion: what is converted, by which toggle, and how it is reported (decision 1)."""

from typing import Any

import pytest
from tooltrail.guard import (
    CoercionConfig,
    create_guard,
    enforce,
)

QUIET: dict[str, Any] = {"on_coercion": lambda *_: None}


def test_coercion_warnings_carry_both_values() -> None:
    (coerced,) = enforce("7", {"type": "integer"}, on_invalid="coerce-and-warn", **QUIET).violations
    assert coerced.severity == "warning"
    assert (coerced.received_value, coerced.coerced_value) == ("7", 7)
    assert (coerced.received, coerced.expected) == ("string", "integer")


@pytest.mark.parametrize(
    ("schema", "output", "coerced"),
    [
        ({"type": "integer"}, "42", 42),
        ({"type": "integer"}, "4.5", None),
        ({"type": "integer"}, " ", None),
        ({"type": "integer"}, "Infinity", None),
        ({"type": ["integer", "null"]}, "42", 42),
        ({"type": ["boolean", "number"]}, "true", True),
        ({"type": ["boolean", "number"]}, "2", 2),
        ({"type": ["object", "array"]}, "[1]", [1]),
        ({"type": ["array", "object"]}, "3", None),
        ({"type": ["null", "string"]}, 1.0, "1"),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "number"}}}, "1", 1),
        ({"allOf": [{"type": "number"}, {"minimum": 0}]}, "1", 1),
        ({"properties": {"a": {"allOf": [{"type": "boolean"}]}}}, {"a": "TRUE"}, {"a": True}),
        ({"additionalProperties": {"type": "number"}}, {"a": "1"}, {"a": 1}),
        (
            {"patternProperties": {"^x": {}}, "additionalProperties": {"type": "number"}},
            {"x": "1", "y": "2", "z": 3},
            {"x": "1", "y": 2, "z": 3},
        ),
        ({"prefixItems": [{"type": "string"}], "items": {"type": "number"}}, ["1", "2"], ["1", 2]),
        ({"type": "object"}, '{"a": NaN}', None),
        ({"type": "array"}, "[" * 100_000, None),
        ({"type": "boolean"}, "K", None),
    ],
)
def test_coercion_converts_supported_values(
    schema: dict[str, Any], output: Any, coerced: Any
) -> None:
    result = enforce(output, schema, on_invalid="coerce-and-warn", **QUIET)
    assert result.data == coerced
    assert type(result.data) is type(coerced)
    assert result.outcome == ("failed" if coerced is None else "coerced")


SLIPS: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "string_to_number": ("1", {"type": "number"}, 1),
    "string_to_boolean": ("true", {"type": "boolean"}, True),
    "string_to_json": ("[]", {"type": "array"}, []),
    "number_to_string": (1, {"type": "string"}, "1"),
    "null_to_default": (None, {"type": "string", "default": "d"}, "d"),
}


@pytest.mark.parametrize("toggle", SLIPS)
@pytest.mark.parametrize("slip", SLIPS)
def test_each_toggle_enables_only_its_own_conversion(toggle: str, slip: str) -> None:
    output, schema, coerced = SLIPS[slip]
    for coercion in ({toggle: True}, CoercionConfig(**{toggle: True})):
        options = {"on_invalid": "coerce-and-warn", "coercion": coercion} | QUIET
        result = enforce(output, schema, options)
        assert result.outcome == ("coerced" if toggle == slip else "failed")
        if toggle == slip:
            assert result.data == coerced


def test_toggles_accept_camel_case_and_apply_only_to_coerce_and_warn() -> None:
    options = {"coercion": {"stringToNumber": True}} | QUIET
    assert enforce("1", {"type": "number"}, options).outcome == "failed"
    assert enforce("1", {"type": "number"}, options, on_invalid="coerce-and-warn").data == 1
    with pytest.raises(TypeError, match="stringToDate"):
        create_guard({"type": "number"}, coercion={"stringToDate": True})


def test_null_stays_null_without_toggles() -> None:
    schema = {"type": "string", "default": "d"}
    assert enforce(None, schema, on_invalid="coerce-and-warn").outcome == "failed"
    nullable = {
        "properties": {"a": {"type": ["string", "null"], "default": "d"}},
        "required": ["b"],
    }
    options = {"on_invalid": "coerce-and-warn", "coercion": {"null_to_default": True}} | QUIET
    assert enforce({"a": None}, nullable, options).violations[0].path == "$.b"


def test_default_value_is_copied() -> None:
    schema: dict[str, Any] = {"type": "array", "default": []}
    options = {"on_invalid": "coerce-and-warn", "coercion": {"null_to_default": True}} | QUIET
    created = create_guard(schema, options)
    created.enforce(None).data.append(1)
    assert created.enforce(None).data == []
