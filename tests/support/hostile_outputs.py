"""Outputs that are expensive to explain: a schema of items, wrong items, and a right one."""

from typing import Any, NamedTuple


class Attack(NamedTuple):
    """Items that an attacker registers and returns."""

    items: dict[str, Any]
    wrong: list[Any]
    right: Any


HOSTILE = {
    "enum of lists": Attack({"enum": [[n] for n in range(3_000)]}, [[-1]] * 8_000, [2_999]),
    "enum of strings": Attack({"enum": [f"s{n}" for n in range(3_000)]}, ["x"] * 20_000, "s2999"),
    "300 constants": Attack({"anyOf": [{"const": n} for n in range(300)]}, [-1] * 10_000, 299),
    "3,000 constants": Attack(
        {"anyOf": [{"const": n} for n in range(3_000)]}, [-1] * 40_000, 2_999
    ),
    "300 objects": Attack(
        {"oneOf": [{"properties": {"a": {"const": n}}, "required": ["a"]} for n in range(300)]},
        [{"a": -1}] * 5_000,
        {"a": 299},
    ),
    "unique lists": Attack(
        {"uniqueItems": True, "contains": {"const": 1}},
        [[[0]] * 400] * 40,
        [1, *([n] for n in range(399))],
    ),
    "a pattern": Attack(
        {"type": "string", "pattern": "(a+)+$"}, ["a" * 200 + "b"] * 800, "a" * 200
    ),
}


def schema_of(attack: Attack) -> dict[str, Any]:
    """The output schema of the tool."""
    return {"type": "object", "properties": {"data": {"type": "array", "items": attack.items}}}
