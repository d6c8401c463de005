"""The canonical text and the call id: recorded rows, and both implementations agree."""

import json
from collections.abc import Callable, Mapping
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tooltrail.tools.canonical import (
    _escape_lone_surrogates,
    _ordered,
    _write_exactly,
    canonical_stringify,
    compute_call_id,
)

from sdk.tests.support.vectors import cases

ANY_TEXT = st.text(st.characters(codec=None), max_size=8)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**54), 2**54)
    | st.floats()
    | st.integers(-(2**54), 2**54).map(float)
    | st.text(max_size=12)
    | ANY_TEXT
)
KEYS = st.text(max_size=6) | st.sampled_from(["10", "9", "😀", "\ue000", "\uffff", "a", "A", ""])
JSON_VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


@cases("tool_call_id.jsonl")
def test_recorded_call_ids_match(row: dict[str, Any]) -> None:
    args = json.loads(row["args_json"])
    assert canonical_stringify({"tool": row["tool"], "args": args}) == row["canonical"]
    assert compute_call_id(row["tool"], args) == row["call_id"]


@pytest.mark.slow
@given(JSON_VALUES)
def test_fast_and_exact_writers_agree(value: Any) -> None:
    assert canonical_stringify(value) == _escape_lone_surrogates(_write_exactly(value))


def reordered(value: Any, draw: Callable[[Any], Any]) -> Any:
    """The same JSON value with the members of every object in another order."""
    if isinstance(value, Mapping):
        keys = draw(st.permutations(list(value)))
        return {key: reordered(value[key], draw) for key in keys}
    if isinstance(value, list):
        return [reordered(member, draw) for member in value]
    return value


@pytest.mark.slow
@given(JSON_VALUES, st.data())
def test_call_ids_do_not_depend_on_key_order(value: Any, data: st.DataObject) -> None:
    assert compute_call_id("t", reordered(value, data.draw)) == compute_call_id("t", value)


@pytest.mark.slow
@given(JSON_VALUES)
def test_canonical_text_parses_to_the_same_value(value: Any) -> None:
    # Reading the text back and writing it again changes nothing.
    text = canonical_stringify(value)
    text.encode()
    assert canonical_stringify(json.loads(text)) == text


def test_numbers_are_formatted_as_javascript_doubles() -> None:
    assert canonical_stringify([1.0, -0.0, 1e20, 1e21, 1e-5, 1e-7]) == (
        "[1,0,100000000000000000000,1e+21,0.00001,1e-7]"
    )
    assert canonical_stringify([2**53 + 1, 2**64, 10**400, -(10**400), float("nan")]) == (
        "[9007199254740992,18446744073709552000,null,null,null]"
    )


def test_subclasses_of_plain_types_are_written_as_those_types() -> None:
    class Colour(StrEnum):
        RED = "red"

    class Size(IntEnum):
        XL = 4

    value = MappingProxyType({"b": (Colour.RED, Size.XL), "a": MappingProxyType({})})
    assert canonical_stringify(value) == '{"a":{},"b":["red",4]}'


def test_surrogate_pair_is_one_character() -> None:
    assert canonical_stringify("\ud83d\ude00") == '"😀"'
    assert canonical_stringify("\ude00\ud83d") == '"\\ude00\\ud83d"'


def test_values_nested_beyond_the_stack_are_written() -> None:
    value: Any = []
    for _ in range(50_000):
        value = [value]
    assert canonical_stringify(value) == "[" * 50_001 + "]" * 50_001


def test_shared_object_is_not_a_cycle() -> None:
    shared = {"x": 1.0}
    assert canonical_stringify([shared, shared]) == '[{"x":1},{"x":1}]'


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, b"bytes", 1j, {"a": {1: "x"}}, {None: 1}, [[{True: 1}]]],
    ids=["object", "set", "bytes", "complex", "number as key", "none as key", "bool as key"],
)
def test_values_without_json_form_are_rejected(value: Any) -> None:
    with pytest.raises(TypeError):
        compute_call_id("t", value)


def test_cycles_are_rejected() -> None:
    loop: dict[str, Any] = {}
    loop["again"] = [loop]
    with pytest.raises(TypeError, match="contains itself"):
        compute_call_id("t", loop)


def test_ordinary_arguments_use_the_fast_writer() -> None:
    args = {"query": "größer 😀", "limit": 10.0, "min": 0.5, "tags": ["a", None, True], "f": {}}

    assert _ordered(args) == args
