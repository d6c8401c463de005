"""Finds which members a schema evaluates, for `unevaluatedProperties` and `unevaluatedItems`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tooltrail.guard.jsvalues import kind_of
from tooltrail.guard.nodes import Node
from tooltrail.guard.work import Pattern

if TYPE_CHECKING:
    from tooltrail.guard.explain import Walk

_VISIT_STEPS = 8  # two sets and a walk over the sub-schemas


def evaluated_members(
    walk: "Walk", node: Node, value: Any, ignoring: str = ""
) -> frozenset[str | int]:
    """The names or positions of `value` that `node` evaluates, without keyword `ignoring`."""
    key = (id(node), id(value))
    if not ignoring and key in walk.evaluated:
        return walk.evaluated[key]
    walk.spend(_VISIT_STEPS + len(value) // 4 + len(node.keywords))
    own: Iterator[str | int] = (
        _of_object(walk, node, value, ignoring)
        if kind_of(value) == "object"
        else _of_array(walk, node, value, ignoring)
    )
    seen = frozenset(own).union(
        *(evaluated_members(walk, child, value) for child in _contributing(walk, node, value))
    )
    if not ignoring:
        walk.evaluated[key] = seen
    return seen


def _contributing(walk: "Walk", node: Node, value: Any) -> Iterator[Node]:
    """List the sub-schemas for the same value whose members count as evaluated.

    Sub-schemas that must hold count even if they do not hold: they have reported that already,
    and without this the members they evaluated would be reported a second time.
    """
    for keyword, at, child in node.subschemas():
        match keyword:
            case "$ref" | "$dynamicRef" | "$recursiveRef" | "allOf":
                counts = True
            case "anyOf" | "oneOf" | "if":
                counts = walk.fits(child, value)
            case "then":
                counts = "if" in node.children and walk.fits(node.children["if"], value)
            case "else":
                counts = "if" in node.children and not walk.fits(node.children["if"], value)
            case "dependentSchemas":
                counts = at in value
            case _:
                counts = False
        if counts:
            yield child


def _of_object(walk: "Walk", node: Node, value: Any, ignoring: str) -> Iterator[str]:
    children = node.children
    if "additionalProperties" in children or (
        "unevaluatedProperties" in children and ignoring != "unevaluatedProperties"
    ):
        yield from value
        return
    yield from (name for name in children.get("properties", ()) if name in value)
    for pattern in children.get("patternProperties", ()):
        compiled = Pattern(pattern)
        walk.spend(len(value))
        yield from (name for name in value if compiled.matches(str(name), walk))


def _of_array(walk: "Walk", node: Node, value: Any, ignoring: str) -> Iterator[int]:
    children = node.children
    items = children.get("items")
    if (
        isinstance(items, Node)
        or (isinstance(items, list) and "additionalItems" in children)
        or ("unevaluatedItems" in children and ignoring != "unevaluatedItems")
    ):
        yield from range(len(value))
        return
    yield from range(len(children.get("prefixItems", items or ())))
    if "contains" in children and not isinstance(items, list):
        yield from (at for at, item in enumerate(value) if walk.fits(children["contains"], item))
