"""Random schemas and values: no unexpected exception, and both engines agree.

`uv run python -m sdk.tests.guard.test_fuzz 100000` runs as many as one likes.
"""

import copy
import sys
from typing import Any

import pytest
from tooltrail.guard import SchemaError, enforce
from tooltrail.guard.explain import explain
from tooltrail.guard.jsonschema import compile_schema

from sdk.tests.support.random_schemas import Random

ROUNDS = 2_000
VALUES = 3  # per schema


def has_script_rules(value: Any) -> bool:
    """Does the value hold what JavaScript measures otherwise: wide texts, huge numbers?"""
    if isinstance(value, dict):
        return any(map(has_script_rules, value)) or any(map(has_script_rules, value.values()))
    if isinstance(value, list):
        return any(map(has_script_rules, value))
    if isinstance(value, str):
        return any(character > "\ud7ff" for character in value)
    return isinstance(value, int | float) and abs(value) > 2**53


def check(seed: int) -> int:
    """One schema against some values. Returns how many of them were valid."""
    make = Random(seed)
    schema = make.root()
    try:
        compiled = compile_schema(schema)
    except SchemaError as refused:
        assert "without end" in str(refused), (seed, schema)  # `$ref` to itself
        return 0
    valid = 0
    for _ in range(VALUES):
        value = make.value()
        before = copy.deepcopy(value)
        walked = explain(compiled.root, value, remember=False, formats=False)
        assert walked == explain(compiled.root, value, remember=True, formats=False), (seed, value)
        assert compiled.violations(value) == walked, (seed, schema, value)
        if compiled.native is not None and not has_script_rules([value, schema]):
            assert compiled.native.is_valid(value) is not bool(walked), (seed, schema, value)
        for strategy in ("coerce-and-warn", "strip-extra", "error-result"):
            outcome = enforce(value, schema, on_invalid=strategy, on_coercion=lambda *_: None)
            assert outcome.violations or outcome.outcome == "passed"
        assert value == before
        valid += not walked
    return valid


@pytest.mark.slow
def test_engines_agree_on_random_schemas_and_values() -> None:
    valid = sum(map(check, range(ROUNDS)))
    assert ROUNDS * VALUES / 10 < valid < ROUNDS * VALUES * 9 / 10  # both kinds were tried


if __name__ == "__main__":
    rounds = int(sys.argv[1])
    sys.stdout.write(f"{sum(map(check, range(rounds)))} valid of {rounds * VALUES}\n")
