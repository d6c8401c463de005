"""A JSON Schema as a graph of nodes, one for each sub-schema, with references resolved.

Owns what a node is, and which keywords have an effect in which draft. `reading` makes the graph
from a schema. Explaining, coercing and stripping walk the graph and never read raw schemas.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_THE_19: Final = frozenset(
    [
        "type",
        "enum",
        "const",
        "minLength",
        "maxLength",
        "pattern",
        "minimum",
        "exclusiveMinimum",
        "maximum",
        "exclusiveMaximum",
        "items",
        "minItems",
        "maxItems",
        "required",
        "properties",
        "additionalProperties",
        "anyOf",
        "oneOf",
        "allOf",
    ]
)
_SINCE_07: Final = _THE_19.union(
    [
        "default",
        "not",
        "if",
        "then",
        "else",
        "contains",
        "propertyNames",
        "patternProperties",
        "multipleOf",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "format",
        "$ref",
    ]
)
_SINCE_2019: Final = _SINCE_07.union(
    [
        "dependentSchemas",
        "dependentRequired",
        "minContains",
        "maxContains",
        "unevaluatedItems",
        "unevaluatedProperties",
    ]
)
VOCABULARY: Final = {
    "07": _SINCE_07.union(["dependencies", "additionalItems"]),
    "2019-09": _SINCE_2019.union(["additionalItems", "$recursiveRef"]),
    "2020-12": _SINCE_2019.union(["prefixItems", "$dynamicRef"]),
}
"""The keywords with an effect, by draft; all others are annotations."""

IN_PLACE: Final = frozenset(
    [
        *("allOf", "anyOf", "oneOf", "not", "if", "then", "else"),
        *("dependentSchemas", "dependencies", "$ref", "$dynamicRef", "$recursiveRef"),
    ]
)
"""Keywords whose sub-schemas apply to the same value as the schema itself."""


@dataclass(eq=False, slots=True)
class Node:
    """One sub-schema: its keywords as written, and its own sub-schemas by keyword.

    `children` holds a node for `items`, a list for `allOf`, a mapping for `properties`.
    References are children, too. `always` is set for the schemas true and false, and `under` is
    the keyword that contains such a schema.
    """

    keywords: Mapping[str, Any]
    children: dict[str, Any] = field(default_factory=dict)
    always: bool | None = None
    under: str = ""
    types: tuple[str, ...] | None = None
    plan: Any = None  # the checks that `explain` derives from the keywords, once

    def subschemas(self) -> Iterator[tuple[str, str | int | None, "Node"]]:
        """List (keyword, member or position, node) for every sub-schema."""
        for keyword, child in self.children.items():
            if isinstance(child, Node):
                yield keyword, None, child
            else:
                members = child.items() if isinstance(child, dict) else enumerate(child)
                yield from ((keyword, at, node) for at, node in members)

    def applied_in_place(self) -> Iterator["Node"]:
        """List the sub-schemas that apply to the same value as this one."""
        for keyword, _, node in self.subschemas():
            if keyword in IN_PLACE:
                yield node


def accepted_kinds(types: tuple[str, ...] | None) -> frozenset[str] | None:
    """The kinds of values that `type` accepts; None for all."""
    if types is None:
        return None
    return frozenset([*types, "integer"] if "number" in types else types)


@dataclass(frozen=True, slots=True)
class Graph:
    """A schema's root node, every node reachable from it, and its draft."""

    root: Node
    nodes: list[Node]
    draft: str

    def leaves_first(self) -> list[Node]:
        """List the nodes from which no way leads into a cycle, each after its sub-schemas."""
        parents: dict[int, list[Node]] = {}
        waiting: dict[int, int] = {}
        for node in self.nodes:
            children = [child for _, _, child in node.subschemas() if child.always is None]
            waiting[id(node)] = len(children)
            for child in children:
                parents.setdefault(id(child), []).append(node)
        ordered = [node for node in self.nodes if not waiting[id(node)]]
        for leaf in ordered:  # the list grows during this loop
            for parent in parents.get(id(leaf), ()):
                waiting[id(parent)] -= 1
                if not waiting[id(parent)]:
                    ordered.append(parent)
        return ordered
