"""Compares two contracts of a tool: does the new one break callers or consumers? Pure.

It is compatible for callers if all arguments that were accepted still are, and for consumers of
results if no result is possible that was impossible before. An undecided change is not compatible.
"""

import json
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from tools_registry.json_diff import JSONChange, json_diff
from tools_registry.schema_diff import Effect, SchemaChange, compare_schemas
from tools_registry.schema_diff.effect import ABSENT
from tools_registry.schemas import ToolContract


class Side(StrEnum):
    """A part of a contract."""

    INPUT = "input"
    OUTPUT = "output"
    REST = "contract"
    """Description, flags and labels."""


class Verdict(StrEnum):
    """Compatibility of a change: for callers (input) or consumers (output)."""

    COMPATIBLE = "compatible"
    BREAKING = "breaking"
    UNKNOWN = "unknown"


_REASONS = {
    (Side.INPUT, Effect.NONE): "The accepted arguments do not change.",
    (
        Side.INPUT,
        Effect.WIDER,
    ): "Wider input: all previously accepted arguments are still accepted.",
    (Side.INPUT, Effect.NARROWER): "Narrower input: previously accepted arguments may be rejected.",
    (Side.INPUT, Effect.UNDECIDED): "Undecided: previously accepted arguments may be rejected.",
    (Side.OUTPUT, Effect.NONE): "The possible results do not change.",
    (Side.OUTPUT, Effect.NARROWER): "Narrower output: all results were possible before.",
    (Side.OUTPUT, Effect.WIDER): "Wider output: consumers may get new results.",
    (Side.OUTPUT, Effect.UNDECIDED): "Undecided: consumers may get new results.",
}
_BREAKING = {Side.INPUT: Effect.NARROWER, Side.OUTPUT: Effect.WIDER}
_NOTE = "Text for readers. Not used for validation."
_FLAG = "Setting for hosts and registries. Not used for validation."


@dataclass(frozen=True, slots=True)
class ContractChange:
    """One difference between two contracts, and whether it breaks callers or consumers."""

    side: Side
    change: SchemaChange
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class ContractDiff:
    """All differences between two contracts of a tool."""

    changes: list[ContractChange]
    old: dict[str, Any]
    new: dict[str, Any]

    def verdict(self, side: Side) -> Verdict:
        """The worst verdict of a side's changes."""
        verdicts = {one.verdict for one in self.changes if one.side is side}
        for worst in (Verdict.BREAKING, Verdict.UNKNOWN):
            if worst in verdicts:
                return worst
        return Verdict.COMPATIBLE

    @property
    def is_breaking(self) -> bool:
        """Whether callers or consumers may break; true also if that is undecided."""
        return any(one.verdict is not Verdict.COMPATIBLE for one in self.changes)

    @cached_property
    def raw(self) -> list[JSONChange]:
        """The differences between the two contracts as JSON documents."""
        return list(json_diff(self.old, self.new))


def compare_contracts(old: ToolContract, new: ToolContract) -> ContractDiff:
    """The differences between two contracts: inputs first, and breaking ones first."""
    inputs = compare_schemas(old.input_schema, new.input_schema)
    changes = [_judged(Side.INPUT, change) for change in inputs]
    changes += [_judged(Side.OUTPUT, change) for change in _compare_outputs(old, new)]
    documents = [one.model_dump(exclude={"name"}) for one in (old, new)]
    for member in ("description", "trusted", "ephemeral", "on_collision", "meta"):
        before, after = (document[member] for document in documents)
        if before != after:
            change = SchemaChange(member, member, before, after, Effect.NONE)
            reason = _FLAG if member in ("trusted", "ephemeral", "on_collision") else _NOTE
            changes.append(ContractChange(Side.REST, change, Verdict.COMPATIBLE, reason))
    order = [Verdict.BREAKING, Verdict.UNKNOWN, Verdict.COMPATIBLE]
    changes.sort(key=lambda one: ([*Side].index(one.side), order.index(one.verdict)))
    return ContractDiff(changes, *documents)


def _compare_outputs(old: ToolContract, new: ToolContract) -> list[SchemaChange]:
    before, after = old.output_schema, new.output_schema
    if before is None and after is None:
        return []
    if before is None:
        return [SchemaChange("$", "schema", ABSENT, after, Effect.NARROWER)]
    if after is None:
        why = "outputs are no longer validated"
        return [
            SchemaChange(
                path="$",
                keyword="schema",
                before=before,
                after=ABSENT,
                effect=Effect.WIDER,
                why=why,
            )
        ]
    return compare_schemas(before, after)


def _judged(side: Side, change: SchemaChange) -> ContractChange:
    breaking = _BREAKING[side]
    if change.is_note:
        return ContractChange(side, change, Verdict.COMPATIBLE, _NOTE)
    if change.effect is Effect.UNDECIDED:
        verdict, reason = Verdict.UNKNOWN, _REASONS[side, Effect.UNDECIDED]
    elif change.effect & breaking:
        verdict, reason = Verdict.BREAKING, _REASONS[side, breaking]
    else:
        verdict, reason = Verdict.COMPATIBLE, _REASONS[side, change.effect]
    if change.why and verdict is not Verdict.COMPATIBLE:
        reason = f"{reason[:-1]} ({change.why})."
    return ContractChange(side, change, verdict, reason)


def diff_document(diff: ContractDiff, *, limit: int, value_length: int) -> dict[str, Any]:
    """The diff as JSON with its first `limit` changes; values are cut to `value_length`."""

    def shown(value: Any) -> Any:
        text = json.dumps(value)
        return value if len(text) <= value_length else f"{text[:value_length]}…"

    def row(one: ContractChange) -> dict[str, Any]:
        change = one.change
        sides = {"before": change.before, "after": change.after}
        return {
            "side": one.side,
            "path": change.path,
            "keyword": change.keyword,
            **{name: shown(value) for name, value in sides.items() if value is not ABSENT},
            "verdict": one.verdict,
            "reason": one.reason,
        }

    return {
        "callers": diff.verdict(Side.INPUT),
        "consumers": diff.verdict(Side.OUTPUT),
        "change_count": len(diff.changes),
        "changes": [row(one) for one in diff.changes[:limit]],
    }
