"""Properties of coercing and stripping that hold for every schema and value."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tooltrail.guard import create_guard, enforce, validate

TYPES = ["string", "number", "integer", "boolean", "object", "array"]
NAMES = st.sampled_from(["a", "b", "c", "1", "é", "😀", "a.b"])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-100, 100)
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "x", "42", " 7 ", "1e3", "true", "FALSE", '{"a": "1"}', "[1]", "null"])
)
VALUES = st.recursive(
    LEAVES, lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=4)
)
SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.fixed_dictionaries(
        {"type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, unique=True)}
    ),
    lambda below: (
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(NAMES, below, max_size=4)},
            optional={"additionalProperties": st.booleans() | below},
        )
        | st.fixed_dictionaries({"type": st.just("array"), "items": below})
        | st.fixed_dictionaries({"allOf": st.lists(below, min_size=1, max_size=2)})
        | st.fixed_dictionaries({"anyOf": st.lists(below, min_size=1, max_size=2)})
    ),
    max_leaves=8,
)


@pytest.mark.slow
@given(SCHEMAS, VALUES)
@settings(max_examples=300, deadline=None)
def test_second_coercion_changes_nothing(schema: dict[str, Any], value: Any) -> None:
    guard = create_guard(schema, on_invalid="coerce-and-warn", on_coercion=lambda *_: None)
    before = copy.deepcopy(value)
    once = guard.validate(value)
    assert value == before
    if once.success:
        again = guard.validate(once.data)
        assert again.success
        assert again.data is once.data
        assert again.warnings == []
        assert validate(once.data, schema).success


@pytest.mark.slow
@given(SCHEMAS, VALUES)
@settings(max_examples=300, deadline=None)
def test_strip_extra_never_removes_a_declared_member(schema: dict[str, Any], value: Any) -> None:
    before = copy.deepcopy(value)
    stripped = enforce(value, schema, on_invalid="strip-extra")
    assert value == before
    if stripped.error is None:
        kept = set(member_paths(stripped.data))
        assert declared_paths(schema, value) <= kept
    if validate(value, schema).success:
        assert stripped.error is None
        assert stripped.outcome in ("passed", "stripped")


def member_paths(value: Any, path: str = "$") -> Iterator[str]:
    yield path
    members = value.items() if isinstance(value, dict) else ()
    for name, member in members:
        yield from member_paths(member, f"{path}/{name}")
    for at, item in enumerate(value) if isinstance(value, list) else ():
        yield from member_paths(item, f"{path}/{at}")


def declared_paths(schema: Any, value: Any, path: str = "$") -> set[str]:
    """The paths in a value that some part of a schema declares by name, written down afresh."""
    paths = {path}
    for branch in (*schema.get("allOf", ()), *schema.get("anyOf", ())):
        paths |= declared_paths(branch, value, path)
    if isinstance(value, dict):
        for name, below in schema.get("properties", {}).items():
            if name in value:
                paths |= declared_paths(below, value[name], f"{path}/{name}")
    if isinstance(value, list) and "items" in schema:
        for at, item in enumerate(value):
            paths |= declared_paths(schema["items"], item, f"{path}/{at}")
    return paths


@pytest.mark.slow
@given(SCHEMAS, VALUES)
@settings(max_examples=200, deadline=None)
def test_valid_data_is_returned_as_the_same_object(schema: dict[str, Any], value: Any) -> None:
    result = validate(value, schema)
    if result.success:
        assert result.data is value
        assert enforce(value, schema, on_invalid="coerce-and-warn").data is value
    else:
        assert result.violations
        assert result.data is None
