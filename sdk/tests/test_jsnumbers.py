"""Numbers as JavaScript prints them: where plain digits change to exponents."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tooltrail.jsnumbers import js_number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (True, "1"),
        (1e20, "100000000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (0.00001, "0.00001"),
        (0.000001, "0.000001"),
        (1e-7, "1e-7"),
        (-1.25e-9, "-1.25e-9"),
        (0.1 + 0.2, "0.30000000000000004"),
        (9007199254740993, "9007199254740992"),
        (2**64, "18446744073709552000"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (10**400, "Infinity"),
        (-(10**400), "-Infinity"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_known_numbers_are_formatted_as_in_javascript(value: float, text: str) -> None:
    assert js_number(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_formatted_number_parses_to_the_same_double(value: float) -> None:
    assert float(js_number(value)) == value
