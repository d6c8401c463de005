"""Compares keywords with several schemas for the same value: `anyOf`, `oneOf`, `allOf`.

A value needs to match one alternative of `anyOf`. So an added alternative can only accept more,
and a removed one can only accept less; if another alternative covers it, nothing changes. `oneOf`
is still a `oneOf` here only if its alternatives overlap; any difference is then undecided.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tools_registry.schema_diff.effect import ABSENT, NOTES, Effect, by_presence, effect_of
from tools_registry.schema_diff.keywords import compare_notes
from tools_registry.schema_diff.reading import Node, View

if TYPE_CHECKING:
    from tools_registry.schema_diff.comparison import Comparison, Findings, Place

_ALTERNATIVES_TRIED = 20


def compare_alternatives(
    comparison: "Comparison", old: View, new: View, place: "Place", findings: "Findings"
) -> bool:
    """Add the differences in the three keywords; True if nothing else remains to compare."""
    if ("anyOf" in old) != ("anyOf" in new) and _compare_to_one(
        comparison, old, new, place, findings
    ):
        return True
    _compare_conjuncts(comparison, old.get("allOf", ()), new.get("allOf", ()), place, findings)
    ones, others = old.get("oneOf", ABSENT), new.get("oneOf", ABSENT)
    if ones is ABSENT or others is ABSENT:
        if ones is not others:
            findings.add(place, "oneOf", ones, others, by_presence(ones, others))
    else:
        removed, added, _ = _unlike(comparison, ones, others, place)
        if removed or added:
            why = "the alternatives overlap, and exactly one must match"
            findings.add(place, "oneOf", ones, others, Effect.UNDECIDED, why=why)
    if "anyOf" in old and "anyOf" in new:
        _compare_unions(comparison, old["anyOf"], new["anyOf"], place, findings)
    elif "anyOf" in old or "anyOf" in new:
        sides = old.get("anyOf", ABSENT), new.get("anyOf", ABSENT)
        findings.add(place, "anyOf", *sides, by_presence(*sides))
    return False


def _compare_conjuncts(
    comparison: "Comparison",
    old: Sequence[Node],
    new: Sequence[Node],
    place: "Place",
    findings: "Findings",
) -> None:
    removed, added, alike = _unlike(comparison, old, new, place)
    for before, after in alike + (_pairs(removed, added)):
        comparison.compare(before, after, place.beside(), findings)
    if len(removed) != len(added):
        for node in removed:
            findings.add(place, "allOf", node, ABSENT, Effect.WIDER)
        for node in added:
            findings.add(place, "allOf", ABSENT, node, Effect.NARROWER)


def _compare_unions(
    comparison: "Comparison",
    old: Sequence[Node],
    new: Sequence[Node],
    place: "Place",
    findings: "Findings",
) -> None:
    removed, added, alike = _unlike(comparison, old, new, place)
    for before, after in alike + _pairs(removed, added):
        comparison.compare(before, after, place.beside(), findings)
    if len(removed) == len(added):
        return
    beside = place.beside()
    for node in removed:
        is_covered = any(
            not comparison.effect(node, each, beside) & Effect.NARROWER for each in new
        )
        findings.add(place, "anyOf", node, ABSENT, effect_of(loses=not is_covered, gains=False))
    for node in added:
        is_covered = any(not comparison.effect(each, node, beside) & Effect.WIDER for each in old)
        findings.add(place, "anyOf", ABSENT, node, effect_of(loses=False, gains=not is_covered))


def _compare_to_one(
    comparison: "Comparison", old: View, new: View, place: "Place", findings: "Findings"
) -> bool:
    """Compare a single schema with an `anyOf`: it matches one alternative, others came or went.

    Example: a value becomes nullable. Returns False if no alternative is close enough.
    """
    is_wider = "anyOf" in new
    union, single = (new, old) if is_wider else (old, new)
    alternatives = union["anyOf"]
    if union.keys() - NOTES - {"anyOf"} or len(alternatives) > _ALTERNATIVES_TRIED:
        return False
    node = comparison.keep({word: value for word, value in single.items() if word not in NOTES})
    beside = place.beside()
    pairs = [(node, each) if is_wider else (each, node) for each in alternatives]
    effects = [comparison.effect(before, after, beside) for before, after in pairs]
    likest = min(range(len(pairs)), key=lambda index: effects[index].bit_count())
    if effects[likest] & Effect.OTHER == Effect.OTHER:
        return False
    for note in compare_notes(old, new):
        findings.add(place, note.keyword, note.before, note.after, note.effect)
    before, after = pairs[likest]
    comparison.compare(before, after, beside, findings)
    for index, alternative in enumerate(alternatives):
        if index != likest and is_wider:
            findings.add(place, "anyOf", ABSENT, alternative, Effect.WIDER)
        elif index != likest:
            findings.add(place, "anyOf", alternative, ABSENT, Effect.NARROWER)
    return True


def _unlike(
    comparison: "Comparison", old: Sequence[Node], new: Sequence[Node], place: "Place"
) -> tuple[list[Node], list[Node], list[tuple[Node, Node]]]:
    """The removed nodes, the added nodes, and the equivalent pairs, in the new order."""
    removed, added, alike = list(old), [], []
    for node in new:
        for index, candidate in enumerate(removed):
            if comparison.is_alike(candidate, node, place.beside()):
                alike.append((removed.pop(index), node))
                break
        else:
            added.append(node)
    return removed, added, alike


def _pairs(removed: Sequence[Node], added: Sequence[Node]) -> list[tuple[Node, Node]]:
    return list(zip(removed, added, strict=True)) if len(removed) == len(added) else []
