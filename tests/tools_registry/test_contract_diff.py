"""What a change of a contract breaks, and the differences as JSON."""

import json
import random
from typing import Any

import pytest

from tests.support.contracts import make_contract
from tests.support.schema_samples import some_value
from tools_registry.contract_diff import ContractDiff, Side, Verdict, compare_contracts
from tools_registry.json_diff import json_diff
from tools_registry.schemas import ToolContract

COMPATIBLE, BREAKING, UNKNOWN = Verdict


def diff(old: dict[str, Any], new: dict[str, Any]) -> ContractDiff:
    return compare_contracts(
        *(ToolContract.model_validate(make_contract(**each)) for each in (old, new))
    )


@pytest.mark.parametrize(
    ("old", "new", "for_callers", "for_consumers"),
    [
        ({"maximum": 1}, {"maximum": 2}, COMPATIBLE, BREAKING),
        ({"maximum": 2}, {"maximum": 1}, BREAKING, COMPATIBLE),
        ({"type": "string"}, {"type": "integer"}, BREAKING, BREAKING),
        ({"pattern": "a"}, {"pattern": "b"}, UNKNOWN, UNKNOWN),
        ({"title": "a"}, {"title": "b"}, COMPATIBLE, COMPATIBLE),
    ],
)
def test_callers_and_consumers_are_broken_by_opposite_changes(
    old: Any, new: Any, for_callers: Verdict, for_consumers: Verdict
) -> None:
    for member, side, verdict in (
        ("input_schema", Side.INPUT, for_callers),
        ("output_schema", Side.OUTPUT, for_consumers),
    ):
        compared = diff({member: old}, {member: new})
        [one] = compared.changes
        assert (one.side, one.verdict) == (side, verdict)
        assert one.reason.endswith(".")
        assert compared.verdict(side) == verdict


def test_removing_the_output_schema_breaks_consumers() -> None:
    checked, unchecked = {"output_schema": {"type": "object"}}, {"output_schema": None}
    assert diff(checked, unchecked).verdict(Side.OUTPUT) == BREAKING
    assert diff(unchecked, checked).verdict(Side.OUTPUT) == COMPATIBLE
    assert diff(unchecked, unchecked).changes == []


def test_flags_and_labels_are_listed_as_compatible() -> None:
    compared = diff({}, {"trusted": True, "description": "Better.", "meta": {"a": 1}})
    assert [one.change.keyword for one in compared.changes] == ["description", "trusted", "meta"]
    assert {one.verdict for one in compared.changes} == {COMPATIBLE}


def test_breaking_changes_come_first() -> None:
    compared = diff(
        {"input_schema": {"minimum": 1, "maximum": 1}},
        {"input_schema": {"minimum": 0, "maximum": 0}},
    )
    assert [one.verdict for one in compared.changes] == [BREAKING, COMPATIBLE]


def test_raw_diff_covers_the_whole_contract() -> None:
    compared = diff({}, {"trusted": True, "input_schema": {"type": "object"}})
    assert [(one.pointer, one.kind) for one in compared.raw] == [
        ("/input_schema/properties", "remove"),
        ("/trusted", "replace"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": True}, [("/a", "replace", 1, True)]),
        ({"a/b": 1}, {"c~d": 1}, [("/c~0d", "add", None, 1), ("/a~1b", "remove", 1, None)]),
        ([1, 2, 3], [2, 3], [("/0", "remove", 1, None)]),
        ([1, 2], [1, 9, 2], [("/1", "add", None, 9)]),
        ([{"a": 1}], [{"a": 2}], [("/0/a", "replace", 1, 2)]),
        ({"a": []}, {"a": {}}, [("/a", "replace", [], {})]),
    ],
)
def test_json_diff_lists_added_removed_and_replaced_values(
    old: Any, new: Any, expected: list[Any]
) -> None:
    entries = [(one.pointer, one.kind, one.before, one.after) for one in json_diff(old, new)]
    assert entries == expected


def test_long_lists_are_compared_item_by_item() -> None:
    old = list(range(50_000))
    [change] = json_diff(old, [*old, "new"])
    assert (change.pointer, change.after) == ("/50000", "new")


def test_diff_is_empty_if_and_only_if_the_documents_are_equal() -> None:
    chance = random.Random(7)
    for _ in range(3_000):
        old, new = some_value(chance), some_value(chance)
        is_same = json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True)
        assert (not list(json_diff(old, new))) == is_same
        assert list(json_diff(old, old)) == []
